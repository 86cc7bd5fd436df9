"""One cycle of the scheduler: heads of queues are nominated, ordered, and admitted or not, as Kueue 0.19.2 does it."""

from collections.abc import Collection, Iterable, Sequence, Sized
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from . import fair
from .flavors import Assigner, Assignment, Mode, Rank, lowest_subtree, preempts_while_borrowing
from .matching import accepts
from .policy import ClusterQueue, Policy
from .preemption import Target, classical, restore
from .topology import NoPlacement, Part
from .tree import Amounts
from .work import Placement, Work

_RECLAIMS_ANY: Final = "Any"


class Status(StrEnum):
    """What came of an entry."""

    ADMITTED = "admitted"
    PREEMPTING = "preempting"
    """It waits until the pods of its targets are gone."""
    SKIPPED = "skipped"
    """Another entry of the cycle came first."""
    NO_FIT = "no fit"
    NO_CANDIDATES = "no candidates"
    INACTIVE = "inactive"
    """Its queue takes nothing."""
    MISMATCH = "namespace mismatch"


@dataclass(slots=True)
class Entry:
    """A head in a cycle."""

    work: Work
    assignment: Assignment = field(default_factory=Assignment)
    targets: list[Target] = field(default_factory=list)
    status: Status = Status.NO_FIT
    reason: str = ""

    @property
    def usage(self) -> Amounts:
        """What it would use."""
        return self.assignment.usage


class _Refusal(NamedTuple):
    """Of a head without a fit or anybody to preempt; it holds while nothing of the flavors that it weighed changes."""

    assignment: Assignment
    tried: tuple[dict[str, int], ...]
    changes: dict[str, int]
    is_simple: bool
    """Whether one flavor is all that it can have, and it starts with all pods or not at all."""


