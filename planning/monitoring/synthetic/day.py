"""A made-up day of an environment: its teams and jobs on its nodes, with checkpoints, preemption and nodes that fail.

Jobs, teams, quotas and devices are those of the file; when something happens is made up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ....config.catalog.instance_types import Catalog, environment_types
from ....config.settings.environment import Environment
from ....config.settings.jobs.base import Job as Settings
from ...jobs.plan import fewest
from ...quota.amounts import GPU
from ...quota.policy import QuotaPolicy, environment_policy
from .cluster import Job, Node, Preemption, SyntheticCluster, Team, synthetic_cluster
from .faults import Fault, with_faults

NODES: Final = 3
"""Nodes of a group that are drawn at most; quotas and jobs shrink with them. Each node has all its devices."""
_TAKEN, _GIVEN_BACK, _TAKEN_AGAIN = 0.4, 0.55, 0.97
"""When jobs lose nodes to others, get them back, and lose them again, as shares of the time."""
_REPLACED, _REBOOTED = 0.25, 0.99
"""When nodes fail."""
_CHECKPOINTS: Final = {"checkpoint_every": 7200.0, "checkpoint_seconds": 300.0}
_STARTUP: Final = 300.0
"""Seconds from the end of a job until the next one runs on its nodes; as long as Prometheus shows the last sample of a
series that has ended, so that no GPU is counted twice."""
_BEFORE: Final = 9.3 * 3600
"""How long the first jobs have run before, in seconds; checkpoints so fall on no moment that somebody asks for."""


@dataclass
class _Stage:
    """The nodes of a group while its jobs are handed out."""

    start: float
    end: float
    free: list[Node]
    jobs: list[Job] = field(default_factory=list)
    preemptions: list[Preemption] = field(default_factory=list)

    def at(self, share: float) -> float:
        """The moment at a share of the time."""
        return self.start + (self.end - self.start) * share

    def run(self, job: Job, count: int) -> None:
        """The job runs from the beginning on free nodes."""
        taken, self.free = self.free[:count], self.free[count:]
        self.jobs.append(replace(job, nodes=tuple(node.name for node in taken), start=self.start - _BEFORE, queued=240))

    def take(self, job: Job, count: int, begin: float, until: float) -> None:
        """The job runs for a time on nodes that others, the latest of them first, lose to it meanwhile."""
        taken, starts, again = [node.name for node in self.free[:count]], begin + _STARTUP, until + _STARTUP
        for other in [one for one in reversed(self.jobs) if one.start <= begin < one.end]:
            lost = other.nodes[: count - len(taken)]
            if not lost:
                break
            taken += lost
            self.preemptions.append(Preemption(team=other.team, by=job.team, at=begin))
            self.jobs[self.jobs.index(other)] = replace(other, end=begin)
            left = tuple(name for name in other.nodes if name not in lost)
            if other.elastic and left:
                self.jobs.append(replace(other, nodes=left, start=starts, end=until, restarts=(starts,)))
                self.jobs.append(replace(other, start=again, restarts=(again,)))
            else:
                self.jobs.append(replace(other, start=again, queued=again - begin))
        self.jobs.append(replace(job, nodes=tuple(taken), start=starts, end=until, queued=_STARTUP))


def made_up_day(environment: Environment, start: float, end: float, *, step: float) -> SyntheticCluster:
    """A history of an environment, from `start` to `end` in seconds since 1970, in which things happen.

    Groups without a job of the file stand idle; where no group has one, the first team trains on all. A group of which
    nobody loses a node has a second run of its first job that takes some.
    """
    types = environment_types(environment.instance_types)
    drawn = synthetic_cluster(
        environment, start, end, step=step, nodes=NODES, devices=_most_devices(environment, types)
    )
    if teams := _teams(environment, environment_policy(environment, types), drawn.nodes):
        drawn.teams = teams
    gpus = [node for node in drawn.nodes if node.gpus]
    groups = dict.fromkeys(node.group for node in gpus)
    wanted = {group: list(_jobs(environment, group)) for group in groups}
    if not any(wanted.values()):
        counts = {group: environment.instance_groups[group].count for group in groups}
        wanted = {group: [(_job(f"train-{group}", drawn.teams[0].name), count)] for group, count in counts.items()}
    jobs, preemptions = list[Job](), list[Preemption]()
    for group in filter(wanted.get, groups):
        stage = _Stage(start, end, [node for node in gpus if node.group == group])
        share = len(stage.free) / environment.instance_groups[group].count
        sized = [(job, max(1, min(int(nodes * share), len(stage.free)))) for job, nodes in wanted[group]]
        _handed_out(stage, sized, drawn.teams)
        jobs += stage.jobs
        preemptions += stage.preemptions
    engine = environment.governance.engine or "hyperpod"
    drawn.jobs = [replace(job, engine=engine, **_CHECKPOINTS) for job in jobs]
    drawn.preemptions = preemptions
    return drawn


def with_failed_nodes(cluster: SyntheticCluster) -> SyntheticCluster:
    """The day with a node that is replaced, and one that is rebooted when the day ends."""
    names = [node.name for node in cluster.nodes if node.gpus] or [node.name for node in cluster.nodes]
    span = cluster.end - cluster.start
    shares = {"xid-replace": _REPLACED, "xid-reboot": _REBOOTED}
    faults = [
        Fault(kind=kind, node=name, start=cluster.start + span * share)
        for name, (kind, share) in zip(names, shares.items(), strict=False)
    ]
    return with_faults(cluster, *faults)


def _most_devices(environment: Environment, types: Catalog) -> int:
    """As many as the node with the most devices of one kind has."""
    rows = [types.find(group.types[0]) for group in environment.instance_groups.values()]
    return max((max(row.accelerator_count, row.efa_interfaces, row.neuron_cores) for row in rows if row), default=1)


def _teams(environment: Environment, policy: QuotaPolicy, nodes: Sequence[Node]) -> list[Team]:
    """The teams with their guarantees of GPUs, as far as nodes are drawn; none where no quota is of whole GPUs."""
    result = list[Team]()
    for name, team in policy.teams.items():
        gpus = dict[str, int]()
        for flavor, shares in team.shares.items():
            known, share = policy.flavors[flavor], shares.get(GPU)
            members = [node for node in nodes if node.group in known.groups]
            if share and members:
                kind, amount = members[0].instance_type, share.nominal * len(members) / known.instances
                gpus[kind] = gpus.get(kind, 0) + round(amount)
        result.append(Team(name=name, gpus=gpus, weight=team.weight))
    return result if any(team.gpus for team in result) else []


def _handed_out(stage: _Stage, wanted: Sequence[tuple[Job, int]], teams: Sequence[Team]) -> None:
    """Jobs with as many nodes as they need, in the order of the file."""
    for job, count in wanted:
        if len(stage.free) >= count:
            # What grows takes all that is idle.
            stage.run(job, len(stage.free) if job.elastic else count)
        elif not stage.preemptions:
            stage.take(job, count, stage.at(_TAKEN), stage.at(_GIVEN_BACK))
    first, _ = wanted[0]
    if not stage.preemptions:
        other = next((team.name for team in teams if team.name != first.team), first.team)
        again = replace(first, name=f"{first.name}-2", team=other, elastic=False)
        stage.take(again, len(stage.free) + 1, stage.at(_TAKEN), stage.at(_GIVEN_BACK))
    latest = [job for job in stage.jobs if job.end > stage.end][-1]
    stage.take(_job(f"{first.name}-debug", latest.team), len(stage.free) + 1, stage.at(_TAKEN_AGAIN), stage.end + 3600)


def _jobs(environment: Environment, group: str) -> Iterator[tuple[Job, int]]:
    """The jobs of a group, each with its nodes."""
    for name, job in environment.jobs.items():
        if job.group == group:
            elastic = getattr(job, "elastic", None) is not None
            yield _job(name, job.team or "", job, elastic=elastic), fewest(job)


def _job(name: str, team: str, settings: Settings | None = None, *, elastic: bool = False) -> Job:
    """A job that has no nodes yet."""
    priority = settings.priority if settings and settings.priority else "training"
    return Job(name=name, team=team, nodes=(), start=0, priority=priority, elastic=elastic)
