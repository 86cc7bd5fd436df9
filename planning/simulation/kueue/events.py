"""Time: work comes, starts, is stopped, comes again and ends, and after each of these the scheduler decides."""

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from ....config.errors import InvalidValue
from ...quota.amounts import is_accelerator
from ..assumptions import Assumptions
from .budgets import Budget, Meter, Use
from .cycle import Entry, Resting, Scheduler, Status, flavors_remain
from .history import History, Job, Preemption, Turn
from .parking import Parking
from .policy import Policy
from .progress import Progress
from .queues import WaitingQueue
from .second_pass import has_delayed_places, has_other_node
from .tree import Node
from .work import Work

UNPARK_SECONDS: Final = 1.0
"""How long Kueue gathers what became free before it looks at parked work again."""
FINISHED: Final = "finished"
NODES_GONE: Final = "NodeFailures"
"""Kueue's reason for work that loses nodes."""
NOT_READY: Final = "PodsReadyTimeout"
"""Kueue's reason for work whose pods are not ready in time."""
_MOST_TRIES: Final = 100
"""After so many, work that would be tried forever is left alone: a simulation has to end."""
_SET_ASIDE: Final = "its pods were not ready within {1:g} s {0} times, and it is tried no more (waitForPodsReady)"
_MOST_PREEMPTIONS: Final = 1000
"""After so many in a row without progress, jobs that preempt each other in a ring would never end."""
_IN_A_RING: Final = "it was stopped {} times in a row without progress, last by {}; Kueue would never end this"
_WITHOUT_PLACE: Final = "its admission checks are ready, and its pods find no place among the nodes"
_POD_GONE: Final = "it was one Pod on a node that is gone, and nobody makes it anew"
_ENDED: Final = "the elastic job of which it is a slice has ended"
_OF_BUDGETS: Final = ("period", "reached")
_BUDGET_USED: Final = "the team's budget of {:,g} accelerator-hours is used; it waits until the period ends"


class Change(NamedTuple):
    """Another policy or other nodes from a time on."""

    time: float
    policy: Policy
    """Of the same queues as before, with the same numbers of flavor-resources."""


def simulate(
    policy: Policy,
    jobs: Sequence[Job],
    assumptions: Assumptions,
    running: Iterable[Job] = (),
    requested: Job | None = None,
    changes: Iterable[Change] = (),
    budgets: Iterable[Budget] = (),
) -> History:
    """What happens, until everything has ended or nothing can happen any more.

    Args:
        policy: What decides; what it holds afterwards is what still runs.
        jobs: All jobs that come, by the time of their creation.
        assumptions: What no policy says.
        running: Jobs whose work already holds quota, since its time of reservation.
        requested: Only what becomes of this job is asked: nothing happens after its end.
        changes: Of the policy and of nodes, over time.
        budgets: Of queues.

    Raises:
        InvalidValue: under these assumptions nothing would ever run.
    """
    is_late = policy.ready_seconds is not None and assumptions.startup_seconds > policy.ready_seconds
    # With a limit of tries work that is never ready is set aside, which ends.
    if is_late and policy.requeuing.tries is None:
        raise InvalidValue(
            f"pods are ready after {assumptions.startup_seconds:g} s, and Kueue sends work back after "
            f"{policy.ready_seconds:g} s (waitForPodsReady.timeout): nothing would ever run"
        )
    run = Run(policy, assumptions)
    for budget in budgets:
        run.limit(budget)
    for job in running:
        run.resume(job)
    for job in jobs:
        run.submit(job)
    for change in changes:
        run.change(change)
    end = run.advance(math.inf, requested)
    return History(list(run.jobs.values()), run.preemptions, end, run.used(end))


