"""Trying again: pauses that grow, and differ from node to node."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Callable, TypeVar

from . import deadline
from .failure import Failure
from .node import Node

Value = TypeVar("Value")

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 15.0


def pauses(first: float = FIRST_PAUSE_SECONDS, longest: float = LONGEST_PAUSE_SECONDS) -> Iterator[float]:
    """Seconds between attempts, doubling up to `longest`.

    Each is drawn between half of that and all of it: hundreds of nodes that start together must not come back
    together.
    """
    while True:
        # Not for secrets: it only spreads load.
        yield first * random.uniform(0.5, 1.0)
        first = min(first * 2, longest)


def retry(node: Node, action: Callable[[], Value], *, seconds: float, what: str) -> Value:
    """Call `action` until it raises no Failure, for at most that many seconds.

    The last Failure is the one that counts; an attempt that only the end of the time cut short says less than the one
    before it. `what` stands in the log beside each new attempt.
    """
    attempts, observed = pauses(), None
    with deadline.limited(seconds):
        while True:
            try:
                return action()
            except (deadline.Late, deadline.CutShort) as late:
                raise observed or late from None
            except Failure as failure:
                observed = failure
                pause = next(attempts)
                node.log.say("waiting", what=what, seconds=round(pause, 1), saw=str(failure))
                try:
                    deadline.pause(pause)
                except deadline.Late:
                    raise failure from None


def wait_until(node: Node, condition: Callable[[], bool], *, seconds: float, what: str, next_step: str) -> None:
    """Ask until `condition` holds.

    Raises:
        Failure: it does not within that many seconds. It says `what` is not so, and the next step.
    """

    def ask() -> None:
        if not condition():
            raise Failure(f"{what}: not so after {seconds:.0f} s", next_step)

    retry(node, ask, seconds=seconds, what=what)
