"""What Kueue would decide about work: from a policy and submissions, or from a snapshot on, to an outcome."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from ...config.catalog.instance_types import environment_types
from ...config.errors import CommandError, InvalidValue
from ...config.settings.environment import Environment
from ...config.settings.governance.teams import Engine
from ...planning.quota.amounts import accelerators, is_accelerator
from ...planning.quota.policy import countable_groups, environment_policy
from ...planning.quota.stock import Stock
from ...planning.quota.team_names import cluster_queue, team_namespace
from ...planning.simulation.assumptions import DEFAULT_SECONDS, Assumptions
from ...planning.simulation.kueue.admitted import work_in
from ...planning.simulation.kueue.budgets import Budget
from ...planning.simulation.kueue.events import Change, simulate
from ...planning.simulation.kueue.history import History, Job, Turn
from ...planning.simulation.kueue.policy import Policy as KueuePolicy
from ...planning.simulation.kueue.policy import check, policy
from ...planning.simulation.kueue.work import amount
from ...planning.simulation.snapshot import Snapshot, comes_at, name_of
from ...planning.simulation.summary.forecast import Forecast, forecast
from ...planning.simulation.summary.outcome import JobOutcome, Level, Outcome, Run, Stop
from ...planning.simulation.team_budgets import before_budgets, budget_uses, following_budgets, team_budgets
from .policies import UNDATED, Policy, State, following_states, policy_of
from .run import Submission

ENGINES: Final = ("hyperpod", "kueue")
"""Those whose decisions can be simulated."""


def decide(chosen: Policy, work: Sequence[Submission], assumptions: Assumptions) -> Outcome:
    """What becomes of work under the policy of an environment. Raises CommandError for a policy that Kueue refuses."""
    environment = chosen.environment
    states = chosen.states or (State(0.0, environment, chosen.objects, {}),)
    decides, changes = _policies(states, chosen.configuration)
    jobs = [Job(work_in(decides, item.workload), item.seconds, startup=item.startup) for item in work]
    start = min((job.work.created for job in jobs), default=0.0)
    budgets = team_budgets(environment, start, is_dated=start > UNDATED)
    history = _simulated(decides, jobs, assumptions, changes=changes, budgets=budgets)
    teams = {id(job): item.team for job, item in zip(jobs, work, strict=True)}
    first, *later = map(_level, states)
    weights = {name: float(team.weight) for name, team in sorted(environment.governance.teams.items())}
    outcome = _outcome(environment.name, history, teams, (first.quotas, first.capacity, weights))
    return outcome._replace(later=tuple(later), budgets=budget_uses(environment, history.uses))


def _level(state: State) -> Level:
    """What teams are guaranteed and what there is, while a state lasts."""
    environment = state.environment
    types = environment_types(environment.instance_types)
    quotas, groups = environment_policy(environment, types), countable_groups(environment)
    nodes = Stock(groups, types, environment.governance.engine).nodes
    capacity = dict[str, int]()
    for name, flavor in quotas.flavors.items():
        counts = {group: state.present.get(group, groups[group].count) for group in flavor.groups}
        capacity[name] = sum(count * accelerators(nodes[group].brings) for group, count in counts.items())
    engine = environment.governance.engine or "hyperpod"
    queues = {item["metadata"]["name"]: item for item in state.objects if item["kind"] == "ClusterQueue"}
    held = {team: _guaranteed(queues.get(cluster_queue(engine, team))) for team in sorted(quotas.teams)}
    return Level(state.time, held, capacity)


def continued(
    snapshot: Snapshot, environment: Environment, planned: dict[str, Any], seconds: float, assumptions: Assumptions
) -> Outcome:
    """What happens from a snapshot on with one more Workload, until that has ended.

    Args:
        snapshot: Everything that Kubernetes shows.
        environment: What is deployed there: it configures Kueue's manager, which Kubernetes does not show.
        planned: The Workload.
        seconds: How long it runs.
        assumptions: What no policy says.

    Raises:
        CommandError: Kueue refuses the policy, or nothing would ever run.
    """
    state = _state(snapshot, environment)
    return _continued(environment, state, Job(work_in(state.decides, planned), seconds), assumptions)


def remaining(snapshot: Snapshot, environment: Environment, name: str, assumptions: Assumptions) -> Outcome:
    """What happens from a snapshot on, until a Workload that waits in it has ended.

    Args:
        snapshot: Everything that Kubernetes shows.
        environment: What is deployed there.
        name: `NAMESPACE/NAME` of the Workload.
        assumptions: What no policy says.

    Raises:
        CommandError: Kueue refuses the policy, or nothing would ever run.
        LookupError: no such Workload waits.
    """
    state = _state(snapshot, environment)
    requested = next((job for job in state.waiting if f"{job.work.namespace}/{job.work.name}" == name), None)
    if requested is None:
        raise LookupError(name)
    state.waiting.remove(requested)
    return _continued(environment, state, requested, assumptions)


def forecast_from(snapshot: Snapshot, job: str, simulate: Callable[[Snapshot], Outcome]) -> Forecast:
    """The forecast of a job from a snapshot on.

    Work whose end is unknown never ends in the simulation. A job that would start if it ended may start.

    Args:
        snapshot: Everything that Kubernetes shows.
        job: The name of the job's Workload.
        simulate: Continues from a snapshot.

    Raises:
        CommandError: Kueue refuses the policy, or nothing would ever run.
        LookupError: the simulation has no such job.
    """
    result = forecast(simulate(snapshot), job)
    if result.starts_in is not None or not snapshot.open_ended:
        return result
    if forecast(simulate(snapshot.assuming_end_in(DEFAULT_SECONDS)), job).starts_in is None:
        return result
    return result._replace(unknown_ends=snapshot.open_ended)


def current_policy(snapshot: Snapshot, environment: Environment) -> KueuePolicy:
    """What decides in a snapshot, with everything that runs in use. Raises CommandError where Kueue refuses it."""
    return _state(snapshot, environment).decides


class _State(NamedTuple):
    """Of a cluster, from which a simulation continues."""

    engine: Engine
    decides: KueuePolicy
    running: list[Job]
    waiting: list[Job]
    changes: list[Change]
    """What is to come of the policy and of nodes."""
    budgets: list[Budget]


def _state(snapshot: Snapshot, environment: Environment) -> _State:
    chosen = policy_of(environment, environment_types(environment.instance_types))
    snapshot = before_budgets(snapshot, environment)
    states = following_states(snapshot, environment, environment_types(environment.instance_types))
    decides, changes = _policies(states, chosen.configuration)
    known = [Job(work_in(decides, item), snapshot.seconds[name_of(item)]) for item in snapshot.workloads]
    waiting = [job for job in known if job.work.reserved is None]
    for job, item in zip(known, snapshot.workloads, strict=True):
        if job.work.reserved is None:
            # Only what happens from now on is to come.
            job.work.created, job.comes = snapshot.taken, comes_at(item, snapshot.taken)
    running = [job for job in known if job.work.reserved is not None]
    return _State(chosen.engine, decides, running, waiting, changes, following_budgets(snapshot, environment))


def _continued(environment: Environment, state: _State, requested: Job, assumptions: Assumptions) -> Outcome:
    """What becomes of a job until it has ended, and all who stop each other until then; nobody asks for other jobs."""
    history = _simulated(
        state.decides, [*state.waiting, requested], assumptions, state.running, requested, state.changes, state.budgets
    )
    names = {team_namespace(state.engine, team): team for team in environment.governance.teams}
    teams = {id(job): names.get(job.work.namespace, job.work.namespace) for job in history.jobs}
    return _outcome(environment.name, replace(history, jobs=[requested]), teams, ({}, {}, {}))


def _guaranteed(queue: Mapping[str, Any] | None) -> dict[str, int]:
    """Accelerators by flavor that a ClusterQueue has for its own."""
    groups = queue["spec"].get("resourceGroups") or () if queue else ()
    flavors = [flavor for group in groups for flavor in group["flavors"]]
    return {flavor["name"]: accelerators(_nominal(flavor)) for flavor in flavors}


def _nominal(flavor: Mapping[str, Any]) -> dict[str, int]:
    """Of a flavor by resource."""
    return {each["name"]: amount(each["name"], each["nominalQuota"]) for each in flavor["resources"]}


class _Policies(NamedTuple):
    """What decides at first, and what after that."""

    first: KueuePolicy
    changes: list[Change]


def _policies(states: Sequence[State], configuration: dict[str, Any]) -> _Policies:
    """The policies of states that follow each other."""
    every = [item for state in states for item in state.objects]
    first, *others = [_policy(state.objects, configuration, every) for state in states]
    return _Policies(first, [Change(state.time, other) for state, other in zip(states[1:], others, strict=True)])


def _policy(objects: Iterable[Any], configuration: dict[str, Any], also: Iterable[Any]) -> KueuePolicy:
    try:
        decides = policy(objects, configuration, also)
        check(decides)
    except InvalidValue as error:
        raise CommandError(
            f"the policy cannot be: {error}", "`podwright check` and `podwright render` show it", 2
        ) from None
    return decides


def _simulated(
    decides: KueuePolicy,
    jobs: Sequence[Job],
    assumptions: Assumptions,
    running: Sequence[Job] = (),
    requested: Job | None = None,
    changes: Sequence[Change] = (),
    budgets: Sequence[Budget] = (),
) -> History:
    try:
        return simulate(decides, jobs, assumptions, running, requested, changes, budgets)
    except InvalidValue as error:
        raise CommandError(str(error), "assume something else: `--startup`, `--lost`, `--failures`", 2) from None


def _outcome(name: str, history: History, teams: dict[int, str], quotas: tuple[Any, Any, Any]) -> Outcome:
    """What happened, in the words of an outcome. Teams are by the identity of jobs."""
    jobs = [_job(job, teams[id(job)], history.end) for job in history.jobs]
    stops = [
        Stop(
            each.time,
            each.victim.work.name,
            teams[id(each.victim)],
            each.preemptor.work.name,
            teams[id(each.preemptor)],
            each.reason,
        )
        for each in history.preemptions
    ]
    start = min((job.submitted for job in jobs), default=0.0)
    return Outcome(name, start, history.end, sorted(jobs, key=lambda job: job.submitted), stops, *quotas)


def _job(job: Job, team: str, end: float) -> JobOutcome:
    work = job.work
    whole = sum(
        value * pods.count for pods in work.pod_sets for name, value in pods.requests.items() if is_accelerator(name)
    )
    runs = [_run(job, turn, end) for turn in job.turns]
    return JobOutcome(work.name, team, work.created, whole, work.priority, runs, job.finished, job.waits_for)


def _run(job: Job, turn: Turn, end: float) -> Run:
    held = 0
    for pods, count in zip(job.work.pod_sets, turn.counts, strict=True):
        held += count * sum(value for name, value in pods.requests.items() if is_accelerator(name))
    chosen = [(name, flavor) for flavors in turn.flavors for name, flavor in flavors.items()]
    # That of accelerators, or of the first resource.
    flavor = next((flavor for name, flavor in chosen if is_accelerator(name)), chosen[0][1] if chosen else "")
    domains = tuple((_domain(placement.domain), placement.pods) for placement in turn.placements)
    last = end if turn.end is None else turn.end
    return Run(turn.start, last, flavor, held, domains, turn.ended)


def _domain(values: tuple[str, ...]) -> str:
    """A node by its name, another domain by all of its values."""
    return values[-1] if values else ""
