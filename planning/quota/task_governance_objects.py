"""What task governance makes of compute quotas in Kubernetes, as far as public sources say.

Namespaces, queues, flavors and priority classes have the service's names. How it turns shares into limits and weights
is not published: here a borrowing limit is that percentage of a team's own quota, and all quotas are in one cohort of
our own name. Its flavors have a topology, `hyperpod-default`; what that has for levels is not published, so they are
those of podwright's own for the same instances. The sandbox and the simulator both take it from here.

Sources: SageMaker Developer Guide, "Task governance"; sagemaker-hyperpod 3.12.0; awslabs/awsome-distributed-ai,
2026-07-23; Kueue 0.19.2.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...config.catalog.instance_types import catalog
from ...config.catalog.topologies import topology
from ...config.settings.governance.kueue import KUEUE_API
from .team_names import cluster_queue, local_queue, priority_class, team_namespace

AS_READ: Final = "as podwright reads public sources; the service may differ"
"""What every object says of itself."""
_COHORT: Final = "sandbox-task-governance"
_FIELDS: Final = {"VCpu": "cpu", "MemoryInGiB": "memory"}
_ACCELERATORS: Final = {"nvidia": "nvidia.com/gpu", "neuron": "aws.amazon.com/neurondevice"}
_STRATEGIES: Final = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
Object = dict[str, Any]
Amounts = dict[str, float]
"""By resource: vCPU, GiB, or pieces."""


def fair_sharing(policy: Mapping[str, Any]) -> Object | None:
    """`fairSharing` of Kueue's configuration under a cluster's scheduler configuration.

    Teams have equal shares by their weights, unless the policy says that idle devices are for who comes first.
    """
    return {"preemptionStrategies": list(_STRATEGIES)} if policy.get("FairShare", "Enabled") == "Enabled" else None


def priority_objects(policy: Mapping[str, Any]) -> Iterator[Object]:
    """The priority classes of a scheduler configuration."""
    for item in policy.get("PriorityClasses", ()):
        yield _object("WorkloadPriorityClass", priority_class(item["Name"]), {"value": int(item["Weight"])})


def quota_objects(quota: Mapping[str, Any]) -> Iterator[Object]:
    """The flavors that a compute quota needs, its team's queue in the cluster, and the one in the team's namespace."""
    team, config = quota["ComputeQuotaTarget"]["TeamName"], quota["ComputeQuotaConfig"]
    namespace = team_namespace("hyperpod", team)
    nominal = _by_type(config.get("ComputeQuotaResources", []))
    for instance_type in nominal:
        labels, levels = {"node.kubernetes.io/instance-type": instance_type}, topology([instance_type], catalog())
        spec = {"levels": [{"nodeLabel": label} for label in levels.levels]}
        yield _object("Topology", levels.name, {"spec": spec})
        yield _object("ResourceFlavor", instance_type, {"spec": {"nodeLabels": labels, "topologyName": levels.name}})
    name = cluster_queue("hyperpod", team)
    weight = quota["ComputeQuotaTarget"].get("FairShareWeight", 0)
    # What becomes of work under a quota that is turned off is not published; here it continues, and none starts.
    held = {"stopPolicy": "Hold"} if quota.get("ActivationState") == "Disabled" else {}
    yield _object("ClusterQueue", name, {"spec": {**_queue(config, nominal, namespace, weight), **held}})
    queue = _object("LocalQueue", local_queue("hyperpod", team), {"spec": {"clusterQueue": name}})
    queue["metadata"]["namespace"] = namespace
    yield queue


def _queue(config: Object, nominal: dict[str, Amounts], namespace: str, weight: int) -> Object:
    """The ClusterQueue that task governance makes of a compute quota."""
    sharing = config.get("ResourceSharingConfig", {})
    strategy, percent = sharing.get("Strategy", "LendAndBorrow"), sharing.get("BorrowLimit", 50)
    absolute = _by_type(sharing.get("AbsoluteBorrowLimits", []))
    covered = sorted({resource for amounts in nominal.values() for resource in amounts})
    flavors = list[Object]()
    for instance_type, amounts in nominal.items():
        resources = list[Object]()
        for resource in covered:
            amount = amounts.get(resource, 0)
            limit = absolute[instance_type].get(resource, 0) if instance_type in absolute else amount * percent / 100
            resources.append(
                {
                    "name": resource,
                    "nominalQuota": _quantity(resource, amount),
                    "borrowingLimit": _quantity(resource, limit if strategy == "LendAndBorrow" else 0),
                    **({"lendingLimit": "0"} if strategy == "DontLend" else {}),
                }
            )
        flavors.append({"name": instance_type, "resources": resources})
    return {
        "cohortName": _COHORT,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "preemption": {
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": config.get("PreemptTeamTasks", "LowerPriority"),
        },
        "fairSharing": {"weight": str(weight)},
        **({"resourceGroups": [{"coveredResources": covered, "flavors": flavors}]} if covered else {}),
    }


def _by_type(entries: list[Object]) -> dict[str, Amounts]:
    amounts: dict[str, Amounts] = {}
    for entry in entries:
        sums = amounts.setdefault(entry["InstanceType"], {})
        for resource, amount in _amounts(entry).items():
            sums[resource] = sums.get(resource, 0) + amount
    return amounts


def _amounts(entry: Object) -> Amounts:
    """What an entry counts, with what the service fills in by the instance's own ratio."""
    row = catalog().get(entry["InstanceType"])
    accelerator = _ACCELERATORS.get(row.accelerator_vendor or "")
    whole: Amounts = {"cpu": row.vcpu, "memory": row.memory_gib}
    if accelerator:
        whole[accelerator] = row.accelerator_count
    if "Count" in entry:
        return {resource: int(entry["Count"]) * amount for resource, amount in whole.items()}
    specified: Amounts = {resource: float(entry[field]) for field, resource in _FIELDS.items() if field in entry}
    if accelerator and "Accelerators" in entry:
        specified[accelerator] = float(entry["Accelerators"])
    ratio = max((amount / whole[resource] for resource, amount in specified.items()), default=0.0)
    filled = {resource: ratio * amount for resource, amount in whole.items() if resource != accelerator}
    if partition := entry.get("AcceleratorPartition"):
        specified[f"nvidia.com/{partition['Type']}"] = float(partition["Count"])
    return {**filled, **specified}


def _quantity(resource: str, amount: float) -> str:
    if resource == "cpu":
        return f"{round(amount * 1000)}m" if amount % 1 else str(round(amount))
    if resource == "memory":
        return f"{round(amount * 1024)}Mi" if amount % 1 else f"{round(amount)}Gi"
    return str(int(amount))


def _object(kind: str, name: str, fields: Object) -> Object:
    annotations = {"podwright/simulated": AS_READ}
    return {"apiVersion": KUEUE_API, "kind": kind, "metadata": {"name": name, "annotations": annotations}, **fields}
