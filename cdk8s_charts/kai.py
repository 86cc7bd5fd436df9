"""KAI's objects: pools of nodes, queues of departments and teams in each, priorities and topologies."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..config.catalog.instance_types import Catalog
from ..config.catalog.kubernetes_groups import TEAM_LABEL
from ..config.catalog.mig import MIG_RESOURCE
from ..config.catalog.topologies import topology
from ..config.settings.governance.engines import KaiSettings
from ..config.settings.governance.teams import WaitForPods
from ..planning.quota.amounts import CPU, GPU, MEMORY, Quantities
from ..planning.quota.node_pools import KAI_POOL_LABEL, department_path, kai_department_queue, kai_queue
from ..planning.quota.policy import QuotaPolicy, TeamPolicy
from .priority_classes import priority_classes
from .scheduler_guard import scheduler_guard

KAI_UNLIMITED: Final = -1
"""No limit, in the words of KAI's queues."""

KAI_COUNTED: Final = ("gpu", "cpu", "memory")
"""What KAI's queues count: GPUs (a partition as its slices of compute), thousandths of a vCPU, and 10⁶ bytes."""

# Longer than any job. Source: KAI Scheduler documentation, minimum runtime: what has run for less is not preempted.
_NEVER: Final = "87600h"


def kai_objects(
    policy: QuotaPolicy, settings: KaiSettings, types: Catalog, wait_for_pods: WaitForPods | None = None
) -> list[dict[str, Any]]:
    """Everything that KAI has to know of a policy, parents before their children.

    Decided for you:

    - Each instance group that teams use is a pool with a scheduler of its own (a SchedulingShard) and its own tree of
      queues. KAI counts GPUs of all types as one, so this is how a quota of one group stays one of that group.
    - The queue of a pool may hold what its quotas add up to and, where that is shared, what no quota holds.
    - A team's limit is its quota and what it may borrow; its weight, with fair share, is that of its queue.
    - A team has a queue in every pool, where it has nothing to use one that admits nothing: a queue that merely went
      from the file would stay in the cluster, with its quota.
    - `preempt: never` is a minimum runtime that no job reaches.
    - One Topology per instance family, with the labels that its nodes have.
    - Pods with accelerators in namespaces of teams have to name KAI, or Kubernetes refuses them.

    Sources: KAI Scheduler documentation, queues, fairness and scheduling shards, 2026-11; its queue validation, which
    wants parents to be there first and to hold at least what their children do.

    Args:
        policy: The policy.
        settings: KAI's settings.
        types: Instance catalog of the environment.
        wait_for_pods: Gang scheduling, of which KAI knows how long a gang may lack pods.
    """
    shards = [_shard(name, settings, wait_for_pods) for name in policy.flavors]
    return [
        *scheduler_guard("kai-scheduler"),
        *priority_classes(policy.priorities),
        *_topologies(policy, types),
        *shards,
        *(queue for pool in policy.flavors for queue in _shared_queues(policy, pool)),
        *(_team_queue(policy, team, pool) for team in policy.teams for pool in policy.flavors),
    ]


def kai_amounts(resources: Mapping[str, int]) -> dict[str, float]:
    """Amounts of a flavor as KAI counts them; others, such as EFA interfaces, it does not count.

    GPUs and slices of partitioned ones are one number, vCPU counts in thousandths, memory in 10⁶ bytes.
    """
    gpus = resources.get(GPU, 0)
    for name, amount in resources.items():
        if name.startswith(MIG_RESOURCE):
            # A profile begins with its slices of compute: nvidia.com/mig-3g.71gb counts three.
            gpus += amount * int(name.removeprefix(MIG_RESOURCE).partition("g.")[0])
    # Exact: MiB are 1.048576 of these, and a float holds that of any cluster.
    return {"gpu": gpus, "cpu": resources.get(CPU, 0), "memory": resources.get(MEMORY, 0) * 1_048_576 / 1_000_000}


