"""The HTTP proxy of KubeRay's process, which requests the status of jobs from the dashboards of Ray clusters.

If the head's pod runs Ray, on a real node, the proxy forwards a request to its dashboard. Otherwise Ray does not run,
and the proxy answers itself: a job has the state of the head's container that submits it, which is simulated.
"""

import json
import re
import threading
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple

from .api_objects import ApiObjects, connection
from .cluster_objects import ApiError, ClusterObjects
from .pod_requests import ask_pod, is_on_real_node

_ASKED: Final = re.compile(r"http://(?P<service>[^./]+)\.(?P<namespace>[^./]+)\.svc[^:/]*:(?P<port>\d+)(?P<path>/.*)")
_JOB: Final = re.compile(r"/api/jobs/(?P<job>[^/]+)")
_SUBMITTER: Final = "ray-job-submitter"
_SECONDS: Final = 1.5
"""Limit for a head's answer. KubeRay waits for 2 seconds."""


class Answer(NamedTuple):
    """An answer to KubeRay."""

    code: int
    body: bytes


class RayDashboard(ThreadingHTTPServer):
    """The dashboards of all Ray clusters behind one API server."""

    daemon_threads = True

    def __init__(self, port: int, kubeconfig: Path) -> None:
        """Listen on loopback, and reach pods as the user of `kubeconfig`."""
        super().__init__(("127.0.0.1", port), _Answers)
        self.objects: ClusterObjects = ApiObjects(kubeconfig)
        self._kubeconfig = kubeconfig
        threading.Thread(target=self.serve_forever, daemon=True, name="Ray's dashboard").start()

    def stop(self) -> None:
        """Listen no longer."""
        self.shutdown()
        self.server_close()

    def answer(self, method: str, url: str, body: bytes) -> Answer:
        """Return the answer of the dashboard that a URL names."""
        asked = _ASKED.fullmatch(url)
        service = asked and self.objects.find("v1", "Service", asked["service"], asked["namespace"])
        if not asked or not service:
            return Answer(HTTPStatus.NOT_FOUND, b"")
        labels = ",".join(f"{key}={value}" for key, value in service["spec"]["selector"].items())
        pods = self.objects.all("v1", "Pod", asked["namespace"], labels)
        for pod in filter(is_on_real_node, pods):
            try:
                return self.ask(pod, int(asked["port"]), method, asked["path"], body)
            except (OSError, HTTPException):
                # The node simulates the head, or Ray has not started yet or is too busy.
                continue
        job = _JOB.fullmatch(asked["path"])
        if method != "GET" or not job:
            return Answer(HTTPStatus.NOT_FOUND, b"")
        return Answer(HTTPStatus.OK, json.dumps({"submission_id": job["job"], "status": _status(pods)}).encode())

    def ask(self, pod: dict[str, Any], port: int, method: str, path: str, body: bytes) -> Answer:
        """Return the answer of a pod. Raises OSError or HTTPException if it does not answer."""
        api = connection(self._kubeconfig, self._kubeconfig.stat().st_mtime_ns)
        return Answer(*ask_pod(api, pod, port, method, path, body, _SECONDS))


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer a read."""
        self._answer()

    def do_POST(self) -> None:
        """Answer a request to stop a job."""
        self._answer()

    def _answer(self) -> None:
        """Send the dashboard's answer to a request."""
        assert isinstance(self.server, RayDashboard)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            answer = self.server.answer(self.command, self.path, body)
        except ApiError as error:
            self.send_error(HTTPStatus.BAD_GATEWAY, str(error))
            return
        # KubeRay repeats the request if the answer came too late.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(answer.code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, since KubeRay sends a request every three seconds."""


def _status(pods: list[dict[str, Any]]) -> str:
    """Return the status of the job whose submitter is in one of these pods."""
    containers = [item for pod in pods for item in pod["status"].get("containerStatuses", ())]
    ended = (item["state"].get("terminated") for item in containers if item["name"] == _SUBMITTER)
    codes = [item["exitCode"] for item in ended if item]
    if not codes:
        return "RUNNING"
    return "FAILED" if any(codes) else "SUCCEEDED"
