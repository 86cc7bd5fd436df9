"""The API of simulated kubelets, which the API server calls for the logs of containers. They run no processes.

Source: the kubelet's server, k8s.io/kubernetes/pkg/kubelet/server 1.34 (`/containerLogs`, its options and refusals).
"""

import select
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from werkzeug.exceptions import BadRequest, HTTPException, NotFound
from werkzeug.wrappers import Request, Response

from ..kubernetes.api_objects import ApiObjects
from ..kubernetes.job_logs import log_of
from ..protocol.json_objects import JsonObject

_POLL_SECONDS: Final = 1.0
_WAITING: Final = {"ImagePullBackOff": "trying and failing to pull image"}


class KubeletApi:
    """A WSGI application for all nodes of a cluster. Its server authenticates the callers."""

    def __init__(self, kubeconfig: Path, faults: Callable[[], Mapping[str, str]]) -> None:
        """Prepare to answer. `faults` returns the faults of jobs by a prefix of their names."""
        self._objects, self._faults = ApiObjects(kubeconfig), faults

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer one request. Errors are plain text, which the API server expects."""
        request = Request(environ)
        try:
            answer = self._answer(request)
        except HTTPException as error:
            answer = Response(error.description, error.code, content_type="text/plain")
        return answer(environ, start_response)

    def _answer(self, request: Request) -> Response:
        """Return the log of a started container."""
        match request.path.strip("/").split("/"):
            case ["containerLogs", namespace, name, container]:
                pod = self._pod(namespace, name)
            case _:
                # Without a colon, since kubectl would parse it as YAML and show nothing.
                raise NotFound("nothing runs in the containers of the sandbox, they have logs alone")
        status = _container_status(pod, container)
        if request.args.get("previous") == "true":
            raise BadRequest(f'previous terminated container "{container}" in pod "{name}" not found')
        started = next((state["startedAt"] for state in status["state"].values() if "startedAt" in state), None)
        if started is None:
            reason = next(iter(status["state"].values()), {}).get("reason", "ContainerCreating")
            words = _WAITING.get(reason, reason)
            raise BadRequest(f'container "{container}" in pod "{name}" is waiting to start: {words}')
        text = _part(log_of(pod, self._faults()), request.args, started)
        follows = request.args.get("follow") == "true"
        body = self._followed(text, pod, request.environ["werkzeug.socket"]) if follows else [text]
        return Response(body, content_type="text/plain")

    def _pod(self, namespace: str, name: str) -> JsonObject:
        pod = self._objects.find("v1", "Pod", name, namespace)
        if pod is None:
            raise NotFound(f'pod "{name}" not found')
        return pod

    def _followed(self, text: str, pod: JsonObject, connection: Any) -> Iterator[str]:
        """Yield a log until its pod or its connection ends."""
        yield text
        metadata = pod["metadata"]
        while not select.select([connection], [], [], _POLL_SECONDS)[0]:
            now = self._objects.find("v1", "Pod", metadata["name"], metadata["namespace"])
            if now is None or now["metadata"]["uid"] != metadata["uid"] or now["status"]["phase"] != "Running":
                return


def _container_status(pod: JsonObject, container: str) -> JsonObject:
    """Return the status of a pod's container; without one, that of a waiting container."""
    status = pod.get("status", {})
    listed = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
    return next((item for item in listed if item["name"] == container), {"state": {}})


def _part(text: str, options: Mapping[str, str], time: str) -> str:
    """Return the requested part of a log. All of its lines have the same time."""
    lines = text.splitlines(keepends=True)
    if "tailLines" in options:
        lines = lines[max(0, len(lines) - int(options["tailLines"])) :]
    if options.get("timestamps") == "true":
        lines = [f"{time} {line}" for line in lines]
    return "".join(lines)[: int(options["limitBytes"]) if "limitBytes" in options else None]
