"""What the views of several sections are made of; `parts.html.jinja` has a macro for each."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias


@dataclass(frozen=True)
class Badge:
    """A word in a coloured box."""

    text: str
    hue: str
    """A class of theme.css."""


@dataclass(frozen=True)
class Code:
    """What stands in a file or on a command line."""

    code: str


@dataclass(frozen=True)
class Segment:
    """A part of a bar, in percent of its length."""

    at: float
    width: float
    kind: str
    """A class of page.css."""
    title: str = ""


@dataclass(frozen=True)
class Meter:
    """A small bar and what it says."""

    segments: Sequence[Segment]
    words: str


Plain: TypeAlias = str | int | Badge | Code | Meter
Cell: TypeAlias = Plain | Sequence[Plain]
"""What a table shows in one place; several of them side by side."""


@dataclass(frozen=True)
class Fact:
    """A name and what it is. Nothing is shown of one without a value."""

    name: str
    value: Cell


@dataclass(frozen=True)
class Table:
    """A table. The first cell of a row names it."""

    caption: str
    """Screen readers say it, and the page shows it above."""
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    right: Collection[int] = ()
    """Columns of numbers."""
    kind: str = ""
    """A class of page.css."""
    name: str = ""
    """What it is called where it is folded; its caption unless given."""


@dataclass(frozen=True)
class Tables:
    """A section of words and tables."""

    intro: str
    facts: Sequence[Fact] = ()
    tables: Sequence[Table] = ()
    """Those without rows are left out."""
    folded: Sequence[Table] = ()
    """Tables that open at a click, each named by its caption and its count of rows."""
    notes: Sequence[Cell] = ()


def words_of(when: str) -> str:
    """A day or a moment of ISO 8601 as people read it: 4 January 2027, 11:30 UTC; nothing for nothing."""
    if not when:
        return ""
    timestamp = datetime.fromisoformat(when)
    hour = f", {timestamp.astimezone(UTC):%H:%M} UTC" if timestamp.tzinfo else ""
    return f"{timestamp.day} {timestamp:%B %Y}{hour}"


def plural(count: int) -> str:
    """The end of a noun after a count."""
    return "" if count == 1 else "s"