class Run:
    """A policy at work. Time passes as far as it is told to, and more can happen then."""

    def __init__(self, policy: Policy, assumptions: Assumptions) -> None:
        """Nothing has happened."""
        self.policy, self.assumptions, self.progress = policy, assumptions, Progress(assumptions)
        self.scheduler = Scheduler(policy)
        self.waiting = {name: WaitingQueue(number, queue) for number, (name, queue) in enumerate(policy.queues.items())}
        self.ready: set[WaitingQueue] = set()
        """Those that may have a head."""
        self.parked: dict[Node, Parking] = {}
        """Work that is parked, by the root of its tree."""
        self.touched: set[WaitingQueue] = set()
        """Those in which work was put, or whose work took quota or left it, since they were last looked at."""
        self.resting: dict[WaitingQueue, Resting] = {}
        """Heads that wait for their victims to end, and need no cycle."""
        self.freed: Counter[Node] = Counter()
        """How often quota has become free, by the root of a tree."""
        self.jobs: dict[int, Job] = {}
        self.by_name: dict[str, Job] = {}
        """Every job by `NAMESPACE/NAME` of its work, of which another may be a slice."""
        self.successors: dict[str, Job] = {}
        """By the same, the slice that has come to take its place."""
        self.preemptions: list[Preemption] = []
        self.events: list[tuple[float, int, str, object]] = []
        self.numbers = itertools.count()
        self.timers: set[int] = set()
        self.unready: set[int] = set()
        self.delayed: list[tuple[Job, Turn]] = []
        """Jobs whose checks are ready, and whose pods find no place."""
        self.meters: dict[str, Meter] = {}
        """By queue, where it has a budget."""
        self.uses: list[Use] = []
        self.cycles = 0

    def limit(self, budget: Budget) -> None:
        """A queue has a budget."""
        accelerators = frozenset(fr for (_, name), fr in self.policy.index.items() if is_accelerator(name))
        meter = self.meters[budget.queue] = Meter(budget, accelerators, budget.used, since=budget.start)
        if budget.used:
            self._expect(budget.start, meter)

    def used(self, end: float) -> list[Use]:
        """What was used of budgets until an end, by period."""
        for meter in self.meters.values():
            meter.pass_time(end)
        return [*self.uses, *(use for meter in self.meters.values() if (use := meter.use()))]

    def resume(self, job: Job) -> None:
        """A job that runs already."""
        work = job.work
        self.jobs[id(work)] = self.by_name[work.key] = job
        since = work.reserved or 0.0
        job.turns.append(Turn(since, work.flavors, work.counts, work.placements))
        if work.is_admitted:
            self._foresee(since, job)
        else:
            self._at(since + self.assumptions.check_seconds, "checked", (job, job.turns[-1]))
        if meter := self.meters.get(work.queue):
            self._charge(meter.since, work, 1)

    def submit(self, job: Job) -> None:
        """A job comes when its work is created."""
        self.jobs[id(job.work)] = self.by_name[job.work.key] = job
        self._at(max(job.work.created, job.comes), "submit", job)

    def change(self, change: Change) -> None:
        """Another policy decides, or there are other nodes, from a time on."""
        self._at(change.time, "change", change.policy)

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
            kind, subject = self.events[0][2:]
            if kind == "reached" and self._is_outdated(subject):
                heapq.heappop(self.events)
                continue
            if (kind == "change" and self._is_over()) or (kind == "period" and self._is_spent()):
                break
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

    def _is_over(self) -> bool:
        """Whether no job is left to which a change could make a difference."""
        return all(job.finished is not None for job in self.jobs.values())

    def _is_spent(self) -> bool:
        """Whether nothing is left to happen but that periods of budgets begin, which nobody waits for."""
        if any(meter.withheld or meter.demoted for meter in self.meters.values()):
            return False
        return all(kind in _OF_BUDGETS for _, _, kind, _ in self.events)

    def _is_outdated(self, subject: Any) -> bool:
        """Whether a budget is used up at another time than was expected then."""
        meter, number = subject
        return meter.number != number

    def _submit(self, now: float, job: Job) -> None:
        if job.work.replaces and not self._grows(now, job):
            return
        queue = self.waiting.get(job.work.queue)
        if queue is None:
            job.waits_for = f"no queue leads from {job.work.namespace} to a ClusterQueue"
            return
        self._push(now, queue, job.work)

    def _push(self, now: float, queue: WaitingQueue, work: Work) -> None:
        if meter := self.meters.get(work.queue):
            if meter.holds_back():
                meter.withheld.append(work)
                self.jobs[id(work)].waits_for = _BUDGET_USED.format(meter.budget.hours)
                return
            meter.demote(work)
        queue.push(work)
        self.ready.add(queue)
        self.touched.add(queue)
        self._notice(now, queue)

    def _finish(self, now: float, subject: tuple[Job, Turn]) -> None:
        job, turn = subject
        # The end was foreseen at admission; a job that was stopped since has another one.
        if turn.end is not None or job.work.evicted:
            return
        turn.end, turn.ended, job.finished, job.left = now, FINISHED, now, 0.0
        self._free(now, job.work)
        if successor := self._successor(job):
            self._withdraw(now, successor, _ENDED)

    def _gone(self, now: float, subject: tuple[Job, float]) -> None:
        """The pods of a victim have ended: it waits again, at its old place."""
        job, later = subject
        work, turn = job.work, job.turns[-1]
        if job.finished is not None:
            # Another slice of the job has its quota.
            return
        turn.end = now
        self._free(now, work)
        work.evicted, work.reserved, work.usage, work.flavors, work.placements = False, None, {}, (), ()
        work.tried = ()
        if successor := self._successor(job):
            # Of two slices without quota Kueue leaves the newer one.
            self._hand_over(now, job, successor)
        elif not job.is_set_aside:
            self._at(now + later, "return", work)

    def _return(self, now: float, work: Work) -> None:
        if self.jobs[id(work)].finished is None:
            self._push(now, self.waiting[work.queue], work)

    def _grows(self, now: float, job: Job) -> bool:
        """A slice of an elastic job comes to take another's place. Returns whether it waits."""
        work = job.work
        before = self.by_name.get(work.replaces)
        if before is None or before is job:
            return True
        if before.finished is not None:
            job.finished, job.left, job.waits_for = now, 0.0, _ENDED
            return False
        self.successors[work.replaces] = job
        if before.work.reserved is None:
            # Kueue gives a slice without quota its new number of pods, and it waits where it has waited.
            work.ordered = before.work.ordered
            self._hand_over(now, before, job)
        return True

    def _successor(self, job: Job) -> Job | None:
        """The slice that waits to take the place of a job's."""
        result = self.successors.get(job.work.key)
        return result if result and result.finished is None and result.work.reserved is None else None

    def _hand_over(self, now: float, job: Job, successor: Job) -> None:
        """What is left of a job is done by another slice of it."""
        successor.left = self.progress.left_as(job, successor)
        self._withdraw(now, job, "")

    def _replace(self, now: float, job: Job, successor: Job) -> None:
        """Another slice of a job has its quota; pods that run already work while the new ones start."""
        left = self.progress.handed_over(now, job, successor)
        self._free(now, job.work)
        job.turns[-1].end, job.turns[-1].ended = now, FINISHED
        self._withdraw(now, job, "")
        successor.left = left

    def _withdraw(self, now: float, job: Job, reason: str) -> None:
        """A job is over as far as Kueue is concerned, whether it waits or not."""
        job.finished, job.left, job.waits_for = now, 0.0, reason
        if queue := self.waiting.get(job.work.queue):
            queue.remove(job.work)
        if (meter := self.meters.get(job.work.queue)) and job.work in meter.withheld:
            meter.withheld.remove(job.work)

    def _change(self, now: float, other: Policy) -> None:
        """Another policy decides; whoever is parked is looked at, and whoever loses a node comes again."""
        parked = [queue for parking in self.parked.values() for queue in parking.queues]
        most = max(self.freed.values(), default=0)
        lost = self.policy.become(other)
        # Everything that was remembered is of the policy before, and so are the roots of its trees.
        self.scheduler = Scheduler(self.policy)
        self.ready |= self.resting.keys()
        self.resting = {}
        roots = {name: queue.root() for name, queue in self.policy.queues.items()}
        self.parked, self.timers = {root: Parking(self.scheduler) for root in roots.values()}, set()
        self.freed = Counter(dict.fromkeys(roots.values(), most + 1))
        for name, queue in self.waiting.items():
            queue.node = self.policy.queues[name]
        for queue in parked:
            self.parked[roots[queue.node.name]].park(queue)
            queue.suspect(queue.parked)
            self.touched.add(queue)
        for root in dict.fromkeys(roots.values()):
            self._unpark_later(now, root)
        for work, domains in lost:
            # Who is told to end already has its end before it.
            if work.evicted:
                continue
            job = self.jobs[id(work)]
            if work.is_pod:
                job.is_set_aside, job.waits_for = True, _POD_GONE
                self._stop(now, job, NODES_GONE, 0.0)
                continue
            # Kueue looks for another node for one that is lost, and stops work that loses more at once.
            if len(domains) == 1 and has_other_node(self.policy, work, domains.pop()[-1]):
                self._move(now, job)
            else:
                self._stop(now, job, NODES_GONE, 0.0)

    def _ready(self, now: float, subject: tuple[Job, Turn]) -> None:
        job, turn = subject
        # Of a turn that was ended since, it says nothing.
        if turn is job.turns[-1]:
            self.unready.discard(id(job))

    def _unpark(self, now: float, root: Node) -> None:
        if id(root) not in self.timers:
            # Of a tree that is no more.
            return
        self.timers.discard(id(root))
        if parking := self.parked.get(root):
            touched = self.touched & parking.queues
            self.touched -= touched
            self.ready |= set(parking.unpark(touched))
        # In which those are refused again that are left where they are.
        self.cycles += 1
        delayed, self.delayed = self.delayed, []
        for subject in delayed:
            self._checked(now, subject)

    def _charge(self, now: float, work: Work, sign: int) -> None:
        """Work holds accelerators of its queue's budget from now on, or no longer."""
        if meter := self.meters.get(work.queue):
            meter.pass_time(now)
            meter.take(work, sign)
            self._expect(now, meter)

    def _expect(self, now: float, meter: Meter) -> None:
        """Foresee when a period ends, and when its budget is reached if nothing else happens."""
        if meter.end is None:
            meter.end = meter.budget.ends(now)
            self._at(meter.end, "period", meter)
        meter.number += 1
        if meter.reached is None and now + meter.left < meter.end:
            self._at(now + meter.left, "reached", (meter, meter.number))

    def _reached(self, now: float, subject: tuple[Meter, int]) -> None:
        """Nothing is left of a budget."""
        meter, _ = subject
        if self._is_outdated(subject):
            return
        meter.pass_time(now)
        meter.reached = now
        if meter.budget.when_reached != "warn":
            self._sort_anew(now, meter)

    def _period(self, now: float, meter: Meter) -> None:
        """A budget begins anew: its work has its priorities again, and comes into its queue."""
        meter.pass_time(now)
        if use := meter.use():
            self.uses.append(use)
        # Work without an end would otherwise have periods follow each other without one.
        is_last = all(kind in _OF_BUDGETS for _, _, kind, _ in self.events)
        was_reached, meter.reached, meter.end, meter.hours = meter.reached is not None, None, None, 0.0
        if was_reached and meter.budget.when_reached != "warn":
            self._sort_anew(now, meter)
        if meter.holds and not is_last:
            self._expect(now, meter)

    def _sort_anew(self, now: float, meter: Meter) -> None:
        """Let all work of a queue have the priority that its budget leaves it, and wait where it lets it."""
        name = meter.budget.queue
        waiting = [*self.waiting[name].withdraw(), *meter.withheld]
        meter.withheld = []
        meter.restore()
        queue = self.policy.queues[name]
        for work in queue.work.values():
            meter.demote(work)
            # For whoever was refused because of its priority.
            self.policy.changed(work)
        self.touched.add(self.waiting[name])
        for work in waiting:
            self._push(now, self.waiting[name], work)
        self._unpark_later(now, queue.root())

    def _free(self, now: float, work: Work) -> None:
        """Quota is free: whoever is parked in the tree is looked at a second later."""
        self._charge(now, work, -1)
        self.policy.release(work)
        self.policy.changed(work)
        self.touched.add(self.waiting[work.queue])
        self.unready.discard(id(self.jobs[id(work)]))
        root = self.policy.queues[work.queue].root()
        # By this a search that stopped at a flavor begins anew: one that it passed may be free now.
        self.freed[root] += 1
        self._unpark_later(now, root)

    def _notice(self, now: float, queue: WaitingQueue) -> None:
        """The status of a queue changes, and with it that of its Cohorts, by which Kueue looks at what is parked.

        Source: Kueue 0.19.2, controllers of ClusterQueues and Cohorts; seen in its log.
        """
        if queue.node.is_below_cohort:
            self._unpark_later(now, queue.node.root())

    def _unpark_later(self, now: float, root: Node) -> None:
        """Look at what is parked in a tree a second later, with whatever else changes until then."""
        if id(root) not in self.timers:
            self.timers.add(id(root))
            self._at(now + UNPARK_SECONDS, "unpark", root)

    def _decide(self, now: float) -> None:
        """Cycles, until one repeats another since when nothing has changed: some heads try their flavors forever."""
        standings: set[_Standing] = set()
        while not (self.policy.one_at_a_time and self.unready):
            if self._skip():
                standings.clear()
            if not self.ready and not self.resting:
                return
            heads = self._heads()
            if not heads:
                return
            every = [*heads, *(each.work for each in self.resting.values())]
            standings.add(_standing(every))
            if self._cycle(now, heads):
                standings.clear()
            elif _standing(every) in standings:
                return

    def repeat(self, now: float, cycles: int) -> None:
        """So many cycles more, in which nothing happens but that heads try their next flavors."""
        for _ in range(cycles):
            self._wake()
            self._cycle(now, self._heads())

    def _skip(self) -> bool:
        """Cycles in which all that comes of heads is that they are parked, at once. Returns whether there are some."""
        self._wake()
        if not self.ready:
            return False
        refused = {queue: queue.refused(self.scheduler.reason) for queue in self.ready - self.resting.keys()}
        # Until a head has its turn that may not be refused, in whichever queue.
        decided = [len(works) for queue, works in refused.items() if len(works) < queue.shapes]
        cycles = min(decided, default=max(map(len, refused.values()), default=0))
        if not cycles:
            return False
        self.cycles += cycles
        for queue, works in refused.items():
            for work, reason in works[:cycles]:
                self.jobs[id(work)].waits_for = reason
                queue.park(work.shape)
                self._parked(queue)
        return True

    def _heads(self) -> list[Work]:
        heads = list[Work]()
        for queue in sorted(self.ready - self.resting.keys(), key=attrgetter("number")):
            if (work := queue.pop()) is not None:
                heads.append(work)
            else:
                self.ready.discard(queue)
        self.cycles += bool(heads or self.resting)
        for work in heads:
            self._forget(work)
        return heads

    def _wake(self) -> None:
        """Heads whose nomination no longer holds, or that were taken out of their queue, rest no longer."""
        for queue, each in list(self.resting.items()):
            if queue.sticky is not each.work or not self.scheduler.rests(each):
                del self.resting[queue]
                self.ready.add(queue)

    def _cycle(self, now: float, heads: list[Work]) -> bool:
        """Returns whether anything changed but which flavors were tried."""
        changes = False
        for entry in self.scheduler.cycle(heads, now, self.resting.values()):
            queue = self.waiting[entry.work.queue]
            if self.resting.pop(queue, None):
                # It stands before everybody else.
                queue.pop()
            self.jobs[id(entry.work)].waits_for = entry.reason
            if entry.status is Status.ADMITTED:
                self._admit(now, entry)
                changes = True
            else:
                changes |= self._put_back(now, entry)
        return changes

    def _forget(self, work: Work) -> None:
        """Where a search stopped counts in the next cycle, or while nothing has become free."""
        if (
            work.tried
            and work.tried_in < self.cycles - 1
            and self.freed[self.policy.queues[work.queue].root()] > work.freed
        ):
            work.tried = ()

    def _put_back(self, now: float, entry: Entry) -> bool:
        """Returns whether something changed."""
        work, queue = entry.work, self.waiting[entry.work.queue]
        remain = entry.status is not Status.PREEMPTING and flavors_remain(entry.assignment.tried)
        work.tried = tuple(entry.assignment.tried) if remain else ()
        root = self.policy.queues[work.queue].root()
        work.tried_in, work.freed = self.cycles, self.freed[root]
        evicts = self._evict(now, entry) if entry.status is Status.PREEMPTING else False
        if entry.status is Status.PREEMPTING and not evicts and (rests := self.scheduler.rest(entry)):
            self.resting[queue] = rests
        # Whoever is parked holds nothing against others in the next cycle.
        is_parked = queue.requeue(entry)
        if is_parked:
            self._parked(queue)
        else:
            self.ready.add(queue)
        return is_parked or evicts

    def _parked(self, queue: WaitingQueue) -> None:
        """Work of a queue is parked."""
        root = queue.node.root()
        if root not in self.parked:
            self.parked[root] = Parking(self.scheduler)
        self.parked[root].park(queue)
        self.touched.add(queue)

    def _evict(self, now: float, entry: Entry) -> bool:
        """Tell the targets of an entry to end; returns whether that is news to one."""
        notified = [target for target in entry.victims if not target.work.evicted]
        for target in notified:
            victim = self.jobs[id(target.work)]
            self._stop(now, victim, target.reason, self.assumptions.grace_seconds)
            self.preemptions.append(Preemption(now, victim, self.jobs[id(entry.work)], target.reason))
            if victim.fruitless >= _MOST_PREEMPTIONS:
                victim.is_set_aside = True
                victim.waits_for = _IN_A_RING.format(victim.fruitless, entry.work.key)
        return bool(notified)

    def _timeout(self, now: float, subject: tuple[Job, Turn]) -> None:
        """Pods are not ready in time: the job gives its quota back, waits longer each time, and in the end no more."""
        job, turn = subject
        if turn.end is not None or job.work.evicted:
            return
        requeuing = self.policy.requeuing
        job.timeouts += 1
        backoff = requeuing.backoff(job.timeouts)
        limit = _MOST_TRIES if requeuing.tries is None else requeuing.tries
        if job.timeouts > limit:
            job.is_set_aside = True
            job.waits_for = _SET_ASIDE.format(job.timeouts, self.policy.ready_seconds)
        if requeuing.by_eviction:
            job.work.ordered = now
        grace = self.assumptions.grace_seconds
        self._stop(now, job, NOT_READY, grace, max(backoff - grace, 0.0))

    def _stop(self, now: float, job: Job, reason: str, grace: float, later: float = 0.0) -> None:
        """A job is told to end; its pods are gone after a grace, and some time later it waits again."""
        self.policy.evict(job.work)
        self._interrupt(now, job, reason)
        self._at(now + grace, "gone", (job, later))

    def _interrupt(self, now: float, job: Job, reason: str) -> None:
        """The pods of a job end before it does."""
        turn = job.turns[-1]
        turn.ended = reason
        worked = self.progress.worked(now, job)
        # What came after the last checkpoint is done again, and never more than was done.
        done = worked - min(worked, self.assumptions.repeated_seconds)
        job.left -= done
        job.fruitless = 0 if done else job.fruitless + 1

    def _move(self, now: float, job: Job) -> None:
        """A job has other nodes than before, on which it starts again with the quota that it has."""
        self._interrupt(now, job, NODES_GONE)
        work, job.turns[-1].end = job.work, now
        job.turns.append(Turn(now, work.flavors, work.counts, work.placements))
        self._start(now, job, self.policy.recovery_seconds)

    def _admit(self, now: float, entry: Entry) -> None:
        """A job holds quota, and is admitted at once or when its checks are ready."""
        work, job = entry.work, self.jobs[id(entry.work)]
        queue = self.waiting[work.queue]
        queue.admitted(work)
        self.touched.add(queue)
        self._notice(now, queue)
        job.waits_for = ""
        for target in entry.targets:
            self._replace(now, self.jobs[id(target.work)], job)
        self._charge(now, work, 1)
        job.turns.append(Turn(now, work.flavors, work.counts, work.placements))
        if queue.node.is_checked(work.held_flavors):
            self._at(now + self.assumptions.check_seconds, "checked", (job, job.turns[-1]))
        else:
            self._start(now, job, self.policy.ready_seconds)

    def _checked(self, now: float, subject: tuple[Job, Turn]) -> None:
        """The checks of a job are ready: it is admitted if there is room for pods that have no place yet."""
        job, turn = subject
        if turn.end is not None or job.work.evicted:
            return
        if has_delayed_places(self.policy, job.work):
            turn.placements, job.waits_for = job.work.placements, ""
            self.policy.changed(job.work)
            self._start(now, job, self.policy.ready_seconds)
        else:
            job.waits_for = _WITHOUT_PLACE
            self.delayed.append(subject)

    def _start(self, now: float, job: Job, most: float | None) -> None:
        """The pods of a job start: its end is foreseen, and that all are ready, or not in time."""
        self._foresee(now, job)
        startup = self.progress.startup(job)
        if most is not None and startup > most:
            self._at(now + most, "timeout", (job, job.turns[-1]))
        if self.policy.one_at_a_time and startup:
            self.unready.add(id(job))
            self._at(now + startup, "ready", (job, job.turns[-1]))

    def _foresee(self, since: float, job: Job) -> None:
        """The end of a job whose pods start, if nothing comes between."""
        turn = job.turns[-1]
        turn.begun = since
        self._at(since + self.progress.lasts(job), "finish", (job, turn))


_Standing = frozenset[tuple[str, str]]


def _standing(heads: Iterable[Work]) -> _Standing:
    """Who is at the head, and which flavors each has tried."""
    return frozenset((work.uid, repr(work.tried) if work.tried else "") for work in heads)
