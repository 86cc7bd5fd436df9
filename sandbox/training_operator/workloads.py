"""The Workloads by which Kueue admits a HyperPodPyTorchJob.

Kueue alone admits and evicts. The controller creates the Workloads, reports when their pods are ready and have
finished, and releases the quota of an evicted Workload after its pods have ended, as Kueue expects.

Source: Kueue 0.19.2, `pkg/controller/jobframework`. AWS's operator uses it, as the `podSets` in its status show.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from .jobs import QUEUE_LABEL, Claim, Job, Manifest, holding, instant, written
from .pods import TOPOLOGIES, owner, pod_set

API_VERSION: Final = "kueue.x-k8s.io/v1beta2"
JOB_UID: Final = "kueue.x-k8s.io/job-uid"
_PRIORITY: Final = "kueue.x-k8s.io/priority-class"


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """The object that sets the priority of a claim."""

    group: str
    kind: str
    name: str


def priority_class(job: Job, claim: Claim) -> PriorityClass | None:
    """Return the priority class of a claim. The job's label overrides that of its pods, as for Kueue's own kinds."""
    if name := job.labels.get(_PRIORITY):
        return PriorityClass("kueue.x-k8s.io", "WorkloadPriorityClass", name)
    names = [slot.template["spec"].get("priorityClassName") for slot in claim.slots]
    name = next(filter(None, names), None)
    return PriorityClass("scheduling.k8s.io", "PriorityClass", name) if name else None


def workload(job: Job, claim: Claim, priority: int, *, topologies: bool) -> Manifest:
    """Return the Workload of a claim.

    Args:
        job: The job.
        claim: The claim.
        priority: The value of its priority class.
        topologies: True if the cluster has topologies. Without any, Kueue never admits a request for one.
    """
    counts = Counter(slot.part for slot in claim.slots)
    templates = {slot.part: slot.template for slot in claim.slots}
    pod_sets = list[Manifest]()
    for part, count in counts.items():
        metadata = templates[part].get("metadata") or {}
        template = {"metadata": metadata, "spec": {"restartPolicy": "Never"} | templates[part]["spec"]}
        # A spare is a pod in reserve. Its quota is part of the same request.
        item = {"name": pod_set(job, part), "count": count + claim.spares.get(part, 0), "template": template}
        if topologies and (request := _topology_request(metadata.get("annotations") or {})):
            item["topologyRequest"] = request
        pod_sets.append(item)
    source = priority_class(job, claim)
    reference = {"group": source.group, "kind": source.kind, "name": source.name} if source else None
    return {
        "apiVersion": API_VERSION,
        "kind": "Workload",
        "metadata": {
            "name": claim.name,
            "namespace": job.namespace,
            "labels": {JOB_UID: job.uid, QUEUE_LABEL: job.queue},
            "ownerReferences": [owner(job)],
        },
        "spec": {
            "queueName": job.queue,
            "podSets": pod_sets,
            "priority": priority,
            **({"priorityClassRef": reference} if reference else {}),
        },
    }


def _topology_request(annotations: Mapping[str, str]) -> Manifest:
    return {field: annotations[name] for field, name in TOPOLOGIES.items() if name in annotations}


def admitted_at(item: Manifest) -> datetime | None:
    """Return when Kueue admitted a Workload; None if it waits, is evicted or has finished."""
    status = item.get("status") or {}
    condition = holding(status, "Admitted")
    if condition is None or holding(status, "Evicted") or holding(status, "Finished"):
        return None
    return instant(condition["lastTransitionTime"])


def is_waiting(item: Manifest) -> bool:
    """True if a Workload waits in its queue."""
    return not holding(item.get("status") or {}, "Admitted") and not holding(item.get("status") or {}, "Finished")


def is_evicted(item: Manifest) -> bool:
    """True if Kueue has evicted a Workload that still holds quota."""
    status = item.get("status") or {}
    return holding(status, "Evicted") is not None and holding(status, "QuotaReserved") is not None


def condition(item: Manifest, kind: str) -> Manifest | None:
    """Return a condition of a Workload, true or false; None if it has none of this type."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return next((entry for entry in conditions if entry["type"] == kind), None)


def readiness(item: Manifest, *, ready: bool, now: datetime) -> Manifest:
    """Return the condition PodsReady of a Workload."""
    before = condition(item, "PodsReady")
    recovers = before is not None and before["reason"] in ("WaitForRecovery", "Recovered")
    if ready:
        reason, message = "Started", "All pods reached readiness and the workload is running"
        return _changed(item, "PodsReady", "True", "Recovered" if recovers else reason, message, now)
    # Kueue has a separate time limit for each of these reasons (waitForPodsReady: timeout, recoveryTimeout).
    lost = admitted_at(item) and before and (before["status"] == "True" or recovers)
    reason = "WaitForRecovery" if lost else "WaitForStart"
    message = "At least one pod is lost" if lost else "Not all pods are ready or succeeded"
    return _changed(item, "PodsReady", "False", reason, message, now)


def finished(item: Manifest, *, succeeded: bool, message: str, now: datetime) -> list[Manifest]:
    """Return the operator's conditions of a Workload whose job has ended."""
    end = _changed(item, "Finished", "True", "Succeeded" if succeeded else "Failed", message, now)
    ready = condition(item, "PodsReady")
    return [ready, end] if ready else [end]


def returned(item: Manifest, now: datetime) -> list[Manifest]:
    """Return all conditions of an evicted Workload whose pods have ended: it releases its quota and waits again."""
    evicted = condition(item, "Evicted") or {}
    reason, message = evicted["reason"], evicted["message"]
    again = "True" if reason in ("Preempted", "NodeFailures") else "False"
    changed = [
        _changed(item, "QuotaReserved", "False", "Pending", message, now),
        _changed(item, "Admitted", "False", "NoReservation", "The workload has no reservation", now),
        _changed(item, "Requeued", again, reason, message, now),
    ]
    types = {entry["type"] for entry in changed}
    return [*(entry for entry in item["status"]["conditions"] if entry["type"] not in types), *changed]


def _changed(item: Manifest, kind: str, status: str, reason: str, message: str, now: datetime) -> Manifest:
    """Return the current condition. Its transition time changes only with its status."""
    before = condition(item, kind)
    since = before["lastTransitionTime"] if before and before["status"] == status else written(now)
    stated = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    return stated | {"observedGeneration": item["metadata"]["generation"]}
