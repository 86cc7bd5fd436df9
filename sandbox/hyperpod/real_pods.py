"""What the sandbox does to pods on real nodes, whose containers a kubelet runs.

A simulated container prints what one on a simulated node has as its log. A pod ends by the annotations by which kwok
ends pods on simulated nodes (see pod_ends.py).
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

from ..kubernetes.api_objects import Connection, connection
from ..kubernetes.job_logs import log_of
from ..nodes.running import RunningContainer
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from .pod_ends import DELETED_WITHIN, EXIT_CODE, RUNS_FOR
from .repair import DRILL_LABEL

_RUNTIME: Final = "containerd://"
_SUBMITTER: Final = "ray-job-submitter"
"""Container of a Ray head's pod that ends with the job, while the others run on."""
_XID: Final = re.compile(r"NVRM: Xid \([^)]*\): (?P<text>\d+.*)")
_DURATION: Final = re.compile(r"(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+(?:\.\d+)?)s)?")


class Nodes(Protocol):
    """The real nodes of a cluster."""

    @property
    def running(self) -> list[str]:
        """Names of the nodes whose processes run."""
        ...

    def new_messages(self) -> Iterator[tuple[str, str]]:
        """The lines of the nodes' system logs since the last call, each with its node's name."""
        ...

    def container(self, node: str, identifier: str) -> RunningContainer:
        """A container of a node, by its id."""
        ...


class HealthService(Protocol):
    """Who has HyperPod's health monitoring agents."""

    def find_xid(self, region: str, eks_cluster: str, name: str, text: str) -> None:
        """An agent reads an Xid in the log of its node."""
        ...

    @property
    def job_faults(self) -> Mapping[str, str]:
        """What is wrong with jobs, by how their names begin."""
        ...


class RealPods:
    """Those of one EKS cluster."""

    def __init__(self, kubeconfig: Path, region: str, cluster: str, nodes: Nodes) -> None:
        self._kubeconfig = kubeconfig
        self._at = (region, cluster)
        self._nodes = nodes
        self._known: set[str] = set()
        """Ids of the containers that have their log."""
        self._xids: list[tuple[str, str, datetime]] = []
        """Xids that no agent has found yet: the node, the message, and when it was read."""

    def follow(self, service: HealthService) -> None:
        """Read the nodes' logs, write those of simulated containers that have started, and end pods that should end."""
        pods = list(self._pods())
        self._read_logs(service, {pod["spec"]["nodeName"] for pod in pods if _is_drill(pod)})
        running = set[str]()
        for pod in pods:
            initial = _identifiers(pod, "initContainerStatuses")
            own = _identifiers(pod, "containerStatuses")
            running |= {*initial, *own}
            for identifier, status in (initial | own).items():
                container = self._nodes.container(pod["spec"]["nodeName"], identifier)
                if container.simulated is not None and identifier not in self._known:
                    self._known.add(identifier)
                    container.write(log_of(pod, service.job_faults))
                if identifier in initial and container.simulated is not None and not _is_sidecar(pod, status):
                    # It has succeeded, as on a simulated node.
                    container.end(0)
                elif identifier in own and (code := exit_code(pod, status)) is not None:
                    container.end(code)
        self._known &= running

    def _read_logs(self, service: HealthService, drilled: set[str]) -> None:
        """Let the agents find the Xids in their nodes' logs.

        A drill waits for the end of its pod on the node, so its node breaks once the pod is deleted, or soon after it
        has ended. An agent takes seconds, too.
        """
        for node, line in self._nodes.new_messages():
            if xid := _XID.search(line):
                self._xids.append((node, xid["text"], now()))
        for item in list(self._xids):
            node, text, time = item
            if node not in drilled or now() - time > DELETED_WITHIN:
                self._xids.remove(item)
                service.find_xid(*self._at, node, text)

    def _pods(self) -> Iterator[JsonObject]:
        """Yield the pods of all real nodes."""
        for node in self._nodes.running:
            query = {"fieldSelector": f"spec.nodeName={node}", "resourceVersion": "0"}
            yield from self._api.request("GET", "/api/v1/pods", **query)["items"]

    @property
    def _api(self) -> Connection:
        return connection(self._kubeconfig, self._kubeconfig.stat().st_mtime_ns)


def _identifiers(pod: JsonObject, field: str) -> dict[str, JsonObject]:
    """Return the statuses of a pod's running containers, by the container's id."""
    running = (item for item in pod["status"].get(field, ()) if "running" in item["state"])
    return {item["containerID"].removeprefix(_RUNTIME): item for item in running}


def _is_sidecar(pod: JsonObject, status: JsonObject) -> bool:
    """Return whether an init container runs as long as its pod."""
    containers = pod["spec"].get("initContainers", ())
    return any(item["name"] == status["name"] and item.get("restartPolicy") == "Always" for item in containers)


def _is_drill(pod: JsonObject) -> bool:
    return DRILL_LABEL in pod["metadata"].get("labels", {})


def exit_code(pod: JsonObject, status: JsonObject) -> int | None:
    """Return the code with which a running container ends now; None if it runs on.

    Args:
        pod: The pod of the container.
        status: The container's status.
    """
    names = {item["name"] for item in pod["spec"]["containers"]}
    annotations = pod["metadata"].get("annotations", {})
    duration = _DURATION.fullmatch(annotations.get(RUNS_FOR, ""))
    if not annotations.get(RUNS_FOR) or duration is None or (_SUBMITTER in names and status["name"] != _SUBMITTER):
        return None
    seconds = timedelta(**{unit: float(value) for unit, value in duration.groupdict(default="0").items()})
    started = datetime.fromisoformat(status["state"]["running"]["startedAt"])
    return int(annotations.get(EXIT_CODE, "0")) if now() - started >= seconds else None
