"""Neuron devices: the SDK's nccom-test between all cores of the node."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from .measured import Measured, Say, finish

TOOLS = "/opt/aws/neuron/bin"
LIST_SECONDS = 60
SECONDS = {"quick": 120.0, "thorough": 600.0}
ROUNDS = {"quick": "20", "thorough": "200"}
OPERATIONS = {"quick": ("all_reduce",), "thorough": ("all_reduce", "all_gather", "reduce_scatter")}
BYTES = "134217728"
"""128 MiB, the size of the published figures."""


def measure(expected: int, mode: str, say: Say) -> list[Measured]:
    """Bus bandwidth of collectives on bf16 in GB/s, and one checked all-reduce.

    Zeros are sent where nothing is checked: nccom-test fills its buffers only with --check, on fp32. A test that ends
    with an error has no value and fails nobody, because its options differ between releases; one that hangs fails.
    """
    ls, test = _tool("neuron-ls"), _tool("nccom-test")
    if ls is None or test is None:
        return [Measured("neuron_devices", (), None, "devices", "neuron-ls and nccom-test are not on this image")]
    status, out, err = finish([ls, "--json-output"], seconds=LIST_SECONDS)
    try:
        devices = json.loads(out)
        cores = sum(device["nc_count"] for device in devices)
    except (ValueError, KeyError, TypeError):
        reason = f"neuron-ls ended with {status}: {(err or out).strip()[-200:]}"
        return [Measured("neuron_devices", (), None, "devices", reason, failed=True)]
    results = [
        Measured("neuron_devices", (), float(len(devices)), "devices", f"{expected} belong to this instance type")
    ]
    if cores < 2:
        return results
    say("measuring", program="nccom-test", cores=cores)
    common = [test, "-r", str(cores), "-b", BYTES, "-e", BYTES, "-w", "5", "--non-interactive"]
    for operation in OPERATIONS[mode]:
        command = [*common, "-n", ROUNDS[mode], "-d", "bf16", operation]
        status, out, err = finish(command, seconds=SECONDS[mode])
        results.append(_bandwidth(f"neuron_{operation}", status, out, err))
    status, out, err = finish([*common, "-n", "1", "-d", "fp32", "--check", "all_reduce"], seconds=SECONDS[mode])
    wrong = Measured("neuron_all_reduce_wrong", (), 0.0 if status == 0 else None, "errors")
    if status != 0:
        wrong = Measured(wrong.name, (), None, "errors", _why(status, out, err), failed=status is None)
    return [*results, wrong]


def _bandwidth(name: str, status: int | None, out: str, err: str) -> Measured:
    rate = re.search(r"Avg bus bandwidth:\s*([0-9.]+)\s*GB/s", out)
    if status == 0 and rate:
        return Measured(name, (), float(rate[1]), "GB/s", f"{BYTES} bytes")
    return Measured(name, (), None, "GB/s", _why(status, out, err), failed=status is None)


def _why(status: int | None, out: str, err: str) -> str:
    return "nccom-test hangs" if status is None else f"nccom-test ended with {status}: {(err or out).strip()[-200:]}"


def _tool(name: str) -> str | None:
    installed = Path(TOOLS, name)
    return shutil.which(name) or (str(installed) if installed.is_file() else None)
