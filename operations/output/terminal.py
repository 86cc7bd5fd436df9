"""Where commands print to: a terminal of some width, with colours or without, or a pipe."""

import os
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_LOG_WIDTH: Final = 160


def width_of(stream: TextIO) -> int | None:
    """How many characters a line of a terminal has; None for a pipe and a file, where lines are as long as they are."""
    if not stream.isatty():
        return None
    try:
        own = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        own = 80
    return int(os.environ.get("COLUMNS") or 0) or own or 80


def can_redraw(stream: TextIO) -> bool:
    """Whether lines that stand there can be taken away again: on a terminal that is more than paper."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colours(stream: TextIO) -> bool:
    """Whether somebody sees colours there: a terminal that has them, and no NO_COLOR (no-color.org)."""
    return can_redraw(stream) and not os.environ.get("NO_COLOR")


def new_console(stream: TextIO) -> "Console":
    """What rich draws with. A log has no width, so that its tables are as wide as a large screen."""
    from rich.console import Console

    width, colours = width_of(stream), has_colours(stream)
    return Console(
        file=stream,
        width=width or _LOG_WIDTH,
        force_terminal=width is not None,
        color_system="auto" if colours else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
