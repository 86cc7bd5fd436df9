"""Work that waits for a cluster queue: by order, and what is parked because looking again would change nothing."""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .cycle import Entry, Status
from .work import Work

_AT_ONCE = (Status.SKIPPED, Status.PREEMPTING)
_OF_SHAPE = (Status.NO_FIT, Status.NO_CANDIDATES)


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
    _shapes: set[tuple[object, ...]] = field(default_factory=set)
    """Work like this is parked as it comes."""
    _needs: dict[str, int] = field(default_factory=dict)
    """Of which flavors something has to change before what is parked is looked at again, with their changes by then."""

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

    def unpark(
        self, refused: Callable[[Work], Mapping[str, int] | None] = lambda work: None, changes: Mapping[str, int] = {}
    ) -> None:
        """Look at all that is parked again, unless all of it would be refused again.

        Args:
            refused: What has to change before work is not refused again; None where it may not be.
            changes: How often each flavor has changed.
        """
        self._unparked_in = self._pops
        if not self.parked or (not self._waiting and self._is_refused(refused, changes)):
            return
        self._shapes.clear()
        parked, self.parked = self.parked, {}
        for work in parked.values():
            heapq.heappush(self._waiting, (key(work), work))

    def _is_refused(self, refused: Callable[[Work], Mapping[str, int] | None], changes: Mapping[str, int]) -> bool:
        """Whether all that is parked would be refused again: work of one shape is, when the first of it is."""
        if self._needs and all(changes.get(flavor, 0) == number for flavor, number in self._needs.items()):
            return True
        self._needs = {}
        first: dict[tuple[object, ...], Work] = {}
        for work in self.parked.values():
            other = first.get(work.shape)
            if other is None or key(work) < key(other):
                first[work.shape] = work
        needs: dict[str, int] = {}
        for work in first.values():
            needed = refused(work)
            if needed is None:
                return False
            needs |= needed
        self._needs = needs
        return True

    def _park(self, work: Work) -> None:
        self.parked[work.uid] = work
        self._needs = {}

    def _park_shape(self, shape: tuple[object, ...]) -> None:
        self._shapes.add(shape)
        alike = [work for _, work in self._waiting if work.shape == shape]
        if alike:
            self._waiting = [item for item in self._waiting if item[1].shape != shape]
            heapq.heapify(self._waiting)
            # What asks for the same is refused the same; Kueue spares itself the cycles.
            self.parked |= {work.uid: work for work in alike}
