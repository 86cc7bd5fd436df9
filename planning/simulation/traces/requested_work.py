"""What the jobs of a trace ask of the nodes of an environment, and which of them it could never run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ....config.catalog.instance_types import Catalog
from ....config.settings.environment import Environment
from ...jobs.plan import Planner
from ...quota.amounts import CPU, EFA, GPU, MEMORY, NEURON, Quantities
from ...quota.policy import QuotaPolicy, environment_policy
from .generator import Demand
from .trace import Trace, TracedJob, TraceProblem

SHARES: Final = (
    "a job that names no vCPU or memory asks for the share of a node that belongs to its accelerators, and one of "
    "several pods for their EFA interfaces, as `podwright submit` would"
)
"""The assumption behind requests that a trace does not have."""


class Shape(NamedTuple):
    """What a pod can have of one node of a flavor."""

    flavor: str
    groups: tuple[str, ...]
    types: tuple[str, ...]
    instances: int
    accelerator: str
    """The resource of its accelerators, GPUs unless it has others."""
    node: Quantities
    """What jobs may take of it; vCPUs in thousandths, memory in MiB."""

    @property
    def accelerators(self) -> int:
        """Of one node."""
        return self.node.get(self.accelerator, 0)

    def pods(self, requests: Quantities) -> int:
        """How many pods with these requests fit on all nodes."""
        each = [self.node.get(name, 0) // amount for name, amount in requests.items() if amount]
        return self.instances * min(each, default=1)


class RequestedJob(NamedTuple):
    """A job of a trace with what each of its pods asks for."""

    job: TracedJob
    requests: Quantities
    flavor: str
    """The flavor that it names; empty for any."""


class RequestedWork(NamedTuple):
    """The work of a trace that an environment could run."""

    jobs: tuple[RequestedJob, ...]
    problems: tuple[TraceProblem, ...]
    """Those of the trace, and jobs that the environment could never run."""
    assumptions: tuple[str, ...]


def shapes(environment: Environment, types: Catalog) -> dict[str, Shape]:
    """What pods can have of the nodes of each flavor of an environment."""
    planner = Planner(environment, types)
    result = dict[str, Shape]()
    for name, flavor in environment_policy(environment, types).flavors.items():
        free = [planner.allocatable(group) for group in flavor.groups if group in environment.instance_groups]
        # Of several groups the least, so that a pod fits whichever of them it comes to.
        taken = (
            {CPU: min(each.cpu_millis for each in free), MEMORY: min(each.memory_mib for each in free)} if free else {}
        )
        node = flavor.one | taken
        result[name] = Shape(
            name, flavor.groups, flavor.types, flavor.instances, NEURON if NEURON in node else GPU, node
        )
    return result


def demands(policy: QuotaPolicy, known: Mapping[str, Shape]) -> list[Demand]:
    """What each team works with, by its quota of accelerators of each flavor."""
    result = list[Demand]()
    for team, settings in policy.teams.items():
        for flavor, shares in settings.shares.items():
            shape = known[flavor]
            share = shares.get(shape.accelerator)
            if share is None or not share.nominal or not shape.accelerators:
                continue
            most = policy.most(team, flavor, shape.accelerator)
            result.append(Demand(team, share.nominal, most, shape.accelerators, flavor))
    return result


def requested(
    trace: Trace, known: Mapping[str, Shape], teams: Iterable[str], priorities: Iterable[str]
) -> RequestedWork:
    """The jobs of a trace with their requests, without those that the environment could never run."""
    names, classes = set(teams), set(priorities)
    jobs, problems, filled = list[RequestedJob](), list(trace.problems), False
    for job in trace.jobs:
        problem = _unknown(job, names, classes, known)
        result = _request(job, _candidates(job, known.values())) if problem is None else problem
        if isinstance(result, TraceProblem):
            problems.append(result)
            continue
        jobs.append(result)
        filled = filled or job.vcpu is None or job.memory_gib is None
    return RequestedWork(tuple(jobs), tuple(sorted(problems)), (*trace.assumptions, *([SHARES] if filled else [])))


def _unknown(job: TracedJob, teams: set[str], priorities: set[str], known: Mapping[str, Shape]) -> TraceProblem | None:
    """What a job names that the environment does not have."""
    if job.team not in teams:
        return TraceProblem(
            job.line, "unknown team", f"{job.name} is of {job.team or 'no team'}; known: {_list(teams)}"
        )
    if job.priority and job.priority not in priorities:
        message = f"{job.name} has priority {job.priority}; known: {_list(priorities)}"
        return TraceProblem(job.line, "unknown priority", message)
    if job.group and not any(_is_meant(job.group, shape) for shape in known.values()):
        message = f"{job.name} asks for {job.group}, which no team has a quota of; known: {_list(known)}"
        return TraceProblem(job.line, "too large", message)
    return None


def _is_meant(name: str, shape: Shape) -> bool:
    return name in (shape.flavor, *shape.groups, *shape.types)


def _candidates(job: TracedJob, known: Iterable[Shape]) -> list[Shape]:
    """The flavors whose nodes have enough accelerators for a pod, all with the same kind of accelerators."""
    named = [shape for shape in known if not job.group or _is_meant(job.group, shape)]
    fitting = [shape for shape in named if shape.accelerators >= job.accelerators]
    return [shape for shape in fitting if shape.accelerator == fitting[0].accelerator]


def _request(job: TracedJob, candidates: Sequence[Shape]) -> RequestedJob | TraceProblem:
    """A job with its requests, which fit each flavor that it may get; the problem of one that fits none."""
    if not candidates:
        message = f"each pod of {job.name} asks for {job.accelerators} accelerators, which no node has"
        return TraceProblem(job.line, "too large", message)
    device = candidates[0].accelerator
    requests: Quantities = {device: job.accelerators} if job.accelerators else {}
    shares = [_share(job, shape) for shape in candidates]
    requests[CPU] = min(share[CPU] for share in shares) if job.vcpu is None else round(job.vcpu * 1000)
    requests[MEMORY] = (
        min(share[MEMORY] for share in shares) if job.memory_gib is None else round(job.memory_gib * 1024)
    )
    efa = min(share[EFA] for share in shares)
    # A pod alone talks to nobody over EFA, and would only keep the devices from others.
    if efa and job.pods > 1:
        requests[EFA] = efa
    least = job.least_pods or job.pods
    if all(shape.pods(requests) < least for shape in candidates):
        most = max(shape.pods(requests) for shape in candidates)
        needed = ", ".join(f"{name} {amount}" for name, amount in requests.items())
        message = f"{job.name} has {job.pods} pods with {needed} each; at most {most} fit any flavor"
        return TraceProblem(job.line, "too large", message)
    return RequestedJob(job, requests, candidates[0].flavor if job.group and len(candidates) == 1 else "")


def _share(job: TracedJob, shape: Shape) -> Quantities:
    """The share of a node that belongs to a pod's accelerators; that of one of them where it wants none."""
    part = (job.accelerators, shape.accelerators) if job.accelerators else (1, max(shape.accelerators, 1))
    share = {name: shape.node.get(name, 0) * part[0] // part[1] for name in (CPU, MEMORY, EFA)}
    return share if job.accelerators else share | {EFA: 0}


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
