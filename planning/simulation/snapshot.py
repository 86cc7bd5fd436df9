"""The state of a cluster as Kubernetes has it: policy, nodes and work, from which a forecast continues."""

import json
from collections.abc import Mapping
from statistics import median
from typing import Any, Final, NamedTuple

from ...config.errors import InvalidValue
from .traces.times import timestamp
from .traces.workload_list import condition, slice_before

KINDS: Final = (
    *("ResourceFlavor", "Topology", "Cohort", "ClusterQueue", "LocalQueue", "WorkloadPriorityClass", "Node"),
    *("AdmissionCheck", "Pod", "Workload"),
)
"""What a snapshot holds of a cluster. Only where somebody adds them to `COMMAND`: Pods, which take room on nodes, and
AdmissionChecks, some of which choose nodes after quota."""
COMMAND: Final = (
    "kubectl get resourceflavors,topologies.kueue.x-k8s.io,cohorts.kueue.x-k8s.io,clusterqueues,localqueues,"
    "workloadpriorityclasses,nodes,workloads --all-namespaces --output=json"
)
"""Prints one."""
Object = Mapping[str, Any]


class Snapshot(NamedTuple):
    """What there was at a time."""

    taken: float
    """Seconds since 1970: the newest timestamp of a condition or of an object's creation."""
    objects: tuple[Object, ...]
    """All but Workloads."""
    workloads: tuple[Object, ...]
    """Those that have not ended, and are not switched off."""
    seconds: Mapping[str, float]
    """How long each of them runs in all, by `NAMESPACE/NAME`."""
    assumptions: tuple[str, ...]


def read_snapshot(text: str, default_seconds: float) -> Snapshot:
    """The snapshot in what `COMMAND` prints.

    Work that has not ended runs as long as the median of what ended in its queue, and `default_seconds` where nothing
    did; at most as long as it may, and at least as long as it has.

    Raises:
        InvalidValue: it is no list of objects, or has no queues.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidValue(f"line {error.lineno} is not JSON: {error.msg}") from None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) and "metadata" in item for item in items):
        raise InvalidValue("it is not a list of Kubernetes objects")
    known = [item for item in items if item.get("kind") in KINDS]
    if not any(item["kind"] == "ClusterQueue" for item in known):
        raise InvalidValue("it has no ClusterQueue, so nothing decides who gets what")
    workloads = [item for item in known if item["kind"] == "Workload"]
    ended = [item for item in workloads if condition(item, "Finished") is not None]
    waiting = tuple(
        item for item in workloads if condition(item, "Finished") is None and item["spec"].get("active") is not False
    )
    times = [time for item in known for time in _times(item)]
    if not times:
        raise InvalidValue("none of its objects says when it was made, so it is of no time")
    # kubectl prints no time of its own; the newest that an object tells is closest to it.
    taken = max(times)
    by_name = {name_of(item): item for item in workloads}
    typical = _typical(ended, by_name)
    seconds = {name_of(item): _seconds(item, by_name, typical, default_seconds, taken) for item in waiting}
    guessed = sum(1 for item in waiting if queue_of(item) not in typical)
    known_to_last = len(waiting) - guessed
    assumptions = (
        [f"{known_to_last} jobs run as long as the median of what ended in their queue"] if known_to_last else []
    )
    assumptions += (
        [f"{guessed} jobs run for {default_seconds / 3600:g} h, as nothing has ended in their queue"] if guessed else []
    )
    return Snapshot(
        taken, tuple(item for item in known if item["kind"] != "Workload"), waiting, seconds, tuple(assumptions)
    )


def comes_at(workload: Object, taken: float) -> float:
    """When work that waits in a snapshot is in its queue: Kueue sends some back for a time before it tries it again."""
    back = ((workload.get("status") or {}).get("requeueState") or {}).get("requeueAt")
    return max(taken, timestamp(back)) if back else taken


def name_of(workload: Object) -> str:
    """`NAMESPACE/NAME` of a Workload."""
    return f"{workload['metadata'].get('namespace', '')}/{workload['metadata']['name']}"


def queue_of(workload: Object) -> str:
    """`NAMESPACE/QUEUE` of the LocalQueue in which it waits."""
    return f"{workload['metadata'].get('namespace', '')}/{workload['spec'].get('queueName', '')}"


def _times(item: Object) -> list[float]:
    """When something of an object last changed, as far as it says so."""
    conditions = item.get("status", {}).get("conditions") or ()
    texts = [item["metadata"].get("creationTimestamp"), *(each.get("lastTransitionTime") for each in conditions)]
    return [timestamp(text) for text in texts if text]


def _began(workload: Object, by_name: Mapping[str, Object]) -> float | None:
    """When a Workload was admitted; of a slice of an elastic job, when the first of those before it was."""
    first, before = workload, set[str]()
    while (name := slice_before(first)) in by_name and name not in before:
        before.add(name)
        first = by_name[name]
    return condition(first, "Admitted")


def _typical(ended: list[Object], by_name: Mapping[str, Object]) -> dict[str, float]:
    """The median duration of what ended, by queue; elastic jobs end with their last slice."""
    replaced = {slice_before(item) for item in by_name.values() if condition(item, "Admitted") is not None}
    durations: dict[str, list[float]] = {}
    for item in ended:
        started, finished = _began(item, by_name), condition(item, "Finished")
        if name_of(item) in replaced:
            continue
        if started is not None and finished is not None:
            durations.setdefault(queue_of(item), []).append(max(finished - started, 0.0))
    return {queue: median(values) for queue, values in durations.items()}


def _seconds(
    workload: Object, by_name: Mapping[str, Object], typical: Mapping[str, float], default: float, taken: float
) -> float:
    """How long a Workload runs in all, since its own admission."""
    started, began = condition(workload, "Admitted"), _began(workload, by_name)
    most = workload["spec"].get("maximumExecutionTimeSeconds")
    seconds = typical.get(queue_of(workload), default)
    if most is not None:
        seconds = min(seconds, float(most))
    if started is None or began is None:
        return seconds
    return max(seconds - (started - began), taken - started)