class Scheduler:
    """Decides by one policy. Usage is changed for what it admits, and for nothing else."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._assigner = Assigner(policy, self._preempted)
        self._now = 0.0
        self._admits = False
        """Whether this cycle has admitted anything."""
        self._has_candidates = False
        """Whether there was anybody whom the head that is nominated may preempt."""
        self._refusals: dict[Work, _Refusal] = {}

    def cycle(self, heads: Iterable[Work], now: float) -> list[Entry]:
        """What comes of at most one head of each queue, in the order in which they were processed."""
        self._now, self._admits = now, False
        entries = [self.nominate(work, now) for work in heads]
        # Of all others the turn makes no difference, and finding it is what takes time with fair sharing.
        rivals = [entry for entry in entries if entry.status in (Status.PREEMPTING, Status.ADMITTED)]
        refused = [entry for entry in entries if entry.status not in (Status.PREEMPTING, Status.ADMITTED)]
        taken: dict[str, Target] = {}
        assumed: list[tuple[ClusterQueue, Amounts, tuple[Placement, ...]]] = []
        processed: list[Entry] = []
        for entry in self._ordered(rivals):
            processed.append(entry)
            self._process(entry, taken, assumed)
        # They held what they would use against later entries of this cycle only; admission holds it for good.
        for queue, usage, placements in assumed:
            for fr, value in usage.items():
                queue.remove(fr, value)
            self.policy.domains.hold(placements, -1)
        for entry in processed:
            if entry.status is Status.ADMITTED:
                self.admit(entry, now)
        return processed + refused

    def admit(self, entry: Entry, now: float) -> None:
        """Give the work what it was assigned."""
        work, assignment = entry.work, entry.assignment
        work.counts, work.flavors = assignment.counts, tuple(assignment.flavors)
        work.usage, work.placements, work.reserved, work.tried = assignment.usage, assignment.placements, now, ()
        self.policy.hold(work)
        self.policy.changed(work)

    def nominate(self, work: Work, now: float) -> Entry:
        """Flavors and targets of a head by itself."""
        self._now = now
        entry, queue = Entry(work), self.policy.queues.get(work.queue)
        if queue is None or not queue.is_active:
            entry.status, entry.reason = Status.INACTIVE, f"ClusterQueue {work.queue or '?'} is inactive"
            return entry
        known = self.policy.namespaces
        if queue.selector is None or (known is not None and not accepts(queue.selector, known.get(work.namespace, {}))):
            entry.status, entry.reason = Status.MISMATCH, "Workload namespace doesn't match ClusterQueue selector"
            return entry
        entry.assignment, entry.targets = self._remembered(work)
        entry.reason = entry.assignment.reason
        entry.status = _nominated(entry)
        if entry.status is Status.NO_CANDIDATES and queue.reclaim != _RECLAIMS_ANY:
            # It holds what it needs against others of this cycle.
            entry.status = Status.PREEMPTING
        return entry

    def refused(self, work: Work) -> Collection[str] | None:
        """What has to change before a cycle does anything but refuse work again, with no difference to others.

        Returns:
            Flavors; None where the next cycle may do something else.
        """
        refusal = self._refusal(work)
        if refusal is None:
            return None
        is_felt = refusal.assignment.mode is not Mode.NO_FIT and self.policy.queues[work.queue].reclaim != _RECLAIMS_ANY
        return None if is_felt else refusal.changes.keys()

    def _refusal(self, work: Work) -> _Refusal | None:
        """The last one, where it still holds."""
        refusal, changes = self._refusals.get(work), self.policy.changes
        if refusal is None or refusal.tried != work.tried:
            return None
        current = {flavor: changes.get(flavor, 0) for flavor in refusal.changes}
        if current != refusal.changes:
            if not refusal.is_simple or not self._is_refused(work, refusal.assignment):
                return None
            self._refusals[work] = refusal = refusal._replace(changes=current)
        return refusal

    def _is_refused(self, work: Work, assignment: Assignment) -> bool:
        """Whether too little is still free of its only flavor, and nobody there can be preempted."""
        queue, usage = self.policy.queues[work.queue], assignment.usage
        if all(value <= queue.available(fr) for fr, value in usage.items()):
            return False
        borrowing = max(lowest_subtree(queue, fr, value)[0] for fr, value in usage.items())
        # Whoever can be preempted by either kind of preemption is a candidate of fair sharing.
        return borrowing == assignment.borrowing and not fair.candidates(self.policy, work, usage.keys())

    def _remembered(self, work: Work) -> tuple[Assignment, list[Target]]:
        """The same as `_best`, which is where the time goes when many wait."""
        if refusal := self._refusal(work):
            return refusal.assignment, []
        self._refusals.pop(work, None)
        self._has_candidates = False
        self._assigner.weighed.clear()
        assignment, targets = self._best(work)
        if assignment.mode <= Mode.NO_CANDIDATES and not self._has_candidates:
            changes = {flavor: self.policy.changes.get(flavor, 0) for flavor in self._assigner.weighed}
            self._refusals[work] = _Refusal(assignment, work.tried, changes, self._is_simple(work, assignment, changes))
        return assignment, targets

    def _is_simple(self, work: Work, assignment: Assignment, flavors: Sized) -> bool:
        queue = self.policy.queues[work.queue]
        return (
            assignment.mode is Mode.NO_CANDIDATES
            and len(flavors) == 1
            and all(pods.least is None for pods in work.pod_sets)
            and (
                preempts_while_borrowing(self.policy, queue)
                or all(queue.subtree[fr] >= value for fr, value in assignment.usage.items())
            )
        )

    def _best(self, work: Work, only: Sequence[dict[str, str]] = ()) -> tuple[Assignment, list[Target]]:
        """For all pods, or for as many as start at once where the work may start with fewer."""
        counts = [pods.count for pods in work.pod_sets]
        assignment, targets = self._try(work, counts, only)
        spare = [pods.count - (pods.count if pods.least is None else pods.least) for pods in work.pod_sets]
        whole = sum(spare)
        if assignment.mode is Mode.FIT or targets or not whole:
            return assignment, targets
        # By halving, as Kueue does, which takes for granted that fewer pods fit wherever more do.
        low, high, last = 0, whole + 1, None
        while low < high:
            middle = (low + high) // 2
            fewer = [count - part * middle // whole for count, part in zip(counts, spare, strict=True)]
            attempt = self._try(work, fewer, only)
            if attempt[0].mode is Mode.FIT or attempt[1]:
                high, last = middle, (middle, attempt)
            else:
                low = middle + 1
        return last[1] if last and last[0] == low else (assignment, targets)

    def _try(
        self, work: Work, counts: Sequence[int], only: Sequence[dict[str, str]] = ()
    ) -> tuple[Assignment, list[Target]]:
        """Flavors for so many pods, and whom it takes to preempt; `only` those flavors where some are given."""
        assignment = self._assigner.assign(work, counts, only)
        if assignment.mode is Mode.NO_FIT:
            return assignment, []
        parts = self._parts(work, assignment)
        if assignment.mode is Mode.FIT and parts and not self._placed(assignment, parts):
            self._to_preempt(assignment, parts)
        if Mode.NO_FIT < assignment.mode < Mode.FIT:
            try:
                # Without victims, it holds what it would have of empty nodes.
                assignment.placements = self.policy.domains.place_empty(parts)
            except NoPlacement as refused:
                assignment.mode, assignment.reason = Mode.NO_FIT, str(refused)
                return assignment, []
            self._to_preempt(assignment, parts)
            return assignment, self._targets(work, assignment, parts)
        return assignment, []

    def _placed(self, assignment: Assignment, parts: Sequence[Part]) -> bool:
        try:
            assignment.placements = self.policy.domains.place(parts)
        except NoPlacement as refused:
            assignment.reason = str(refused)
            return False
        return True

    def _to_preempt(self, assignment: Assignment, parts: Sequence[Part]) -> None:
        """Pods that go by topology need preemption in all of their resources, where they need any."""
        if not parts:
            return
        flavors = {part.flavor for part in parts}
        for chosen, ranks in zip(assignment.flavors, assignment.modes, strict=True):
            for resource, flavor in chosen.items():
                if flavor in flavors and ranks[resource].mode is Mode.FIT:
                    ranks[resource] = ranks[resource]._replace(mode=Mode.PREEMPT)
        assignment.mode = min(assignment.mode, Mode.PREEMPT)

    def _parts(self, work: Work, assignment: Assignment) -> list[Part]:
        """The pod sets that are placed by topology."""
        parts = []
        for pods, count, chosen in zip(work.pod_sets, assignment.counts, assignment.flavors, strict=False):
            named = [name for name in chosen.values() if self.policy.flavors[name].topology in self.policy.topologies]
            if named and count:
                parts.append(Part(pods, count, named[0]))
        return parts

    def _targets(self, work: Work, assignment: Assignment, parts: Sequence[Part]) -> list[Target]:
        """Whom it takes to preempt; the assignment holds the places that they leave."""

        def is_placed() -> bool:
            return not parts or self._places(parts)

        decide = fair.targets if self.policy.fair_strategies else classical
        needed = assignment.needed(self.policy.index)
        targets = decide(self.policy, work, needed, assignment.usage, self._now, is_placed)
        if targets is None:
            return []
        self._has_candidates = True
        if targets and parts:
            # From now on it holds what its victims make free.
            for target in targets:
                self.policy.release(target.work)
            assignment.placements = self.policy.domains.place(parts)
            restore(self.policy, targets)
        return targets

    def _places(self, parts: Sequence[Part]) -> bool:
        try:
            self.policy.domains.place(parts)
        except NoPlacement:
            return False
        return True

    def _preempted(self, queue: ClusterQueue, work: Work, fr: int, amount: int) -> Rank | None:
        """What preempting for one flavor-resource would come to."""
        decide = fair.targets if self.policy.fair_strategies else classical
        targets = decide(self.policy, work, {fr}, {fr: amount}, self._now, lambda: True)
        self._has_candidates = self._has_candidates or targets is not None
        if not targets:
            return None
        for target in targets:
            self.policy.release(target.work)
        borrowing, _ = lowest_subtree(queue, fr, amount)
        restore(self.policy, targets)
        own = any(target.work.queue == queue.name for target in targets)
        return Rank(Mode.PREEMPT if own else Mode.RECLAIM, borrowing)

    def _ordered(self, entries: Sequence[Entry]) -> Iterable[Entry]:
        if self.policy.fair_strategies:
            return fair.in_turn(self.policy, entries, lambda entry: (entry.work, entry.usage))
        return sorted(entries, key=lambda entry: (entry.assignment.borrowing, -entry.work.priority, entry.work.ordered))

    def _process(
        self, entry: Entry, taken: dict[str, Target], assumed: list[tuple[ClusterQueue, Amounts, tuple[Placement, ...]]]
    ) -> None:
        """Decide about an entry, with what was decided before it in this cycle."""
        work, assignment = entry.work, entry.assignment
        queue = self.policy.queues[work.queue]
        if assignment.mode is not Mode.NO_FIT and not self._fits(entry, taken) and self._moved(entry, taken):
            assignment = entry.assignment
            if assignment.mode is Mode.NO_FIT:
                entry.status = Status.NO_FIT
                return
        if assignment.mode is not Mode.FIT and not entry.targets:
            entry.status = Status.NO_CANDIDATES
            if queue.reclaim != _RECLAIMS_ANY:
                self._assume(queue, self._reserved(queue, assignment), assignment.placements, assumed)
            return
        if any(target.work.uid in taken for target in entry.targets):
            entry.status, entry.reason = Status.SKIPPED, "Workload has overlapping preemption targets"
            return
        if self.policy.one_at_a_time and assignment.mode is Mode.FIT and self._admits:
            entry.status, entry.reason = (
                Status.SKIPPED,
                "Waiting for all admitted workloads to be in the PodsReady condition",
            )
            return
        if not self._fits(entry, taken):
            entry.status, entry.reason = Status.SKIPPED, "Workload no longer fits after processing another workload"
            return
        taken |= {target.work.uid: target for target in entry.targets}
        self._assume(queue, assignment.usage, assignment.placements, assumed)
        entry.status = Status.ADMITTED if assignment.mode is Mode.FIT else Status.PREEMPTING
        self._admits = self._admits or entry.status is Status.ADMITTED

    def _moved(self, entry: Entry, taken: dict[str, Target]) -> bool:
        """Whether quota fits and only the nodes do not: then other nodes of the same flavors are tried."""
        if not self._parts(entry.work, entry.assignment) or not self._fits(entry, taken, quota_alone=True):
            return False
        # All flavors that were chosen are to be reached.
        entry.work.tried = ()
        entry.assignment, entry.targets = self._best(entry.work, [dict(each) for each in entry.assignment.flavors])
        return True

    def _fits(self, entry: Entry, taken: dict[str, Target], *, quota_alone: bool = False) -> bool:
        """Whether it fits without all whom this cycle preempts."""
        removed = {**taken, **{target.work.uid: target for target in entry.targets}}
        for target in removed.values():
            self.policy.release(target.work)
        queue = self.policy.queues[entry.work.queue]
        fits = all(value <= max(0, queue.available(fr)) for fr, value in entry.usage.items())
        if fits and not quota_alone:
            fits = self.policy.domains.holds(entry.assignment.placements)
        for target in removed.values():
            self.policy.hold(target.work)
        return fits

    def _assume(
        self,
        queue: ClusterQueue,
        usage: Amounts,
        placements: tuple[Placement, ...],
        assumed: list[tuple[ClusterQueue, Amounts, tuple[Placement, ...]]],
    ) -> None:
        for fr, value in usage.items():
            queue.add(fr, value)
        self.policy.domains.hold(placements)
        assumed.append((queue, usage, placements))

    def _reserved(self, queue: ClusterQueue, assignment: Assignment) -> Amounts:
        """What others cannot have in this cycle, though nobody can be preempted for it."""
        result: Amounts = {}
        for fr, value in assignment.usage.items():
            limit = queue.borrowing[fr]
            if not assignment.borrowing:
                result[fr] = max(0, min(value, queue.subtree[fr] - queue.usage[fr]))
            elif limit is None:
                result[fr] = value
            else:
                result[fr] = min(value, queue.subtree[fr] + limit - queue.usage[fr])
        return result


def _nominated(entry: Entry) -> Status:
    """What would come of an entry if there were no others."""
    if entry.assignment.mode is Mode.NO_FIT:
        return Status.NO_FIT
    if entry.assignment.mode is Mode.FIT:
        return Status.ADMITTED
    return Status.PREEMPTING if entry.targets else Status.NO_CANDIDATES
