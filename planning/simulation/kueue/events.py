"""Time: work comes, starts, is stopped, comes again and ends, and after each of these the scheduler decides."""

import heapq
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ....config.errors import InvalidValue
from ..assumptions import Assumptions
from .cycle import Entry, Scheduler, Status
from .policy import ClusterQueue, Policy
from .queues import WaitingQueue
from .tree import Node
from .work import Placement, Work

UNPARK_SECONDS: Final = 1.0
"""How long Kueue gathers what became free before it looks at parked work again."""
FINISHED: Final = "finished"


@dataclass(slots=True)
class Turn:
    """A time in which a job held quota."""

    start: float
    flavors: tuple[dict[str, str], ...]
    counts: tuple[int, ...]
    placements: tuple[Placement, ...]
    end: float | None = None
    ended: str = ""
    """`finished`, or the reason of a preemption."""


@dataclass(slots=True, eq=False)
class Job:
    """Work with how long it runs."""

    work: Work
    seconds: float
    """Undisturbed, with all its pods."""
    turns: list[Turn] = field(default_factory=list)
    left: float = 0.0
    """Seconds that it still has to run."""
    waits_for: str = ""
    """What the scheduler said of it last."""
    finished: float | None = None

    def __post_init__(self) -> None:
        self.left = self.seconds

    @property
    def pace(self) -> float:
        """Its speed: with fewer pods it is slower in proportion."""
        whole = sum(pods.count for pods in self.work.pod_sets)
        return sum(self.turns[-1].counts) / whole if whole else 1.0


@dataclass(frozen=True, slots=True)
class Preemption:
    """Of one job by another."""

    time: float
    victim: Job
    preemptor: Job
    reason: str


@dataclass
class History:
    """Everything that happened."""

    jobs: list[Job]
    preemptions: list[Preemption]
    end: float


def simulate(
    policy: Policy,
    jobs: Sequence[Job],
    assumptions: Assumptions,
    running: Iterable[Job] = (),
    requested: Job | None = None,
) -> History:
    """What happens, until everything has ended or nothing can happen any more.

    Args:
        policy: What decides; what it holds afterwards is what still runs.
        jobs: All jobs that come, by the time of their creation.
        assumptions: What no policy says.
        running: Jobs whose work already holds quota, since its time of reservation.
        requested: Only what becomes of this job is asked: nothing happens after its end.

    Raises:
        InvalidValue: under these assumptions nothing would ever run.
    """
    if policy.ready_seconds is not None and assumptions.startup_seconds > policy.ready_seconds:
        raise InvalidValue(
            f"pods are ready after {assumptions.startup_seconds:g} s, and Kueue sends work back after "
            f"{policy.ready_seconds:g} s (waitForPodsReady.timeout): nothing would ever run"
        )
    run = Run(policy, assumptions)
    for job in running:
        run.resume(job)
    for job in jobs:
        run.submit(job)
    end = run.advance(math.inf, requested)
    return History(list(run.jobs.values()), run.preemptions, end)


