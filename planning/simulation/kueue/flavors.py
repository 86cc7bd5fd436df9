"""Which flavors work gets, and whether as it is, by preempting, or not at all: Kueue 0.19.2's flavor assignment."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

from .matching import selects, untolerated
from .policy import ClusterQueue, Flavor, Group, Policy
from .tree import Node
from .work import PODS, Placement, PodSet, Work


class Mode(IntEnum):
    """How well a flavor does; a larger one is better."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    """It would take preemption, and nobody can be preempted."""
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


class Rank(NamedTuple):
    """By what flavors are compared."""

    mode: Mode
    borrowing: int
    """The height of the lowest subtree in which the work fits; 0 does not borrow."""


@dataclass(slots=True)
class Assignment:
    """Flavors for all pod sets."""

    mode: Mode = Mode.FIT
    borrowing: int = 0
    flavors: list[dict[str, str]] = field(default_factory=list)
    """By resource, of each pod set."""
    modes: list[dict[str, Rank]] = field(default_factory=list)
    usage: dict[int, int] = field(default_factory=dict)
    """By flavor-resource, beyond what the slice holds whose place the work takes."""
    held: dict[int, int] = field(default_factory=dict)
    """What that slice holds of the same."""
    counts: tuple[int, ...] = ()
    tried: list[dict[str, int]] = field(default_factory=list)
    placements: tuple[Placement, ...] = ()
    reason: str = ""
    """Why it does not fit."""

    def needed(self, index: Mapping[tuple[str, str], int]) -> set[int]:
        """Flavor-resources that take preemption."""
        return {
            index[flavor, resource]
            for flavors, ranks in zip(self.flavors, self.modes, strict=True)
            for resource, flavor in flavors.items()
            if Mode.NO_FIT < ranks[resource].mode < Mode.FIT
        }


_OTHER_FLAVOR: Final = "could not assign {} flavor since the original workload is assigned: {}"
Oracle = Callable[[ClusterQueue, Work, int, int], Rank | None]
"""What preemption for an amount of one flavor-resource alone would come to; None where nobody can be preempted."""


@cache
def hashed(name: str) -> int:
    """FNV-1a of 64 bits: Kueue looks at resources in the order of these."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def is_preferred(first: Rank, second: Rank, *, not_to_borrow: bool = False) -> bool:
    """Whether the first of two is strictly better."""
    if not first.mode or not second.mode:
        return bool(first.mode) and not second.mode
    if Mode.NO_CANDIDATES in (first.mode, second.mode) and first.mode != second.mode:
        return first.mode > second.mode
    if not_to_borrow and first.borrowing != second.borrowing:
        return first.borrowing < second.borrowing
    return (-first.mode, first.borrowing) < (-second.mode, second.borrowing)


def lowest_subtree(queue: Node, fr: int, amount: int) -> tuple[int, bool]:
    """The height of the lowest subtree in which an amount fits, and whether preempting in it can be reclaiming."""
    if queue.parent is None or queue.usage[fr] + amount <= queue.subtree[fr]:
        return 0, queue.parent is not None
    rest = amount - queue.local_available(fr)
    node = queue
    for node in queue.path():
        if node.usage[fr] + rest <= node.subtree[fr]:
            return node.height, node.parent is not None
        rest -= node.local_available(fr)
    return node.height, False


def preempts_while_borrowing(policy: Policy, queue: ClusterQueue) -> bool:
    """Whether work of a queue may preempt for more than the queue's own quota."""
    return queue.borrows_within or (bool(policy.fair_strategies) and queue.reclaim != "Never")


