"""Changes the pods of a rebooting simulated node, as a kubelet and the node lifecycle controller would.

During the reboot, its pods are not ready. After it, the kubelet finds that all containers have ended. It starts them
again if the pod's restart policy allows it, and the other pods fail. Source: Kubernetes 1.34,
pkg/controller/util/node (MarkPodsNotReady) and pkg/kubelet/kubelet_pods.go (getPhase).
"""

from datetime import datetime
from typing import Final

from ..kubernetes.api_objects import Connection
from ..kubernetes.cluster_objects import ApiError
from ..protocol.json_objects import JsonObject

_ENDED_BY_REBOOT: Final = {"exitCode": 255, "reason": "Unknown"}
"""containerd's exit code of a container whose end it did not see."""
_GONE: Final = (404, 409)
"""Errors that mean that the pod was deleted, and maybe another one has its name."""


def mark_not_ready(api: Connection, node: str, timestamp: datetime) -> None:
    """Mark the running pods of a node that is down as not ready."""
    for pod in _running(api, node):
        conditions = _conditions("NodeNotReady", timestamp)
        _write(api, pod, {"conditions": [item for item in conditions if item["type"] == "Ready"]})


def restart_pods(api: Connection, node: str, timestamp: datetime) -> None:
    """Restart the pods of a rebooted node. Those with restart policy Never fail."""
    for pod in _running(api, node):
        again = pod["spec"].get("restartPolicy", "Always") != "Never"
        time = f"{timestamp:%Y-%m-%dT%H:%M:%SZ}"
        statuses = [_container(item, time, again) for item in pod["status"].get("containerStatuses", [])]
        if again:
            conditions = [
                {"type": kind, "status": "True", "reason": None, "lastTransitionTime": time}
                for kind in ("ContainersReady", "Ready")
            ]
            _write(api, pod, {"conditions": conditions, "containerStatuses": statuses})
        else:
            conditions = _conditions("PodFailed", timestamp)
            _write(api, pod, {"phase": "Failed", "conditions": conditions, "containerStatuses": statuses})


def _running(api: Connection, node: str) -> list[JsonObject]:
    query = {"fieldSelector": f"spec.nodeName={node},status.phase=Running"}
    return api.request("GET", "/api/v1/pods", **query)["items"]


def _conditions(reason: str, timestamp: datetime) -> list[JsonObject]:
    time = f"{timestamp:%Y-%m-%dT%H:%M:%SZ}"
    return [
        {"type": kind, "status": "False", "reason": reason, "lastTransitionTime": time}
        for kind in ("ContainersReady", "Ready")
    ]


def _container(status: JsonObject, time: str, again: bool) -> JsonObject:
    """Return the status of a container after the reboot. That of a container that had ended before is unchanged."""
    if "running" not in status.get("state", {}):
        return status
    ended = {**_ENDED_BY_REBOOT, "startedAt": status["state"]["running"]["startedAt"], "finishedAt": time}
    if not again:
        return {**status, "ready": False, "started": False, "state": {"running": None, "terminated": ended}}
    return {
        **status,
        "ready": True,
        "started": True,
        "restartCount": status.get("restartCount", 0) + 1,
        "state": {"running": {"startedAt": time}},
        "lastState": {"terminated": ended},
    }


def _write(api: Connection, pod: JsonObject, status: JsonObject) -> None:
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
    # The uid protects another pod that has the same name now.
    patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
    try:
        api.request("PATCH", path, patch, "strategic-merge-patch+json")
    except ApiError as error:
        if error.code not in _GONE:
            raise
