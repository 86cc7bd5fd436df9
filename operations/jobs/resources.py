"""The requests of pods and Workloads, the quota that Kueue has reserved for them, and the free amounts on nodes.

Amounts have the units of quotas: thousandths of a vCPU, MiB of memory, devices.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from ...planning.jobs.plan import GROUP_LABEL
from ...planning.quota.amounts import CPU, MEMORY, amount_of, is_accelerator
from .conditions import condition

Object = Mapping[str, Any]
Amounts = dict[str, int]
"""By the resource's name in Kubernetes."""
_UNITS: Final = {CPU: 1000, MEMORY: 1024}
_ENDED: Final = ("Succeeded", "Failed")
_KEEPS_WORK_OUT: Final = ("node.kubernetes.io/", "sagemaker.amazonaws.com/")
"""Keys of taints that Kubernetes and HyperPod set on a node that must not take work."""


def total(parts: Iterable[tuple[Mapping[str, int], int]]) -> Amounts:
    """The sum of amounts, each times a count."""
    sums: Amounts = {}
    for amounts, count in parts:
        for name, amount in amounts.items():
            sums[name] = sums.get(name, 0) + amount * count
    return sums


def accelerators(amounts: Mapping[str, int]) -> int:
    """The number of GPUs, partitions and Neuron devices."""
    return sum(count for name, count in amounts.items() if is_accelerator(name))


def counted(amounts: Mapping[str, int]) -> dict[str, float]:
    """Amounts in the units that Kubernetes shows: vCPUs, GiB of memory, devices. Zeros are left out."""
    return {name: in_units(name, amount) for name, amount in amounts.items() if amount}


def in_units(resource: str, amount: int) -> float:
    """An amount in the unit that Kubernetes shows."""
    return amount / _UNITS[resource] if resource in _UNITS else amount


def of_pod(spec: Object) -> Amounts:
    """The requests of a pod: the most that its containers request at a time.

    Init containers run one after another before the containers, and sidecars (init containers that restart always) run
    on beside all that follow. Source: Kubernetes 1.34, "Sidecar Containers", "Resource sharing within containers".
    """
    sidecars: Amounts = {}
    before: list[Amounts] = []
    for container in spec.get("initContainers", ()):
        together = total([(sidecars, 1), (_requests(container), 1)])
        before.append(together)
        if is_sidecar(container):
            sidecars = together
    most = total([(sidecars, 1), *((_requests(container), 1) for container in spec.get("containers", ()))])
    for amounts in before:
        most |= {name: max(amount, most.get(name, 0)) for name, amount in amounts.items()}
    return most


def is_sidecar(container: Object) -> bool:
    """Whether an init container runs as long as its pod."""
    return container.get("restartPolicy") == "Always"


def requested(workload: Object) -> Amounts:
    """The requests of all pods of a Workload."""
    return total((of_pod(part["template"]["spec"]), part["count"]) for part in _pod_sets(workload))


def reserved(workload: Object) -> Amounts:
    """The quota that Kueue has reserved for a Workload; empty while it has none."""
    templates = {part["name"]: part["template"]["spec"] for part in _pod_sets(workload)}
    return total(
        (_of_assigned_pod(part, templates[part["name"]]), part["count"] - part["ended"])
        for part in _assignments(workload)
    )


def pods_requested(workload: Object) -> int:
    """The number of pods of a whole Workload."""
    return sum(part["count"] for part in _pod_sets(workload))


def pods_least(workload: Object) -> int:
    """The number of pods with which Kueue may start a Workload (partial admission)."""
    return sum(part.get("minCount") or part["count"] for part in _pod_sets(workload))


def pods_reserved(workload: Object) -> int:
    """The number of pods for which a Workload has quota."""
    return sum(part["count"] - part["ended"] for part in _assignments(workload))


def free_on_nodes(nodes: Iterable[Object], pods: Iterable[Object], groups: Collection[str]) -> Amounts:
    """The resources that no pod has on the nodes of some instance groups that take work."""
    usable = [node for node in nodes if _group(node) in groups and _takes_work(node)]
    names = {node["metadata"]["name"] for node in usable}
    running = [pod for pod in pods if pod["spec"].get("nodeName") in names and _has_not_ended(pod)]
    has = total((_allocatable(node), 1) for node in usable)
    uses = total((of_pod(pod["spec"]), 1) for pod in running)
    return {name: max(amount - uses.get(name, 0), 0) for name, amount in has.items()}


def _pod_sets(workload: Object) -> Iterator[Object]:
    yield from workload["spec"].get("podSets", ())


def _assignments(workload: Object) -> list[Object]:
    """The parts of a Workload's admission, while it has one, with how many pods of each have ended."""
    status = workload.get("status") or {}
    if condition(status, "QuotaReserved").get("status") != "True":
        return []
    assignments = (status.get("admission") or {}).get("podSetAssignments") or ()
    counts = {part["name"]: part["count"] for part in _pod_sets(workload)}
    # Kueue gives the quota of pods that have ended back before the others end.
    ended = {part["name"]: part["count"] for part in status.get("reclaimablePods") or ()}
    return [{"count": counts[part["name"]], "ended": ended.get(part["name"], 0)} | part for part in assignments]


def _of_assigned_pod(part: Object, spec: Object) -> Amounts:
    """Kueue's reservation for each pod of a pod set, with overhead; the pod's requests if Kueue states none."""
    usage = {name: amount_of(name, amount) for name, amount in (part.get("resourceUsage") or {}).items()}
    return of_pod(spec) | {name: amount // max(part["count"], 1) for name, amount in usage.items()}


def _requests(container: Object) -> Amounts:
    """The requests of a container."""
    resources = container.get("resources") or {}
    # For a resource with a limit and no request, Kubernetes sets the request to the limit.
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: amount_of(name, amount) for name, amount in amounts.items()}


def _group(node: Object) -> str:
    return (node["metadata"].get("labels") or {}).get(GROUP_LABEL, "")


def _takes_work(node: Object) -> bool:
    """Whether a node is ready, and neither cordoned nor tainted as unfit."""
    spec = node.get("spec") or {}
    taints = [taint["key"] for taint in spec.get("taints") or () if taint["effect"] != "PreferNoSchedule"]
    is_ready = condition(node.get("status"), "Ready").get("status") == "True"
    return is_ready and not spec.get("unschedulable") and not any(key.startswith(_KEEPS_WORK_OUT) for key in taints)


def _allocatable(node: Object) -> Amounts:
    amounts = (node.get("status") or {}).get("allocatable") or {}
    return {name: amount_of(name, amount) for name, amount in amounts.items()}


def _has_not_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") not in _ENDED
