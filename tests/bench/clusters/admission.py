"""How long Kueue takes to admit 1,000 jobs of 50 teams on the nodes of environments/governed-hundred.yaml."""

import argparse
import sys
from pathlib import Path
from typing import Final

from table import Report, markdown
from timing import HELPERS

sys.path.extend(HELPERS)

from admission_times import ASKED, admit, fitting

TEAMS: Final = 50
# Of Kueue 0.19.2's own tests: workloads, nodes, and the mean seconds of a run that their limits are computed from.
# Source: test/performance/scheduler/configs/*/rangespec.yaml and generator.yaml of its module.
_PUBLISHED: Final = (("baseline", 15_000, "none", 351.1), ("tas", 15_000, "640", 401.5))


def report(folder: Path, args: argparse.Namespace) -> Report:
    """One run, since each takes minutes, beside the figures that Kueue publishes. There is no limit."""
    times, jobs, fit = admit(folder, TEAMS), TEAMS * sum(ASKED.values()), fitting(TEAMS)
    rows = [
        [f"{jobs:,} jobs of {TEAMS} teams created", "", f"{times.created:.1f} s", f"{jobs / times.created:.0f}"],
        [f"all {fit} that fit are admitted", "100", f"{times.admitted:.1f} s", f"{fit / times.admitted:.1f}"],
        [f"the pods of all {fit} run", "100", f"{times.running:.1f} s", f"{fit / times.running:.1f}"],
    ]
    rows += [
        [f"Kueue's own test `{name}`: {count:,} workloads", nodes, f"{seconds:.0f} s", f"{count / seconds:.0f}"]
        for name, count, nodes, seconds in _PUBLISHED
    ]
    return Report(markdown(["since the first job", "nodes", "elapsed", "a second"], rows), kept=True)
