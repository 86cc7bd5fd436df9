"""Ends the pods of simulated nodes. kwok simulates their kubelets and reads three annotations of a pod.

An ordinary pod runs until it is deleted. Pods of gates and nccl-tests end within seconds, as do drills, whose node then
breaks. The faults of jobs (`/podwright/faults`) also happen to running pods. The image of a new pod is found
missing after a second, since this module changes pods once a second.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from ..kubernetes.api_objects import Connection, connection
from ..kubernetes.cluster_objects import ApiError
from ..kubernetes.job_logs import JOB, fault_of
from ..nodes.containers import GATES
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from .repair import DRILL_LABEL

FAULTS: Final = {
    "fails": "its pods end with exit code 1",
    "image": "its image cannot be pulled",
    "hangs": "it never ends",
    "slow": "NCCL talks TCP",
    "wrong": "NCCL's results are wrong",
}
"""Faults of jobs by name (`/podwright/faults`)."""
RUNS_FOR: Final = "podwright/runs-for"
EXIT_CODE: Final = "podwright/exit-code"
IMAGE_MISSING: Final = "podwright/image-missing"
_DRILLED: Final = "podwright/drilled"
_SECONDS: Final = "2s"
_OURS: Final = "app.kubernetes.io/managed-by=podwright"
_BENCHMARK: Final = "_perf"
_GONE: Final = 404
DELETED_WITHIN: Final = timedelta(seconds=10)
"""Limit for a drill to delete its pod after the pod's end."""


class DrillService(Protocol):
    """The service that has the nodes that drills break."""

    def run_pod(self, region: str, eks_cluster: str, pod: JsonObject) -> JsonObject | None:
        """Break the node of a drill's pod."""
        ...

    @property
    def job_faults(self) -> Mapping[str, str]:
        """Faults of jobs by a prefix of their names."""
        ...


class PodEnds:
    """Ends the pods of one EKS cluster."""

    def __init__(self, kubeconfig: Path, region: str, cluster: str) -> None:
        self._kubeconfig = kubeconfig
        self._at = (region, cluster)
        self._drills: dict[str, JsonObject] = {}
        """Ended pods of drills whose nodes are not broken yet, by uid."""

    def follow(self, service: DrillService, real_nodes: Collection[str] = ()) -> None:
        """End pods that are due, and break the nodes of ended drills.

        Drills on real nodes are ignored: they write into the node's log, which HyperPod's agent reads.
        """
        for pod in self._pods(_OURS, "Running"):
            self._annotate(pod, end_of(pod, service.job_faults))
        for pod in self._pods(_OURS, "Pending"):
            if IMAGE_MISSING in pod["metadata"].get("annotations", {}) and fault_of(pod, service.job_faults) != "image":
                self._annotate(pod, {IMAGE_MISSING: None})
        running = [pod for pod in self._pods(DRILL_LABEL, "Running") if pod["spec"]["nodeName"] not in real_nodes]
        for pod in running:
            self._annotate(pod, {RUNS_FOR: _SECONDS})
            self._drills[pod["metadata"]["uid"]] = pod
        succeeded = [pod for pod in self._pods(DRILL_LABEL, "Succeeded") if pod["spec"]["nodeName"] not in real_nodes]
        ended = {pod["metadata"]["uid"]: pod for pod in succeeded}
        for uid in self._drills.keys() - ended.keys() - {pod["metadata"]["uid"] for pod in running}:
            # The drill command deletes the ended pod, and then watches the node.
            service.run_pod(*self._at, self._drills.pop(uid))
        for uid, pod in ended.items():
            # The mark first: a drill without it would break its node again.
            if _has_waited(pod) and self._annotate(pod, {_DRILLED: "true"}):
                self._drills.pop(uid, None)
                service.run_pod(*self._at, pod)

    @property
    def _api(self) -> Connection:
        return connection(self._kubeconfig, self._kubeconfig.stat().st_mtime_ns)

    def _pods(self, labels: str, phase: str) -> list[JsonObject]:
        # With version 0, the API server answers from its memory.
        query = {"labelSelector": labels, "fieldSelector": f"status.phase={phase}", "resourceVersion": "0"}
        return self._api.request("GET", "/api/v1/pods", **query)["items"]

    def _annotate(self, pod: JsonObject, annotations: Mapping[str, str | None]) -> bool:
        """Write missing annotations of a pod; None removes one. Returns True if the pod was changed."""
        metadata = pod["metadata"]
        if not annotations or annotations.items() <= metadata.get("annotations", {}).items():
            return False
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        # A new pod may have the same name.
        patch = {"metadata": {"uid": metadata["uid"], "annotations": annotations}}
        try:
            self._api.request("PATCH", path, patch, "merge-patch+json")
        except ApiError as error:
            if error.code != _GONE:
                raise
            return False
        return True


def end_of(pod: JsonObject, faults: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations that end a running pod of podwright's jobs; empty if it continues.

    Args:
        pod: The pod.
        faults: Faults of jobs by a prefix of their names.
    """
    job, fault = pod["metadata"].get("labels", {}).get(JOB, ""), fault_of(pod, faults)
    if fault == "hangs":
        return {}
    if fault == "image":
        return {IMAGE_MISSING: "true"}
    if fault == "fails":
        return {RUNS_FOR: _SECONDS, EXIT_CODE: "1"}
    return {RUNS_FOR: _SECONDS} if job.startswith(GATES) or _is_benchmark(pod["spec"]["containers"][0]) else {}


def _has_waited(pod: JsonObject) -> bool:
    """Return True if an ended pod was not deleted in time."""
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
    return now() - datetime.fromisoformat(ended) > DELETED_WITHIN


def _is_benchmark(container: Mapping[str, Any]) -> bool:
    words = (*container.get("command", ()), *container.get("args", ()))
    return any(word.endswith(_BENCHMARK) for word in words)
