"""Observes a node, its instance group and the jobs on it."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ...config.catalog.drills import FAULT_LABELS, GROUP_LABEL, HEALTH_LABEL, HEALTHY
from ..aws.calls import Clients
from ..aws.clusters import Node, nodes
from ..kubernetes.kubectl import Kubectl

Object = dict[str, Any]
_NAME_LABEL: Final = "app.kubernetes.io/name"
"""Label of podwright's pods that has the name of their job."""


class Job(NamedTuple):
    """The owner of pods on the node. It has the same name after its pods were replaced."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.kind.lower()}/{self.name}"


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of a job."""

    running: frozenset[str]
    """Uids of the pods that run and are ready."""
    on_node: frozenset[str]
    """Uids of the pods on the node that have not ended."""
    restarts: int = 0
    """Container restarts of all running pods together."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One observation."""

    at: float
    """Seconds since the epoch."""
    instances: Mapping[str, str]
    """Status of each instance of the group by id, as HyperPod lists them."""
    health: str | None
    """The node's health label; None without the node in Kubernetes, or without a way to Kubernetes."""
    node_is_ready: bool
    """True if the node's condition Ready is true, whatever its health label."""
    tainted: bool
    """True if the node has HyperPod's taint."""
    reasons: Mapping[str, str]
    """HyperPod's labels and annotations with the reasons of a fault, without their common prefix."""
    boot: str | None
    """Id of the node's boot."""
    healthy: frozenset[str]
    """Instance ids of the group's nodes that are ready in Kubernetes and not labelled as faulty."""
    jobs: Mapping[Job, Pods]
    sees_kubernetes: bool


class Observer:
    """Observes one node repeatedly."""

    def __init__(
        self,
        clients: Clients,
        cluster: str,
        node: Node,
        kubectl: Kubectl | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare to read from SageMaker, and from Kubernetes if `kubectl` is given."""
        self._clients, self._cluster, self.node, self._kubectl, self._clock = clients, cluster, node, kubectl, clock
        self._jobs: set[Job] | None = None

    def observe(self) -> Snapshot:
        """Return the current state. All reads observe the jobs that the first one found on the node."""
        # Only the group's: clusters have thousands of nodes.
        instances = {node.id: node.status for node in nodes(self._clients, self._cluster, self.node.group)}
        if self._kubectl is None:
            return Snapshot(self._clock(), instances, None, False, False, {}, None, frozenset(), {}, False)
        kubernetes = {
            item["metadata"]["name"]: item
            for item in self._kubectl.items("nodes", f"--selector={GROUP_LABEL}={self.node.group}")
        }
        mine = kubernetes.get(self.node.kubernetes_name)
        pods = list(self._pods())
        # A job may leave the node before the second read.
        if self._jobs is None:
            self._jobs = set(filter(None, (job_of(pod) for pod in pods if self._is_on_node(pod))))
        return Snapshot(
            at=self._clock(),
            instances=instances,
            health=_labels(mine).get(HEALTH_LABEL) if mine else None,
            node_is_ready=mine is not None and is_ready(mine),
            tainted=any(taint["key"] == HEALTH_LABEL for taint in _spec(mine).get("taints", ())),
            reasons=_reasons(mine),
            boot=mine.get("status", {}).get("nodeInfo", {}).get("bootID") if mine else None,
            # The node's name contains the instance id; no label or field has it.
            healthy=frozenset(name.removeprefix("hyperpod-") for name, item in kubernetes.items() if _is_healthy(item)),
            jobs={job: self._of(job, pods) for job in self._jobs},
            sees_kubernetes=True,
        )

    def _pods(self) -> Iterable[Object]:
        """Read the pods of the namespaces of the node's jobs. The first read finds these namespaces."""
        assert self._kubectl
        if self._jobs is None:
            on_node = self._kubectl.items(
                "pods", "--all-namespaces", f"--field-selector=spec.nodeName={self.node.kubernetes_name}"
            )
            namespaces = {job.namespace for pod in on_node if self._is_on_node(pod) and (job := job_of(pod))}
        else:
            namespaces = {job.namespace for job in self._jobs}
        # A job's other and replacement pods are on other nodes.
        for namespace in sorted(namespaces):
            yield from self._kubectl.items("pods", f"--namespace={namespace}")

    def _is_on_node(self, pod: Object) -> bool:
        on_it = pod["spec"].get("nodeName") == self.node.kubernetes_name
        # A pod that has ended stays bound to its node until it is deleted.
        return on_it and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")

    def _of(self, job: Job, pods: Iterable[Object]) -> Pods:
        mine = [pod for pod in pods if job_of(pod) == job]
        return Pods(
            frozenset(pod["metadata"]["uid"] for pod in mine if _runs(pod)),
            frozenset(pod["metadata"]["uid"] for pod in mine if self._is_on_node(pod)),
            sum(_restarts(pod) for pod in mine if _runs(pod)),
        )


def job_of(pod: Object) -> Job | None:
    """Return the owner of a pod; None for pods of DaemonSets and nodes, and without a controlling owner."""
    # A pod may have several owners, but only one controller.
    owner = next((item for item in pod["metadata"].get("ownerReferences", ()) if item.get("controller")), None)
    if owner is None or owner["kind"] in ("DaemonSet", "Node"):
        return None
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels", {})
    if owner["kind"] == "RayCluster" and labels.get(_NAME_LABEL, owner["name"]) != owner["name"]:
        # After a restart, a RayJob creates a cluster with another name.
        return Job(namespace, "RayJob", labels[_NAME_LABEL])
    return Job(namespace, owner["kind"], owner["name"])


def _runs(pod: Object) -> bool:
    runs = pod.get("status", {}).get("phase") == "Running" and is_ready(pod)
    # A pod that is being deleted still runs, but its job no longer uses it.
    return runs and "deletionTimestamp" not in pod["metadata"]


def _restarts(pod: Object) -> int:
    return sum(container.get("restartCount", 0) for container in pod["status"].get("containerStatuses", ()))


def is_ready(item: Object) -> bool:
    """True if the condition Ready of a pod or node is true."""
    conditions = item.get("status", {}).get("conditions", ())
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)


def _is_healthy(node: Object) -> bool:
    return is_ready(node) and _labels(node).get(HEALTH_LABEL, HEALTHY) == HEALTHY


def _reasons(node: Object | None) -> dict[str, str]:
    results = {**_labels(node), **(node["metadata"].get("annotations", {}) if node else {})}
    return {key.removeprefix(FAULT_LABELS): value for key, value in results.items() if key.startswith(FAULT_LABELS)}


def _labels(node: Object | None) -> dict[str, str]:
    return node["metadata"].get("labels", {}) if node else {}


def _spec(node: Object | None) -> Object:
    return node.get("spec", {}) if node else {}
