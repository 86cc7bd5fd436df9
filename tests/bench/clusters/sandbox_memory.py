"""What the sandbox's own process takes in memory, and how that grows with every further deployment."""

import argparse
import os
import re
import subprocess
from pathlib import Path
from typing import Final

from commands import PODWRIGHT
from podwright.operations.aws import sandbox_server as server
from table import Report, markdown, verdict

_LIMIT_MB: Final = 400.0
_GROWTH_MB: Final = 1.0
_RESIDENT: Final = re.compile(r"^VmRSS:\s+(\d+) kB$", re.MULTILINE)


def report(folder: Path, args: argparse.Namespace) -> Report:
    """Deploy the environment of `podwright init`, then again and again with other tags."""
    subprocess.run([PODWRIGHT, "init", str(folder)], check=True, capture_output=True)
    environment = folder / "environments" / "sandbox.yaml"
    text = environment.read_text()
    running = server.start(folder, port=0, time_scale=0.1, kubernetes="store")
    resident = []
    try:
        for number in range(args.deployments + 1):
            environment.write_text(f"{text}\ntags: {{round: r{number}}}\n")
            command = [PODWRIGHT, "deploy", "sandbox", "--sandbox", "--yes"]
            subprocess.run(command, cwd=folder, env=os.environ | {"NO_COLOR": "1"}, check=True, capture_output=True)
            resident.append(_resident(running))
    finally:
        server.stop(folder)
    growth = (resident[-1] - resident[0]) / args.deployments
    rows = [
        [name, f"{value:.2f} MB", f"≤ {limit:.0f} MB", verdict(value, limit)]
        for name, value, limit in (
            ("after the first deployment", resident[0], _LIMIT_MB),
            (f"after {args.deployments} more", resident[-1], _LIMIT_MB),
            ("more by each of these", growth, _GROWTH_MB),
        )
    ]
    retained = max(resident[0], resident[-1]) <= _LIMIT_MB and growth <= _GROWTH_MB
    return Report(markdown(["the sandbox's process", "measured", "limit", ""], rows), retained)


def _resident(running: server.Running) -> float:
    """Resident memory of the server, in MB."""
    match = _RESIDENT.search(Path(f"/proc/{running.pid}/status").read_text())
    assert match
    return int(match[1]) * 1024 / 1e6
