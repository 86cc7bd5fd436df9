"""What the task-governance add-on makes of quotas and policies in Kubernetes, as far as public sources say.

Namespaces, queues, flavors and priority classes have the service's names. How it turns shares into limits and weights
is not published: here a borrowing limit is that percentage of a team's own quota, all quotas are in one cohort of the
sandbox's own name, and every object says that it is simulated. Its flavors have a topology, `hyperpod-default`; what
that has for levels is not published, so they are those of podwright's own for the same instances.

Sources: SageMaker Developer Guide, "Task governance"; sagemaker-hyperpod 3.12.0; awslabs/awsome-distributed-ai,
2026-07-23; Kueue 0.19.2.
"""

from typing import Final

from ...config.catalog.instance_types import catalog
from ...config.catalog.topologies import topology
from ...config.settings.governance.kueue import FRAMEWORKS
from ...config.settings.governance.task_governance import CONTROLLER, NAMESPACE
from ...planning.helm.kueue_values import DEVICE_CLAIMS, EXTERNAL_FRAMEWORK
from ...planning.quota.amounts import EFA
from ...planning.quota.team_names import cluster_queue, local_queue, priority_class, team_namespace
from ..kubernetes.cluster_objects import ClusterObjects, ensure_namespace
from ..protocol.json_objects import JsonObject

_COHORT: Final = "sandbox-task-governance"
_MARK: Final = {"annotations": {"podwright/simulated": "as podwright reads public sources; the service may differ"}}
_QUEUES: Final = "kueue.x-k8s.io/v1beta2"
_FIELDS: Final = {"VCpu": "cpu", "MemoryInGiB": "memory"}
_ACCELERATORS: Final = {"nvidia": "nvidia.com/gpu", "neuron": "aws.amazon.com/neurondevice"}
Amounts = dict[str, float]
"""By resource: vCPU, GiB, or pieces."""


def install(objects: ClusterObjects) -> None:
    """What the add-on itself brings beside its kinds: a controller that is ready."""
    ensure_namespace(objects, NAMESPACE)
    labels = {"control-plane": "controller-manager"}
    objects.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": CONTROLLER, "namespace": NAMESPACE, "generation": 1, **_MARK},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "manager", "image": "kueue"}]},
                },
            },
            "status": {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
        }
    )


def settings(policy: JsonObject) -> JsonObject:
    """Of Kueue's configuration, as podwright reads it, what a cluster's scheduler configuration makes of it.

    Quotas count what a compute quota can name, and no EFA devices or claims of devices. Teams have equal shares by
    their weights, unless the policy says that idle devices are for who comes first.
    """
    fair = {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
    return {
        "featureGates": DEVICE_CLAIMS,
        "integrations": {"frameworks": list(FRAMEWORKS), "externalFrameworks": [EXTERNAL_FRAMEWORK]},
        "resources": {"excludeResourcePrefixes": ["ephemeral-storage", "hugepages-", EFA]},
        "fairSharing": fair if policy.get("FairShare", "Enabled") == "Enabled" else None,
    }


def uninstall(objects: ClusterObjects) -> None:
    """Take the controller away. Kinds, objects and namespace stay: nothing says that they go with the add-on."""
    objects.remove(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": CONTROLLER, "namespace": NAMESPACE}}
    )


def installed(objects: ClusterObjects) -> bool:
    """Whether the add-on takes quotas."""
    return objects.find("apps/v1", "Deployment", CONTROLLER, NAMESPACE) is not None


def apply_policy(objects: ClusterObjects, before: JsonObject, after: JsonObject) -> None:
    """The priority classes of a scheduler configuration; those that it no longer has go."""
    classes = {item["Name"]: int(item["Weight"]) for item in after.get("PriorityClasses", [])}
    for item in before.get("PriorityClasses", []):
        if item["Name"] not in classes:
            _remove(objects, "WorkloadPriorityClass", priority_class(item["Name"]))
    for name, weight in classes.items():
        objects.apply(_object("WorkloadPriorityClass", priority_class(name), {"value": weight}))


def apply_quota(objects: ClusterObjects, quota: JsonObject) -> None:
    """A team's namespace, its queue in the cluster and in the namespace, and the flavors that it needs."""
    team = quota["ComputeQuotaTarget"]["TeamName"]
    namespace = team_namespace("hyperpod", team)
    ensure_namespace(objects, namespace, **_MARK)
    config = quota["ComputeQuotaConfig"]
    nominal = _by_type(config.get("ComputeQuotaResources", []))
    for instance_type in nominal:
        labels, levels = {"node.kubernetes.io/instance-type": instance_type}, topology([instance_type], catalog())
        spec = {"levels": [{"nodeLabel": label} for label in levels.levels]}
        objects.apply(_object("Topology", levels.name, {"spec": spec}))
        flavor = {"nodeLabels": labels, "topologyName": levels.name}
        objects.apply(_object("ResourceFlavor", instance_type, {"spec": flavor}))
    objects.apply(
        _object(
            "ClusterQueue",
            cluster_queue("hyperpod", team),
            {"spec": _queue(config, nominal, namespace, quota["ComputeQuotaTarget"].get("FairShareWeight", 0))},
        )
    )
    queue = _object(
        "LocalQueue", local_queue("hyperpod", team), {"spec": {"clusterQueue": cluster_queue("hyperpod", team)}}
    )
    queue["metadata"]["namespace"] = namespace
    objects.apply(queue)


def remove_quota(objects: ClusterObjects, quota: JsonObject) -> None:
    """Take a team's queues away. Its namespace stays with what is in it: nothing says that the service deletes it."""
    team = quota["ComputeQuotaTarget"]["TeamName"]
    _remove(objects, "LocalQueue", local_queue("hyperpod", team), team_namespace("hyperpod", team))
    _remove(objects, "ClusterQueue", cluster_queue("hyperpod", team))


def _queue(config: JsonObject, nominal: dict[str, Amounts], namespace: str, weight: int) -> JsonObject:
    """The ClusterQueue that task governance makes of a compute quota."""
    sharing = config.get("ResourceSharingConfig", {})
    strategy, percent = sharing.get("Strategy", "LendAndBorrow"), sharing.get("BorrowLimit", 50)
    absolute = _by_type(sharing.get("AbsoluteBorrowLimits", []))
    covered = sorted({resource for amounts in nominal.values() for resource in amounts})
    flavors = list[JsonObject]()
    for instance_type, amounts in nominal.items():
        resources = list[JsonObject]()
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


def _by_type(entries: list[JsonObject]) -> dict[str, Amounts]:
    amounts: dict[str, Amounts] = {}
    for entry in entries:
        sums = amounts.setdefault(entry["InstanceType"], {})
        for resource, amount in _amounts(entry).items():
            sums[resource] = sums.get(resource, 0) + amount
    return amounts


def _amounts(entry: JsonObject) -> Amounts:
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


def _object(kind: str, name: str, fields: JsonObject) -> JsonObject:
    return {"apiVersion": _QUEUES, "kind": kind, "metadata": {"name": name, **_MARK}, **fields}


def _remove(objects: ClusterObjects, kind: str, name: str, namespace: str = "default") -> None:
    objects.remove({"apiVersion": _QUEUES, "kind": kind, "metadata": {"name": name}}, namespace)
