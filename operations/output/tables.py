"""Tables of what is there, their colours, and the console that prints them."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

_NUMBERS: Final = (
    *("resources", "current", "target", "weight"),
    *("instances", "in use", "idle", "unhealthy", "running", "waiting"),
)
_GOOD: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "InService", "Running", "Created", "Updated")
_BAD: Final = ("FAIL", "Fail", "ROLLBACK", "RollingBack", "Degraded")


def new_table(
    title: str,
    columns: Iterable[str],
    rows: Iterable[Iterable["RenderableType"]] = (),
    *,
    right: Collection[str] = _NUMBERS,
    wrapped: Collection[str] | None = None,
) -> "Table":
    """A table in the form that all of podwright's have.

    Args:
        title: Stands above it.
        columns: Their names, each once.
        rows: The cells of each row; columns that a row does not reach stay empty.
        right: Columns of numbers, which end in line.
        wrapped: Columns whose text may go over several lines where the terminal is narrow; None for all.
    """
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", title_style="bold", header_style="dim", box=box.SIMPLE_HEAD, show_edge=False
    )
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=wrapped is not None and column not in wrapped,
            overflow="ellipsis" if wrapped is None else "fold",
        )
    for row in rows:
        table.add_row(*row)
    return table


def new_console(log_width: int = 160) -> "Console":
    """A console that prints text as it is. A log has no terminal whose width could be asked for."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = log_width
    return console


def coloured(status: str, good: Collection[str] = _GOOD) -> "Text":
    """A status in green where it is `good`, in red where it says that something failed, else in yellow."""
    from rich.text import Text

    if status in good:
        return Text(status, "green")
    return Text(status, "red" if any(word in status for word in _BAD) else "yellow")
