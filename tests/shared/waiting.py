"""Tests without guesses about time: wait for a state, move a virtual clock, or count calls."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeVar
from unittest.mock import patch

T = TypeVar("T")

CEILING_SECONDS: Final = 900.0
"""Seconds after which a wait fails. A busy machine may stop a process for minutes; no passing test depends on it."""

_FIRST_POLL_SECONDS: Final = 0.02
_LAST_POLL_SECONDS: Final = 0.3
"""Pauses between polls grow to this: each poll of a sandbox takes 0.02 CPU seconds."""


def until(condition: Callable[[], Any], what: str | Callable[[], object] = "it did not happen") -> Any:
    """Return the first true value of a condition.

    Args:
        condition: Asked fifty times a second at first, three times a second in the end.
        what: The expected state, or a function that describes the state at the end of the wait.

    Raises:
        AssertionError: The condition was never true within `CEILING_SECONDS`.
    """
    end = time.monotonic() + CEILING_SECONDS
    pause = _FIRST_POLL_SECONDS
    while not (value := condition()):
        assert time.monotonic() < end, what if isinstance(what, str) else what()
        time.sleep(pause)
        pause = min(_LAST_POLL_SECONDS, 1.2 * pause)
    return value


def becomes(expected: Any, actual: Callable[[], Any]) -> None:
    """Return once a value is as expected."""
    until(lambda: actual() == expected, lambda: f"{actual()!r}, expected {expected!r}")


@contextmanager
def late_once(condition: Callable[[], object]) -> Iterator[list[float]]:
    """Let the first wait for each program's end time out as soon as `condition` is true, whatever its limit is.

    Yields:
        The limits in seconds of these first waits.
    """
    limits = list[float]()

    class Late(subprocess.Popen[str]):
        is_late = False

        def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
            if self.is_late or timeout is None:
                return super().communicate(input, CEILING_SECONDS)
            self.is_late = True
            limits.append(timeout)
            until(condition, "the program has come as far as the test needs")
            raise subprocess.TimeoutExpired(self.args, timeout)

    with patch.object(subprocess, "Popen", Late):
        yield limits


class VirtualClock:
    """A clock in place of the module `time`: only `sleep` moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the seconds that were slept."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Move the clock at once."""
        self.now += seconds


def counted(function: Callable[[], T]) -> tuple[T, int]:
    """Call a function; return its result and the number of calls that it made, including those of C functions."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return function(), calls
    finally:
        sys.setprofile(before)
