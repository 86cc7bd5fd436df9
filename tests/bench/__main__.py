"""Measures what docs/measurements.md promises: `bin/bench [--runs N] [--only NAME] [--hyp PATH] [--write]`.

Every figure is of whole processes, start-up included, after one warm-up. `--write` puts the tables between the markers
of docs/measurements.md; without it they are only printed.
"""

import argparse
import os
import platform
import re
import sys
import tempfile
import time
from pathlib import Path

import boot_times
import commands
import doctor_matrix
import effect_times
import handler_costs
import house
import mutated
import names
import preflight_times
import promotion_times
import purchases
import rendering
import report_cost
import series
import status_cost
import synthesis_times
from agents import server_costs
from clusters import admission, control_planes, sandbox_memory
from governance import forecasts, real_kueue, simulated
from mutants import run as mutants_run
from playing import played_pages
from timing import ROOT

PAGE = ROOT / "docs" / "measurements.md"
PARTS = {
    "synthesis": synthesis_times.report,
    "commands": commands.report,
    "mutations": mutated.report,
    "deploy": commands.deploy_report,
    "boot": boot_times.report,
    "preflight": preflight_times.report,
    "handlers": handler_costs.report,
    "language": names.report,
    "purchases": purchases.report,
    "rendering": rendering.report,
    "series": series.report,
    "report": report_cost.report,
    "silences": commands.silence_report,
    "site": report_cost.site_report,
    "status": status_cost.report,
    "agents-start": server_costs.start_report,
    "agents": server_costs.report,
    "doctor": doctor_matrix.report,
    "effects": effect_times.report,
    "promotion": promotion_times.report,
    "house": house.report,
    "mutants": mutants_run.report,
    "admission": admission.report,
    "control-plane": control_planes.report,
    "pages": played_pages.report,
    "simulation": simulated.report,
    "forecast": forecasts.report,
    "memory": sandbox_memory.report,
    "kueue": real_kueue.report,
}
# These take hours, need the control plane or the generator of the site, so only who asks for them gets them.
ON_REQUEST = ("mutants", "admission", "control-plane", "pages", "memory", "kueue", "silences", "site")


def main() -> int:
    """Run the chosen parts; returns 1 when a figure misses its limit."""
    parser = argparse.ArgumentParser(prog="bin/bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each command (default: 5)")
    parser.add_argument("--only", choices=PARTS, action="append", help="measure only this part; may be repeated")
    parser.add_argument("--hyp", type=Path, help="another `hyp` command to compare with (default: one is installed)")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/measurements.md")
    parser.add_argument("--seed", type=int, default=1, help="which mutants (default: 1)")
    parser.add_argument("--count", type=int, default=200, help="how many mutants (default: 200)")
    parser.add_argument("--policies", type=int, default=256, help="policies for each way of preemption (default: 256)")
    parser.add_argument("--jobs", type=int, default=1, help="how many mutants at a time (default: 1)")
    parser.add_argument("--again", action="store_true", help="meet mutants anew that no test has killed")
    parser.add_argument("--json", type=Path, help="write every mutant and what became of it to this file")
    parser.add_argument("--deployments", type=int, default=50, help="how many further ones for memory (default: 50)")
    parser.add_argument("--page", action="append", help="run the commands of this page; may be repeated (default: all)")
    parser.add_argument(
        "--kubernetes", choices=("real", "store"), help="what clusters have (default: real if installed)"
    )
    args = parser.parse_args()
    missed = False
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as folder:
        for name in args.only or [name for name in PARTS if name not in ON_REQUEST]:
            sys.stderr.write(f"measuring {name} …\n")
            start = time.perf_counter()
            report = PARTS[name](Path(folder), args)
            missed = missed or not report.kept
            machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"
            text = (
                f"{report.table}\n\n`bin/bench --only {name}`, {machine}, took {time.perf_counter() - start:.0f} s.\n"
            )
            sys.stdout.write(f"\n## {name}\n\n{text}")
            if args.write:
                write(name, text)
    return int(missed)


def write(name: str, text: str) -> None:
    """Replace what stands between the markers of `name`. Raises ValueError when the page has none."""
    page = PAGE.read_text()
    marker = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not marker.search(page):
        raise ValueError(f"{PAGE} has no markers for {name}")
    PAGE.write_text(marker.sub(lambda match: f"{match[1]}{text}{match[2]}", page))


sys.exit(main())
