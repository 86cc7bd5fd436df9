"""How the pods of a real API server end, and when. kwok plays their kubelets and goes by three annotations of a pod.

An ordinary pod runs until it is deleted. Those of gates and of nccl-tests end by themselves within seconds, as do
drills, whose node breaks then. What is wrong with a job (`/podwright/faults`) happens to pods that run already, too;
the image of a new one is missing after a second, since nobody may hold it up before.
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
"""What can be wrong with a job, by name (`/podwright/faults`)."""
RUNS_FOR: Final = "podwright/runs-for"
EXIT_CODE: Final = "podwright/exit-code"
IMAGE_MISSING: Final = "podwright/image-missing"
_DRILLED: Final = "podwright/drilled"
_SECONDS: Final = "2s"
_OURS: Final = "app.kubernetes.io/managed-by=podwright"
_BENCHMARK: Final = "_perf"
_GONE: Final = 404
DELETED_WITHIN: Final = timedelta(seconds=10)
"""Time in which a drill deletes its pod once that has ended."""


class DrillService(Protocol):
    """Who has the nodes that drills break."""

    def run_pod(self, region: str, eks_cluster: str, pod: JsonObject) -> JsonObject | None:
        """Break the node of a drill's pod."""
        ...

    @property
    def job_faults(self) -> Mapping[str, str]:
        """What is wrong with jobs, by how their names begin."""
        ...


class PodEnds:
    """Those of one EKS cluster."""

    def __init__(self, kubeconfig: Path, region: str, cluster: str) -> None:
        self._kubeconfig = kubeconfig
        self._at = (region, cluster)
        self._drills: dict[str, JsonObject] = {}
        """Pods of drills that have run and not broken their nodes yet, by uid."""

    def follow(self, service: DrillService, real_nodes: Collection[str] = ()) -> None:
        """Let running pods end that should, and drills that have ended break their nodes.

        A drill writes into the log of a real node, where HyperPod's agent reads it, so nothing is done for it here.
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
            # Who drills deletes the pod as soon as it has ended, and watches its node from then on.
            service.run_pod(*self._at, self._drills.pop(uid))
        for uid, pod in ended.items():
            # The mark first: a drill that cannot be marked would break its node again and again.
            if _has_waited(pod) and self._annotate(pod, {_DRILLED: "true"}):
                self._drills.pop(uid, None)
                service.run_pod(*self._at, pod)

    @property
    def _api(self) -> Connection:
        return connection(self._kubeconfig, self._kubeconfig.stat().st_mtime_ns)

    def _pods(self, labels: str, phase: str) -> list[JsonObject]:
        # Version 0 is what the API server has in memory.
        query = {"labelSelector": labels, "fieldSelector": f"status.phase={phase}", "resourceVersion": "0"}
        return self._api.request("GET", "/api/v1/pods", **query)["items"]

    def _annotate(self, pod: JsonObject, annotations: Mapping[str, str | None]) -> bool:
        """Write annotations that a pod does not have yet; None takes one away. Returns whether that was done now."""
        metadata = pod["metadata"]
        if not annotations or annotations.items() <= metadata.get("annotations", {}).items():
            return False
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        # Another pod may have taken the name since.
        patch = {"metadata": {"uid": metadata["uid"], "annotations": annotations}}
        try:
            self._api.request("PATCH", path, patch, "merge-patch+json")
        except ApiError as error:
            if error.code != _GONE:
                raise
            return False
        return True


def end_of(pod: JsonObject, faults: Mapping[str, str]) -> dict[str, str]:
    """The annotations by which a running pod of podwright's jobs ends; empty for one that runs on.

    Args:
        pod: The pod.
        faults: What is wrong with jobs, by how their names begin.
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
    """Whether nobody has deleted an ended pod for a while."""
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
    return now() - datetime.fromisoformat(ended) > DELETED_WITHIN


def _is_benchmark(container: Mapping[str, Any]) -> bool:
    words = (*container.get("command", ()), *container.get("args", ()))
    return any(word.endswith(_BENCHMARK) for word in words)
