"""Preemption and order of entries by dominant resource shares: Kueue 0.19.2's fair sharing."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import inf
from operator import itemgetter
from typing import NamedTuple, TypeVar

from .policy import ClusterQueue, Policy
from .preemption import (
    FAIR,
    IN_QUEUE,
    RECLAMATION,
    IsPlaced,
    Target,
    beyond_reach,
    fill_back,
    is_beaten,
    order,
    restore,
)
from .tree import Node, Share, share
from .work import Work

Entry = TypeVar("Entry")
Described = Callable[[Entry], tuple[Work, Mapping[int, int]]]
"""The work of an entry, and what it would use."""
_FINAL, _INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"


def targets(
    policy: Policy, work: Work, needed: set[int], requests: Mapping[int, int], now: float, is_placed: IsPlaced
) -> list[Target] | None:
    """The targets of `work`; none where no preemption is enough. Arguments and result are those of `classical`."""
    return _FairPreemption(policy, work, needed, requests, now, is_placed).run()


def candidates(policy: Policy, work: Work, needed: Collection[int]) -> list[Work]:
    """Whom `work` may preempt for any of the flavor-resources `needed`."""
    own = policy.queues[work.queue]
    queues = [own]
    if own.parent is not None and own.reclaim != "Never":
        queues += [each for each in borrowers(own.root()) if each is not own and not each.is_within(needed)]
    return [
        each
        for queue in queues
        for each in queue.work.values()
        if is_beaten(own.within if queue is own else own.reclaim, work, each) and each.holds(needed, policy.index)
    ]


class _FairPreemption:
    def __init__(
        self, policy: Policy, work: Work, needed: set[int], requests: Mapping[int, int], now: float, is_placed: IsPlaced
    ) -> None:
        self.policy, self.needed = policy, needed
        self.requests, self.is_placed = requests, is_placed
        self.queue = policy.queues[work.queue]
        self.key: Callable[[Work], tuple[object, ...]] = lambda item: order(item, work.queue, now)
        self.every = candidates(policy, work, needed)
        self.candidates: dict[str, list[Work]] = {}
        """By queue, and in the order in which they are preempted."""
        self._below: dict[int, tuple[list[ClusterQueue], list[Node]]] = {}
        self.targets: list[Target] = []

    def run(self) -> list[Target] | None:
        """The targets, with usage as it was."""
        if not self.every or beyond_reach(self.policy, self.queue, self.requests, self.every) is not None:
            return None
        for each in sorted(self.every, key=self.key):
            self.candidates.setdefault(each.queue, []).append(each)
        for fr, value in self.requests.items():
            self.queue.add(fr, value)
        # Shares are compared as if the work were admitted already, so its own usage counts from here on.
        retry: dict[str, list[Work]] = {}
        done = self._first(retry)
        if not done and len(self.policy.fair_strategies) > 1:
            done = self._second(retry)
        if done:
            fill_back(self.policy, self.targets, self._fits)
        for fr, value in self.requests.items():
            self.queue.remove(fr, value)
        restore(self.policy, self.targets)
        return self.targets if done else []

    def _fits(self) -> bool:
        """Whether the work fits: its own usage, which counts for shares, does not count here."""
        for fr, value in self.requests.items():
            self.queue.remove(fr, value)
        fits = all(value <= max(0, self.queue.available(fr)) for fr, value in self.requests.items())
        fits = fits and self.is_placed()
        for fr, value in self.requests.items():
            self.queue.add(fr, value)
        return fits

    def _take(self, candidate: Work, reason: str) -> bool:
        """Preempt one; returns whether that is enough."""
        self.policy.release(candidate)
        self.targets.append(Target(candidate, reason))
        return self._fits()

    def _first(self, retry: dict[str, list[Work]]) -> bool:
        """By the first strategy. Candidates that it refuses come into `retry`."""
        within = self.queue.is_within(self.needed)
        for queue in self._ordered(self.candidates, set()):
            listed = self.candidates[queue.name]
            # Within its guarantee a queue takes back without comparing shares (gate FairSharingPreemptWithinNominal,
            # on).
            if queue is self.queue or within:
                if self._take(listed.pop(0), IN_QUEUE if queue is self.queue else RECLAMATION):
                    return True
                continue
            own, theirs = self._apart(queue)
            preemptor, before = self._share(own), self._share(theirs)
            while listed:
                candidate = listed.pop(0)
                for fr, value in candidate.usage.items():
                    queue.remove(fr, value)
                after = self._share(theirs)
                for fr, value in candidate.usage.items():
                    queue.add(fr, value)
                if self._allows(self.policy.fair_strategies[0], preemptor, before, after):
                    if self._take(candidate, FAIR):
                        return True
                    break
                retry.setdefault(queue.name, []).append(candidate)
        return False

    def _second(self, retry: dict[str, list[Work]]) -> bool:
        """By the second strategy, at most one of each queue."""
        dropped: set[int] = set()
        for queue in self._ordered(retry, dropped):
            own, theirs = self._apart(queue)
            preemptor, before = self._share(own), self._share(theirs)
            allowed = self._allows(self.policy.fair_strategies[1], preemptor, before, before)
            if allowed and self._take(retry[queue.name].pop(0), FAIR):
                return True
            dropped.add(id(queue))
        return False

    def _allows(self, strategy: str, preemptor: Share, before: Share, after: Share) -> bool:
        if strategy == _FINAL:
            return compare(preemptor, after) <= 0
        return compare(preemptor, before) < 0

    def _share(self, node: Node) -> Share:
        return share(node, self.policy.resources)

    def _apart(self, queue: ClusterQueue) -> tuple[Node, Node]:
        """The nodes below the lowest cohort above both queues: on the preemptor's side and on the other."""
        own = [self.queue, *self.queue.path()]
        theirs: Node = queue
        for node in queue.path():
            if node in own:
                return own[own.index(node) - 1], theirs
            theirs = node
        raise LookupError(queue.name)

    def _ordered(self, candidates: Mapping[str, list[Work]], dropped: set[int]) -> Iterator[ClusterQueue]:
        """Queues by whom of them goes next, until none has candidates left."""
        if self.queue.parent is None:
            while candidates.get(self.queue.name) and id(self.queue) not in dropped:
                yield self.queue
            return
        root, path = self.queue.root(), {id(node) for node in self.queue.path()}
        while id(root) not in dropped:
            if queue := self._next(root, candidates, dropped, path):
                yield queue

    def _next(
        self, cohort: Node, candidates: Mapping[str, list[Work]], dropped: set[int], path: set[int]
    ) -> ClusterQueue | None:
        """The queue with the highest share below a cohort; None after something was dropped."""
        queues, cohorts = self._with_candidates(cohort)
        queue, highest = None, Share(-1.0, -1.0)
        for each in queues:
            if id(each) in dropped:
                continue
            if not candidates.get(each.name) or (not each.beyond and each is not self.queue):
                dropped.add(id(each))
                continue
            current = self._share(each)
            if queue is None or self._goes_first(each, current, queue, highest, candidates):
                queue, highest = each, current
        below, most = None, Share(-1.0, -1.0)
        for child in cohorts:
            if id(child) in dropped:
                continue
            current = self._share(child)
            if not child.beyond and id(child) not in path:
                dropped.add(id(child))
            elif below is None or compare(current, most) >= 0:
                below, most = child, current
        if queue is None and below is None:
            dropped.add(id(cohort))
            return None
        # Of a queue and a cohort with the same share the cohort goes first.
        if below is None or (queue is not None and compare(most, highest) < 0):
            return queue
        return self._next(below, candidates, dropped, path)

    def _with_candidates(self, cohort: Node) -> tuple[list[ClusterQueue], list[Node]]:
        """Queues and cohorts right below a cohort in which there are, or were, candidates: no others can be picked."""
        if id(cohort) not in self._below:
            queues = [queue for name in self.candidates if (queue := self.policy.queues[name]).parent is cohort]
            cohorts = [each for each in cohort.cohorts if any(self._with_candidates(each))]
            self._below[id(cohort)] = queues, cohorts
        return self._below[id(cohort)]

    def _goes_first(
        self,
        each: ClusterQueue,
        current: Share,
        queue: ClusterQueue,
        highest: Share,
        candidates: Mapping[str, list[Work]],
    ) -> bool:
        decided = compare(current, highest)
        if decided:
            return decided > 0
        return self.key(candidates[each.name][0]) < self.key(candidates[queue.name][0])


