"""How long the commands of a working day take, and how long they say nothing."""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from table import Report, markdown, verdict
from timing import ROOT, measure_in_turn

PODWRIGHT = str(ROOT / ".venv" / "bin" / "podwright")
HYP_VERSION = "3.12.0"
SILENCE = 25.0
"""Seconds, on a machine that is busy with other things. Idle, what works says so every five."""
ALONE = (
    *("check", "project", "cost prod", "quotas prod", "show prod", "alerts prod", "explain NET003"),
    *("size --parameters 70B --type ml.p5en.48xlarge", "simulate prod --generate 3d", "render two-teams"),
    *("report prod", "dashboards export prod", "dashboards preview sandbox", "pipeline show"),
)
IN_SANDBOX = (
    *("deploy two-teams --sandbox --yes", "status two-teams --sandbox", "jobs two-teams --sandbox"),
    *("diff two-teams --sandbox", "drift two-teams --sandbox", "doctor two-teams --sandbox"),
    *("collect two-teams --sandbox", "report two-teams --live --sandbox", "upgrade two-teams --sandbox"),
    *("destroy two-teams --sandbox --dry-run", "destroy two-teams --sandbox --yes"),
)


def _hyp(chosen: Path | None) -> Path:
    """The `hyp` command: the chosen one, or that of an environment of its own, which is made the first time."""
    if chosen:
        return chosen
    venv = ROOT / ".podwright" / f"hyp-{HYP_VERSION}"
    if not (venv / "bin" / "hyp").exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        package = f"sagemaker-hyperpod=={HYP_VERSION}"
        subprocess.run([str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", package], check=True)
    return venv / "bin" / "hyp"


def report(_: Path, args: argparse.Namespace) -> Report:
    """`--help` and `check prod`, the latter against `hyp --help` measured in turn with it."""
    commands = {
        "`podwright --help`": [PODWRIGHT, "--help"],
        "`podwright check prod`": [PODWRIGHT, "check", "prod"],
        f"`hyp --help` of sagemaker-hyperpod {HYP_VERSION}": [str(_hyp(args.hyp)), "--help"],
    }
    timings = measure_in_turn({name: (command, {}) for name, command in commands.items()}, runs=args.runs)
    help_, check, hyp = (timing.median for timing in timings.values())
    limits = [("`podwright --help`, seconds", help_, 0.25), ("`check prod` / `hyp --help`", check / hyp, 0.25)]
    times = [[name, str(timing)] for name, timing in timings.items()]
    retained = [[name, f"{value:.2f}", f"≤ {limit}", verdict(value, limit)] for name, value, limit in limits]
    tables = [markdown(["command", "median (range)"], times), markdown(["limit on", "measured", "limit", ""], retained)]
    return Report("\n\n".join(tables), all(value <= limit for _, value, limit in limits))


def silence_report(folder: Path, args: argparse.Namespace) -> Report:
    """Each command once, those that need an account in a sandbox of their own."""
    del args
    project = folder / "project"
    subprocess.run([PODWRIGHT, "init", str(project), "--scenario", "two-teams"], check=True, capture_output=True)
    try:
        rows = [(words, *_silence(words, ROOT)) for words in ALONE]
        rows += [(words, *_silence(words, project)) for words in IN_SANDBOX]
    finally:
        subprocess.run([PODWRIGHT, "sandbox", "stop", "--project", str(project)], capture_output=True)
    cells = [
        [f"`podwright {words}`", f"{longest:.1f} s", f"{whole:.1f} s", f"≤ {SILENCE:g} s", verdict(longest, SILENCE)]
        for words, longest, whole in rows
    ]
    table = markdown(["command", "longest silence", "all of it", "limit", ""], cells)
    return Report(table, all(longest <= SILENCE for _, longest, _ in rows))


def _silence(words: str, project: Path) -> tuple[float, float]:
    """Seconds of the longest silence, and of the whole command."""
    command = [PODWRIGHT, *words.split(), "--project", str(project)]
    start = spoken = time.monotonic()
    longest = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0) as process:
        assert process.stdout
        while os.read(process.stdout.fileno(), 65536):
            now = time.monotonic()
            longest, spoken = max(longest, now - spoken), now
    end = time.monotonic()
    # What ends with 1 has found something.
    if process.returncode not in (0, 1):
        raise RuntimeError(f"podwright {words} ended with {process.returncode}")
    return max(longest, end - spoken), end - start
