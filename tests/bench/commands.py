"""How long the commands of a working day take."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from table import Report, markdown, verdict
from timing import ROOT, measure, measure_in_turn

PODWRIGHT = str(ROOT / ".venv" / "bin" / "podwright")
HYP_VERSION = "3.12.0"


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


def deploy_report(folder: Path, args: argparse.Namespace) -> Report:
    """`bin/deploy` to the embedded sandbox, the second time and with nothing changed."""
    del folder, args
    timing = measure([str(ROOT / "bin" / "deploy")], runs=1, env={"NO_COLOR": "1", **os.environ})
    row = ["`bin/deploy`, second run", str(timing), "≤ 40 s", verdict(timing.median, 40)]
    return Report(markdown(["command", "median (range)", "limit", ""], [row]), timing.median <= 40)
