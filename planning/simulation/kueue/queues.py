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
    """Of one cluster queue."""

    is_strict: bool
    parked: dict[str, Work] = field(default_factory=dict)
    """By uid, until something becomes free in the tree of its cohort."""
    _waiting: list[tuple[Standing, Work]] = field(default_factory=list)
    _pops: int = 0
    _unparked_in: int = -1
    _sticky: Work | None = None
    """Whose victims are ending: it stands before everybody else."""
    _shapes: set[Shape] = field(default_factory=set)
    """Work like this is parked as it comes."""
    _first: dict[Shape, Work] = field(default_factory=dict)
    """Who goes first of what is parked: when it is refused, so are those like it."""
    _unsure: dict[Shape, None] = field(default_factory=dict)
    """Shapes that may no longer be refused."""
    _asleep: dict[str, dict[Shape, None]] = field(default_factory=dict)
    """Shapes that are refused until something of a flavor changes."""

    def __len__(self) -> int:
        return len(self._waiting)

    def push(self, work: Work) -> None:
        """Let work wait."""
        if not self.is_strict and work.shape in self._shapes:
            self._park(work)
        else:
            heapq.heappush(self._waiting, (key(work), work))

    def pop(self) -> Work | None:
        """The head, which is no longer in the heap."""
        if not self._waiting:
            return None
        self._pops += 1
        if self._sticky is not None:
            position = next((number for number, (_, work) in enumerate(self._waiting) if work is self._sticky), None)
            if position is not None:
                _, work = self._waiting[position]
                self._waiting[position] = self._waiting[-1]
                self._waiting.pop()
                heapq.heapify(self._waiting)
                return work
        return heapq.heappop(self._waiting)[1]

    def requeue(self, entry: Entry) -> None:
        """Put back a head that was not admitted."""
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
            heapq.heappush(self._waiting, (key(work), work))
            return
        self._park(work)
        if not self.is_strict and entry.status in _OF_SHAPE:
            self._park_shape(work.shape)

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
        if not self.parked or (not self._waiting and self._is_refused(refused, changed)):
            return
        for work in self.parked.values():
            heapq.heappush(self._waiting, (key(work), work))
        for each in (self.parked, self._shapes, self._first, self._unsure, self._asleep):
            each.clear()

    def _is_refused(self, refused: Refused, changed: Iterable[str]) -> bool:
        """Whether all that is parked would be refused again."""
        for flavor in changed:
            self._unsure |= self._asleep.pop(flavor, {})
        while self._unsure:
            shape = next(iter(self._unsure))
            needed = refused(self._first[shape])
            if needed is None:
                return False
            del self._unsure[shape]
            for flavor in needed:
                self._asleep.setdefault(flavor, {})[shape] = None
        return True

    def _park(self, work: Work) -> None:
        self.parked[work.uid] = work
        first = self._first.get(work.shape)
        if first is None or key(work) < key(first):
            self._first[work.shape] = work
            self._unsure[work.shape] = None

    def _park_shape(self, shape: Shape) -> None:
        self._shapes.add(shape)
        alike = [work for _, work in self._waiting if work.shape == shape]
        if alike:
            self._waiting = [item for item in self._waiting if item[1].shape != shape]
            heapq.heapify(self._waiting)
            # What asks for the same is refused the same; Kueue spares itself the cycles.
            for work in alike:
                self._park(work)
