"""What Kueue would say of its queues, and whether a job's queue lets it in: by accelerators alone.

Source: Kueue 0.19.2, types of ClusterQueue and LocalQueue. Whether idle capacity of others is there is not looked at:
a job that fits quota and borrowing limit is let in.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...planning.jobs.queue import PRIORITY_LABEL, QUEUE_LABEL
from ...planning.quota.amounts import GPU, NEURON
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from .kueue_rules import GROUP
from .store import KubernetesStore

QUEUES: Final = (f"{GROUP}/ClusterQueue", f"{GROUP}/LocalQueue")


def with_state(store: KubernetesStore, item: JsonObject, faults: Mapping[str, str]) -> JsonObject:
    """A queue as Kueue's controller would show it; other objects as they are."""
    key = f"{item['apiVersion'].rpartition('/')[0]}/{item['kind']}"
    if key not in QUEUES:
        return item
    reason, message = _why_not(store, item, faults)
    condition = {
        "type": "Active",
        "status": "False" if reason else "True",
        "reason": reason or "Ready",
        "message": message or "Can admit new workloads",
        "lastTransitionTime": now().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {**item, "status": {**item.get("status", {}), "conditions": [condition]}}


def _why_not(store: KubernetesStore, item: JsonObject, faults: Mapping[str, str]) -> tuple[str, str]:
    """Reason and message of a queue that admits nothing; empty for one that does."""
    name = item["metadata"]["name"]
    if name in faults:
        return "Stopped", faults[name]
    if item["kind"] == "LocalQueue":
        queue = store.objects.get((QUEUES[0], "", item["spec"]["clusterQueue"]))
        inactive = queue is None or _why_not(store, queue, faults)[0]
        return ("ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue") if inactive else ("", "")
    flavors = {flavor["name"] for group in item["spec"].get("resourceGroups", []) for flavor in group["flavors"]}
    missing = sorted(name for name in flavors if (f"{GROUP}/ResourceFlavor", "", name) not in store.objects)
    if missing:
        return "FlavorNotFound", f"Can't admit new workloads: references missing ResourceFlavor(s): {missing}"
    return "", ""


def queue_refusal(
    store: KubernetesStore,
    job: JsonObject,
    jobs: Iterable[JsonObject],
    lives: Mapping[str, Any],
    faults: Mapping[str, str],
) -> str:
    """Why a job's queue does not let it in; empty where it does, and for a job without one."""
    name = (job["metadata"].get("labels") or {}).get(QUEUE_LABEL)
    if not name:
        return ""
    local = store.objects.get((QUEUES[1], job["metadata"]["namespace"], name))
    if local is None:
        return f"LocalQueue {name} doesn't exist"
    if _why_not(store, local, faults)[0]:
        return f"LocalQueue {name} is inactive"
    queue = store.objects[QUEUES[0], "", local["spec"]["clusterQueue"]]
    holds = sum(
        accelerators(other)
        for other in jobs
        if lives[other["metadata"]["uid"]].admitted
        and other["metadata"]["namespace"] == job["metadata"]["namespace"]
        and priority_of(store, other) >= priority_of(store, job)
    )
    most = _most(queue)
    return "insufficient quota" if accelerators(job) and holds + accelerators(job) > most else ""


def _most(queue: JsonObject) -> float:
    """Accelerators that a queue may hold: its own and what it may borrow; without a limit where none is given."""
    total = 0.0
    for group in queue["spec"].get("resourceGroups", []):
        for flavor in group["flavors"]:
            for resource in flavor["resources"]:
                if resource["name"] in (GPU, NEURON):
                    total += float(resource["nominalQuota"]) + float(resource.get("borrowingLimit", "inf"))
    return total


def accelerators(job: JsonObject) -> int:
    """Accelerators of the pods that a job has to have."""
    spec = job["spec"]
    parts: list[tuple[int, JsonObject]]
    if job["kind"] == "Job":
        parts = [(spec.get("parallelism", 1), spec["template"])]
    elif job["kind"] == "HyperPodPyTorchJob":
        parts = [(part["replicas"], part["template"]) for part in spec["replicaSpecs"]]
    else:
        specs = spec.get("pytorchReplicaSpecs") or spec["mpiReplicaSpecs"]
        parts = [(part["replicas"], part["template"]) for part in specs.values()]
    requests = [
        (count, container.get("resources", {}).get("requests", {}))
        for count, template in parts
        for container in template["spec"]["containers"]
    ]
    return sum(count * int(each.get(name, 0)) for count, each in requests for name in (GPU, NEURON))


def priority_of(store: KubernetesStore, job: JsonObject) -> int:
    """The value of a job's priority class; 0 without one."""
    name = (job["metadata"].get("labels") or {}).get(PRIORITY_LABEL, "")
    result = store.objects.get((f"{GROUP}/WorkloadPriorityClass", "", name))
    return int(result["value"]) if result else 0
