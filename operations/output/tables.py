"""Tables of what is there, in the one form that all of podwright's have, and the colours of states."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Union

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text

_NUMBERS: Final = (
    *("resources", "current", "target", "weight"),
    *("instances", "in use", "idle", "unhealthy", "running", "waiting"),
)
_GOOD: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "InService", "Running", "Created", "Updated")
_BAD: Final = ("FAIL", "Fail", "ROLLBACK", "RollingBack", "Degraded")
_SEVERITIES: Final = {
    **dict.fromkeys(("error", "failed", "FAILED", "fail", "missed"), "bold red"),
    **dict.fromkeys(("warning", "warn", "SKIP", "skipped"), "yellow"),
    **dict.fromkeys(("ok", "pass", "passed"), "green"),
    "info": "cyan",
    "accepted": "dim",
    "skip": "dim",
}
_NARROW: Final = 24
"""So wide a column of text stays at least, or as wide as its longest cell: no word of a usual length is broken."""
_WHOLE: Final = 1_000
"""More than any word has characters."""
_GAP: Final = 2


class Table:
    """Rows under names of columns, as wide as what they are printed to.

    Text goes over several lines where the width asks for it. Where that is not enough, columns that may go go, the
    first named first; where that is not enough, each row becomes a paragraph. Both are said below the table.
    """

    def __init__(
        self, title: str, columns: Sequence[str], rows: Iterable[Sequence["str | Text"]], right: Collection[str | int]
    ) -> None:
        """See `new_table`."""
        self.title = title
        self.columns = columns
        self.rows = list(rows)
        self.right = {index for index, name in enumerate(columns) if name in right or index in right}
        self.optional: Sequence[str] = ()
        self.indent = 0

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """What rich prints in a width. A log has none that somebody looks at: nothing has to go there."""
        from rich.console import Group
        from rich.padding import Padding

        least = _together(self._least(_WHOLE), range(len(self.columns))) + self.indent
        width = options.max_width if console.is_terminal else max(options.max_width, least)
        drawn = Padding(Group(*self._parts(width - self.indent)), (0, 0, 0, self.indent))
        yield from console.render(drawn, options.update_width(width))

    def _parts(self, width: int) -> Iterator["RenderableType"]:
        """The title, the rows, and what the width has no place for."""
        from rich.text import Text

        shown, left_out = list(range(len(self.columns))), list[str]()
        whole, least = self._least(_WHOLE), self._least(_NARROW)
        for name in self.optional:
            if _together(least, shown) > width:
                left_out.append(name)
                shown.remove(self.columns.index(name))
        if self.title:
            yield Text(self.title, "bold")
        if (needed := _together(least, shown)) > width:
            yield from self._stacked()
            yield Text(f"Each row is a paragraph: its columns need a width of {needed}, and here are {width}.", "dim")
            return
        if self.rows or any(self.columns):
            yield self._grid(shown, whole if _together(whole, shown) <= width else least, width)
        if left_out:
            yield Text(f"Not shown in a width of {width}: {', '.join(left_out)}.", "dim")

    def add_row(self, *cells: "str | Text") -> None:
        """Add a row below the others."""
        self.rows.append(cells)

    def _least(self, word: int) -> list[int]:
        """The width below which each column loses something, where no word of up to `word` characters is broken."""
        widths = []
        for index, (name, natural) in enumerate(zip(self.columns, self._natural(), strict=True)):
            longest = max(map(len, " ".join(self._texts(index)).split()), default=0)
            narrow = max(_NARROW, len(name), min(longest, word))
            widths.append(natural if index in self.right else min(natural, narrow))
        return widths

    def _natural(self) -> list[int]:
        """The width of the longest line of each column."""
        columns = range(len(self.columns))
        return [max(map(len, "\n".join(self._texts(index)).split("\n"))) for index in columns]

    def _texts(self, index: int) -> list[str]:
        """What stands in a column, its name first."""
        return [str(row[index]) for row in (self.columns, *self.rows) if index < len(row)]

    def _grid(self, shown: Sequence[int], least: Sequence[int], width: int) -> "RenderableType":
        """The columns `shown` beside each other; what width is left goes first to those that need little more."""
        from rich.table import Table as Grid

        widths, natural, spare = list(least), self._natural(), width - _together(least, shown)
        for position, index in enumerate(sorted(shown, key=lambda each: natural[each] - least[each])):
            more = min(natural[index] - least[index], spare // (len(shown) - position))
            widths[index] += more
            spare -= more
        drawn = Grid(
            box=None, show_header=any(self.columns), header_style="dim", padding=(0, _GAP, 0, 0), pad_edge=False
        )
        for index in shown:
            justify = "right" if index in self.right else "left"
            drawn.add_column(self.columns[index], justify=justify, width=widths[index], overflow="fold")
        for row in self.rows:
            drawn.add_row(*(row[index] if index < len(row) else "" for index in shown))
        return drawn

    def _stacked(self) -> Iterator["RenderableType"]:
        """A paragraph for each row: its first cell, and under it the others with the names of their columns."""
        from rich.padding import Padding
        from rich.table import Table as Grid

        for number, (first, *others) in enumerate(self.rows):
            yield Padding(first, (1 if number else 0, 0, 0, 0))
            cells = Grid.grid(padding=(0, _GAP, 0, 0))
            cells.add_column(style="dim", no_wrap=True)
            cells.add_column(overflow="fold")
            for name, cell in zip(self.columns[1:], others, strict=False):
                if cell:
                    cells.add_row(name, cell)
            yield Padding(cells, (0, 0, 0, _GAP))


def _together(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[index] for index in shown) + _GAP * (len(shown) - 1)


def new_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence["str | Text"]] = (),
    *,
    right: Collection[str | int] = _NUMBERS,
    optional: Sequence[str] = (),
    indent: int = 0,
) -> Table:
    """A table.

    Args:
        title: Stands above it; empty for none.
        columns: Their names; without any there is no line of names.
        rows: The cells of each row; columns that a row does not reach stay empty.
        right: Columns of numbers, by name or place, which end in line.
        optional: Columns that a narrow terminal does without, the first named goes first.
        indent: Blanks before each line.
    """
    rows = list(rows)
    table = Table(title, columns or [""] * max(map(len, rows), default=0), rows, right)
    table.optional, table.indent = optional, indent
    return table


def styled(*parts: "str | Text | tuple[str, str]") -> "Text":
    """A line of which some parts, given with their styles, are in colour where there are colours."""
    from rich.text import Text

    return Text.assemble(*parts)


def severity(word: str) -> "Text":
    """How bad something is, in the colour of that: of findings, verdicts and outcomes."""
    return styled((word, _SEVERITIES.get(word, "default")))


def coloured(status: str, good: Collection[str] = _GOOD) -> "Text":
    """A status in green where it is `good`, in red where it says that something failed, else in yellow."""
    if status in good:
        return styled((status, "green"))
    return styled((status, "red" if any(word in status for word in _BAD) else "yellow"))


Block = Union[str, "Text", Table]
"""A part of an answer."""
