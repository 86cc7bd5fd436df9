"""Policies and streams of jobs, made up by seeds, on the control plane's Kueue and in the simulator."""

import argparse
import sys
from pathlib import Path
from typing import Final

from table import Report, markdown
from timing import HELPERS

sys.path.extend(HELPERS)

from api_server import started
from kueue_steps import CONFIGURATIONS, Cluster, Outcome, compare

AT_ONCE: Final = 32


def report(folder: Path, args: argparse.Namespace) -> Report:
    """One run; the seeds of the tests are among these. No difference is allowed."""
    rows, differences = [], 0
    with started(folder / "plane") as plane:
        plane.install("kueue", CONFIGURATIONS[False])
        cluster = Cluster(plane)
        for is_fair, name in ((False, "classical"), (True, "by shares")):
            plane.restart("kueue", CONFIGURATIONS[is_fair])
            outcome = Outcome()
            for first in range(0, args.policies, AT_ONCE):
                seeds = range(first, min(first + AT_ONCE, args.policies))
                outcome += compare(cluster, seeds, is_fair=is_fair, comes=6, turns=2)
                sys.stderr.write(f"{name}: {outcome.policies} policies, {len(outcome.differences)} differ\n")
            sys.stderr.writelines(f"{each}\n" for each in outcome.differences)
            differences += len(outcome.differences)
            rows.append(
                [
                    name,
                    f"{outcome.policies}",
                    f"{outcome.steps:,}",
                    f"{outcome.admissions:,}",
                    f"{outcome.preemptions:,}",
                    f"{outcome.growths:,}",
                    f"{outcome.real_seconds:.0f} s",
                    f"{outcome.simulated_seconds:.1f} s",
                    f"{outcome.by_chance}",
                    f"{len(outcome.differences)}",
                ]
            )
        cluster.close()
    header = [
        "preemption",
        "policies",
        "steps",
        "admissions",
        "preemptions",
        "grown",
        "Kueue",
        "simulator",
        "once",
        "always",
    ]
    return Report(markdown(header, rows), not differences)
