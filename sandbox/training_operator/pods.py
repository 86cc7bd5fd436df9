"""The pods of a HyperPodPyTorchJob: what they are made of, and how they are."""

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
"""The annotations by which pods ask for a topology, by the fields of a Workload."""
_ANYWHERE: Final = "kueue.x-k8s.io/podset-unconstrained-topology"
_TOPOLOGY_GATE: Final = {"name": "kueue.x-k8s.io/topology"}
_SIZE: Final = "NNODES"
"""The elastic agent's rendezvous reads it. Source: hyperpod-elastic-agent 1.1.3."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What Kueue says of the pods of one replica spec that it admitted."""

    labels: Mapping[str, str]
    """Of nodes: those of the flavor."""
    tolerations: Iterable[Manifest]
    by_topology: bool
    """Kueue chooses the node of each pod."""


def pod_set(job: Job, part: str) -> str:
    """Kueue's name for the pods of a replica spec. Source: events of AWS's operator, 2025-10."""
    name = f"{job.name}-{part}-podset"
    return name if len(name) <= 63 else f"{part}-podset"


def owner(job: Job) -> Manifest:
    """The reference by which what a job has goes with it."""
    reference = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "name": job.name, "uid": job.uid}
    return reference | {"controller": True, "blockOwnerDeletion": True}


def pod(job: Job, claim: Claim, slot: Slot, size: int, placement: Placement | None) -> Manifest:
    """The pod of a slot.

    Args:
        job: The job.
        claim: The claim that it belongs to.
        slot: The slot.
        size: Pods that the job has now.
        placement: What Kueue says of it; None for a job without a queue.
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
                # Kueue places by topology what asks for none, too, where all flavors of a queue have one.
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
    """Whether a pod is being deleted."""
    return "deletionTimestamp" in item["metadata"]


def has_ended(item: Manifest) -> bool:
    """Whether a pod's containers have ended, well or not."""
    return phase(item) in ("Succeeded", "Failed")


def is_ready(item: Manifest) -> bool:
    """Whether a pod runs and is ready, or has done its work."""
    conditions = item.get("status", {}).get("conditions") or ()
    ready = any((condition["type"], condition["status"]) == ("Ready", "True") for condition in conditions)
    return not is_going(item) and (phase(item) == "Succeeded" or (phase(item) == "Running" and ready))


def unplaced_since(item: Manifest) -> datetime | None:
    """Since when a pod fits nowhere, for want of the one node that Kueue has chosen for it; None for all others."""
    chosen = "kubernetes.io/hostname" in item["spec"].get("nodeSelector", {})
    conditions = item.get("status", {}).get("conditions") or ()
    failed = (condition for condition in conditions if condition.get("reason") == "Unschedulable")
    condition = next(failed, None) if chosen and not is_going(item) else None
    return instant(condition["lastTransitionTime"]) if condition else None


def phase(item: Manifest) -> str:
    """Pending, Running, Succeeded or Failed."""
    return item.get("status", {}).get("phase", "Pending")


def reference(item: Manifest) -> Manifest:
    """A pod as a job's status names it."""
    metadata = item["metadata"]
    return {"apiVersion": "v1", "kind": "Pod"} | {key: metadata[key] for key in ("name", "namespace", "uid")}
