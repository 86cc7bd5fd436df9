"""Manifests and states of the pods of a HyperPodPyTorchJob."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from .jobs import GROUP, JOB_LABEL, KIND, VERSION, Claim, Job, Manifest, Slot, instant

_SIMULATED: Final = {"podwright/simulated": "by podwright's own operator; AWS's is closed"}
_WORKLOAD: Final = "kueue.x-k8s.io/workload"
_POD_SET: Final = "kueue.x-k8s.io/podset"
TOPOLOGIES: Final = {
    "required": "kueue.x-k8s.io/podset-required-topology",
    "preferred": "kueue.x-k8s.io/podset-preferred-topology",
}
"""Annotations of pods that request a topology, by the field of a Workload."""
_ANYWHERE: Final = "kueue.x-k8s.io/podset-unconstrained-topology"
_TOPOLOGY_GATE: Final = {"name": "kueue.x-k8s.io/topology"}
_SIZE: Final = "NNODES"
"""Variable that the elastic agent's rendezvous reads. Source: hyperpod-elastic-agent 1.1.3."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Kueue's placement of the pods of one admitted replica spec."""

    labels: Mapping[str, str]
    """Node labels of the flavor."""
    tolerations: Iterable[Manifest]
    by_topology: bool
    """True if Kueue chooses the node of each pod."""


def pod_set(job: Job, part: str) -> str:
    """Kueue's name for the pods of a replica spec. Source: events of AWS's operator, 2025-10."""
    name = f"{job.name}-{part}-podset"
    return name if len(name) <= 63 else f"{part}-podset"


def owner(job: Job) -> Manifest:
    """Return the owner reference by which Kubernetes deletes a job's objects with the job."""
    reference = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "name": job.name, "uid": job.uid}
    return reference | {"controller": True, "blockOwnerDeletion": True}


def pod(job: Job, claim: Claim, slot: Slot, size: int, placement: Placement | None) -> Manifest:
    """Return the pod of a slot.

    Args:
        job: The job.
        claim: The claim of the slot.
        slot: The slot.
        size: Pods that the job has now.
        placement: Kueue's placement; None for a job without a queue.
    """
    template = copy.deepcopy(slot.template)
    metadata, specification = template.get("metadata") or {}, template["spec"]
    labels = dict(metadata.get("labels") or {}) | {JOB_LABEL: job.name}
    annotations = dict(metadata.get("annotations") or {}) | _SIMULATED
    specification.setdefault("restartPolicy", "Never")
    for container in specification["containers"]:
        variables = container.setdefault("env", [])
        if _SIZE not in {item["name"] for item in variables}:
            variables.append({"name": _SIZE, "value": str(size)})
    if placement:
        labels[_POD_SET] = pod_set(job, slot.part)
        annotations[_WORKLOAD] = claim.name
        specification["nodeSelector"] = specification.get("nodeSelector", {}) | dict(placement.labels)
        specification["tolerations"] = [*specification.get("tolerations", ()), *placement.tolerations]
        if placement.by_topology:
            specification["schedulingGates"] = [*specification.get("schedulingGates", ()), _TOPOLOGY_GATE]
            if not annotations.keys() & set(TOPOLOGIES.values()):
                # If all flavors of a queue have a topology, Kueue also places pods by it that request none.
                annotations[_ANYWHERE] = "true"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": slot.name,
            "namespace": job.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner(job)],
        },
        "spec": specification,
    }


def is_going(item: Manifest) -> bool:
    """True if a pod is being deleted."""
    return "deletionTimestamp" in item["metadata"]


def has_ended(item: Manifest) -> bool:
    """True if a pod has succeeded or failed."""
    return phase(item) in ("Succeeded", "Failed")


def is_ready(item: Manifest) -> bool:
    """True if a pod runs and is ready, or has succeeded."""
    conditions = item.get("status", {}).get("conditions") or ()
    ready = any((condition["type"], condition["status"]) == ("Ready", "True") for condition in conditions)
    return not is_going(item) and (phase(item) == "Succeeded" or (phase(item) == "Running" and ready))


def unplaced_since(item: Manifest) -> datetime | None:
    """Return since when a pod has not fitted on the node that Kueue chose for it; None for any other pod."""
    chosen = "kubernetes.io/hostname" in item["spec"].get("nodeSelector", {})
    conditions = item.get("status", {}).get("conditions") or ()
    failed = (condition for condition in conditions if condition.get("reason") == "Unschedulable")
    condition = next(failed, None) if chosen and not is_going(item) else None
    return instant(condition["lastTransitionTime"]) if condition else None


def phase(item: Manifest) -> str:
    """Return Pending, Running, Succeeded or Failed."""
    return item.get("status", {}).get("phase", "Pending")


def reference(item: Manifest) -> Manifest:
    """Return the reference to a pod in a job's status."""
    metadata = item["metadata"]
    return {"apiVersion": "v1", "kind": "Pod"} | {key: metadata[key] for key in ("name", "namespace", "uid")}
