"""The smallest amount with which something holds: a search that halves what is left, over something slow to ask."""

from collections.abc import Callable, Iterator
from typing import NamedTuple


class Tried(NamedTuple):
    """An amount that was tried, and what it gave."""

    amount: int
    seconds: float
    enough: bool


class Answer(NamedTuple):
    """The smallest amount that is enough, if any is, and everything that was tried for it, in order."""

    amount: int | None
    tried: tuple[Tried, ...]


def smallest(
    low: int, high: int, wait: Callable[[int], float], most: float, notify: Callable[[Tried], None] = lambda _: None
) -> Answer:
    """The smallest amount from `low` to `high` with which a wait is at most `most` seconds.

    More is taken to be never worse. Where it is after all, the amount that is found is enough, and the one below it is
    not. At most 2 + log2(high - low) amounts are tried; the lowest first, as it may be enough already.

    Args:
        low: The least to try.
        high: The most to try.
        wait: The wait that an amount gives; it is asked once for each.
        most: How long it may be.
        notify: Is called with each amount as soon as it was tried.
    """
    tried = list[Tried]()
    for amount in _amounts(low, high, tried):
        seconds = wait(amount)
        tried.append(Tried(amount, seconds, seconds <= most))
        notify(tried[-1])
    return Answer(min((each.amount for each in tried if each.enough), default=None), tuple(tried))


def _amounts(low: int, high: int, tried: list[Tried]) -> Iterator[int]:
    """The next amount to try, by what the ones before gave."""
    yield low
    if tried[-1].enough or high <= low:
        return
    yield high
    if not tried[-1].enough:
        return
    failing, enough = low, high
    while enough - failing > 1:
        middle = (failing + enough) // 2
        yield middle
        failing, enough = (failing, middle) if tried[-1].enough else (middle, enough)
