"""The commands of the documentation's pages: how many were run in the sandbox, and how many are marked instead."""

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from table import Report, markdown
from timing import HELPERS, ROOT

sys.path.extend(HELPERS)

from page_commands import REASONS, Page, pages
from page_player import Outcome, play

_PAGE: Final = ROOT / "docs" / "measurements.md"
_HEADER: Final = ("page", "commands", "run", "marked", "failed", "not run yet", "seconds", "on")


@dataclass(frozen=True)
class _Row:
    """What became of a page's commands."""

    commands: int
    run: int
    marked: int
    failed: int
    seconds: int
    date: str

    @property
    def absent(self) -> int:
        """Commands that nobody has run yet."""
        return self.commands - self.run - self.marked - self.failed

    def cells(self, name: str) -> list[str]:
        """A row of the table."""
        numbers = (self.commands, self.run, self.marked, self.failed, self.absent)
        return [name, *map(str, numbers), str(self.seconds) if self.date else "", self.date]


def report(folder: Path, args: argparse.Namespace) -> Report:
    """Run the pages that `--page` names, or all; of the others the table keeps what it has while they are as long.

    Who interrupts it with Ctrl-C gets the table of the pages that were run to their end.
    """
    every = pages()
    chosen = [page for page in every if not args.page or page.name in args.page]
    outcomes: dict[str, list[Outcome]] = defaultdict(list)
    try:
        for outcome in play(chosen, folder, kubernetes=args.kubernetes):
            outcomes[outcome.page].append(outcome)
            sys.stderr.write(f"{outcome.seconds:6.1f} s  {outcome}\n")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
    today = time.strftime("%Y-%m-%d")
    ended = [page for page in chosen if len(outcomes[page.name]) == sum(not item.mark for item in page.commands)]
    rows = _earlier(every) | {page.name: _row(page, outcomes[page.name], today) for page in ended}
    right = all(outcome.right for results in outcomes.values() for outcome in results)
    return Report(_table(every, rows), right)


def _row(page: Page, outcomes: Sequence[Outcome], date: str) -> _Row:
    marked = sum(bool(item.mark) for item in page.commands)
    right = sum(outcome.right for outcome in outcomes)
    seconds = round(sum(outcome.seconds for outcome in outcomes))
    return _Row(len(page.commands), right, marked, len(outcomes) - right, seconds, date if outcomes else "")


def _earlier(every: Sequence[Page]) -> dict[str, _Row]:
    """The rows of the published table. A page with more or fewer commands than then, or marks, begins anew."""
    rows = {page.name: _row(page, (), "") for page in every}
    for line in _PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(_HEADER) and cells[0] in rows and cells[-1]:
            commands, run, marked, failed = map(int, cells[1:5])
            former = _Row(commands, run, marked, failed, int(cells[6]), cells[-1])
            now = rows[cells[0]]
            rows[cells[0]] = former if (former.commands, former.marked) == (now.commands, now.marked) else now
    return rows


def _table(every: Sequence[Page], rows: Mapping[str, _Row]) -> str:
    """All pages, their sum, and how many commands have which mark."""
    values = [rows[page.name] for page in every]
    total = [sum(getattr(row, name) for row in values) for name in ("commands", "run", "marked", "failed", "absent")]
    body = [rows[page.name].cells(page.name) for page in every]
    marks = Counter(item.mark for page in every for item in page.commands if item.mark)
    reasons = ", ".join(f"{reason} {marks[reason]}" for reason in REASONS)
    table = markdown(_HEADER, [*body, ["**all**", *map(str, total), str(sum(row.seconds for row in values)), ""]])
    return f"{table}\n\nMarked: {reasons}."