class Assigner:
    """Assigns flavors of one policy."""

    def __init__(self, policy: Policy, oracle: Oracle) -> None:
        self._policy = policy
        self._oracle = oracle
        self._mismatches: dict[tuple[object, ...], dict[str, str]] = {}
        """By flavor, for work of one kind: it asks again and again."""
        self.weighed: set[str] = set()
        """Flavors whose quota was looked at, until somebody empties it."""

    def assign(
        self, work: Work, counts: Sequence[int], only: "Sequence[Mapping[str, str]]" = (), replaced: Work | None = None
    ) -> Assignment:
        """Flavors for pods.

        Args:
            work: Whose they are.
            counts: How many of each set.
            only: Those flavors where the cycle has chosen before.
            replaced: A slice of the same job: of its flavors it takes what is more than that holds.
        """
        queue = self._policy.queues[work.queue]
        result = Assignment(counts=tuple(counts))
        for members in _together(work.pod_sets):
            total = self._total(queue, [(work.pod_sets[number], counts[number]) for number in members])
            pods = [work.pod_sets[number] for number in members]
            search = _Search(self._policy, self._oracle, queue, work, pods, self._mismatches, self.weighed)
            if replaced:
                search.held = self._total(queue, [(replaced.pod_sets[each], replaced.counts[each]) for each in members])
                search.bound = [replaced.flavors[number] for number in members]
            before = work.tried[members[0]] if work.tried else {}
            choice = search.groups(total, result.usage, before, only[members[0]] if only else {})
            chosen = choice.flavors
            # Kueue asks no more where the worst resource of each flavor fits, by the order in which it compares them:
            # where not to borrow comes first, that is one that borrows, and another may take preemption.
            fits = all(rank.mode is Mode.FIT for rank in search.worst)
            for number in members:
                own = self._total(queue, [(work.pod_sets[number], counts[number])])
                result.flavors.append({name: chosen[name][0] for name in own if name in chosen})
                result.modes.append({name: chosen[name][1] for name in own if name in chosen})
                result.tried.append(choice.tried)
            if choice.reason:
                result.mode, result.reason = Mode.NO_FIT, choice.reason
                result.tried += [{}] * (len(work.pod_sets) - len(result.tried))
                return result
            for name, (flavor, rank) in chosen.items():
                fr = self._policy.index[flavor, name]
                held = search.held.get(name, 0)
                if held:
                    result.held[fr] = result.held.get(fr, 0) + held
                result.usage[fr] = result.usage.get(fr, 0) + total[name] - held
                result.mode = result.mode if fits else min(result.mode, rank.mode)
                result.borrowing = max(result.borrowing, rank.borrowing)
        return result

    def _total(self, queue: ClusterQueue, parts: Iterable[tuple[PodSet, int]]) -> dict[str, int]:
        """What pod sets request together."""
        total: dict[str, int] = {}
        for pods, count in parts:
            requests = dict(pods.requests)
            if queue.group_of(PODS):
                requests[PODS] = 1
            for name, value in requests.items():
                total[name] = total.get(name, 0) + value * count
        return total


def _together(pod_sets: Sequence[PodSet]) -> list[list[int]]:
    """Numbers of the pod sets that get their flavors as one."""
    groups: dict[object, list[int]] = {}
    for number, pods in enumerate(pod_sets):
        group = pods.topology.group if pods.topology else None
        groups.setdefault(group or number, []).append(number)
    return list(groups.values())


class _Choice(NamedTuple):
    """What a search for several resources came to."""

    flavors: dict[str, tuple[str, Rank]]
    """Flavor and rank by resource."""
    tried: dict[str, int]
    """Where the search for each resource stopped; -1 after the last flavor."""
    reason: str = ""
    """Why there are none."""


class _Best(NamedTuple):
    """The flavor that is best of a group's."""

    flavor: str | None
    ranks: dict[str, Rank]
    """By resource."""
    stopped: int
    """The number of the last flavor that was looked at; -1 where that is the last of all."""
    reason: str
    """Why there is none."""


