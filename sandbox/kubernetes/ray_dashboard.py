"""A stand-in for the dashboards of Ray clusters, whose pods run nothing: it says how jobs of Ray are doing.

KubeRay asks a cluster's dashboard by the name of its Service in the cluster. Its process takes this server for its HTTP
proxy, so such requests come here, and no name of a cluster is looked up elsewhere. A job is doing what the container in
the head's pod does that would submit it and wait.
"""

import json
import re
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from .api_objects import ApiObjects
from .cluster_objects import ApiError, ClusterObjects

_ASKED: Final = re.compile(r"http://(?P<service>[^./]+)\.(?P<namespace>[^./]+)\.svc[^/]*/api/jobs/(?P<job>[^/]+)")
_SUBMITTER: Final = "ray-job-submitter"


class RayDashboard(ThreadingHTTPServer):
    """The dashboards of all Ray clusters behind one API server."""

    daemon_threads = True

    def __init__(self, port: int, kubeconfig: Path) -> None:
        """Listen on loopback, and read pods as the user of `kubeconfig`."""
        super().__init__(("127.0.0.1", port), _Answers)
        self.objects: ClusterObjects = ApiObjects(kubeconfig)
        threading.Thread(target=self.serve_forever, daemon=True, name="Ray's dashboard").start()

    def stop(self) -> None:
        """Listen no longer."""
        self.shutdown()
        self.server_close()

    def job(self, url: str) -> dict[str, Any] | None:
        """What Ray's API says of a job by its URL; None for what is none."""
        asked = _ASKED.fullmatch(url)
        service = asked and self.objects.find("v1", "Service", asked["service"], asked["namespace"])
        if not asked or not service:
            return None
        labels = ",".join(f"{key}={value}" for key, value in service["spec"]["selector"].items())
        pods = self.objects.all("v1", "Pod", asked["namespace"], labels)
        return {"submission_id": asked["job"], "status": _status(pods)}


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer about one job."""
        assert isinstance(self.server, RayDashboard)
        try:
            answer = self.server.job(self.path)
        except ApiError as error:
            self.send_error(HTTPStatus.BAD_GATEWAY, str(error))
            return
        if answer is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        body = json.dumps(answer).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: KubeRay asks every three seconds."""


def _status(pods: list[dict[str, Any]]) -> str:
    """How the job is doing whose submitter is in one of these pods."""
    containers = [item for pod in pods for item in pod["status"].get("containerStatuses", ())]
    ended = (item["state"].get("terminated") for item in containers if item["name"] == _SUBMITTER)
    codes = [item["exitCode"] for item in ended if item]
    if not codes:
        return "RUNNING"
    return "FAILED" if any(codes) else "SUCCEEDED"
