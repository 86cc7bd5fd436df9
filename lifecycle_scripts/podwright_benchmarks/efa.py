"""EFA devices, each against itself: libfabric's fi_pingpong with both ends on one device."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from .measured import Measured, Say, finish

PROVIDER = "efa"
ADDRESS = "127.0.0.1"
"""Of the control connection; the data goes through the device."""
FIRST_PORT = 29600
"""Below those of outgoing connections; one for each device."""
BYTES = 1 << 20
ROUNDS = {"quick": "200", "thorough": "5000"}
SECONDS = {"quick": 20.0, "thorough": 120.0}
AT_ONCE = 8
LIST_SECONDS = 30
# Not through shared memory, which libfabric takes for two ends on one host: that would measure no device.
DEVICE_ONLY = {"FI_EFA_ENABLE_SHM_TRANSFER": "0"}


def measure(expected: int, mode: str, say: Say, provider: str = PROVIDER) -> list[Measured]:
    """Bandwidth of every EFA device of the node in GB/s, one message at a time; their content is checked first."""
    tool, info = _tool("fi_pingpong"), _tool("fi_info")
    if tool is None or info is None:
        return [Measured("efa_loopback", (), None, "GB/s", "libfabric's fi_pingpong and fi_info are not on this image")]
    status, out, err = finish([info, "-p", provider, "-t", "FI_EP_RDM"], seconds=LIST_SECONDS)
    domains = sorted(set(re.findall(r"^\s*domain: (\S+)$", out, re.MULTILINE)))
    if not domains:
        reason = f"fi_info finds none of {expected} devices: {(err or out).strip()[-200:] or f'status {status}'}"
        return [Measured("efa_loopback", (), None, "GB/s", reason, failed=status is not None)]
    say("measuring", program="fi_pingpong", devices=domains)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        result = list(pool.map(lambda index: _loop(tool, provider, domains[index], index, mode), range(len(domains))))
    # When no device at all answers, it is the image or these arguments, and the check of EFA's set-up says more.
    return (
        result if any(loop.value is not None for loop in result) else [replace(loop, failed=False) for loop in result]
    )


def _loop(tool: str, provider: str, domain: str, index: int, mode: str) -> Measured:
    common = [tool, "-p", provider, "-d", domain, "-e", "rdm", "-S", str(BYTES)]
    # Comparing the content takes longer than sending it, so it has a few rounds of its own.
    for options in (["-I", "10", "-c"], ["-I", ROUNDS[mode]]):
        rate, reason = _ping_pong([*common, *options], FIRST_PORT + index, SECONDS[mode])
        if rate is None:
            return Measured("efa_loopback", (index,), None, "GB/s", f"{domain}: {reason}", failed=True)
    return Measured("efa_loopback", (index,), rate, "GB/s", domain)


def _ping_pong(command: Sequence[str], port: int, seconds: float) -> tuple[float | None, str]:
    """Run both ends; GB/s, or None and what they said."""
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        server = pool.submit(finish, [*command, "-B", str(port)], environment=DEVICE_ONLY, seconds=seconds)
        client: tuple[int | None, str, str] = (None, "", "")
        # Until the server listens, the client is refused.
        while not server.done() and time.monotonic() - began < seconds:
            time.sleep(0.2)
            client = finish([*command, "-P", str(port), ADDRESS], environment=DEVICE_ONLY, seconds=seconds)
            if client[0] in (0, None):
                break
        status, _, message = server.result()
    rate = _rate(client[1]) if client[0] == 0 and status == 0 else None
    return rate, (client[2] or message or client[1]).strip()[-200:] or f"nothing within {seconds:g} s"


def _rate(output: str) -> float | None:
    """GB/s of the table's one row: bytes, messages, acknowledged, total, time, MB/sec."""
    for line in output.splitlines():
        words = line.split()
        if len(words) >= 6 and words[0][:1].isdigit():
            return float(words[5]) / 1000
    return None


def _tool(name: str) -> str | None:
    return shutil.which(name) or next(
        (str(path) for path in (Path("/opt/amazon/efa/bin", name),) if path.is_file()), None
    )
