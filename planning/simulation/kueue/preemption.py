"""Whom work preempts, in which order and why: Kueue 0.19.2's classical preemption."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from .policy import ClusterQueue, Policy
from .tree import Node
from .work import Work

IN_QUEUE: Final = "InClusterQueue"
RECLAMATION: Final = "InCohortReclamation"
WHILE_BORROWING: Final = "InCohortReclaimWhileBorrowing"
FAIR: Final = "InCohortFairSharing"
REPLACED: Final = "WorkloadSliceReplaced"
"""Kueue's reason for a slice of an elastic job whose place another takes: it ends, and is not preempted."""
IsPlaced = Callable[[], bool]
"""Whether the pods find a place among the nodes, as usage is now."""


class Target(NamedTuple):
    """Work that is preempted."""

    work: Work
    reason: str


class _Candidate(NamedTuple):
    work: Work
    queue: ClusterQueue
    above: Node | None
    """The lowest cohort above both queues; None in the own queue."""
    reason: str
    only_without_borrowing: bool


def is_beaten(policy: str, incoming: Work, candidate: Work) -> bool:
    """Whether a preemption policy lets `incoming` preempt."""
    if policy == "LowerPriority":
        return incoming.priority > candidate.priority
    if policy == "LowerOrNewerEqualPriority":
        newer = incoming.priority == candidate.priority and incoming.ordered < candidate.ordered
        return incoming.priority > candidate.priority or newer
    return policy == "Any"


def order(candidate: Work, queue: str, now: float) -> tuple[object, ...]:
    """By which candidates are preempted: the smallest first."""
    reserved = now if candidate.reserved is None else candidate.reserved
    # Who is evicted already comes first, so that each cycle finds the same targets until their pods are gone.
    return (not candidate.evicted, candidate.queue == queue, candidate.priority, -reserved, candidate.uid)


def fill_back(policy: Policy, targets: list[Target], fits: Callable[[], bool]) -> list[Target]:
    """Put back, from the last but one to the first, whom it does not take. What is left stays taken out."""
    number = len(targets) - 2
    while number >= 0:
        policy.hold(targets[number].work)
        if fits():
            # As Kueue does it, which changes the order.
            targets[number] = targets[-1]
            targets.pop()
        else:
            policy.release(targets[number].work)
        number -= 1
    return targets


def restore(policy: Policy, targets: Iterable[Target]) -> None:
    """Give targets back what they held."""
    for target in targets:
        policy.hold(target.work)


def beyond_reach(
    policy: Policy, queue: ClusterQueue, requests: Mapping[int, int], candidates: Iterable[Work]
) -> int | None:
    """The flavor-resource of which a queue would have too little also if all candidates were gone, if there is one."""
    listed = list(candidates)
    for fr, value in requests.items():
        if value <= max(0, queue.available(fr)):
            continue
        held: Counter[ClusterQueue] = Counter()
        for each in listed:
            held[policy.queues[each.queue]] += each.usage.get(fr, 0)
        for other, used in held.items():
            other.remove(fr, used)
        is_enough = value <= max(0, queue.available(fr))
        for other, used in held.items():
            other.add(fr, used)
        if not is_enough:
            return fr
    return None


def classical(
    policy: Policy, work: Work, needed: set[int], requests: Mapping[int, int], now: float, is_placed: IsPlaced
) -> list[Target] | None:
    """The targets of `work`; none where no preemption is enough. Usage is as before afterwards.

    Args:
        policy: Everything.
        work: Who comes.
        needed: The flavor-resources of which too little is free.
        requests: All that it asks for, by flavor-resource.
        now: The time.
        is_placed: Whether its pods find nodes.

    Returns:
        None where there is nobody whom it may preempt, or not enough of them.
    """
    queue = policy.queues[work.queue]
    own, priority, hierarchical = candidates = _candidates(policy, queue, work, needed, requests)
    every = [each for listed in candidates for each in listed]
    if not every or beyond_reach(policy, queue, requests, [item.work for item in every]) is not None:
        return None
    for each in candidates:
        each.sort(key=lambda item: order(item.work, queue.name, now))
    every = [*hierarchical, *priority, *own]
    listed = sorted(every, key=lambda item: not item.work.evicted)
    forbidden = not queue.borrows_within
    under_nominal = all(queue.usage[fr] < queue.subtree[fr] for fr in needed)
    if not (priority or hierarchical) or (forbidden and not under_nominal):
        attempts: tuple[bool, ...] = (True,)
    elif forbidden and not hierarchical:
        attempts = (False, True)
    else:
        attempts = (True, False)
    for borrows in attempts:
        if targets := _attempt(policy, queue, listed, needed, requests, borrows, is_placed):
            return targets
    return []


