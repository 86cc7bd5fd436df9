"""How long a commit takes through three stages in the sandbox: three accounts, two regions, every step for real."""

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from podwright.operations.aws import sandbox_server as server
from table import Report, markdown, verdict

LIMIT = 300.0
"""Seconds for the first promotion of whole environments, on a quiet machine of two cores."""
POSITIONS = {
    "dev": ("111122223333", "us-west-2", "usw2"),
    "staging": ("222233334444", "us-west-2", "usw2"),
    "prod": ("444455556666", "us-east-2", "use2"),
}
FILE = """
account: "{account}"
region: {region}
protection: destroy
network: {{zones: [{zones}-az1, {zones}-az2]}}
cluster: {{zones: [{zones}-az1, {zones}-az2]}}
instance_groups:
  system: {{instance_type: ml.m5.4xlarge, count: {count}}}
"""
KINDS = ("check", "synth", "preflight", "effects", "deploy", "gate")


def report(folder: Path, args: argparse.Namespace) -> Report:
    """One row for each kind of step: the first promotion, the same files again, and files with one more node."""
    root = folder / "promotion"
    (root / "environments").mkdir(parents=True)
    (root / "podwright.yaml").write_text("environments: [dev, staging, prod]\n")
    _write(root, count=2)
    server.start(root, port=0)
    try:
        first = _promote(root)
        again = _promote(root)
        _write(root, count=3)
        more = _promote(root)
    finally:
        server.stop(root)
    rows = [[kind, *(_seconds(run.steps, kind) for run in (first, again, more))] for kind in KINDS]
    rows.append(["**all**", *(f"{run.wall:.0f} s" for run in (first, again, more))])
    rows.append(["processor time of commands", *(f"{run.cpu:.0f} s" for run in (first, again, more))])
    retained = first.wall <= LIMIT
    rows.append([f"limit of the first: ≤ {LIMIT:.0f} s", verdict(first.wall, LIMIT), "", ""])
    header = ["step, three environments together", "first", "again, nothing changed", "one more node in each"]
    return Report(markdown(header, rows), retained)


class _Run:
    """A promotion: seconds of each step, of the whole, and of the processors."""

    def __init__(self, steps: dict[str, float], wall: float, cpu: float) -> None:
        self.steps, self.wall, self.cpu = steps, wall, cpu


def _write(root: Path, count: int) -> None:
    for name, (account, region, zones) in POSITIONS.items():
        text = FILE.format(account=account, region=region, zones=zones, count=count)
        (root / f"environments/{name}.yaml").write_text(text)


def _promote(root: Path) -> _Run:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-P", "-m", "podwright.operations.cli", "promote", "--sandbox", "--json"]
    done = subprocess.run(command, cwd=root, env=os.environ, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode:
        raise RuntimeError(f"the promotion failed: {events[-1] if events else done.stderr}")
    steps = {event["step"]: event["seconds"] for event in events if event["event"] == "passed"}
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _Run(steps, events[-1]["seconds"], cpu)


def _seconds(steps: dict[str, float], kind: str) -> str:
    actual = [seconds for name, seconds in steps.items() if name.rpartition(".")[2] == kind]
    return f"{sum(actual):.0f} s" if actual else "not repeated"
