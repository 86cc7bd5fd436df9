"""Work that waits for a cluster queue: by order, and what is parked because looking again would change nothing."""

import heapq
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .cycle import Entry, Status
from .work import Work

_AT_ONCE = (Status.SKIPPED, Status.PREEMPTING)
_OF_SHAPE = (Status.NO_FIT, Status.NO_CANDIDATES)
Shape = tuple[object, ...]
Ordered = list[tuple["Standing", Work]]
"""A heap."""
Refused = Callable[[Work], Collection[str] | None]
"""Of which flavors something has to change before work is not refused again; None where it may not be refused now."""


class Standing(NamedTuple):
    """By what work in a queue is ordered."""

    below: int
    """Its priority, negated: the highest goes first."""
    since: float
    uid: str


def key(work: Work) -> Standing:
    """The order in which work waits."""
    return Standing(-work.priority, work.ordered, work.uid)


@dataclass
class WaitingQueue:
    """Of one cluster queue. Work of one shape is kept together: what is decided of its first holds for all of it."""

    is_strict: bool
    _waiting: dict[Shape, Ordered] = field(default_factory=dict)
    _parked: dict[Shape, Ordered] = field(default_factory=dict)
    """Until something becomes free in the tree of its cohort; work like it is parked as it comes."""
    _alone: list[Work] = field(default_factory=list)
    """Parked for what holds for nobody else, such as its namespace."""
    _unchecked: dict[Shape, None] = field(default_factory=dict)
    """Parked shapes that may no longer be refused."""
    _by_flavor: dict[str, dict[Shape, None]] = field(default_factory=dict)
    """Parked shapes that stay refused until something of a flavor changes."""
    _pops: int = 0
    _unparked_in: int = -1
    _sticky: Work | None = None
    """Whose victims are ending: it stands before everybody else."""

    def push(self, work: Work) -> None:
        """Let work wait."""
        parked = self._parked.get(work.shape)
        if parked is None:
            self._wait(work)
            return
        heapq.heappush(parked, (key(work), work))
        if parked[0][1] is work:
            self._unchecked[work.shape] = None

    def pop(self) -> Work | None:
        """The head, which no longer waits here."""
        if not self._waiting:
            return None
        self._pops += 1
        sticky = self._sticky
        if sticky is not None and (alike := self._waiting.get(sticky.shape)):
            position = next((number for number, (_, work) in enumerate(alike) if work is sticky), None)
            if position is not None:
                return self._taken(alike, position)
        return self._taken(min(self._waiting.values()), 0)

    def requeue(self, entry: Entry) -> bool:
        """Put back a head that was not admitted. Returns whether it is parked."""
        work = entry.work
        if entry.status is Status.PREEMPTING and not self.is_strict:
            # Also after a cycle in which it fits no more: else others would take what its victims leave.
            self._sticky = work
        if self.is_strict:
            # A strict queue waits for its head, whatever keeps it, unless its namespace is one that the queue never
            # takes.
            at_once = entry.status is not Status.MISMATCH
        else:
            # Where a search has stopped, flavors remain.
            at_once = entry.status in _AT_ONCE or bool(work.tried) or self._unparked_in >= self._pops
        if at_once:
            self._wait(work)
        elif self.is_strict or entry.status not in _OF_SHAPE:
            self._alone.append(work)
        else:
            # What asks for the same is refused the same; Kueue spares itself the cycles.
            self._parked[work.shape] = alike = self._waiting.pop(work.shape, [])
            heapq.heappush(alike, (key(work), work))
            self._unchecked[work.shape] = None
        return not at_once

    def admitted(self, work: Work) -> None:
        """The head holds quota and waits no more."""
        if self._sticky is work:
            self._sticky = None

    def unpark(self, refused: Refused = lambda work: None, changed: Iterable[str] = ()) -> None:
        """Look at all that is parked again, unless all of it would be refused again.

        Args:
            refused: Says so.
            changed: Flavors of which something has changed since this was last called.
        """
        self._unparked_in = self._pops
        if not self._alone and (not self._parked or (not self._waiting and self._is_refused(refused, changed))):
            return
        self._waiting |= self._parked
        for work in self._alone:
            self._wait(work)
        for each in (self._parked, self._alone, self._unchecked, self._by_flavor):
            each.clear()

    def _is_refused(self, refused: Refused, changed: Iterable[str]) -> bool:
        """Whether all that is parked would be refused again."""
        for flavor in changed:
            self._unchecked |= self._by_flavor.pop(flavor, {})
        while self._unchecked:
            shape = next(iter(self._unchecked))
            needed = refused(self._parked[shape][0][1])
            if needed is None:
                return False
            del self._unchecked[shape]
            for flavor in needed:
                self._by_flavor.setdefault(flavor, {})[shape] = None
        return True

    def _wait(self, work: Work) -> None:
        heapq.heappush(self._waiting.setdefault(work.shape, []), (key(work), work))

    def _taken(self, alike: Ordered, position: int) -> Work:
        """Take work out of those like it."""
        if not position:
            _, work = heapq.heappop(alike)
        else:
            _, work = alike[position]
            alike[position] = alike[-1]
            alike.pop()
            heapq.heapify(alike)
        if not alike:
            del self._waiting[work.shape]
        return work
