# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""Sessions of Systems Manager that run one command on a node of a cluster with a real Slurm.

AWS sends their output over a WebSocket to its plugin. Here, the body of an HTTP response contains it. The response ends
with the command, and the command ends if its reader disconnects.
"""

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from moto.ssm.responses import SimpleSystemManagerResponse
from werkzeug.wrappers import Request, Response

from ..hyperpod.cluster import Cluster
from ..protocol.json_objects import JsonObject
from ..protocol.service import refuse
from .clusters import SlurmClusters
from .machine import MachineError

PATH: Final = "/podwright/sessions/"
"""Prefix of the path of a session's output, before the account and the session."""
DOCUMENT: Final = "AWS-StartNonInteractiveCommand"
_PATIENCE_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Session:
    """A session: its allowed reader, its command and machine, and its process after the first read."""

    token: str
    cluster: Cluster
    command: str
    process: subprocess.Popen[bytes] | None = None


class Sessions:
    """The sessions of one account."""

    def __init__(
        self, account: str, endpoint: str, slurm: SlurmClusters, clusters: Callable[[str], Iterable[Cluster]]
    ) -> None:
        """Start without sessions. `clusters` returns those of a region, `endpoint` is the sandbox's URL."""
        self._account, self._endpoint, self._slurm, self._clusters = account, endpoint, slurm, clusters
        self._sessions: dict[str, _Session] = {}

    def start(self, region: str, target: str, document: str, parameters: dict[str, list[str]]) -> JsonObject:
        """Return the response of StartSession. Raises the API's error for a node without such sessions."""
        cluster = next((item for item in self._clusters(region) if _has(item, target)), None)
        if cluster is None or document != DOCUMENT or not parameters.get("command"):
            raise refuse("TargetNotConnected", f"{target} is not connected ({document or 'a shell'} of the sandbox)")
        if reason := self._slurm.why_not(cluster):
            raise refuse("TargetNotConnected", f"the node is simulated and runs no Slurm: {reason} (sandbox)")
        session, token = f"sandbox-{secrets.token_hex(8)}", secrets.token_urlsafe()
        self._sessions[session] = _Session(token, cluster, parameters["command"][0])
        url = f"{self._endpoint}{PATH}{self._account}/{session}"
        return {"SessionId": session, "TokenValue": token, "StreamUrl": url}

    def terminate(self, session: str) -> JsonObject:
        """End the command of a session, and return the response of TerminateSession. An unknown session has ended."""
        known = self._sessions.pop(session, None)
        if known and known.process:
            _end(known.process)
        return {"SessionId": session}

    def output(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Run the command of a session, and yield its output."""
        name = Request(environ).path.rpartition("/")[2]
        session = self._sessions.get(name)
        if session is None or session.process or environ.get("HTTP_AUTHORIZATION") != f"Bearer {session.token}":
            return Response("there is no such session\n", 403)(environ, start_response)
        start_response("200 OK", [("Content-Type", "text/plain; charset=utf-8")])
        return self._lines(name, session)

    def _lines(self, name: str, session: _Session) -> Iterator[bytes]:
        """Yield the output of a session from its start."""
        # The headers are sent at once, so that the reader does not time out while its cluster starts.
        yield b"Starting session\n"
        try:
            machine = self._slurm.enter(session.cluster)
        except MachineError as error:
            yield f"{error}\n".encode()
            return
        process = subprocess.Popen(
            machine.command("bash", "-c", session.command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdout is not None
        session.process = process
        try:
            yield from process.stdout
        finally:
            _end(process)
            process.stdout.close()
            self._sessions.pop(name, None)


class SessionsResponse(SimpleSystemManagerResponse):
    """The API of Systems Manager, with podwright's sessions and moto's other operations."""

    service: ClassVar[Sessions]

    def start_session(self) -> str:
        parameters = self._get_param("Parameters", {})
        document = self._get_param("DocumentName", "")
        return json.dumps(self.service.start(self.region, self._get_param("Target"), document, parameters))

    def terminate_session(self) -> str:
        return json.dumps(self.service.terminate(self._get_param("SessionId")))


def _has(cluster: Cluster, target: str) -> bool:
    """Return True if a cluster has the node with this name in Systems Manager."""
    identifier = cluster.arn.rpartition("/")[2]
    names = (f"sagemaker-cluster:{identifier}_{node.group}-{node.instance_id}" for node in cluster.nodes)
    return target in names


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the processes of a session, first by SIGTERM in its machine."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_SECONDS)
            return
