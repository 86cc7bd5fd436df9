"""The time that a step may take. Whatever waits on behalf of a step asks here how long it still may."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .failure import Failure

# Only tests set it: what part of every time limit and pause they have patience for.
PATIENCE = float(os.environ.get("PODWRIGHT_PATIENCE", "1"))

CLEAN_UP_SECONDS = 10
"""Time for what a failed step must not leave behind. It fits into the grace that steps get (see `steps`)."""

_thread = threading.local()


class Late(Exception):
    """The step has used up its time."""


class CutShort(Failure):
    """A command was ended before its own time limit, because the step has used up its time."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """What this thread does inside has that many seconds. An outer limit still holds."""
    outer = getattr(_thread, "end", float("inf"))
    _thread.end = min(outer, time.monotonic() + seconds * PATIENCE)
    try:
        yield
    finally:
        _thread.end = outer


@contextmanager
def clean_up() -> Iterator[None]:
    """What this thread does inside has `CLEAN_UP_SECONDS` at least, even when the time is up."""
    outer = getattr(_thread, "end", float("inf"))
    _thread.end = max(outer, time.monotonic() + CLEAN_UP_SECONDS)
    try:
        yield
    finally:
        _thread.end = outer


def remaining() -> float:
    """Seconds that this thread has left; infinite outside a step.

    Raises:
        Late: none is left.
    """
    seconds = getattr(_thread, "end", float("inf")) - time.monotonic()
    if seconds <= 0:
        raise Late("its time was up")
    return seconds


def pause(seconds: float) -> None:
    """Sleep.

    Raises:
        Late: the time would be up before.
    """
    left = remaining()
    time.sleep(min(seconds * PATIENCE, left))
    remaining()