def compare(first: Share, second: Share) -> int:
    """-1, 0 or 1. Nodes without weight that borrow are above all others."""
    left, right = (first[1], second[1]) if first[0] == second[0] == inf else (first[0], second[0])
    return (left > right) - (left < right)


def borrowers(node: Node) -> list[ClusterQueue]:
    """Queues below a cohort that have more than their own of anything."""
    own = [each for each in node.borrowers if isinstance(each, ClusterQueue)]
    return own + [each for child in node.cohorts for each in borrowers(child)]


def in_turn(policy: Policy, entries: Sequence[Entry], described: Described[Entry]) -> Iterator[Entry]:
    """Entries by the shares that their queues would have with them, which each one changes that is admitted.

    Args:
        policy: Everything.
        entries: At most one of each queue.
        described: The work of an entry, and what it would use.
    """
    waiting = {described(entry)[0].queue: entry for entry in entries}
    standings: dict[str, _Standing] = {}
    while waiting:
        first = policy.queues[next(iter(waiting))]
        if first.parent is None or len(waiting) == 1:
            yield waiting.pop(first.name)
            continue
        winner = _best(policy, first.root(), waiting, described, standings)
        assert winner is not None, "a queue below this cohort has an entry"
        yield waiting.pop(described(winner)[0].queue)


class _Standing(NamedTuple):
    """By what entries have their turn: the smallest comes first."""

    borrows: bool
    weighted: float
    unweighted: float
    """Where nodes without weight are compared."""
    below: int
    """Its priority, negated."""
    since: float


def _best(
    policy: Policy,
    cohort: Node,
    waiting: Mapping[str, Entry],
    described: Described[Entry],
    standings: dict[str, _Standing],
) -> Entry | None:
    """The entry that wins below a cohort; standings of queues among each other stay as they are."""
    rivals: list[tuple[_Standing, Entry]] = []
    for child in cohort.cohorts:
        if below := _best(policy, child, waiting, described, standings):
            rivals.append((_standing(policy, child, *described(below)), below))
    for name, entry in waiting.items():
        queue = policy.queues[name]
        if queue.parent is cohort:
            if name not in standings:
                standings[name] = _standing(policy, queue, *described(entry))
            rivals.append((standings[name], entry))
    return min(rivals, key=itemgetter(0))[1] if rivals else None


def _standing(policy: Policy, node: Node, work: Work, usage: Mapping[int, int]) -> _Standing:
    """How an entry stands among those of the siblings of a node above it."""
    queue = policy.queues[work.queue]
    for fr, value in usage.items():
        queue.add(fr, value)
    weighted, unweighted = share(node, policy.resources)
    # Only what the work asks for counts: borrowing of other resources does not set an entry back.
    borrows = any(node.usage[fr] > node.subtree[fr] for fr in usage)
    for fr, value in usage.items():
        queue.remove(fr, value)
    return _Standing(borrows, weighted, unweighted if weighted == inf else 0.0, -work.priority, work.ordered)
