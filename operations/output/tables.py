"""Tables of what is there, and their colours."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_NUMBERS: Final = (
    *("resources", "current", "target", "weight"),
    *("instances", "in use", "idle", "unhealthy", "running", "waiting"),
)
_GOOD: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "InService", "Running", "Created", "Updated")
_BAD: Final = ("FAIL", "Fail", "ROLLBACK", "RollingBack", "Degraded")


def empty_table(title: str, *columns: str) -> "Table":
    """A table without rows; columns of numbers end in line."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", title_style="bold", header_style="dim", box=box.SIMPLE_HEAD, show_edge=False
    )
    for column in columns:
        table.add_column(column, justify="right" if column in _NUMBERS else "left")
    return table


def coloured(status: str, good: Collection[str] = _GOOD) -> "Text":
    """A status in green where it is `good`, in red where it says that something failed, else in yellow."""
    from rich.text import Text

    if status in good:
        return Text(status, "green")
    return Text(status, "red" if any(word in status for word in _BAD) else "yellow")
