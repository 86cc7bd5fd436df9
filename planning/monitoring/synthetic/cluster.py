"""A made-up cluster over a span of time: nodes, teams and their jobs, training plans, and what goes wrong with them.

Nothing in it is measured. It is what the sandbox's metrics are drawn from, so that queries, alerts and dashboards can
be tried without an account. Times are seconds since 1970.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Literal

from ....config.catalog.instance_types import catalog
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import Engine
from ...quota.team_names import team_namespace

HOUR = 3600.0
_BUSY, _SAVING = 0.93, 0.03


@dataclass(frozen=True, kw_only=True)
class Node:
    """An instance, with as many of its devices as are drawn."""

    name: str
    """Its Kubernetes name."""
    instance_id: str
    logical_id: str
    """Stays when the instance is replaced."""
    group: str
    instance_type: str
    zone_id: str
    address: str
    gpus: int = 0
    gpu_model: str = ""
    gpu_mib: int = 0
    efa: int = 0
    neuron: int = 0
    """NeuronCores."""
    cpus: int = 2
    memory_gib: float = 64.0
    joined: float = -inf
    left: float = inf

    @classmethod
    def numbered(cls, group: str, index: int, instance_type: str, **values: object) -> "Node":
        """The node of a group with this number; it is the same one each time."""
        digest = hashlib.sha256(f"{group}/{index}".encode()).hexdigest()[:17]
        number = int(digest[:4], 16)
        address = f"10.16.{number // 250 % 250}.{number % 250 + 4}"
        known = {
            "name": f"hyperpod-i-{digest}",
            "instance_id": f"i-{digest}",
            "logical_id": f"node-{group}-{index}",
            "address": address,
            "zone_id": "",
        }
        return cls(group=group, instance_type=instance_type, **(known | values))  # pyrefly: ignore[bad-argument-type]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A team's job on some nodes, all GPUs of each. It trains and, every so often, saves a checkpoint."""

    name: str
    team: str
    nodes: tuple[str, ...]
    """Names of nodes."""
    start: float
    end: float = inf
    queued: float = 0.0
    """Seconds that it waited before it started."""
    priority: str = "training"
    elastic: bool = False
    restarts: tuple[float, ...] = ()
    """When it was restarted; each time it trains nothing for `RESTART_SECONDS`."""
    engine: Engine = "hyperpod"
    """What decides about it, and so names the team's namespace."""
    checkpoint_every: float = 1800.0
    """Seconds from a checkpoint to the next one."""
    checkpoint_seconds: float = 120.0

    @property
    def namespace(self) -> str:
        """Where its pods are."""
        return team_namespace(self.engine, self.team)

    def waits(self, timestamp: float) -> bool:
        """Whether it waits for quota; one that is restarted keeps its own."""
        return self.start not in self.restarts and self.start - self.queued <= timestamp < self.start


RESTART_SECONDS = 600.0
"""How long a restart of a job takes until it trains again."""


@dataclass(frozen=True, kw_only=True)
class Team:
    """A team."""

    name: str
    gpus: Mapping[str, int]
    """What it is guaranteed, by instance type."""
    weight: int = 10
    pending: int = 0
    """Workloads that wait, besides the jobs of the cluster."""


@dataclass(frozen=True, kw_only=True)
class Preemption:
    """A team's job loses its place to another one's."""

    team: str
    by: str
    at: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A training plan."""

    name: str
    instance_type: str
    count: int
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is otherwise than usual: the value of a metric's series, or how fast a counter grows.

    `where` are labels that a series has to have, and `labels` those that it has in their place meanwhile.
    """

    metric: str
    value: float
    start: float = -inf
    end: float = inf
    where: Mapping[str, str] = field(default_factory=dict)
    how: Literal["set", "add", "times", "gone"] = "set"
    """gone: there are no samples, as when an exporter is down."""
    labels: Mapping[str, str] = field(default_factory=dict)

    def touches(self, metric: str, labels: Mapping[str, str]) -> bool:
        """Whether it is about a series."""
        return metric == self.metric and all(labels.get(name) == value for name, value in self.where.items())


