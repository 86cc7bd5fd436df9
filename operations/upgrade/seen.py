"""What Kubernetes shows of nodes: their kubelets, their health and the jobs on them."""

from typing import Any

from ...config.drills import HEALTH_LABEL, HEALTHY
from ..kubectl import Kubectl
from ..nodes.snapshot import job_of

_PREFIX = "hyperpod-"


def kubernetes_nodes(kubectl: Kubectl | None) -> dict[str, dict[str, Any]]:
    """By instance id: kubelet version such as 1.34, health label, whether it is ready. Empty where nobody sees it."""
    if kubectl is None:
        return {}
    return {
        item["metadata"]["name"].removeprefix(_PREFIX): {
            "kubelet": minor(item["status"].get("nodeInfo", {}).get("kubeletVersion", "")),
            "health": item["metadata"].get("labels", {}).get(HEALTH_LABEL, HEALTHY),
            "ready": any(
                entry["type"] == "Ready" and entry["status"] == "True" for entry in item["status"].get("conditions", ())
            ),
        }
        for item in kubectl.items("nodes")
    }


def jobs_on_nodes(kubectl: Kubectl | None) -> dict[str, list[str]]:
    """The jobs that run on each node, by instance id; what comes with every node is left out."""
    found: dict[str, set[str]] = {}
    for pod in kubectl.items("pods", "--all-namespaces") if kubectl else ():
        name, job = pod["spec"].get("nodeName", ""), job_of(pod)
        if name and job and job.kind not in ("ReplicaSet", "StatefulSet") and pod["status"].get("phase") == "Running":
            found.setdefault(name.removeprefix(_PREFIX), set()).add(str(job))
    return {id: sorted(jobs) for id, jobs in found.items()}


def minor(version: str) -> str:
    """1.34 of v1.34.2-eks-1234567; empty for what is no version."""
    parts = version.removeprefix("v").split(".")
    return ".".join(parts[:2]) if len(parts) > 1 else ""
