"""How large a report is and how long it takes: of `prod`, and of 200 teams with 500 jobs."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from rendering import environment
from table import Report, markdown, verdict
from timing import ROOT, measure_in_turn

SECONDS = 3.0
KIB = {"prod": 150, "200 teams": 1000}
_MODULE = [sys.executable, "-m", "podwright.operations.cli", "report"]


def report(folder: Path, args: argparse.Namespace) -> Report:
    """`podwright report --assembly DIR` as a whole process; a synthesis before it takes what it always takes."""
    # The default network has no room for the nodes of 200 teams.
    text = environment(200).replace("zones: [usw2-az2, usw2-az3]}", _WIDE, 1)
    (folder / "teams-200.yaml").write_text(text)
    commands, files = {}, {}
    for name, file in (("prod", "prod"), ("200 teams", str(folder / "teams-200.yaml"))):
        assembly, files[name] = folder / f"report-{name}", folder / f"report-{name}.html"
        context = {"environment": file, "chart": "stand-in"}
        variables = {"CDK_OUTDIR": str(assembly), "CDK_VALIDATION": "false", "CDK_CONTEXT_JSON": json.dumps(context)}
        app = [sys.executable, "-P", "-m", "podwright.bin.app"]
        subprocess.run(app, cwd=ROOT, env=os.environ | variables, check=True, capture_output=True)
        commands[name] = ([*_MODULE, file, "--assembly", str(assembly), "--out", str(files[name])], {})
    timings = measure_in_turn(commands, runs=args.runs)
    rows, kept = [], True
    for name, timing in timings.items():
        size = files[name].stat().st_size / 1024
        kept = kept and timing.median <= SECONDS and size <= KIB[name]
        limits = (f"≤ {SECONDS:g} s, {KIB[name]:,} KiB", verdict(max(timing.median / SECONDS, size / KIB[name]), 1))
        rows.append([f"report of {name}", str(timing), f"{timing.peak_mib:.0f} MiB", f"{size:,.0f} KiB", *limits])
    header = ["whole process, without the synthesis", "median (range)", "largest process", "file", "limit", ""]
    return Report(markdown(header, rows), kept)


_WIDE = "zones: [usw2-az2, usw2-az3], subnets: {usw2-az2: {nodes: 10.0.128.0/17}}}"