@dataclass(kw_only=True)
class SyntheticCluster:
    """A cluster from `start` to `end`, looked at every `step` seconds."""

    cluster: str
    orchestrator: Literal["eks", "slurm"] = "eks"
    region: str
    account: str
    start: float
    end: float
    step: float = 60.0
    nodes: list[Node] = field(default_factory=list)
    teams: list[Team] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    preemptions: list[Preemption] = field(default_factory=list)
    endpoints: list[str] = field(default_factory=list)
    """Models that answer requests."""
    budget_usd: float = 400000.0
    file_system_gib: float = 38400.0
    changes: list[Change] = field(default_factory=list)

    @cached_property
    def moments(self) -> list[float]:
        """When it is looked at."""
        return [self.start + self.step * index for index in range(int((self.end - self.start) / self.step) + 1)]

    def node(self, name: str) -> Node:
        """The node of a name; raises StopIteration when there is none."""
        return next(node for node in self.nodes if node.name == name)

    def jobs_on(self, node: str) -> list[Job]:
        """The jobs that a node has, by time."""
        return sorted((job for job in self.jobs if node in job.nodes), key=lambda job: job.start)

    def activity(self, job: Job | None, timestamp: float) -> float:
        """How busy the GPUs of a job are, from 0 to 1."""
        if job is None or not job.start <= timestamp < job.end:
            return 0.0
        if job.restarts and any(0 <= timestamp - restart < RESTART_SECONDS for restart in job.restarts):
            return 0.0
        saving = (timestamp - job.start) % job.checkpoint_every > job.checkpoint_every - job.checkpoint_seconds
        return _SAVING if saving else _BUSY

    def used(self, team: str, timestamp: float, instance_type: str = "") -> int:
        """GPUs that a team's jobs hold, of one instance type or of all."""
        by_name = {node.name: node.gpus for node in self.nodes if instance_type in ("", node.instance_type)}
        return sum(
            by_name.get(name, 0)
            for job in self.jobs
            if job.team == team and job.start <= timestamp < job.end
            for name in job.nodes
        )


def synthetic_cluster(
    environment: Environment, start: float, end: float, *, step: float = 60.0, nodes: int = 3, devices: int = 2
) -> SyntheticCluster:
    """A history of an environment in which all is well: each team trains on its quota, and the first borrows.

    Of each group at most `nodes` nodes are drawn, and of each node at most `devices` GPUs and EFA devices; amounts
    such as quotas shrink with them.
    """
    types = catalog(environment.instance_types)
    drawn = list[Node]()
    for name, group in environment.instance_groups.items():
        known = types.find(group.types[0])
        for index in range(min(group.count, nodes)):
            drawn.append(
                Node.numbered(
                    name,
                    index,
                    group.types[0],
                    zone_id=group.zone_ids[index % len(group.zone_ids)] if group.zone_ids else "",
                    gpus=min(known.gpus, devices) if known else 0,
                    gpu_model=f"NVIDIA {known.accelerator_name}" if known else "",
                    gpu_mib=known.accelerator_memory_mib if known else 0,
                    efa=min(known.efa_interfaces, devices) if known else 0,
                    neuron=min(known.neuron_cores, devices) if known else 0,
                    memory_gib=known.memory_gib if known else 64.0,
                )
            )
    accelerated = [node for node in drawn if node.gpus]
    first_type = next((node.instance_type for node in accelerated), "")
    counts = Counter(node.instance_type for node in accelerated)
    plans = [
        Plan(
            name=name,
            instance_type=plan.instance_type or first_type,
            count=counts[plan.instance_type] if plan.instance_type else len(accelerated),
            start=start - 14 * 24 * HOUR,
            end=end + 14 * 24 * HOUR,
        )
        for name, plan in environment.training_plans.items()
    ]
    teams, jobs = teams_and_jobs(list(environment.governance.teams) or ["research"], accelerated, start)
    engine, observed = environment.governance.engine or "hyperpod", environment.observability
    return SyntheticCluster(
        cluster=environment.cluster.name,
        orchestrator="slurm" if environment.cluster.orchestrator == "slurm" else "eks",
        region=environment.region,
        account=environment.account,
        start=start,
        end=end,
        step=step,
        nodes=drawn,
        teams=teams,
        jobs=[replace(job, engine=engine) for job in jobs],
        plans=plans,
        budget_usd=observed.budget_usd_per_month if observed and observed.budget_usd_per_month else 400_000.0,
        file_system_gib=float(environment.storage.lustre.capacity_gib or 1200) if environment.storage.lustre else 0.0,
    )


def teams_and_jobs(names: list[str], nodes: list[Node], start: float) -> tuple[list[Team], list[Job]]:
    """Teams that share the GPUs of nodes evenly, and what they train on them."""
    teams = _teams(names, nodes)
    return teams, _jobs(teams, nodes, start)


def _teams(names: list[str], nodes: list[Node]) -> list[Team]:
    """All GPUs that there are, shared evenly; the first gets what is over."""
    held = Counter[str]()
    for node in nodes:
        held[node.instance_type] += node.gpus
    shares = {kind: gpus // len(names) for kind, gpus in held.items()}
    first = {kind: share + held[kind] % len(names) for kind, share in shares.items()}
    return [
        Team(name=name, gpus=shares if index else first, weight=60 - 10 * min(index, 5))
        for index, name in enumerate(names)
    ]


def _jobs(teams: list[Team], nodes: list[Node], start: float) -> list[Job]:
    """The first team trains on all nodes but one, more than its quota; the last one's job holds the remaining node."""
    if not nodes:
        return []
    names = tuple(node.name for node in nodes)
    # Not on the hour, so that no checkpoint falls on a moment that somebody asks for.
    before = start - 6 * HOUR - 420
    jobs = [Job(name="pretrain", team=teams[0].name, nodes=names[:-1] or names, start=before, queued=240, elastic=True)]
    if len(names) > 1:
        jobs.append(Job(name="tune", team=teams[-1].name, nodes=names[-1:], start=before, queued=60))
    return jobs
