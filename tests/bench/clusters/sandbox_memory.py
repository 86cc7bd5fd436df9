"""The resident memory of the sandbox's own process: with all environments, and its growth with further deployments."""

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from commands import PODWRIGHT
from podwright.config.loading.project import Project
from podwright.operations.aws import sandbox_server as server
from table import Report, markdown, verdict
from timing import ROOT

_LIMIT_MB: Final = 400.0
_GROWTH_MB: Final = 1.0
_RESIDENT: Final = re.compile(r"^VmRSS:\s+(\d+) kB$", re.MULTILINE)


def report(folder: Path, args: argparse.Namespace) -> Report:
    """Deploy each file of environments/ to one sandbox; then one environment repeatedly to another, with other tags."""
    together = _all_environments(folder / "all")
    repeated = _one_repeatedly(folder / "one", args.deployments)
    growth = (repeated[-1] - repeated[0]) / args.deployments
    figures = (
        (f"most after any of {len(together)} environments", max(together), _LIMIT_MB),
        (f"after all {len(together)}", together[-1], _LIMIT_MB),
        ("after the first deployment of one", repeated[0], _LIMIT_MB),
        (f"after {args.deployments} more of it", repeated[-1], _LIMIT_MB),
        ("more by each of these", growth, _GROWTH_MB),
    )
    rows = [[name, f"{value:.2f} MB", f"≤ {limit:.0f} MB", verdict(value, limit)] for name, value, limit in figures]
    within = all(value <= limit for _, value, limit in figures)
    return Report(markdown(["the sandbox's process", "measured", "limit", ""], rows), within)


def _all_environments(folder: Path) -> list[float]:
    """Resident memory after each file of environments/, in MB, all in one sandbox."""
    folder.mkdir(parents=True)
    shutil.copytree(ROOT / "environments", folder / "environments")
    running = server.start(folder, port=0, time_scale=0.1, kubernetes="store")
    resident = []
    try:
        for name in Project.at(folder).names:
            _deploy(folder, name)
            resident.append(_resident(running))
    finally:
        server.stop(folder)
    return resident


def _one_repeatedly(folder: Path, more: int) -> list[float]:
    """Resident memory after each of `1 + more` deployments of one environment with changed tags, in MB."""
    subprocess.run([PODWRIGHT, "init", str(folder)], check=True, capture_output=True)
    environment = folder / "environments" / "sandbox.yaml"
    text = environment.read_text()
    running = server.start(folder, port=0, time_scale=0.1, kubernetes="store")
    resident = []
    try:
        for number in range(more + 1):
            environment.write_text(f"{text}\ntags: {{round: r{number}}}\n")
            _deploy(folder, "sandbox")
            resident.append(_resident(running))
    finally:
        server.stop(folder)
    return resident


def _deploy(folder: Path, name: str) -> None:
    command = [PODWRIGHT, "deploy", name, "--sandbox", "--yes"]
    subprocess.run(command, cwd=folder, env=os.environ | {"NO_COLOR": "1"}, check=True, capture_output=True)


def _resident(running: server.Running) -> float:
    """Resident memory of the server, in MB."""
    match = _RESIDENT.search(Path(f"/proc/{running.pid}/status").read_text())
    assert match
    return int(match[1]) * 1024 / 1e6
