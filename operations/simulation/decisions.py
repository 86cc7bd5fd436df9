"""What Kueue would decide about work: from a policy and submissions, or from a snapshot on, to an outcome."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...config.catalog.instance_types import environment_types
from ...config.errors import CommandError, InvalidValue
from ...config.settings.environment import Environment
from ...planning.quota.amounts import is_accelerator
from ...planning.quota.policy import TeamPolicy, environment_policy
from ...planning.quota.team_names import team_namespace
from ...planning.simulation.assumptions import Assumptions
from ...planning.simulation.kueue.admitted import work_in
from ...planning.simulation.kueue.events import History, Job, Turn, simulate
from ...planning.simulation.kueue.policy import Policy as KueuePolicy
from ...planning.simulation.kueue.policy import check, policy
from ...planning.simulation.snapshot import Snapshot, name_of
from ...planning.simulation.summary.outcome import JobOutcome, Outcome, Run, Stop
from .policies import Policy, policy_of
from .run import Submission


def decide(chosen: Policy, work: Sequence[Submission], assumptions: Assumptions) -> Outcome:
    """What becomes of work under the policy of an environment. Raises CommandError for a policy that Kueue refuses."""
    decides = _policy(chosen.objects, chosen.configuration)
    jobs = [Job(work_in(decides, item.workload), item.seconds) for item in work]
    history = _simulated(decides, jobs, assumptions)
    environment = chosen.environment
    quotas = environment_policy(environment, environment_types(environment.instance_types))
    names = sorted(quotas.teams)
    guaranteed = {team: _guaranteed(quotas.teams[team]) for team in names}
    capacity = {name: _accelerators(flavor.capacity) for name, flavor in quotas.flavors.items()}
    weights = {team: float(quotas.teams[team].weight) for team in names}
    teams = {id(job): item.team for job, item in zip(jobs, work, strict=True)}
    return _outcome(environment.name, history, teams, (guaranteed, capacity, weights))


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
    chosen = policy_of(environment, environment_types(environment.instance_types))
    decides = _policy(snapshot.objects, chosen.configuration)
    known = [Job(work_in(decides, item), snapshot.seconds[name_of(item)]) for item in snapshot.workloads]
    running = [job for job in known if job.work.reserved is not None]
    waiting = [job for job in known if job.work.reserved is None]
    for job in waiting:
        # It is in its queue already; only what happens from now on is to come.
        job.work.created = snapshot.taken
    waiting.append(Job(work_in(decides, planned), seconds))
    history = _simulated(decides, waiting, assumptions, running, waiting[-1])
    names = {team_namespace(chosen.engine, team): team for team in environment.governance.teams}
    teams = {id(job): names.get(job.work.namespace, job.work.namespace) for job in history.jobs}
    return _outcome(environment.name, history, teams, ({}, {}, {}))


def _guaranteed(team: TeamPolicy) -> dict[str, int]:
    """Accelerators by flavor."""
    result = dict[str, int]()
    for name, shares in team.shares.items():
        result[name] = _accelerators({resource: share.nominal for resource, share in shares.items()})
    return result


def _accelerators(amounts: Mapping[str, int]) -> int:
    return next((amount for resource, amount in amounts.items() if is_accelerator(resource)), 0)


def _policy(objects: Iterable[Any], configuration: dict[str, Any]) -> KueuePolicy:
    try:
        decides = policy(objects, configuration)
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
) -> History:
    try:
        return simulate(decides, jobs, assumptions, running, requested)
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
