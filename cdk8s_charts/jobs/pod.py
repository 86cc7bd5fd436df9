"""The pods of a job as Kubernetes takes them: what a plan says, in a pod template."""

from collections.abc import Mapping
from typing import Any

from ...config.settings.jobs.kinds import RayHead, SmallPod
from ...config.settings.jobs.pods import Affinity, NodeCondition, PodsAffinity
from ...planning.jobs.plan import JobPlan
from ...planning.jobs.topology import LABELS
from ...planning.quota.amounts import CPU, MEMORY, quantity
from .gang import gang_annotations
from .nvlink import container_claims, pod_claims
from .security import container_security, init_containers, pod_security
from .volumes import mounted, variables

Manifest = dict[str, Any]

# HyperPod labels each node so. Source: SageMaker Developer Guide, resiliency of HyperPod on EKS, 2026-11.
_HEALTH = "sagemaker.amazonaws.com/node-health-status"
_DEEP_HEALTH = "sagemaker.amazonaws.com/deep-health-check-status"
# Engines that read where pods lie to each other, of jobs in their queues.
_PLACING = ("hyperpod", "kueue", "kai")
_NAME_LABEL = "app.kubernetes.io/name"
_MANAGED_LABEL = "app.kubernetes.io/managed-by"
_PULL = {"always": "Always", "if_not_present": "IfNotPresent", "never": "Never"}


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
    """Template of a pod beside those that work, on a node of the same group: a head, a launcher, what submits.

    Args:
        plan: The job.
        size: What it takes.
        container: Fields of the container that are the kind's own.
        spec: Fields of the pod that are the kind's own.
    """
    memory = int(size.memory_gib * 1024)
    devices = {plan.pod.device: size.accelerators} if isinstance(size, RayHead) and size.accelerators else {}
    small = plan._replace(
        # What prepares data for the accelerators runs where they are.
        job=plan.job.model_copy(update={"init": {}}),
        pod=plan.pod._replace(
            resources={**devices, CPU: int(size.vcpu * 1000), MEMORY: memory},
            limits={},
            huge_pages_mib=0,
            shm_mib=memory // 4,
            placement=None,
            nvlink=False,
        ),
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
    volumes, volume_mounts = mounted(plan)
    described: Manifest = {"image": plan.job.image, "env": variables(plan), "resources": resources(plan)}
    if plan.job.pull:
        described["imagePullPolicy"] = _PULL[plan.job.pull]
    if volume_mounts:
        described["volumeMounts"] = volume_mounts
    spec: Manifest = {"nodeSelector": dict(pod.node_selector), "affinity": affinity(plan)}
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
    if context := pod_security(plan):
        spec["securityContext"] = context
    if plan.job.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in plan.job.pull_secrets]
    if pod.nvlink:
        spec["resourceClaims"] = pod_claims(plan.name)
        described["resources"]["claims"] = container_claims()
    if context := container_security(plan) | container.get("securityContext", {}):
        described["securityContext"] = context
    if before := init_containers(plan, described):
        spec["initContainers"] = before
    spec["containers"] = [container | described]
    if volumes:
        spec["volumes"] = volumes
    return spec


def resources(plan: JobPlan) -> Manifest:
    """Requests, and limits that are the same unless the job asks for less: such pods are the last to be evicted."""
    asked = {name: quantity(name, amount) for name, amount in plan.pod.resources.items()}
    if plan.pod.huge_pages_mib:
        asked["hugepages-2Mi"] = f"{plan.pod.huge_pages_mib}Mi"
    more = {name: quantity(name, amount) for name, amount in plan.pod.limits.items()}
    return {"requests": asked, "limits": asked | more}


def affinity(plan: JobPlan) -> Manifest:
    """Affinity of the job's pods: to healthy nodes, to each other in an UltraServer, and what the job says itself."""
    own: Affinity = plan.job.affinity
    near = [_pods_term(each) for each in own.near]
    near += _one_ultraserver(plan)
    apart = [_pods_term(each) for each in own.apart]
    terms = {"podAffinity": near, "podAntiAffinity": apart}
    return {"nodeAffinity": node_affinity(own)} | {
        name: {"requiredDuringSchedulingIgnoredDuringExecution": term} for name, term in terms.items() if term
    }


def _pods_term(pods: PodsAffinity) -> Manifest:
    return {"labelSelector": {"matchLabels": dict(pods.labels)}, "topologyKey": pods.topology}


def node_affinity(own: Affinity, labels: Mapping[str, str] | None = None) -> Manifest:
    """Only nodes that HyperPod has not given up, best those whose deep health checks passed.

    Args:
        own: What the job says itself.
        labels: What nodes have to be labelled with as well, where a kind of job takes no node selector.
    """
    required = {_HEALTH: "Schedulable", **(labels or {})}
    conditions = [_is(key, value) for key, value in required.items()] + [_condition(each) for each in own.nodes]
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": conditions}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": [_is(_DEEP_HEALTH, "Passed")]}},
            *({"weight": 50, "preference": {"matchExpressions": [_condition(each)]}} for each in own.prefer),
        ],
    }


def _condition(condition: NodeCondition) -> Manifest:
    """A condition on a label of nodes as Kubernetes takes it."""
    if condition.values:
        operator = "NotIn" if condition.negated else "In"
        return {"key": condition.label, "operator": operator, "values": list(condition.values)}
    return {"key": condition.label, "operator": "DoesNotExist" if condition.negated else "Exists"}


def _is(key: str, value: str) -> Manifest:
    return {"key": key, "operator": "In", "values": [value]}


def _one_ultraserver(plan: JobPlan) -> list[Manifest]:
    """Affinity of a job's pods to the UltraServer of the first of them, where no queue places them; else nothing.

    An NVLink domain ends with the UltraServer. Kubernetes lets the first pod of an affinity to itself go anywhere.
    Source: Kubernetes documentation, "Assigning Pods to Nodes", inter-pod affinity, 2026-11.
    """
    desired = plan.pod.placement
    queued = plan.engine in _PLACING and plan.placement.labels
    if desired is None or not desired.required or desired.label != LABELS["ultraserver"] or queued:
        return []
    return [{"labelSelector": {"matchLabels": {_NAME_LABEL: plan.name}}, "topologyKey": desired.label}]


def _topology(plan: JobPlan) -> dict[str, str]:
    """Annotations that tell the quota engine where pods lie to each other."""
    desired = plan.pod.placement
    if desired is None:
        return {}
    how = "required" if desired.required else "preferred"
    if plan.engine == "kai":
        return {"kai.scheduler/topology": desired.topology, f"kai.scheduler/topology-{how}-placement": desired.label}
    return {f"kueue.x-k8s.io/podset-{how}-topology": desired.label} if plan.engine in ("hyperpod", "kueue") else {}
