"""How large a report is and how long it takes: of `prod`, and of 200 teams with 500 jobs."""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from rendering import environment
from table import Report, markdown, verdict
from timing import ROOT

SECONDS = 3.0
KIB = {"prod": 150, "200 teams": 1000}
_MODULE = [sys.executable, "-m", "podwright.operations.cli", "report"]
SITE_KIB = 1000
"""What a browser may load for the front page of the site."""


def report(folder: Path, args: argparse.Namespace) -> Report:
    """`podwright report --assembly DIR` as a whole process, and the synthesis that it needs without --assembly."""
    # The default network has no room for the nodes of 200 teams.
    text = environment(200).replace("zones: [usw2-az2, usw2-az3]}", _WIDE, 1)
    (folder / "teams-200.yaml").write_text(text)
    rows, retained = [], True
    for name, file in (("prod", "prod"), ("200 teams", str(folder / "teams-200.yaml"))):
        assembly, made = folder / f"report-{name}", folder / f"report-{name}.html"
        context = {"environment": file, "chart": "stand-in"}
        variables = {"CDK_OUTDIR": str(assembly), "CDK_VALIDATION": "false", "CDK_CONTEXT_JSON": json.dumps(context)}
        synthesis = _seconds([sys.executable, "-P", "-m", "podwright.bin.app"], variables)
        command = [*_MODULE, file, "--assembly", str(assembly), "--out", str(made)]
        _seconds(command, {})
        taken = [_seconds(command, {}) for _ in range(args.runs)]
        middle, size = statistics.median(taken), made.stat().st_size / 1024
        retained = retained and middle <= SECONDS and size <= KIB[name]
        limits = (f"≤ {SECONDS:g} s, {KIB[name]:,} KiB", verdict(max(middle / SECONDS, size / KIB[name]), 1))
        span = f"{middle:.2f} s ({min(taken):.2f}–{max(taken):.2f})"
        rows.append([f"report of {name}", span, f"{synthesis:.2f} s", f"{size:,.0f} KiB", *limits])
    header = ["whole process", "processor time, median (range)", "the synthesis before it", "file", "limit", ""]
    return Report(markdown(header, rows), retained)


def _seconds(command: list[str], variables: dict[str, str]) -> float:
    """Processor seconds of a process and its children, which other work on the machine does not lengthen much."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, env=os.environ | variables, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


_WIDE = "zones: [usw2-az2, usw2-az3], subnets: {usw2-az2: {nodes: 10.0.128.0/17}}}"


def site_report(folder: Path, args: argparse.Namespace) -> Report:
    """The site as `bin/docs` builds it, and its front page with all that a browser loads for it."""
    del folder, args
    subprocess.run([ROOT / "bin/docs"], check=True, capture_output=True)
    site = ROOT / ".podwright/site"
    files = [file for file in site.rglob("*") if file.is_file()]
    text = (site / "index.html").read_text(encoding="utf-8")
    loaded = set(
        re.findall(r'<(?:script|img)\b[^>]*\bsrc="([^":]+)"|<link\b[^>]*rel="?stylesheet[^>]*href="([^":]+)"', text)
    )
    names = {"index.html", *(first or second for first, second in loaded)}
    front = sum((site / name).stat().st_size for name in names) / 1024
    rows = [
        ["pages", f"{sum(file.suffix == '.html' for file in files)}", "", ""],
        ["all files", f"{sum(file.stat().st_size for file in files) / 1024**2:.1f} MiB", "", ""],
        [
            "index of the search, read at the first search",
            f"{(site / 'search.json').stat().st_size / 1024:,.0f} KiB",
            "",
            "",
        ],
        [
            f"front page with the {len(names) - 1} files that it loads",
            f"{front:,.0f} KiB",
            f"≤ {SITE_KIB:,} KiB",
            verdict(front, SITE_KIB),
        ],
    ]
    return Report(markdown(["site", "weight", "limit", ""], rows), front <= SITE_KIB)
