"""The pods of a job as Kubernetes takes them: what a plan says, in a pod template."""

from collections.abc import Mapping
from typing import Any

from ...config.settings.jobs.kinds import SmallPod
from ...planning.jobs.plan import JobPlan
from ...planning.jobs.topology import LABELS
from ...planning.quota.amounts import CPU, MEMORY, quantity
from .gang import gang_annotations
from .nvlink import container_claims, pod_claims

Manifest = dict[str, Any]

# HyperPod labels each node so. Source: SageMaker Developer Guide, resiliency of HyperPod on EKS, 2026-11.
_HEALTH = "sagemaker.amazonaws.com/node-health-status"
_DEEP_HEALTH = "sagemaker.amazonaws.com/deep-health-check-status"
# Engines that read where pods lie to each other, of jobs in their queues.
_PLACING = ("hyperpod", "kueue", "kai")
_NAME_LABEL = "app.kubernetes.io/name"
_MANAGED_LABEL = "app.kubernetes.io/managed-by"


def metadata(plan: JobPlan, annotations: Manifest | None = None) -> Manifest:
    """Metadata of the job object."""
    meta: Manifest = {
        "name": plan.name,
        "namespace": plan.placement.namespace,
        "labels": {_NAME_LABEL: plan.name, _MANAGED_LABEL: "podwright", **plan.placement.labels, **plan.job.labels},
    }
    if plan.engine == "kai":
        # KAI reads them from the object that owns the pods.
        annotations = {**(annotations or {}), **_topology(plan)}
    return meta | ({"annotations": annotations} if annotations else {})


def pod_template(plan: JobPlan, container: Manifest, **spec: Any) -> Manifest:
    """Template of pods with one container that has the plan's accelerators.

    Args:
        plan: The job.
        container: Fields of the container that are the kind's own: its name, command and ports.
        spec: Fields of the pod that are the kind's own.
    """
    described = pod_spec(plan, container) | spec
    metadata = pod_metadata(plan)
    if gang := gang_annotations(plan, described, resources(plan)["requests"]):
        metadata["annotations"] = metadata.get("annotations", {}) | gang
    return {"metadata": metadata, "spec": described}


def beside_template(plan: JobPlan, size: SmallPod, container: Manifest, **spec: Any) -> Manifest:
    """Template of a pod without accelerators on a node of the same group: a head, a launcher, what submits.

    Args:
        plan: The job.
        size: What it takes.
        container: Fields of the container that are the kind's own.
        spec: Fields of the pod that are the kind's own.
    """
    memory = int(size.memory_gib * 1024)
    small = plan._replace(
        pod=plan.pod._replace(
            resources={CPU: int(size.vcpu * 1000), MEMORY: memory},
            huge_pages_mib=0,
            shm_mib=memory // 4,
            placement=None,
            nvlink=False,
        )
    )
    return pod_template(small, container, **spec)


def pod_metadata(plan: JobPlan) -> Manifest:
    """Labels and annotations of pods."""
    labels = {_NAME_LABEL: plan.name, _MANAGED_LABEL: "podwright", **plan.placement.pod_labels, **plan.job.labels}
    annotations = _topology(plan)
    return {"labels": labels} | ({"annotations": annotations} if annotations else {})


def pod_spec(plan: JobPlan, container: Manifest) -> Manifest:
    """Spec of pods on the plan's nodes."""
    pod = plan.pod
    mounts = {f"claim-{index}": (path, claim) for index, (path, claim) in enumerate(plan.job.mounts.items())}
    volumes: list[Manifest] = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, (_, claim) in mounts.items()
    ]
    volume_mounts = [{"name": name, "mountPath": path} for name, (path, _) in mounts.items()]
    if pod.shm_mib:
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{pod.shm_mib}Mi"}})
        volume_mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    described: Manifest = {
        "image": plan.job.image,
        "env": [{"name": name, "value": value} for name, value in pod.env.items()],
        "resources": resources(plan),
    }
    if volume_mounts:
        described["volumeMounts"] = volume_mounts
    affinity: Manifest = {"nodeAffinity": node_affinity()}
    if together := _one_ultraserver(plan):
        affinity["podAffinity"] = together
    spec: Manifest = {"nodeSelector": dict(pod.node_selector), "affinity": affinity}
    if pod.tolerations:
        spec["tolerations"] = [dict(item) for item in pod.tolerations]
    if plan.placement.scheduler:
        spec["schedulerName"] = plan.placement.scheduler
    if plan.placement.priority_class:
        spec["priorityClassName"] = plan.placement.priority_class
    if plan.job.service_account:
        spec["serviceAccountName"] = plan.job.service_account
    if getattr(plan.job, "uses_host_network", False):
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if plan.gid is not None:
        # The team's folders belong to this group, and an image may run as any user. AWS's model of HyperPodPyTorchJob
        # has no supplementalGroups in pods.
        own = plan.job.kind == "hyperpod_pytorch"
        spec["securityContext"] = {"runAsGroup": plan.gid} if own else {"supplementalGroups": [plan.gid]}
    if pod.nvlink:
        spec["resourceClaims"] = pod_claims(plan.name)
        described["resources"]["claims"] = container_claims()
    spec["containers"] = [container | described]
    if volumes:
        spec["volumes"] = volumes
    return spec


def resources(plan: JobPlan) -> Manifest:
    """Requests that are the limits too: such pods are the last to be evicted, and quotas of limits count them."""
    asked = {name: quantity(name, amount) for name, amount in plan.pod.resources.items()}
    if plan.pod.huge_pages_mib:
        asked["hugepages-2Mi"] = f"{plan.pod.huge_pages_mib}Mi"
    return {"requests": asked, "limits": asked}


def node_affinity(labels: Mapping[str, str] | None = None) -> Manifest:
    """Only nodes that HyperPod has not given up, best those whose deep health checks passed.

    Args:
        labels: What nodes have to be labelled with as well, where a kind of job takes no node selector.
    """
    required = {_HEALTH: "Schedulable", **(labels or {})}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [_is(key, value) for key, value in required.items()]}]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": [_is(_DEEP_HEALTH, "Passed")]}}
        ],
    }


def _is(key: str, value: str) -> Manifest:
    return {"key": key, "operator": "In", "values": [value]}


def _one_ultraserver(plan: JobPlan) -> Manifest:
    """Affinity of a job's pods to the UltraServer of the first of them, where no queue places them; else nothing.

    An NVLink domain ends with the UltraServer. Kubernetes lets the first pod of an affinity to itself go anywhere.
    Source: Kubernetes documentation, "Assigning Pods to Nodes", inter-pod affinity, 2026-11.
    """
    desired = plan.pod.placement
    queued = plan.engine in _PLACING and plan.placement.labels
    if desired is None or not desired.required or desired.label != LABELS["ultraserver"] or queued:
        return {}
    term = {"labelSelector": {"matchLabels": {_NAME_LABEL: plan.name}}, "topologyKey": desired.label}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _topology(plan: JobPlan) -> dict[str, str]:
    """Annotations that tell the quota engine where pods lie to each other."""
    desired = plan.pod.placement
    if desired is None:
        return {}
    how = "required" if desired.required else "preferred"
    if plan.engine == "kai":
        return {"kai.scheduler/topology": desired.topology, f"kai.scheduler/topology-{how}-placement": desired.label}
    return {f"kueue.x-k8s.io/podset-{how}-topology": desired.label} if plan.engine in ("hyperpod", "kueue") else {}
