"""Kueue's objects: where work may run, who is guaranteed what of it, and in which order it goes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..config.catalog.instance_types import Catalog
from ..config.catalog.kubernetes_groups import TEAM_LABEL
from ..config.catalog.topologies import Topology, topology
from ..config.settings.governance.kueue import KUEUE_API, Kueue
from ..config.settings.groups import InstanceGroup
from ..planning.quota.amounts import NEURON, Quantities, quantity
from ..planning.quota.policy import QuotaPolicy, Share, TeamPolicy
from ..planning.quota.stock import Flavor
from ..planning.quota.team_names import cluster_queue, local_queue, priority_class, team_namespace
from .multikueue import MULTIKUEUE_CHECK, manager_objects, worker_objects

KUEUE_ROOT: Final = "all.teams"
"""The cohort above all teams and departments. No department can be called so: their names have no dots."""
KUEUE_ZONE: Final = "podwright/zone"
"""Annotation of a flavor: the zone ids in which its nodes are."""

_ENGINE: Final = "kueue"
_GROUP_LABEL: Final = "sagemaker.amazonaws.com/instance-group-name"
_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
# The queue that work gets which names none. Source: Kueue documentation, "Local queue defaulting".
_DEFAULT_QUEUE: Final = "default"
_READERS: Final = "podwright-kueue-external-jobs"


def kueue_objects(
    policy: QuotaPolicy, settings: Kueue, groups: Mapping[str, InstanceGroup], types: Catalog
) -> list[dict[str, Any]]:
    """Everything that Kueue has to know of a policy; what others name comes before them.

    Decided for you:

    - Each instance group that teams use is a flavor. Its nodes are found by the group's name, so a flavor has the zones
      of its group, and only jobs that tolerate the group's taints get it.
    - Every flavor has the topology of its instance family, be it that of single nodes. A queue whose flavors are not
      all placed by topology refuses jobs that say nothing of it the flavors that are.
    - Tolerations stay with jobs: those of a flavor with a topology could never change again.
    - Flavors without accelerators come first, so that a job that names no group leaves GPU nodes alone.
    - Departments are cohorts below one that holds all; what no quota holds is that one's own.
    - A guarantee comes back at once (`reclaimWithinCohort: Any`), from whoever borrowed it.
    - A team has a queue called as the team is and one called default, both in its namespace. Only that namespace may
      use its quota.

    Sources: Kueue 0.19.2, custom resource definitions and flavor assigner; Kueue documentation, cohorts, fair sharing
    and topology-aware scheduling, 2026-11.

    Args:
        policy: The policy.
        settings: Kueue's settings.
        groups: Instance groups by name.
        types: Instance catalog of the environment.
    """
    # Kueue tries flavors in the order in which a queue lists them.
    flavors = sorted(policy.flavors.values(), key=lambda flavor: (_accelerated(flavor), flavor.name))
    order = {flavor.name: index for index, flavor in enumerate(flavors)}
    return [
        *_external_jobs(),
        *_shared_work(settings),
        *(_priority(name, weight) for name, weight in policy.priorities.items()),
        *_topologies(flavors, types),
        *(_flavor(flavor, groups, types) for flavor in flavors),
        *_cohorts(policy, order),
        *(item for team in policy.teams.values() for item in _queues(policy, team, settings, order)),
    ]


def _object(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": KUEUE_API, "kind": kind, "metadata": {"name": name, **metadata}, "spec": dict(spec)}


def _external_jobs() -> list[dict[str, Any]]:
    """Kueue follows a pod's owners to see who manages it; of kinds that it does not know it may read none."""
    rule = {
        "apiGroups": ["sagemaker.amazonaws.com"],
        "resources": ["hyperpodpytorchjobs"],
        "verbs": ["get", "list", "watch"],
    }
    account = {"kind": "ServiceAccount", "name": "kueue-controller-manager", "namespace": "kueue-system"}
    api, metadata = "rbac.authorization.k8s.io", {"name": _READERS}
    return [
        {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{api}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": _READERS},
            "subjects": [account],
        },
    ]


def _shared_work(settings: Kueue) -> list[dict[str, Any]]:
    if settings.multikueue is None:
        return []
    return (manager_objects if settings.multikueue.role == "manager" else worker_objects)(settings.multikueue)


def _priority(name: str, weight: int) -> dict[str, Any]:
    return {
        "apiVersion": KUEUE_API,
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": priority_class(name)},
        "value": weight,
    }


def _topologies(flavors: Iterable[Flavor], types: Catalog) -> list[dict[str, Any]]:
    results = {item.name: item for flavor in flavors for item in [topology(flavor.types, types)]}
    return [_topology(item) for _, item in sorted(results.items())]


def _topology(item: Topology) -> dict[str, Any]:
    return _object("Topology", item.name, {"levels": [{"nodeLabel": label} for label in item.levels]})


