"""How fast work is simulated: of an environment with a month of work, and of 200 teams in 8 flavors at a high load."""

import argparse
import json
import sys
from pathlib import Path
from typing import Final

import rendering
from table import Report, markdown, verdict
from timing import measure

DAYS: Final = (0.06, 0.6, 6.0)
DESIRED: Final = 100_000 / 180
"""Jobs a second that simulate 100,000 of them, which are six days of this work, in three minutes."""


def report(folder: Path, args: argparse.Namespace) -> Report:
    """`podwright simulate` as a whole process."""
    teams = folder / "teams.yaml"
    text, _, _ = rendering.environment(rendering.LARGE).partition("jobs:\n")
    # Nodes of one subnet are enough for quotas, whatever their addresses.
    teams.write_text(f"{text}acknowledge: [{{rule: NET013, reason: nothing is deployed}}]\n")
    cases = [("prod", "prod", 30.0), *((f"{rendering.LARGE} teams, 8 flavors", str(teams), days) for days in DAYS)]
    rows, retained = [], True
    for name, environment, days in cases:
        page = folder / "outcome.json"
        program = (
            "import sys; from podwright.operations.cli import main; sys.stdout = open(sys.argv.pop(1), 'w'); main()"
        )
        words = ("simulate", environment, "--generate", f"{days * 24:g}h", "--seed", "1", "--json")
        timing = measure([sys.executable, "-c", program, str(page), *words], runs=1, warm_ups=0)
        jobs = json.loads(page.read_text(encoding="utf-8"))["jobs"]
        # Of one processor, so that it says the same where others work on the machine too.
        speed = jobs / timing.processor
        retained = retained and speed >= DESIRED
        verdicts = [f"≥ {DESIRED:.0f}", verdict(DESIRED, speed)]
        rows.append(
            [
                name,
                f"{days:g}",
                f"{jobs:,}",
                f"{timing.median:.1f} s",
                f"{timing.processor:.1f} s",
                f"{speed:.0f}",
                f"{timing.peak_mib:.0f} MiB",
                *verdicts,
            ]
        )
    header = [
        "environment",
        "days of work",
        "jobs",
        "elapsed",
        "processor",
        "jobs a second",
        "largest process",
        "limit",
        "",
    ]
    return Report(markdown(header, rows), retained)
