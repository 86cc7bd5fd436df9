"""What Kubernetes shows of nodes: their kubelets, their health and the jobs on them."""

from collections.abc import Mapping
from typing import Any

from ...config.catalog.drills import GROUP_LABEL, HEALTH_LABEL, HEALTHY
from ...planning.delivery.kubernetes_upgrades import minor as number
from ..aws.account import Account
from ..aws.calls import get
from ..aws.clusters import Cluster
from ..kubernetes.kubectl import Kubectl
from ..nodes.snapshot import is_ready, job_of

# HyperPod names Kubernetes nodes after their instances.
_PREFIX = "hyperpod-"


def kubernetes_nodes(kubectl: Kubectl | None) -> dict[str, dict[str, Any]]:
    """By instance id: group, kubelet such as 1.34, health label, whether it is ready. Empty where nobody sees it."""
    if kubectl is None:
        return {}
    return {
        item["metadata"]["name"].removeprefix(_PREFIX): {
            "group": item["metadata"].get("labels", {}).get(GROUP_LABEL, ""),
            "kubelet": minor(item["status"].get("nodeInfo", {}).get("kubeletVersion", "")),
            # A node without the label is one that HyperPod has nothing against.
            "health": item["metadata"].get("labels", {}).get(HEALTH_LABEL, HEALTHY),
            "ready": is_ready(item),
        }
        for item in kubectl.items("nodes")
    }


def behind(account: Account, cluster: Cluster, nodes: Mapping[str, Mapping[str, Any]]) -> tuple[str, dict[str, str]]:
    """The control plane's version, and by group the oldest kubelet that is older than it.

    Args:
        account: Where the cluster is.
        cluster: The HyperPod cluster.
        nodes: What Kubernetes shows of its nodes.
    """
    if not cluster.eks or not nodes:
        return "", {}
    server = get(account, "eks", "describe_cluster", name=cluster.eks)["cluster"]["version"]
    results: dict[str, str] = {}
    for node in nodes.values():
        if node["kubelet"] and number(node["kubelet"]) < number(server):
            # By number: as text 1.9 would be newer than 1.34.
            results[node["group"]] = min(results.get(node["group"], node["kubelet"]), node["kubelet"], key=number)
    return server, results


def jobs_on_nodes(kubectl: Kubectl | None) -> dict[str, list[str]]:
    """The jobs that run on each node, by instance id; what comes with every node is left out."""
    results: dict[str, set[str]] = {}
    for pod in kubectl.items("pods", "--all-namespaces") if kubectl else ():
        name, job = pod["spec"].get("nodeName", ""), job_of(pod)
        # ReplicaSets and StatefulSets are services, which start again elsewhere by themselves.
        if name and job and job.kind not in ("ReplicaSet", "StatefulSet") and pod["status"].get("phase") == "Running":
            results.setdefault(name.removeprefix(_PREFIX), set()).add(str(job))
    return {id: sorted(jobs) for id, jobs in results.items()}


def minor(version: str) -> str:
    """1.34 of v1.34.2-eks-1234567; empty for what is no version."""
    parts = version.removeprefix("v").split(".")
    return ".".join(parts[:2]) if len(parts) > 1 else ""
