"""What is under way, in the last lines of a terminal: they change, and go when something else is printed.

A log has no such lines; there each thing that begins is a line that stays.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from .terminal import can_redraw, new_console, width_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

_BAR: Final = 20
_GAP: Final = 2
_shown: "list[Live]" = []
"""What moves now, at most one."""
Listener = Callable[[str], None]
_LISTENER: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)


class Bar(NamedTuple):
    """How far something is."""

    name: str
    finished: int
    total: int | None
    """None where nobody knows."""
    doing: str


def settle() -> None:
    """Take the moving lines away, so that something can be printed where they are."""
    while _shown:
        _shown.pop().stop()


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Have `listener` told each line of what is under way too, in this context and the threads that carry it on."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(text: str) -> None:
    """Tell who listens what is under way."""
    if listener := _LISTENER.get():
        listener(text)


def under_way(text: str) -> None:
    """Say what begins now and may take a while; on a terminal until something else is printed."""
    settle()
    tell(text)
    if not can_redraw(sys.stderr):
        print(f"{text} …", file=sys.stderr, flush=True)
        return
    from rich.spinner import Spinner

    _begin(sys.stderr, refresh=True).update(Spinner("dots", f"{text} …"), refresh=True)


# Of what has passed: a log hears early that something lives, and is not filled by what takes an hour.
_SILENCE_SHARE: Final = 1 / 10
_SILENCE_SECONDS: Final = (5.0, 30.0)


def silence(seconds: float) -> float:
    """Seconds of silence after which a log hears that what began so many seconds ago is still at work: 5 to 30."""
    least, most = _SILENCE_SECONDS
    return min(max(_SILENCE_SHARE * seconds, least), most)


class Waiting:
    """What was said to be under way and takes long: it is said again, less and less often."""

    def __init__(self, text: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Of what begins now; `clock` gives seconds."""
        self._text, self._clock = text, clock
        self._begun = self._spoken = clock()

    def tick(self) -> None:
        """Say it again, with how long it has been, where nothing was said for a while."""
        now = self._clock()
        if now - self._spoken >= silence(now - self._begun):
            self._spoken = now
            under_way(f"{self._text}, {span(now - self._begun)}")


def waiting_for(text: str) -> Waiting:
    """Say what is waited for from now on."""
    under_way(f"waiting for {text}")
    return Waiting(f"waiting for {text}")


def span(seconds: float) -> str:
    """Minutes and seconds, such as 1:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def show(stream: TextIO, head: str, bars: Sequence[Bar], seconds: float) -> None:
    """Draw a line and a bar for each thing below it, in place of those before. `stream` can redraw."""
    live = _shown[-1] if _shown else None
    if live is None or live.auto_refresh:
        settle()
        live = _begin(stream, refresh=False)
    # Somebody may have made the terminal narrower: a line that wraps could not be taken away again.
    live.console.width = width_of(stream) or live.console.width
    live.update(_drawn(head, bars, seconds, live.console.width), refresh=True)


def _begin(stream: TextIO, *, refresh: bool) -> "Live":
    """What moves from now on; with `refresh` also while nothing new is known of it."""
    from rich.live import Live

    console = new_console(stream)
    # What is printed comes by `settle`, whoever prints it.
    live = Live(console=console, transient=True, auto_refresh=refresh, redirect_stdout=False, redirect_stderr=False)
    _shown.append(live)
    live.start()
    return live


def _drawn(head: str, bars: Sequence[Bar], seconds: float, width: int) -> "RenderableType":
    """The head and the bars below it; a narrow terminal has no place for what is done, and shorter bars."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    counts = [f"{bar.finished} of {bar.total}" if bar.total else f"{bar.finished} done" for bar in bars]
    names = [f"  {bar.name}" for bar in bars]
    fixed = max(map(len, names), default=0) + max(map(len, counts), default=0) + 3 * _GAP
    long = min(_BAR, max(width - fixed, 1))
    grid = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
    for column in (None, long, None, max(width - fixed - long, 1)):
        grid.add_column(no_wrap=True, overflow="ellipsis", width=column)
    for name, count, bar in zip(names, counts, bars, strict=True):
        drawn = ProgressBar(bar.total, bar.finished, width=long, pulse=bar.total is None, animation_time=seconds)
        grid.add_row(name, drawn, count, bar.doing)
    return Group(Text(head, no_wrap=True, overflow="ellipsis"), grid)