class Run:
    """A policy at work. Time passes as far as it is told to, and more can happen then."""

    def __init__(self, policy: Policy, assumptions: Assumptions) -> None:
        """Nothing has happened."""
        self.policy, self.assumptions = policy, assumptions
        self.scheduler = Scheduler(policy)
        self.waiting = {name: WaitingQueue(queue.is_strict) for name, queue in policy.queues.items()}
        self.below: dict[Node, list[ClusterQueue]] = {}
        """Cluster queues by the root of their tree."""
        for queue in policy.queues.values():
            self.below.setdefault(queue.root(), []).append(queue)
        self.jobs: dict[int, Job] = {}
        self.preemptions: list[Preemption] = []
        self.events: list[tuple[float, int, str, object]] = []
        self.numbers = itertools.count()
        self.timers: set[int] = set()
        self.changes: dict[Node, dict[str, int]] = {}
        """What was counted of changes when work of a tree was last unparked."""
        self.unready: set[int] = set()
        self.cycles = 0

    def resume(self, job: Job) -> None:
        """A job that runs already."""
        work = job.work
        self.jobs[id(work)] = job
        job.turns.append(Turn(work.reserved or 0.0, work.flavors, work.counts, work.placements))
        self._at((work.reserved or 0.0) + self._lasts(job), "finish", (job, job.turns[-1]))

    def submit(self, job: Job) -> None:
        """A job comes when its work is created."""
        self.jobs[id(job.work)] = job
        self._at(job.work.created, "submit", job)

    def finish(self, job: Job, time: float) -> None:
        """A job ends at a time, whatever it was taken to run."""
        self._at(time, "finish", (job, job.turns[-1]))

    def release(self, job: Job, time: float, later: float = 0.0) -> None:
        """The pods of a preempted job have ended, whatever grace they were taken to have.

        Args:
            job: The job.
            time: When they have.
            later: Seconds until it waits again. Kueue may just be looking at others, who then come before it.
        """
        self._at(time, "gone", (job, later))

    def advance(self, time: float, requested: Job | None = None) -> float:
        """Everything that happens until then, or until the end of a job. Returns when the last of it happened."""
        now = 0.0
        while self.events and self.events[0][0] <= time and (requested is None or requested.finished is None):
            now = self.events[0][0]
            # All events of a moment before any decision: whoever comes when something ends finds it free.
            while self.events and self.events[0][0] == now:
                _, _, kind, subject = heapq.heappop(self.events)
                getattr(self, f"_{kind}")(now, subject)
            self._decide(now)
        return now

    def _at(self, time: float, kind: str, subject: object) -> None:
        # What never ends is no event.
        if time < math.inf:
            # The number keeps events of one moment in their order, and subjects from being compared.
            heapq.heappush(self.events, (time, next(self.numbers), kind, subject))

    def _lasts(self, job: Job) -> float:
        """From admission to the end, unless something comes between."""
        lost = self._failures(job) * (self.assumptions.repeated_seconds + self.assumptions.startup_seconds)
        if lost >= 1:
            raise InvalidValue(
                f"with {self.assumptions.failures_per_node_hour:g} failures of a node in an hour {job.work.name} loses "
                "more than it does: it would never end"
            )
        return self.assumptions.startup_seconds + job.left / job.pace / (1 - lost)

    def _failures(self, job: Job) -> float:
        """Of its nodes, in a second; a pod is taken to have a node."""
        return sum(job.turns[-1].counts) * self.assumptions.failures_per_node_hour / 3600

    def _submit(self, now: float, job: Job) -> None:
        queue = self.waiting.get(job.work.queue)
        if queue is None:
            job.waits_for = f"no queue leads from {job.work.namespace} to a ClusterQueue"
            return
        queue.push(job.work)

    def _finish(self, now: float, subject: tuple[Job, Turn]) -> None:
        job, turn = subject
        # The end was foreseen at admission; a job that was stopped since has another one.
        if turn.end is not None or job.work.evicted:
            return
        turn.end, turn.ended, job.finished, job.left = now, FINISHED, now, 0.0
        self._free(now, job.work)

    def _gone(self, now: float, subject: tuple[Job, float]) -> None:
        """The pods of a victim have ended: it waits again, at its old place."""
        job, later = subject
        work, turn = job.work, job.turns[-1]
        turn.end = now
        self._free(now, work)
        work.evicted, work.reserved, work.usage, work.flavors, work.placements = False, None, {}, (), ()
        work.tried = ()
        self._at(now + later, "return", work)

    def _return(self, now: float, work: Work) -> None:
        self.waiting[work.queue].push(work)

    def _ready(self, now: float, job: Job) -> None:
        self.unready.discard(id(job))

    def _unpark(self, now: float, root: Node) -> None:
        self.timers.discard(id(root))
        before, current = self.changes.get(root, {}), self.policy.changes
        changed = [flavor for flavor, number in current.items() if before.get(flavor) != number]
        self.changes[root] = dict(current)
        for queue in self.below[root]:
            self.waiting[queue.name].unpark(self.scheduler.refused, changed)
        # In which those are refused again that are left where they are.
        self.cycles += 1

    def _free(self, now: float, work: Work) -> None:
        """Quota is free: whoever is parked in the tree is looked at a second later."""
        self.policy.release(work)
        self.policy.changed(work)
        self.unready.discard(id(self.jobs[id(work)]))
        root = self.policy.queues[work.queue].root()
        for queue in self.below[root]:
            # By this a search that stopped at a flavor begins anew: one that it passed may be free now.
            queue.generation += 1
        if id(root) not in self.timers:
            self.timers.add(id(root))
            self._at(now + UNPARK_SECONDS, "unpark", root)

    def _decide(self, now: float) -> None:
        """Cycles, until one repeats another since when nothing has changed: some heads try their flavors for ever."""
        standings: set[str] = set()
        while not (self.policy.one_at_a_time and self.unready):
            heads = self._heads()
            if not heads:
                return
            standings.add(_standing(heads))
            if self._cycle(now, heads):
                standings.clear()
            elif _standing(heads) in standings:
                return

    def repeat(self, now: float, cycles: int) -> None:
        """So many cycles more, in which nothing happens but that heads try their next flavors."""
        for _ in range(cycles):
            self._cycle(now, self._heads())

    def _heads(self) -> list[Work]:
        heads = [work for queue in self.waiting.values() if (work := queue.pop()) is not None]
        self.cycles += bool(heads)
        for work in heads:
            self._forget(work)
        return heads

    def _cycle(self, now: float, heads: list[Work]) -> bool:
        """Returns whether anything changed but which flavors were tried."""
        changes = False
        for entry in self.scheduler.cycle(heads, now):
            self.jobs[id(entry.work)].waits_for = entry.reason
            if entry.status is Status.ADMITTED:
                self._admit(now, entry)
                changes = True
            else:
                changes |= self._put_back(now, entry)
        return changes

    def _forget(self, work: Work) -> None:
        """Where a search stopped counts in the next cycle, or while nothing has become free."""
        queue = self.policy.queues[work.queue]
        if work.tried_in < self.cycles - 1 and queue.generation > work.generation:
            work.tried = ()

    def _put_back(self, now: float, entry: Entry) -> bool:
        """Returns whether something changed."""
        work, queue = entry.work, self.waiting[entry.work.queue]
        remain = entry.status is not Status.PREEMPTING and _remain(entry.assignment.tried)
        work.tried = tuple(entry.assignment.tried) if remain else ()
        work.tried_in, work.generation = self.cycles, self.policy.queues[work.queue].generation
        evicts = self._evict(now, entry) if entry.status is Status.PREEMPTING else False
        # Whoever is parked holds nothing against others in the next cycle.
        return queue.requeue(entry) or evicts

    def _evict(self, now: float, entry: Entry) -> bool:
        """Tell the targets of an entry to end; returns whether that is news to one."""
        notified = [target for target in entry.targets if not target.work.evicted]
        for target in notified:
            target.work.evicted = True
            victim = self.jobs[id(target.work)]
            turn = victim.turns[-1]
            turn.ended = target.reason
            worked = max(0.0, now - turn.start - self.assumptions.startup_seconds) * victim.pace
            # What came after the last checkpoint is done again, and never more than was done.
            victim.left -= worked - min(worked, self.assumptions.repeated_seconds)
            self.preemptions.append(Preemption(now, victim, self.jobs[id(entry.work)], target.reason))
            self._at(now + self.assumptions.grace_seconds, "gone", (victim, 0.0))
        return bool(notified)

    def _admit(self, now: float, entry: Entry) -> None:
        work, job = entry.work, self.jobs[id(entry.work)]
        self.waiting[work.queue].admitted(work)
        job.waits_for = ""
        job.turns.append(Turn(now, work.flavors, work.counts, work.placements))
        self._at(now + self._lasts(job), "finish", (job, job.turns[-1]))
        if self.policy.one_at_a_time and self.assumptions.startup_seconds:
            self.unready.add(id(job))
            self._at(now + self.assumptions.startup_seconds, "ready", job)


def _standing(heads: Iterable[Work]) -> str:
    """Who is at the head, and which flavors each has tried."""
    return repr([(work.uid, work.tried) for work in heads])


def _remain(tried: Iterable[dict[str, int]]) -> bool:
    """Whether a search for flavors has stopped before the last."""
    return any(stopped != -1 for each in tried for stopped in each.values())
