"""Samples that are written to Prometheus workspaces, and queries of them: a real Prometheus answers for each workspace.

It is started when somebody first writes or asks, records what the workspace's rules say, and ends with the sandbox.
Without Prometheus on this machine both are refused.
"""

import json
import re
import threading
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit

from werkzeug.wrappers import Request, Response

from ...operations.programs.prometheus import Prometheus, installed, serving
from . import feed as metric_feed
from .prometheus_workspaces import Workspace

PATH: Final = re.compile(r"/workspaces/(?P<workspace>ws-[^/]+)(?P<call>/api/v1/.+)")
"""The paths of its calls."""
_SCRAPE: Final = "3s"
_HEADERS: Final = ("Content-Type", "Content-Encoding", "X-Prometheus-Remote-Write-Version")
# Without the proxy that the environment may name: the server runs on this machine.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass
class _Server:
    prometheus: Prometheus
    folder: Path
    rules: dict[str, bytes]


class WorkspaceQueries:
    """A WSGI application for the paths that PATH matches. `find` has the workspaces, `directory` the samples.

    Each workspace's Prometheus also scrapes what the clusters that send to it show (`metric_feed`) at `endpoint`.
    """

    def __init__(self, find: Callable[[str], Workspace | None], endpoint: str, directory: Path) -> None:
        self.find, self.endpoint, self.directory = find, endpoint, directory
        self._servers: dict[str, _Server] = {}
        self._lock, self._processes = threading.Lock(), ExitStack()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve one request."""
        request = Request(environ)
        match = PATH.fullmatch(request.path)
        workspace = match and self.find(match["workspace"])
        if not match or not workspace:
            return _refusal(404, "there is no such workspace (sandbox)")(environ, start_response)
        if not installed():
            words = "there is no Prometheus on this machine to answer with (sandbox)"
            return _refusal(400, words)(environ, start_response)
        # AWS's path for writing is not Prometheus's own.
        call = match["call"].replace("/remote_write", "/write")
        query = f"?{request.query_string.decode()}" if request.query_string else ""
        forwarded = urllib.request.Request(
            f"{self._server(workspace).url}{call}{query}",
            request.get_data() or None,
            {name: request.headers[name] for name in _HEADERS if name in request.headers},
            method=request.method,
        )
        try:
            with _OPENER.open(forwarded) as answer:
                status, body, kind = answer.status, answer.read(), answer.headers.get("Content-Type")
        except HTTPError as error:
            with error:
                status, body, kind = error.code, error.read(), error.headers.get("Content-Type")
        return Response(body, status, content_type=kind)(environ, start_response)

    def close(self) -> None:
        """End all servers; what they hold is on the disk."""
        self._processes.close()

    def _server(self, workspace: Workspace) -> Prometheus:
        """The workspace's server, with its rules as they are now."""
        rules = {name: item["data"] for name, item in workspace.rules.items()}
        with self._lock:
            server = self._servers.get(workspace.identifier)
            if server is None:
                folder = self.directory / workspace.identifier
                folder.mkdir(parents=True, exist_ok=True)
                self._configure(workspace, folder, rules)
                flags = ("--web.enable-remote-write-receiver", "--web.enable-lifecycle")
                prometheus = self._processes.enter_context(serving(folder, *flags))
                server = self._servers[workspace.identifier] = _Server(prometheus, folder, rules)
            elif server.rules != rules:
                self._configure(workspace, server.folder, rules)
                _OPENER.open(urllib.request.Request(f"{server.prometheus.url}/-/reload", method="POST")).close()
                server.rules = rules
        return server.prometheus

    def _configure(self, workspace: Workspace, folder: Path, rules: dict[str, bytes]) -> None:
        """Write the configuration of the Prometheus that answers for a workspace."""
        files = list[str]()
        for number, name in enumerate(sorted(rules)):
            file = folder / f"rules-{number}.yml"
            file.write_bytes(rules[name])
            files.append(str(file))
        feed = {
            "job_name": "sandbox",
            "scrape_interval": _SCRAPE,
            "scrape_timeout": _SCRAPE,
            "honor_labels": True,
            "metrics_path": f"{metric_feed.PATH}{workspace.identifier}",
            "static_configs": [{"targets": [urlsplit(self.endpoint).netloc]}],
        }
        # Every JSON text is a YAML text.
        text = json.dumps({"rule_files": files, "scrape_configs": [feed]})
        (folder / "prometheus.yml").write_text(text)


def _refusal(status: int, message: str) -> Response:
    text = json.dumps({"status": "error", "errorType": "bad_data", "error": message, "message": message})
    return Response(text, status, content_type="application/json")