def _flavor(flavor: Flavor, groups: Mapping[str, InstanceGroup], types: Catalog) -> dict[str, Any]:
    # Engine kueue tells groups apart, so a flavor has exactly one.
    (name,) = flavor.groups
    group = groups[name]
    spec: dict[str, Any] = {"nodeLabels": {_GROUP_LABEL: name}, "topologyName": topology(flavor.types, types).name}
    if group.taints:
        spec["nodeTaints"] = [taint.model_dump(exclude_none=True) for taint in group.taints]
    # Kueue itself has no use for zones; `quotas` and other readers of the cluster find them here.
    zones = {"annotations": {KUEUE_ZONE: ",".join(group.zone_ids)}} if group.zone_ids else {}
    return _object("ResourceFlavor", flavor.name, spec, **zones)


def _lent(resources: Quantities) -> dict[str, Share]:
    """Amounts that belong to no team, so that every queue may borrow all of them."""
    # The cohort's own amounts are nobody's guarantee.
    return {resource: Share(amount, amount, None, False) for resource, amount in resources.items()}


def _cohorts(policy: QuotaPolicy, order: Mapping[str, int]) -> list[dict[str, Any]]:
    idle = {flavor: _lent(resources) for flavor, resources in policy.unallocated.items()}
    cohorts = [_object("Cohort", KUEUE_ROOT, _resource_groups(idle, order))]
    for name, department in policy.departments.items():
        spec: dict[str, Any] = {"parentName": department.parent or KUEUE_ROOT}
        if policy.fair_share:
            spec["fairSharing"] = {"weight": department.weight}
        cohorts.append(_object("Cohort", name, spec))
    return cohorts


def _queues(
    policy: QuotaPolicy, team: TeamPolicy, settings: Kueue, order: Mapping[str, int]
) -> Iterable[dict[str, Any]]:
    """The ClusterQueue of a team and the LocalQueue in its namespace."""
    choice = settings.flavor_choice
    fungibility = {"whenCanBorrow": _camel(choice.when_can_borrow), "whenCanPreempt": _camel(choice.when_can_preempt)}
    if choice.preference:
        fungibility["preference"] = _camel(choice.preference)
    namespace, labels = team_namespace(_ENGINE, team.name), {TEAM_LABEL: team.name}
    spec: dict[str, Any] = {
        "cohortName": team.department or KUEUE_ROOT,
        # Kubernetes labels each namespace with its name, and no user can change that label.
        "namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: namespace}},
        "queueingStrategy": "StrictFIFO" if settings.queueing == "strict" else "BestEffortFIFO",
        "flavorFungibility": fungibility,
        "preemption": {
            "withinClusterQueue": "LowerPriority" if team.preempt == "lower_priority" else "Never",
            # Whatever the priority of who borrowed: a guarantee that had to wait would be none.
            "reclaimWithinCohort": "Any",
        },
        **_resource_groups(team.shares, order),
    }
    if policy.fair_share:
        spec["fairSharing"] = {"weight": team.weight}
    if settings.multikueue and settings.multikueue.role == "manager":
        # Kueue then admits a job only when one of the workers has.
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": MULTIKUEUE_CHECK}]}
    queue = cluster_queue(_ENGINE, team.name)
    yield _object("ClusterQueue", queue, spec, labels=labels)
    # The team may itself be called default.
    for name in dict.fromkeys((local_queue(_ENGINE, team.name), _DEFAULT_QUEUE)):
        yield _object("LocalQueue", name, {"clusterQueue": queue}, namespace=namespace, labels=labels)


def _resource_groups(shares: Mapping[str, Mapping[str, Share]], order: Mapping[str, int]) -> dict[str, Any]:
    # All flavors in one group: vCPU and memory are in all, and a resource may be in one group only. So each flavor
    # names every resource, in the same order.
    covered = sorted({resource for value in shares.values() for resource in value})
    if not covered:
        return {}

    def flavor(name: str) -> dict[str, Any]:
        return {"name": name, "resources": [_quota(resource, shares[name].get(resource)) for resource in covered]}

    flavors = [flavor(name) for name in sorted(shares, key=order.__getitem__)]
    return {"resourceGroups": [{"coveredResources": covered, "flavors": flavors}]}


def _quota(resource: str, share: Share | None) -> dict[str, str]:
    if share is None:
        return {"name": resource, "nominalQuota": "0"}
    amounts: dict[str, int] = {"nominalQuota": share.nominal}
    if share.borrowable is not None:
        amounts["borrowingLimit"] = share.borrowable
    # Without a limit everything is lent, which is Kueue's default.
    if share.lendable != share.nominal:
        amounts["lendingLimit"] = share.lendable
    return {"name": resource, **{field: quantity(resource, amount) for field, amount in amounts.items()}}


def _accelerated(flavor: Flavor) -> bool:
    # Partitions of a GPU are resources of their own in that domain, such as nvidia.com/mig-1g.18gb.
    return any(name == NEURON or name.startswith("nvidia.com/") for name in flavor.capacity)


def _camel(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("_"))
