"""Measures what docs/measurements.md promises: `bin/bench [--runs N] [--only NAME] [--hyp PATH] [--write]`.

Every figure is of whole processes, start-up included, after one warm-up. `--write` puts the tables between the markers
of docs/measurements.md; without it they are only printed. The line below a table names the commit that was measured, so
`--write` refuses folders with changes that are not committed.
"""

import argparse
import os
import platform
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
import looks
import mutated
import names
import preflight_times
import promotion_times
import purchases
import rendering
import report_cost
import series
import status_cost
from agents import server_costs
from clusters import admission, control_planes, sandbox_memory
from governance import forecasts, real_kueue, simulated
from measured_tables import FOLDERS, PAGE, has_changes, head, with_table
from mutants import run as mutants_run
from playing import played_pages, recoveries
from suite import file_costs
from synthesizing import synthesis_times

PARTS = {
    "synthesis": synthesis_times.report,
    "commands": commands.report,
    "looks": looks.report,
    "mutations": mutated.report,
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
    "recoveries": recoveries.report,
    "simulation": simulated.report,
    "forecast": forecasts.report,
    "memory": sandbox_memory.report,
    "kueue": real_kueue.report,
    "test-files": file_costs.report,
}
# These take hours, need the control plane or the generator of the site, so only who asks for them gets them.
ON_REQUEST = ("mutants", "admission", "control-plane", "pages", "recoveries", "memory", "kueue", "silences", "site")
TIMED = (
    *("synthesis", "commands", "looks", "preflight", "handlers", "rendering", "report", "status"),
    *("agents-start", "agents", "forecast"),
)
"""Parts that run each command `--runs` times. The others run it once, or count what does not vary."""
FEWEST_RUNS = 3


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
    chosen = args.only or [name for name in PARTS if name not in ON_REQUEST]
    if args.write:
        _check_writable(parser, chosen, args.runs)
    missed = False
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as folder:
        for name in chosen:
            sys.stderr.write(f"measuring {name} …\n")
            start, load = time.perf_counter(), os.getloadavg()[0]
            report = PARTS[name](Path(folder), args)
            missed = missed or not report.kept
            text = f"{report.table}\n\n{_origin(name, args.runs, load)}, took {time.perf_counter() - start:.0f} s.\n"
            sys.stdout.write(f"\n## {name}\n\n{text}")
            if args.write:
                PAGE.write_text(with_table(PAGE.read_text(), name, text))
    return int(missed)


def _check_writable(parser: argparse.ArgumentParser, chosen: list[str], runs: int) -> None:
    """End with a usage error where a table could not say honestly what it was measured of."""
    if runs < FEWEST_RUNS and any(name in TIMED for name in chosen):
        parser.error(f"--runs: {runs} are too few to be published (at least {FEWEST_RUNS})")
    for name in chosen:
        if has_changes(FOLDERS[name]):
            parser.error(f"--write: commit the changes of {', '.join(FOLDERS[name])} first; the table names its commit")


def _origin(name: str, runs: int, load: float) -> str:
    """The command, the runs, the load before and after, the machine, the day and the commit of a measurement."""
    count = f"{runs} runs" if name in TIMED else "one run"
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    loads = f"load {load:.1f} to {os.getloadavg()[0]:.1f}"
    return f"`bin/bench --only {name}`, {count}, {loads}, {machine}, {time.strftime('%Y-%m-%d')}, at {head()}"


sys.exit(main())
