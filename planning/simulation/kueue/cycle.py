"""One cycle of the scheduler: heads of queues are nominated, ordered, and admitted or not, as Kueue 0.19.2 does it."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Sized
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from . import fair
from .flavors import Assigner, Assignment, Mode, Rank, lowest_subtree, preempts_while_borrowing
from .matching import accepts
from .policy import ClusterQueue, Policy
from .preemption import REPLACED, Target, beyond_reach, classical, restore
from .second_pass import parts_of
from .topology import NoPlacement, Part
from .tree import Amounts, Node
from .work import Placement, Work

_RECLAIMS_ANY: Final = "Any"
_MOST_SITUATIONS: Final = 4096
"""That are kept; where they hardly come again they would fill the memory."""


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
    assignment: Assignment
    targets: list[Target]
    status: Status
    reason: str

    @property
    def usage(self) -> Amounts:
        """What it would use."""
        return self.assignment.usage

    @property
    def victims(self) -> list[Target]:
        """The targets that are told to end: all but the slice whose place the work takes."""
        return [target for target in self.targets if target.reason != REPLACED]


@dataclass(slots=True)
class _Refusal:
    """Of a head without a fit or enough others to preempt; it holds while no flavor that it weighed changes."""

    assignment: Assignment
    tried: tuple[dict[str, int], ...]
    changes: dict[str, int]
    is_simple: bool
    """Whether one flavor is all that it can have, and it starts with all pods or not at all."""
    rivals: tuple[int, ...] | None
    """What was counted when nobody could be preempted; None where there were some, and not enough of them."""
    lacking: int
    """A flavor-resource of which too little was free, also without whom it may preempt."""
    is_felt: bool
    """Whether it holds something against others of its cycle all the same."""
    is_last: bool
    """Whether no flavors are left that it would try in the next cycle."""
    checked: int
    """How often anything had changed when it was last known to hold."""
    failed: int = -1
    """The same for when it held no more."""


class Lack(NamedTuple):
    """What refused work has too little of. It stays so, unless its own queue or those that borrow change."""

    cohort: Node
    """Right above its queue."""
    fr: int
    """A flavor-resource."""


class _Nomination(NamedTuple):
    """What came of a head that does not fit; it holds while nothing of it changes, as while its victims end."""

    tried: tuple[dict[str, int], ...]
    flavors: tuple[str, ...]
    """Whose quota and nodes it looked at."""
    queues: tuple[ClusterQueue, ...]
    """Whose shares it looked at."""
    changes: int
    """How often these had changed."""
    assignment: Assignment
    targets: list[Target]


class Resting(NamedTuple):
    """A head that has told its victims to end; nothing comes of it while its nomination holds and nobody touches it."""

    work: Work
    flavors: frozenset[str]
    """Of all that it, its victims and nodes of these have to do with."""
    nomination: _Nomination


class Scheduler:
    """Decides by one policy. Usage is changed for what it admits, and for nothing else."""

    def __init__(self, policy: Policy) -> None:
        """Nothing is remembered."""
        self.policy = policy
        self._assigner = Assigner(policy, self._preempted)
        self._now = 0.0
        self._admits = False
        """Whether this cycle has admitted anything."""
        self._has_candidates = False
        """Whether there were enough of others whom the head that is nominated may preempt."""
        self._asks = False
        """Whether anybody was asked for whom it may preempt."""
        self._fitting: dict[object, Assignment] = {}
        """For work that fits, by everything that decides about it: many wait alike, and the same is free again."""
        self._refusals: dict[object, _Refusal] = {}
        """By what has them in common: see `_alike`."""
        self._latest: dict[Work, _Nomination] = {}
        self._numbers = {name: number for number, name in enumerate(policy.queues)}
        self._rest = 0
        """How many heads rest in this cycle."""
        self._is_disturbed = False
        """Whether those make a difference to it."""
        roots = {queue.root() for queue in policy.queues.values()}
        # Shares of cohorts, and the turn of several trees, are found from all heads.
        self._may_rest = not policy.fair_strategies or (len(roots) == 1 and not any(root.cohorts for root in roots))

    def cycle(self, heads: Iterable[Work], now: float, resting: Collection[Resting] = ()) -> list[Entry]:
        """What comes of at most one head of each queue, in the order in which they were processed.

        Args:
            heads: The heads.
            now: The time.
            resting: Heads of other queues. Those to which others make a difference, or which make one, take part.
        """
        self._now, self._admits, self._is_disturbed = now, False, False
        entries = [self.nominate(work, now) for work in heads]
        # Of all others the turn makes no difference, and finding it is what takes time with fair sharing.
        rivals = [entry for entry in entries if entry.status in (Status.PREEMPTING, Status.ADMITTED)]
        refused = [entry for entry in entries if entry.status not in (Status.PREEMPTING, Status.ADMITTED)]
        if not rivals:
            return refused
        awake, self._rest = self._disturbed(rivals, resting) if resting else ([], 0)
        rivals = sorted([*rivals, *awake], key=self._number) if awake else rivals
        processed = self._processed(rivals)
        if self._is_disturbed:
            every = [*(entry.work for entry in entries), *(each.work for each in resting)]
            return self.cycle(sorted(every, key=lambda work: self._numbers.get(work.queue, -1)), now)
        for entry in processed:
            if entry.status is Status.ADMITTED:
                self.admit(entry, now)
        return processed + refused

    def _processed(self, rivals: Sequence[Entry]) -> list[Entry]:
        """The entries in their order, each decided about."""
        taken: dict[str, Target] = {}
        assumed: list[tuple[ClusterQueue, Amounts, tuple[Placement, ...]]] = []
        processed: list[Entry] = []
        for entry in self._ordered(rivals) if len(rivals) > 1 else rivals:
            processed.append(entry)
            usage = self._process(entry, taken)
            if self._is_disturbed:
                break
            if usage is not None and len(processed) < len(rivals):
                queue, placements = self.policy.queues[entry.work.queue], entry.assignment.placements
                for fr, value in usage.items():
                    queue.add(fr, value)
                self.policy.domains.hold(placements)
                assumed.append((queue, usage, placements))
        # They held what they would use against later entries of this cycle only; admission holds it for good.
        for queue, usage, placements in assumed:
            for fr, value in usage.items():
                queue.remove(fr, value)
            self.policy.domains.hold(placements, -1)
        return processed

    def _disturbed(self, rivals: Iterable[Entry], resting: Collection[Resting]) -> tuple[list[Entry], int]:
        """Those of the resting heads that have to do with rivals or with each other, and how many are left."""
        flavors = {flavor for entry in rivals for flavor in self._flavors(entry)}
        left, awake = list(resting), list[Resting]()
        while due := [each for each in left if not flavors.isdisjoint(each.flavors)]:
            awake += due
            left = [each for each in left if flavors.isdisjoint(each.flavors)]
            flavors = flavors.union(*(each.flavors for each in due))
        return [self.nominate(each.work, self._now) for each in awake], len(left)

    def _flavors(self, entry: Entry) -> frozenset[str]:
        """Of all that an entry and its targets have to do with."""
        chosen = {flavor for flavors in entry.assignment.flavors for flavor in flavors.values()}
        chosen.update(flavor for target in entry.targets for flavor in target.work.held_flavors)
        return frozenset(other for flavor in chosen for other in self.policy.domains.beside(flavor))

    def _number(self, entry: Entry) -> int:
        return self._numbers[entry.work.queue]

    def rest(self, entry: Entry) -> Resting | None:
        """The head of an entry whose targets have been told to end, where it can rest until something changes."""
        latest = self._latest.get(entry.work)
        if not self._may_rest or latest is None or latest.assignment is not entry.assignment:
            return None
        result = Resting(entry.work, self._flavors(entry), latest)
        return result if entry.targets and self.rests(result) else None

    def rests(self, resting: Resting) -> bool:
        """Whether its nomination still holds."""
        latest = resting.nomination
        return latest.tried == resting.work.tried and latest.changes == self._count(latest.flavors, latest.queues)

    def admit(self, entry: Entry, now: float) -> None:
        """Give the work what it was assigned."""
        self._latest.pop(entry.work, None)
        work, assignment = entry.work, entry.assignment
        work.counts, work.flavors = assignment.counts, tuple(assignment.flavors)
        work.usage = {fr: value + assignment.held.get(fr, 0) for fr, value in assignment.usage.items()}
        work.placements, work.reserved, work.tried = assignment.placements, now, ()
        self.policy.hold(work)
        self.policy.changed(work)

    def nominate(self, work: Work, now: float) -> Entry:
        """Flavors and targets of a head by itself."""
        self._now = now
        queue = self.policy.queues.get(work.queue)
        if queue is None or not queue.is_active:
            return Entry(work, Assignment(), [], Status.INACTIVE, f"ClusterQueue {work.queue or '?'} is inactive")
        known = self.policy.namespaces
        if queue.selector is None or (known is not None and not accepts(queue.selector, known.get(work.namespace, {}))):
            reason = "Workload namespace doesn't match ClusterQueue selector"
            return Entry(work, Assignment(), [], Status.MISMATCH, reason)
        assignment, targets = self._remembered(work)
        status = _nominated(assignment.mode, targets)
        if status is Status.NO_CANDIDATES and queue.reclaim != _RECLAIMS_ANY:
            # It holds what it needs against others of this cycle.
            status = Status.PREEMPTING
        return Entry(work, assignment, targets, status, assignment.reason)

    def refused(self, work: Work) -> Collection[str] | None:
        """What has to change before a cycle does anything but refuse work again, with no difference to others.

        Returns:
            Flavors; None where the next cycle may do something else.
        """
        refusal = self._refusal(work)
        return None if refusal is None or refusal.is_felt else refusal.changes.keys()

    def reason(self, work: Work) -> str | None:
        """Why the next cycle refuses work, which is parked then with no difference to others; None where it may not."""
        refusal = self._refusal(work)
        return None if refusal is None or refusal.is_felt or not refusal.is_last else refusal.assignment.reason

    def lack(self, work: Work) -> tuple[Lack | None, int | None]:
        """Of what work that was refused has too little, where that alone decides about it, and how much would do.

        Returns:
            What lacks, and how much of it has to be left in its cohort; None for that where no amount is enough.
        """
        refusal, queue = self._refusals[self._alike(work)], self.policy.queues[work.queue]
        if not refusal.is_simple or queue.parent is None:
            return None, None
        fr = refusal.lacking
        if refusal.rivals is not None:
            return Lack(queue.parent, fr), queue.missing_above(fr, refusal.assignment.usage[fr])
        reach = Counter[bool]()
        for each in fair.candidates(self.policy, work, refusal.assignment.usage.keys()):
            reach[each.queue == work.queue] += each.usage.get(fr, 0)
        queue.remove(fr, reach[True])
        needed = queue.missing_above(fr, refusal.assignment.usage[fr])
        queue.add(fr, reach[True])
        # Whoever may be preempted makes free at most what it holds.
        return Lack(queue.parent, fr), None if needed is None else needed - reach.total()

    def _alike(self, work: Work) -> object:
        """What work has in common with all that is refused like it: its age counts where newer work is preempted.

        And a slice that takes another's place asks for less than others of its shape.
        """
        queue = self.policy.queues[work.queue]
        return work if queue.counts_age or work.replaces else (work.queue, work.shape)

    def _refusal(self, work: Work) -> _Refusal | None:
        """The last one, where it still holds."""
        refusal = self._refusals.get(self._alike(work))
        if refusal is None or refusal.tried != work.tried:
            return None
        if refusal.checked == self.policy.count:
            return refusal
        if refusal.failed == self.policy.count:
            return None
        # Of most there is one flavor, so without a generator: this is where time goes when many wait.
        current = self.policy.changes
        if [flavor for flavor, number in refusal.changes.items() if current.get(flavor, 0) != number]:
            if not refusal.is_simple or not self._is_refused(work, refusal):
                refusal.failed = self.policy.count
                return None
            refusal.changes = {flavor: current.get(flavor, 0) for flavor in refusal.changes}
        refusal.checked = self.policy.count
        return refusal

    def _is_refused(self, work: Work, refusal: _Refusal) -> bool:
        """Whether too little is still free of its only flavor, and nobody there can be preempted."""
        queue, usage = self.policy.queues[work.queue], refusal.assignment.usage
        lacking = refusal.lacking
        if usage[lacking] <= queue.available(lacking):
            lacking = next((fr for fr, value in usage.items() if value > queue.available(fr)), None)
        if lacking is None:
            return False
        if queue.reclaim != _RECLAIMS_ANY:
            # By how far it would borrow a head has its turn, as it holds something against others.
            borrowing = max(lowest_subtree(queue, fr, value)[0] for fr, value in usage.items())
            if borrowing != refusal.assignment.borrowing:
                return False
        rivals = self._rivals(queue, refusal.changes)
        if rivals != refusal.rivals and (candidates := fair.candidates(self.policy, work, usage.keys())):
            lacking, rivals = beyond_reach(self.policy, queue, usage, candidates), None
            if lacking is None:
                return False
        refusal.lacking, refusal.rivals = lacking, rivals
        return True

    def _rivals(self, queue: ClusterQueue, flavors: Iterable[str]) -> tuple[int, ...]:
        """What grows before anybody more can be preempted: work of the same queue, and of those that borrow."""
        return (queue.changes, *[self.policy.borrowings.get(flavor, 0) for flavor in flavors])

    def _remembered(self, work: Work) -> tuple[Assignment, list[Target]]:
        """The same as `_best`, which is where the time goes when many wait."""
        latest = self._latest.get(work)
        if latest and latest.tried == work.tried and latest.changes == self._count(latest.flavors, latest.queues):
            return latest.assignment, latest.targets
        if refusal := self._refusal(work):
            return refusal.assignment, []
        situation = self._situation(work)
        if not work.replaces and (fitting := self._fitting.get(situation)):
            return fitting, []
        self._has_candidates = self._asks = False
        self._assigner.weighed.clear()
        assignment, targets = self._best(work)
        if assignment.mode is not Mode.FIT:
            self._remember(work, assignment, targets)
        elif not self._asks and not work.replaces:
            if len(self._fitting) == _MOST_SITUATIONS:
                self._fitting.clear()
            self._fitting[situation] = assignment
        return assignment, targets

    def _situation(self, work: Work) -> object:
        """What decides about flavors and places of work, as long as nobody has to be preempted."""
        queue = self.policy.queues[work.queue]
        used = tuple(tuple(node.usage) for node in (queue, *queue.path()))
        tried = repr(work.tried) if work.tried else ""
        return queue, work.shape, tried, used, self.policy.domains.situation(queue.flavors)

    def _remember(self, work: Work, assignment: Assignment, targets: list[Target]) -> None:
        """Keep what came of a head that does not fit, and how long that holds."""
        policy = self.policy
        queue, usage = policy.queues[work.queue], assignment.usage
        weighed = {other for flavor in self._assigner.weighed for other in self.policy.domains.beside(flavor)}
        flavors, queues = self._regarded(queue, weighed)
        count = self._count(flavors, queues)
        self._latest[work] = _Nomination(work.tried, flavors, queues, count, assignment, targets)
        if assignment.mode <= Mode.NO_CANDIDATES and not self._has_candidates:
            changes = {flavor: self.policy.changes.get(flavor, 0) for flavor in weighed}
            # Whoever can be preempted by either kind of preemption is a candidate of fair sharing.
            candidates = fair.candidates(self.policy, work, usage.keys())
            lacking = beyond_reach(self.policy, queue, usage, candidates)
            is_simple = lacking is not None and self._is_simple(work, assignment, changes)
            rivals = None if candidates else self._rivals(queue, changes)
            is_felt = assignment.mode is not Mode.NO_FIT and queue.reclaim != _RECLAIMS_ANY
            is_last = not work.tried and not flavors_remain(assignment.tried)
            self._refusals[self._alike(work)] = _Refusal(
                assignment, work.tried, changes, is_simple, rivals, -1 if lacking is None else lacking,
                is_felt, is_last, policy.count,
            )  # fmt: skip

    def _regarded(self, queue: ClusterQueue, weighed: set[str]) -> tuple[tuple[str, ...], tuple[ClusterQueue, ...]]:
        """By what a head that weighed these flavors was decided: flavors, and queues all of whose usage counts."""
        policy, root = self.policy, queue.root()
        if not policy.fair_strategies:
            return tuple(weighed), (queue,)
        if root.cohorts:
            # Shares of cohorts count too, and with them all that is below.
            return tuple(policy.flavors), ()
        # Shares are compared only of those whose work may be preempted.
        frs = {fr for (flavor, _), fr in policy.index.items() if flavor in weighed}
        rivals = [each for each in fair.borrowers(root) if each is not queue and not each.is_within(frs)]
        return tuple(weighed), (queue, *rivals)

    def _count(self, flavors: Iterable[str], queues: Iterable[ClusterQueue]) -> int:
        """How often any of these has changed, or work of these flavors was told to end."""
        changes, evictions = self.policy.changes, self.policy.evictions
        of_flavors = sum(changes.get(flavor, 0) + evictions.get(flavor, 0) for flavor in flavors)
        return of_flavors + sum(queue.changes for queue in queues)

    def _is_simple(self, work: Work, assignment: Assignment, flavors: Sized) -> bool:
        queue = self.policy.queues[work.queue]
        return (
            assignment.mode is Mode.NO_CANDIDATES
            and len(flavors) == 1
            and not work.replaces
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
        if assignment.mode is Mode.FIT or targets or not whole or not self.policy.gates["PartialAdmission"]:
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
        replaced = self.policy.replaced(work)
        assignment = self._assigner.assign(work, counts, only, replaced)
        if assignment.mode is Mode.NO_FIT:
            return assignment, []
        # Who takes its place counts it as gone already, though its nodes are only free after that.
        own = [Target(replaced, REPLACED)] if replaced else []
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
            return assignment, self._targets(work, assignment, parts, own)
        return assignment, own

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
        placed = zip(work.pod_sets, assignment.counts, assignment.flavors, strict=False)
        parts = parts_of(self.policy, placed)
        return [part for part in parts if not self.policy.is_delayed(work.queue, part.flavor)]

    def _targets(
        self, work: Work, assignment: Assignment, parts: Sequence[Part], own: Sequence[Target]
    ) -> list[Target]:
        """Whom it takes to preempt, after the slice of its `own`; the assignment holds the places that they leave."""

        def is_placed() -> bool:
            return not parts or self._places(parts)

        self._asks = True
        decide = fair.targets if self.policy.fair_strategies else classical
        needed = assignment.needed(self.policy.index)
        targets = decide(self.policy, work, needed, assignment.usage, self._now, is_placed)
        if targets is None:
            return []
        self._has_candidates = True
        if not targets:
            return []
        targets = [*own, *targets]
        if parts:
            # From now on it holds what its victims make free.
            leaving = list({target.work.uid: target for target in targets}.values())
            for target in leaving:
                self.policy.release(target.work)
            assignment.placements = self.policy.domains.place(parts)
            restore(self.policy, leaving)
        return targets

    def _places(self, parts: Sequence[Part]) -> bool:
        try:
            self.policy.domains.place(parts)
        except NoPlacement:
            return False
        return True

    def _preempted(self, queue: ClusterQueue, work: Work, fr: int, amount: int) -> Rank | None:
        """What preempting for one flavor-resource would come to."""
        self._asks = True
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

    def _process(self, entry: Entry, taken: dict[str, Target]) -> Amounts | None:
        """Decide about an entry, with what was decided before it. Returns what it holds against those after it."""
        work, assignment = entry.work, entry.assignment
        queue = self.policy.queues[work.queue]
        fits = self._fits(entry, taken)
        if assignment.mode is not Mode.NO_FIT and not fits and self._moved(entry, taken):
            assignment = entry.assignment
            if assignment.mode is Mode.NO_FIT:
                entry.status = Status.NO_FIT
                return None
            fits = self._fits(entry, taken)
        if assignment.mode is not Mode.FIT and not entry.targets:
            entry.status = Status.NO_CANDIDATES
            return None if queue.reclaim == _RECLAIMS_ANY else self._reserved(queue, assignment)
        if any(target.work.uid in taken for target in entry.targets):
            entry.status, entry.reason = Status.SKIPPED, "Workload has overlapping preemption targets"
            return None
        if self.policy.one_at_a_time and assignment.mode is Mode.FIT and self._admits:
            entry.status, entry.reason = (
                Status.SKIPPED,
                "Waiting for all admitted workloads to be in the PodsReady condition",
            )
            return None
        if not fits:
            entry.status, entry.reason = Status.SKIPPED, "Workload no longer fits after processing another workload"
            return None
        taken |= {target.work.uid: target for target in entry.targets}
        entry.status = Status.ADMITTED if assignment.mode is Mode.FIT else Status.PREEMPTING
        self._admits = self._admits or entry.status is Status.ADMITTED
        return assignment.usage

    def _moved(self, entry: Entry, taken: dict[str, Target]) -> bool:
        """Whether quota fits and only the nodes do not: then other nodes of the same flavors are tried."""
        if not self.policy.gates["TASRecomputeAssignmentWithinSchedulingCycle"]:
            return False
        if not self._parts(entry.work, entry.assignment) or not self._fits(entry, taken, quota_alone=True):
            return False
        if self._rest and self.policy.fair_strategies:
            # Whom it may preempt is found by shares, in which what others assumed in this cycle counts.
            self._is_disturbed = True
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


def flavors_remain(tried: Iterable[dict[str, int]]) -> bool:
    """Whether a search for flavors has stopped before the last."""
    return any(stopped != -1 for each in tried for stopped in each.values())


def _nominated(mode: Mode, targets: Sized) -> Status:
    """What would come of an entry if there were no others."""
    if mode is Mode.NO_FIT:
        return Status.NO_FIT
    if mode is Mode.FIT:
        return Status.ADMITTED
    return Status.PREEMPTING if targets else Status.NO_CANDIDATES
