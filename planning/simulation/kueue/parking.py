"""What is parked in one tree of cohorts, and what has to change before it is looked at again."""

from collections.abc import Collection, Iterator
from functools import partial

from .cycle import Lack, Scheduler
from .queues import WaitingQueue
from .work import Work

Key = tuple[WaitingQueue, str]
"""A queue, and the shape of work that is parked in it."""


class Parking:
    """Of one tree. Most that is parked takes one comparison until enough for it may be free."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Nothing is parked."""
        self._scheduler, self._policy = scheduler, scheduler.policy
        self.queues: set[WaitingQueue] = set()
        """Those in which work is parked."""
        self._flavors: dict[Key, Collection[str]] = {}
        """By which each was refused."""
        self._refused: dict[str, dict[Lack | None, dict[int | None, set[Key]]]] = {}
        """By flavor, by what is lacking of it, and by how much of that has to be left."""
        self._observed: dict[str, tuple[int, int]] = {}
        """How often each flavor had changed then, and how often by those that borrow."""

    def park(self, queue: WaitingQueue) -> None:
        """Work of this queue is parked."""
        self.queues.add(queue)

    def unpark(self, touched: Collection[WaitingQueue]) -> list[WaitingQueue]:
        """Queues in which work waits again, since it may no longer be refused.

        Args:
            touched: Those in which work was put, or whose own work took quota or left it, since they were looked at.
        """
        due = {queue for flavor in self._refused for queue in self._suspect(flavor)}.union(touched)
        for queue in due:
            if changed := queue.node.changed_flavors:
                queue.node.changed_flavors = set()
                weighed = ((shape, self._flavors.get((queue, shape), ())) for shape in queue.parked)
                queue.suspect([shape for shape, flavors in weighed if not changed.isdisjoint(flavors)])
        result = [queue for queue in due if not queue.is_settled() and queue.unpark(partial(self._is_refused, queue))]
        self.queues.difference_update(result)
        return result

    def _suspect(self, flavor: str) -> Iterator[WaitingQueue]:
        """Whatever of a flavor may be enough for is to be decided about; the queues in which that is."""
        before, current = self._observed[flavor], self._counts(flavor)
        if before[0] == current[0]:
            return
        self._observed[flavor] = current
        for lack, needs in self._refused[flavor].items():
            free = None if lack is None or before[1] != current[1] else lack.cohort.available(lack.fr)
            for needed in [each for each in needs if free is None or each is None or each <= free]:
                for queue, shape in needs.pop(needed):
                    queue.suspect([shape])
                    if queue in self.queues:
                        yield queue

    def _is_refused(self, queue: WaitingQueue, work: Work) -> bool:
        """Whether a cycle would refuse it again; then it is known for what it waits."""
        flavors = self._scheduler.refused(work)
        if flavors is None:
            return False
        self._flavors[queue, work.shape] = flavors
        lack, needed = self._scheduler.lack(work)
        if lack and needed is None:
            # Nothing but its own queue makes a difference.
            return True
        for flavor in flavors:
            self._observed.setdefault(flavor, self._counts(flavor))
            self._refused.setdefault(flavor, {}).setdefault(lack, {}).setdefault(needed, set()).add((queue, work.shape))
        return True

    def _counts(self, flavor: str) -> tuple[int, int]:
        return self._policy.changes.get(flavor, 0), self._policy.borrowings.get(flavor, 0)
