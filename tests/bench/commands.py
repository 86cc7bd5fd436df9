"""How long the commands of a working day take."""

import argparse
import os
from pathlib import Path

from table import Report, markdown, verdict
from timing import ROOT, measure

PODWRIGHT = str(ROOT / ".venv" / "bin" / "podwright")


def report(_: Path, args: argparse.Namespace) -> Report:
    """`--help` and `check prod` against their limits, and against `hyp --help` where that is given."""
    rows, kept = [], True
    for words, limit in ((["--help"], 0.25), (["check", "prod"], 0.6)):
        timing = measure([PODWRIGHT, *words], runs=args.runs)
        rows.append([f"`podwright {' '.join(words)}`", str(timing), f"≤ {limit} s", verdict(timing.median, limit)])
        kept = kept and timing.median <= limit
    if args.hyp:
        timing = measure([str(args.hyp), "--help"], runs=args.runs)
        rows.append(["`hyp --help` of sagemaker-hyperpod", str(timing), "to compare", ""])
    return Report(markdown(["command", "median (range)", "limit", ""], rows), kept)


def deploy_report(folder: Path, args: argparse.Namespace) -> Report:
    """`bin/deploy` to the embedded sandbox, the second time and with nothing changed."""
    del folder, args
    timing = measure([str(ROOT / "bin" / "deploy")], runs=1, env={"NO_COLOR": "1", **os.environ})
    row = ["`bin/deploy`, second run", str(timing), "≤ 40 s", verdict(timing.median, 40)]
    return Report(markdown(["command", "median (range)", "limit", ""], [row]), timing.median <= 40)
