"""Prints the logs of simulated containers on real nodes, and ends their pods.

Such a container prints the log that it would have on a simulated node. The same annotations end its pod (see
pod_ends.py).
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
"""Container of a Ray head's pod that ends with the job. The other containers continue."""
_XID: Final = re.compile(r"NVRM: Xid \([^)]*\): (?P<text>\d+.*)")
_UNITS: Final = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
"""Seconds of the units of a duration. Source: Go's time.ParseDuration, by which kwok reads the same annotation."""
_DURATION: Final = re.compile(rf"(\d+\.?\d*|\.\d+)({'|'.join(sorted(_UNITS, key=len, reverse=True))})")


class Nodes(Protocol):
    """The real nodes of a cluster."""

    @property
    def running(self) -> list[str]:
        """Names of the running nodes."""
        ...

    def new_messages(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the nodes' system logs since the last call, each with its node's name."""
        ...

    def container(self, node: str, identifier: str) -> RunningContainer:
        """Return a container of a node, by its id."""
        ...


class HealthService(Protocol):
    """The service with HyperPod's health monitoring agents."""

    def find_xid(self, region: str, eks_cluster: str, name: str, text: str) -> None:
        """Handle an Xid in the log of a node."""
        ...

    @property
    def job_faults(self) -> Mapping[str, str]:
        """Faults of jobs by a prefix of their names."""
        ...


class RealPods:
    """The pods on the real nodes of one EKS cluster."""

    def __init__(self, kubeconfig: Path, region: str, cluster: str, nodes: Nodes) -> None:
        self._kubeconfig = kubeconfig
        self._at = (region, cluster)
        self._nodes = nodes
        self._logs: dict[str, str] = {}
        """Lines that simulated containers have not printed yet, by the container's id."""
        self._xids: list[tuple[str, str, datetime]] = []
        """Xids that no agent has handled yet: the node, the message, and the time of the read."""

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
                if container.simulated is not None and not self._print(pod, identifier, container, service):
                    continue
                if identifier in initial and container.simulated is not None and not _is_sidecar(pod, status):
                    # It succeeds, as on a simulated node.
                    container.end(0)
                elif identifier in own and (code := exit_code(pod, status)) is not None:
                    container.end(code)
        self._logs = {identifier: log for identifier, log in self._logs.items() if identifier in running}

    def _print(self, pod: JsonObject, identifier: str, container: RunningContainer, service: HealthService) -> bool:
        """Let a simulated container print the rest of its log. Returns True if all lines are printed."""
        if identifier not in self._logs:
            self._logs[identifier] = log_of(pod, service.job_faults)
        log = self._logs[identifier]
        self._logs[identifier] = log[container.write(log) :]
        return not self._logs[identifier]

    def _read_logs(self, service: HealthService, drilled: set[str]) -> None:
        """Let the agents find the Xids in their nodes' logs.

        A drill's pod writes the Xid on the node, and the drill waits until this pod has ended. So an agent finds the
        Xid only after the pod is deleted, or DELETED_WITHIN after the line was read. A real agent needs seconds too.
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
    seconds = _seconds(annotations.get(RUNS_FOR, ""))
    if seconds is None or (_SUBMITTER in names and status["name"] != _SUBMITTER):
        return None
    started = datetime.fromisoformat(status["state"]["running"]["startedAt"])
    return int(annotations.get(EXIT_CODE, "0")) if now() - started >= timedelta(seconds=seconds) else None


def _seconds(duration: str) -> float | None:
    """Return the seconds of a duration such as 1m30s or 500ms; None for a text that is none."""
    if not duration or _DURATION.sub("", duration):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(duration))