@dataclass
class _Search:
    """For flavors of pod sets that get them as one."""

    policy: Policy
    oracle: Oracle
    queue: ClusterQueue
    work: Work
    pods: Sequence[PodSet]
    mismatches: dict[tuple[object, ...], dict[str, str]]
    weighed: set[str]
    worst: list[Rank] = field(default_factory=list)
    """By which each of the flavors was chosen."""
    held: Mapping[str, int] = field(default_factory=dict)
    """By resource, what the slice holds whose place the work takes."""
    bound: Sequence[Mapping[str, str]] = ()
    """Its flavors by resource, of each of the pod sets."""

    def groups(
        self, total: Mapping[str, int], assumed: Mapping[int, int], before: Mapping[str, int], only: Mapping[str, str]
    ) -> _Choice:
        """The best flavors for what is asked for in total, or why there are none."""
        choice: dict[str, tuple[str, Rank]] = {}
        tried: dict[str, int] = {}
        for name in sorted(total, key=hashed):
            if name in choice:
                continue
            group = self.queue.group_of(name)
            if group is None:
                # Kueue ignores a resource of which nothing is asked for, also where no quota covers it.
                if not total[name]:
                    continue
                return _Choice(choice, tried, f"resource {name} unavailable in ClusterQueue")
            requests = {each: total[each] for each in group.resources if each in total}
            best = self._flavor(group, requests, assumed, before.get(name, -1), only)
            tried |= dict.fromkeys(requests, best.stopped)
            if best.flavor is None:
                return _Choice({}, tried, best.reason)
            choice |= {each: (best.flavor, best.ranks[each]) for each in requests}
        return _Choice(choice, tried)

    def _flavor(
        self,
        group: Group,
        requests: Mapping[str, int],
        assumed: Mapping[int, int],
        before: int,
        only: Mapping[str, str],
    ) -> _Best:
        """The best flavor of a group, or why there is none."""
        best, ranks, worst_of_best, reasons, stopped = None, dict[str, Rank](), Rank(Mode.NO_FIT, 0), list[str](), -1
        asked = tuple(name for name, value in requests.items() if value)
        mismatches = self.mismatches.setdefault((self.queue.name, asked, *(pods.shape for pods in self.pods)), {})
        pinned = {only[name] for name in requests if name in only}
        # After the flavor at which the last search stopped, which need not be the one that it chose.
        for number in range(before + 1, len(group.flavors)):
            name = group.flavors[number]
            stopped = number
            if pinned and name not in pinned:
                continue
            flavor = self.policy.flavors.get(name)
            if flavor is None:
                reasons.append(f"flavor {name} not found")
                continue
            if name not in mismatches:
                mismatches[name] = self._mismatch(flavor, requests)
            if reason := mismatches[name]:
                reasons.append(reason)
                continue
            self.weighed.add(name)
            current: dict[str, Rank] = {}
            worst = Rank(Mode.FIT, 0)
            for resource, value in requests.items():
                fr = self.policy.index[name, resource]
                # A pod set of a group that asks for nothing of it has no flavor, which is another one for Kueue.
                others = [each.get(resource, "none") for each in self.bound if each.get(resource) != name]
                if others:
                    rank, reason = Rank(Mode.NO_FIT, 0), _OTHER_FLAVOR.format(name, others[0])
                else:
                    more = value - self.held.get(resource, 0)
                    rank, reason = self._rank(fr, assumed.get(fr, 0) + more, name, resource)
                current[resource] = rank
                if reason:
                    reasons.append(reason)
                if is_preferred(worst, rank, not_to_borrow=self.queue.prefers_not_to_borrow):
                    worst = rank
                if not rank.mode:
                    break
            if not worst.mode:
                continue
            if not self._goes_on(worst):
                best, ranks, worst_of_best = name, current, worst
                break
            if is_preferred(worst, worst_of_best, not_to_borrow=self.queue.prefers_not_to_borrow):
                best, ranks, worst_of_best = name, current, worst
        if stopped == len(group.flavors) - 1:
            stopped = -1
        self.worst.append(worst_of_best)
        return _Best(best, ranks, stopped, "; ".join(dict.fromkeys(reasons)))

    def _goes_on(self, rank: Rank) -> bool:
        """Whether the next flavor is looked at too."""
        if rank.mode <= Mode.NO_CANDIDATES:
            return True
        if rank.mode < Mode.FIT and self.queue.tries_beyond_preempting:
            return True
        return rank.borrowing > 0 and self.queue.tries_beyond_borrowing

    def _mismatch(self, flavor: Flavor, requests: Mapping[str, int]) -> str:
        """Why pods cannot go to a flavor whatever is free of it."""
        for pods in self.pods:
            if reason := self._of_topology(pods, flavor, requests):
                return reason
            if taint := untolerated([*pods.tolerations, *flavor.tolerations], flavor.taints):
                return f"untolerated taint {taint['key']} in flavor {flavor.name}"
            if not selects(pods, flavor.labels, flavor.labels):
                return f"flavor {flavor.name} doesn't match node affinity"
        return ""

    def _of_topology(self, pods: PodSet, flavor: Flavor, requests: Mapping[str, int]) -> str:
        """Why topology keeps pods out of a flavor."""
        if not any(requests.get(name) for name in (*pods.requests, PODS)):
            return ""
        every = [self.policy.flavors.get(name) for group in self.queue.groups for name in group.flavors]
        implied = bool(every) and all(each is not None and each.topology for each in every)
        if pods.topology is None or not pods.topology.is_requested:
            if flavor.topology and not implied:
                return f"Flavor {flavor.name} supports only TopologyAwareScheduling"
            return ""
        if flavor.topology is None:
            return f"Flavor {flavor.name} does not support TopologyAwareScheduling"
        levels = self.policy.topologies.get(flavor.topology, ())
        named = (pods.topology.required, pods.topology.preferred, pods.topology.slice_level)
        if any(level not in levels for level in named if level):
            return f"Flavor {flavor.name} does not contain the requested level"
        return ""

    def _rank(self, fr: int, value: int, flavor: str, resource: str) -> tuple[Rank, str]:
        """What an amount of a flavor-resource takes, and why more than it is there."""
        queue = self.queue
        if value > queue.potential(fr):
            most = queue.potential(fr)
            reason = f"insufficient quota for {resource} in {flavor}: {value} asked for, {most} at most"
            return Rank(Mode.NO_FIT, 0), reason
        borrowing, may_reclaim = lowest_subtree(queue, fr, value)
        free = max(0, queue.available(fr))
        if value <= free:
            return Rank(Mode.FIT, borrowing), ""
        reason = f"insufficient unused quota for {resource} in flavor {flavor}, {value - free} more needed"
        if queue.subtree[fr] < value and not may_reclaim and not preempts_while_borrowing(self.policy, queue):
            return Rank(Mode.NO_FIT, 0), reason
        rank = self.oracle(queue, self.work, fr, value)
        return rank or Rank(Mode.NO_CANDIDATES, borrowing), reason
