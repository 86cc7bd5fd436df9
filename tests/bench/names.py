"""Names of the code outside the glossary, by package."""

import argparse
import sys
from pathlib import Path

from table import Report, markdown
from timing import HELPERS, ROOT

sys.path.extend(HELPERS)

from language import counts


def table(root: Path) -> str:
    """The counts of a checkout as a table."""
    rows = counts(root)
    rows["**all**"] = tuple(map(sum, zip(*rows.values(), strict=True)))
    numbers = [[package, *(f"{number:,}" for number in row)] for package, row in rows.items()]
    return markdown(["package", "names", "outside the glossary", "definitions of these"], numbers)


def report(folder: Path, args: argparse.Namespace) -> Report:
    """The table of this checkout; tests/contract/code/lint_names.py finds the names outside the glossary."""
    del folder, args
    return Report(table(ROOT), True)


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