def _shard(pool: str, settings: KaiSettings, wait_for_pods: WaitForPods | None) -> dict[str, Any]:
    placement = {"gpu": settings.placement, "cpu": settings.placement}
    spec: dict[str, Any] = {"partitionLabelValue": pool, "placementStrategy": placement}
    if wait_for_pods:
        seconds = wait_for_pods.recovery_timeout_seconds
        seconds = wait_for_pods.timeout_seconds if seconds is None else seconds or KAI_UNLIMITED
        # For so long KAI lets a gang that has lost pods keep the others.
        spec["args"] = {"default-staleness-grace-period": f"{seconds}s"}
    return {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": pool}, "spec": spec}


def _topologies(policy: QuotaPolicy, types: Catalog) -> Iterable[dict[str, Any]]:
    results = {item.name: item for flavor in policy.flavors.values() for item in [topology(flavor.types, types)]}
    for name, item in sorted(results.items()):
        yield {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": name},
            "spec": {"levels": [{"nodeLabel": label} for label in item.levels]},
        }


def _shared_queues(policy: QuotaPolicy, pool: str) -> Iterable[dict[str, Any]]:
    """The queue of the pool, and those of its departments."""
    quotas = {name: _nominal(team, pool) for name, team in policy.teams.items()}
    held, idle = _sum(quotas.values()), policy.unallocated.get(pool, {})
    whole, most = kai_amounts(held), kai_amounts(_sum([held, idle]))
    yield _queue(pool, pool, None, {resource: (whole[resource], most[resource], 1) for resource in KAI_COUNTED})

    paths = {name: department_path(name, policy.departments) for name in policy.departments}
    # Departments above before those below, which name them.
    for name, path in sorted(paths.items(), key=lambda item: (len(item[1]), item[0])):
        inside = (
            quotas[team.name]
            for team in policy.teams.values()
            if name in department_path(team.department, policy.departments)
        )
        part, weight = kai_amounts(_sum(inside)), policy.departments[name].weight if policy.fair_share else 1
        parent = kai_department_queue(path[-2], pool) if len(path) > 1 else pool
        # A department has no limit of its own: what its teams may use beyond their quotas stands at the teams.
        resources = {resource: (part[resource], KAI_UNLIMITED, weight) for resource in KAI_COUNTED}
        yield _queue(kai_department_queue(name, pool), pool, parent, resources)


def _team_queue(policy: QuotaPolicy, name: str, pool: str) -> dict[str, Any]:
    """The queue of a team in a pool: its quota, what it may use beyond that, and its weight."""
    team = policy.teams[name]
    shares, nominal = team.shares.get(pool, {}), _nominal(team, pool)
    quota = kai_amounts(nominal)
    most = kai_amounts(_sum([nominal, {resource: share.borrowable or 0 for resource, share in shares.items()}]))
    # Whether one of the resources that make up a number is without limit makes the number so.
    unlimited = kai_amounts({resource: int(share.borrowable is None) for resource, share in shares.items()})
    weight = team.weight if policy.fair_share else 1
    parent = kai_department_queue(team.department, pool) if team.department else pool
    resources = {
        resource: (quota[resource], KAI_UNLIMITED if unlimited[resource] else most[resource], weight)
        for resource in KAI_COUNTED
    }
    queue = _queue(kai_queue(name, pool), pool, parent, resources)
    queue["metadata"]["labels"][TEAM_LABEL] = name
    if team.min_runtime_seconds:
        # The first is for work of the same queue, the second for whoever takes back what was borrowed.
        least = f"{team.min_runtime_seconds}s"
        queue["spec"] |= {"preemptMinRuntime": least, "reclaimMinRuntime": least}
    if team.preempt == "never":
        queue["spec"]["preemptMinRuntime"] = _NEVER
    return queue


def _queue(
    name: str, pool: str, parent: str | None, resources: Mapping[str, tuple[float, float, float]]
) -> dict[str, Any]:
    """A queue with quota, limit and weight of each resource."""
    spec: dict[str, Any] = {"parentQueue": parent} if parent else {}
    spec["resources"] = {
        resource: {"quota": quota, "limit": limit, "overQuotaWeight": weight}
        for resource, (quota, limit, weight) in resources.items()
    }
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name, "labels": {KAI_POOL_LABEL: pool}},
        "spec": spec,
    }


def _nominal(team: TeamPolicy, pool: str) -> Quantities:
    return {name: share.nominal for name, share in team.shares.get(pool, {}).items()}


def _sum(amounts: Iterable[Mapping[str, int]]) -> Quantities:
    """Summed before they are in KAI's counting, where memory has fractions."""
    result: Counter[str] = Counter()
    for each in amounts:
        # Counter.update adds, where dict.update would replace.
        result.update(each)
    return dict(result)
