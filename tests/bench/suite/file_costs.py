"""The slowest files of the test suite, by their records."""

import argparse
import sys
from pathlib import Path

from table import Report, markdown
from timing import HELPERS

sys.path.extend(HELPERS)

import records

COUNT = 20


def report(_: Path, args: argparse.Namespace) -> Report:
    """The 20 test files with the most recorded CPU seconds, and the sum of all."""
    del args
    recorded = records.read()
    slowest = sorted(recorded.items(), key=lambda item: (-item[1].seconds, item[0]))[:COUNT]
    rows = [[f"`{file}`", f"{record.seconds:.1f}", str(record.tests)] for file, record in slowest]
    total = sum(record.seconds for record in recorded.values())
    tests = sum(record.tests for record in recorded.values())
    rows.append([f"**all {len(recorded)} files**", f"{total:,.0f}", f"{tests:,}"])
    return Report(markdown(["test file", "CPU seconds", "tests"], rows), kept=True)
