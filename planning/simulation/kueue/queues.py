"""Work that waits for a cluster queue: by order, and what is parked because looking again would change nothing."""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .cycle import Entry, Status
from .policy import ClusterQueue
from .work import Work

_AT_ONCE = (Status.SKIPPED, Status.PREEMPTING)
_OF_SHAPE = (Status.NO_FIT, Status.NO_CANDIDATES)
Ordered = list[tuple["Standing", Work]]
"""A heap."""
Reason = Callable[[Work], str | None]
"""Why work is refused; None where it may not be, or not for long enough to be parked."""
Refused = Callable[[Work], bool]
"""Whether work that is parked is refused again."""


class Standing(NamedTuple):
    """By what work in a queue is ordered."""

    below: int
    """Its priority, negated: the highest goes first."""
    since: float
    uid: str


def key(work: Work) -> Standing:
    """The order in which work waits."""
    return Standing(-work.priority, work.ordered, work.uid)


@dataclass(eq=False)
class WaitingQueue:
    """Of one cluster queue. Work of one shape is kept together: what is decided of its first holds for all of it."""

    number: int
    """By which heads come into a cycle."""
    node: ClusterQueue
    _waiting: dict[str, Ordered] = field(default_factory=dict)
    _parked: dict[str, Ordered] = field(default_factory=dict)
    """Until something becomes free in the tree of its cohort; work like it is parked as it comes."""
    _alone: list[Work] = field(default_factory=list)
    """Parked for what holds for nobody else, such as its namespace."""
    _unchecked: dict[str, None] = field(default_factory=dict)
    """Parked shapes that may no longer be refused."""
    sticky: Work | None = None
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
        sticky = self.sticky
        if sticky is not None and (alike := self._waiting.get(sticky.shape)):
            position = next((number for number, (_, work) in enumerate(alike) if work is sticky), None)
            if position is not None:
                return self._taken(self._waiting, alike, position)
        return self._taken(self._waiting, min(self._waiting.values()), 0)

    def requeue(self, entry: Entry) -> bool:
        """Put back a head that was not admitted. Returns whether it is parked."""
        work = entry.work
        if entry.status is Status.PREEMPTING and not self.node.is_strict:
            # Also after a cycle in which it fits no more: else others would take what its victims leave.
            self.sticky = work
        if self.node.is_strict:
            # A strict queue waits for its head, whatever keeps it, unless its namespace is one that the queue never
            # takes.
            at_once = entry.status is not Status.MISMATCH
        else:
            # Where a search has stopped, flavors remain.
            at_once = entry.status in _AT_ONCE or bool(work.tried)
        if at_once:
            self._wait(work)
        elif self.node.is_strict or entry.status not in _OF_SHAPE:
            self._alone.append(work)
        else:
            # What asks for the same is refused the same; Kueue spares itself the cycles.
            self._parked[work.shape] = alike = self._waiting.pop(work.shape, [])
            heapq.heappush(alike, (key(work), work))
            self._unchecked[work.shape] = None
        return not at_once

    @property
    def shapes(self) -> int:
        """How many shapes wait."""
        return len(self._waiting)

    def refused(self, reason: Reason) -> list[tuple[Work, str]]:
        """The first of each shape that has its turn before one that may be more than refused and parked, and why."""
        if self.node.is_strict or self.sticky is not None:
            return []
        rest, result = list(self._waiting.values()), list[tuple[Work, str]]()
        heapq.heapify(rest)
        while rest and (known := reason(work := rest[0][0][1])) is not None:
            result.append((work, known))
            heapq.heappop(rest)
        return result

    def park(self, shape: str) -> None:
        """Park all work of a shape that waits."""
        self._parked[shape] = self._waiting.pop(shape)
        self._unchecked[shape] = None

    def remove(self, work: Work) -> None:
        """Take out work that waits no more, wherever it is; nothing where it is not here."""
        if work in self._alone:
            self._alone.remove(work)
        for each in (self._waiting, self._parked):
            alike = each.get(work.shape, [])
            position = next((number for number, (_, other) in enumerate(alike) if other is work), None)
            if position is not None:
                self._taken(each, alike, position)
        if work.shape not in self._parked:
            self._unchecked.pop(work.shape, None)
        self.admitted(work)

    def withdraw(self) -> list[Work]:
        """Take out everything, what is parked too, in its order."""
        alike = (*self._waiting.values(), *self._parked.values())
        result = sorted([*self._alone, *(work for ordered in alike for _, work in ordered)], key=key)
        for each in (self._waiting, self._parked, self._alone, self._unchecked):
            each.clear()
        self.sticky = None
        return result

    def admitted(self, work: Work) -> None:
        """The head holds quota and waits no more."""
        if self.sticky is work:
            self.sticky = None

    def suspect(self, shapes: Iterable[str]) -> None:
        """Parked work of these shapes may no longer be refused."""
        self._unchecked |= {shape: None for shape in shapes if shape in self._parked}

    @property
    def parked(self) -> Iterable[str]:
        """Shapes of parked work."""
        return self._parked

    def is_settled(self) -> bool:
        """Whether everything here is parked and known to be refused."""
        return not (self._unchecked or self._waiting or self._alone)

    def unpark(self, refused: Refused) -> bool:
        """Look at all that is parked again, unless all of it would be refused again. Returns whether it waits now."""
        if not self._alone and not self._waiting and self._is_refused(refused):
            return False
        self._waiting |= self._parked
        for work in self._alone:
            self._wait(work)
        for each in (self._parked, self._alone, self._unchecked):
            each.clear()
        return True

    def _is_refused(self, refused: Refused) -> bool:
        """Whether all that is parked would be refused again."""
        while self._unchecked:
            shape, _ = self._unchecked.popitem()
            if not refused(self._parked[shape][0][1]):
                return False
        return True

    def _wait(self, work: Work) -> None:
        heapq.heappush(self._waiting.setdefault(work.shape, []), (key(work), work))

    def _taken(self, shapes: dict[str, Ordered], alike: Ordered, position: int) -> Work:
        """Take work out of those like it."""
        if not position:
            _, work = heapq.heappop(alike)
        else:
            _, work = alike[position]
            alike[position] = alike[-1]
            alike.pop()
            heapq.heapify(alike)
        if not alike:
            del shapes[work.shape]
        return work