def _attempt(
    policy: Policy,
    queue: ClusterQueue,
    listed: Sequence[_Candidate],
    needed: set[int],
    requests: Mapping[int, int],
    borrows: bool,
    is_placed: IsPlaced,
) -> list[Target]:
    """Targets from the candidates in their order, with or without borrowing."""

    def fits() -> bool:
        for fr, value in requests.items():
            if not borrows and queue.usage[fr] + value > queue.subtree[fr]:
                return False
            if value > max(0, queue.available(fr)):
                return False
        return is_placed()

    targets: list[Target] = []
    for item in listed:
        if not _is_valid(item, queue, needed, borrows):
            continue
        policy.release(item.work)
        targets.append(Target(item.work, item.reason))
        if fits():
            fill_back(policy, targets, fits)
            restore(policy, targets)
            return targets
    restore(policy, targets)
    return []


def _is_valid(item: _Candidate, queue: ClusterQueue, needed: set[int], borrows: bool) -> bool:
    """Whether a candidate's queue still has what it does not own."""
    if item.queue is queue:
        return True
    if borrows and item.only_without_borrowing:
        return False
    if item.queue.is_within(needed):
        return False
    for node in item.queue.path():
        if node is item.above:
            break
        if node.is_within(needed):
            return False
    return True


class _Candidates(NamedTuple):
    """By why they may be preempted."""

    own: list[_Candidate]
    """Of the own queue."""
    priority: list[_Candidate]
    hierarchical: list[_Candidate]


def _candidates(
    policy: Policy, queue: ClusterQueue, work: Work, needed: set[int], requests: Mapping[int, int]
) -> _Candidates:
    """Everybody whom work may preempt."""
    own = [
        _Candidate(each, queue, None, IN_QUEUE, only_without_borrowing=False)
        for each in queue.work.values()
        if is_beaten(queue.within, work, each) and each.holds(needed, policy.index)
    ]
    lists: tuple[list[_Candidate], list[_Candidate]] = [], []
    if queue.parent is None or queue.reclaim == "Never":
        return _Candidates(own, *lists)
    advantage, rest = _fits_quota(queue, requests)
    visited: Node = queue
    for node in queue.path():
        for other in _borrowers(node, visited, needed):
            for each in other.work.values():
                if is_beaten(queue.reclaim, work, each) and each.holds(needed, policy.index):
                    lists[advantage].append(_variant(each, other, node, queue, work, advantage=advantage))
        fits, rest = _fits_quota(node, rest)
        advantage, visited = advantage or fits, node
    return _Candidates(own, *lists)


def _fits_quota(node: Node, requests: Mapping[int, int]) -> tuple[bool, dict[int, int]]:
    """Whether requests are within the quota of a node, and what is left of them for the one above."""
    fits = all(node.usage[fr] + value <= node.subtree[fr] for fr, value in requests.items())
    return fits, {fr: max(0, value - node.local_available(fr)) for fr, value in requests.items()}


def _borrowers(node: Node, visited: Node, needed: set[int]) -> list[ClusterQueue]:
    """Queues below a cohort that have more than their own, but for those below `visited`."""
    result = [
        each
        for each in node.borrowers
        if each is not visited and isinstance(each, ClusterQueue) and not each.is_within(needed)
    ]
    for child in node.cohorts:
        if child is not visited and not child.is_within(needed):
            result += _borrowers(child, visited, needed)
    return result


def _variant(
    candidate: Work, other: ClusterQueue, above: Node, queue: ClusterQueue, work: Work, *, advantage: bool
) -> _Candidate:
    if advantage:
        return _Candidate(candidate, other, above, RECLAMATION, only_without_borrowing=False)
    too_high = queue.most_priority is not None and candidate.priority > queue.most_priority
    if not queue.borrows_within or candidate.priority >= work.priority or too_high:
        return _Candidate(candidate, other, above, RECLAMATION, only_without_borrowing=True)
    return _Candidate(candidate, other, above, WHILE_BORROWING, only_without_borrowing=False)
