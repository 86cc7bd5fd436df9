"""Kueue's objects for tests of its simulator, in few words."""

from typing import Any

GPU = "nvidia.com/gpu"
Object = dict[str, Any]


def flavor(name: str, **spec: Any) -> Object:
    return {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def cluster_queue(name: str, cohort: str = "", quotas: dict[str, Any] | None = None, **spec: Any) -> Object:
    """A queue with GPUs; a quota is a number, or nominal, borrowing limit and lending limit."""
    flavors = []
    for key, quota in (quotas or {"default": 8}).items():
        nominal, *limits = quota if isinstance(quota, tuple) else (quota,)
        resource = {"name": GPU, "nominalQuota": str(nominal)}
        for field, limit in zip(("borrowingLimit", "lendingLimit"), limits, strict=False):
            resource |= {} if limit is None else {field: str(limit)}
        flavors.append({"name": key, "resources": [resource]})
    own: Object = {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}], "namespaceSelector": {}}
    own |= {"cohortName": cohort} if cohort else {}
    return {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": own | spec}


def local_queue(name: str) -> Object:
    return {"kind": "LocalQueue", "metadata": {"name": "main", "namespace": name}, "spec": {"clusterQueue": name}}


def node(name: str, gpus: int = 8, **labels: str) -> Object:
    own = {"kubernetes.io/hostname": name, "pool": "gpu", **labels}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": {GPU: str(gpus), "pods": "110"}, "conditions": ready}
    return {"kind": "Node", "metadata": {"name": name, "labels": own}, "status": status}


def workload(name: str, team: str, gpus: int, created: int = 0, *, count: int = 1, **spec: Any) -> Object:
    """A Workload of `count` pods with so many GPUs each, made so many seconds after the hour."""
    resources = {"requests": {GPU: str(gpus)}}
    template = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    pods = {"name": "main", "count": count, "template": template}
    for key in ("minCount", "topologyRequest"):
        if key in spec:
            pods[key] = spec.pop(key)
    timestamp = f"2026-11-25T{created // 3600:02}:{created // 60 % 60:02}:{created % 60:02}Z"
    metadata = {"name": name, "namespace": team, "uid": name, "creationTimestamp": timestamp}
    return {"metadata": metadata, "spec": {"queueName": "main", "podSets": [pods], **spec}}
