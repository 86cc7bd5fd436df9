"""How long the set-up of a node takes: steps that need nothing of each other run at the same time."""

import argparse
import sys
from pathlib import Path

from table import Report, markdown, verdict
from timing import HELPERS

sys.path.extend(HELPERS)

import boot

LIMIT = 1.15


def report(_: Path, args: argparse.Namespace) -> Report:
    """The steps at the same time, one after another, and the longest chain of steps that need each other."""
    del args
    serial, parallel = boot.boot(serial=True), boot.boot(serial=False)
    seconds, chain = boot.longest_chain(serial.steps)
    ratio = parallel.seconds / seconds
    rows = [
        ["longest chain: " + " → ".join(chain), f"{seconds:.1f} s", "", ""],
        ["steps at the same time", f"{parallel.seconds:.1f} s", "", ""],
        ["steps one after another", f"{serial.seconds:.1f} s", "", ""],
        ["same time / longest chain", f"{ratio:.2f}", f"≤ {LIMIT}", verdict(ratio, LIMIT)],
    ]
    longest = sorted(serial.steps.items(), key=lambda item: -item[1])[:8]
    steps = markdown(["step, alone", "time"], [[name, f"{taken:.1f} s"] for name, taken in longest])
    return Report(f"{markdown(['set-up of a node', 'measured', 'limit', ''], rows)}\n\n{steps}", ratio <= LIMIT)
