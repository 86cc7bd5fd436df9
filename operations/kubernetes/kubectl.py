"""kubectl on the cluster of an environment, by whatever way leads to its Kubernetes API from here."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ...config.errors import CommandError, PodwrightError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.deployed import eks_cluster, is_store
from ..programs.helm import tool
from .connect import reachable, write_kubeconfig
from .signed_in import OPTIONS, SignIn

NO_SCHEDULER: Final = "this sandbox's Kubernetes is a store, without a scheduler"
_PAUSES: Final = (1.0, 5.0)
"""Seconds before the second and the third attempt."""
_TOO_BUSY: Final = (
    "context deadline exceeded",
    "net/http: TLS handshake timeout",
    "Client.Timeout exceeded",
    "etcdserver: request timed out",
    "the server is currently unable to handle the request",
    "the server was unable to return a response in the time allotted",
)
"""Errors of an API server that works, but not in time: a new one, or one that has just got many definitions."""
REAL_KUBERNETES: Final = "`podwright sandbox kubernetes install` builds a real one, which new clusters then have"


class Refused(PodwrightError):
    """kubectl failed; the text is what it said."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a kubeconfig that leads to one cluster."""

    kubeconfig: Path
    is_real: bool
    """Whether a Kubernetes answers. A store of the sandbox has no fields to check, tries nothing out, runs nothing."""
    sign_in: SignIn | None = field(default=None, kw_only=True)
    """Who signs in; None for the user of the kubeconfig."""

    def run(self, *arguments: str, specified: str = "", repeatable: bool = True) -> str:
        """Run kubectl and return its output.

        Args:
            arguments: Its arguments.
            specified: Its standard input.
            repeatable: Run kubectl again if the API server did not answer in time. Use False for a change that must
                not happen twice, since the server may have completed the first request.

        Raises:
            Refused: kubectl failed; the text is its error message.
        """
        for seconds in (*(_PAUSES if repeatable else ()), None):
            done = subprocess.run(
                [*self._command(), *arguments],
                env=self._variables(),
                input=specified,
                capture_output=True,
                text=True,
                check=False,
            )
            if not done.returncode:
                break
            if seconds is None or not any(message in done.stderr for message in _TOO_BUSY):
                raise Refused(done.stderr.strip())
            time.sleep(seconds)
        return done.stdout.strip()

    def items(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        """Objects of a kind."""
        return json.loads(self.run("get", kind, "--output=json", *arguments))["items"]

    def one(self, kind: str, name: str, *arguments: str) -> dict[str, Any]:
        """One object."""
        return json.loads(self.run("get", kind, name, "--output=json", *arguments))

    def apply(self, manifests: list[dict[str, Any]], *arguments: str) -> str:
        """Apply manifests in their order."""
        checked = () if self.is_real else ("--validate=false",)
        return self.run("apply", "--filename=-", *arguments, *checked, specified=_text(manifests))

    def existing(self, manifests: list[dict[str, Any]]) -> list[str]:
        """Which of these objects are there, as kubectl names them."""
        options = ("--filename=-", "--ignore-not-found", "--output=name")
        return self.run("get", *options, specified=_text(manifests)).split()

    def delete(self, manifests: list[dict[str, Any]]) -> str:
        """Delete objects, and do not wait for their pods, which take their grace period."""
        options = ("--filename=-", "--ignore-not-found", "--wait=false")
        return self.run("delete", *options, specified=_text(manifests))

    def stream(self, write: Callable[[str], None], *arguments: str) -> None:
        """Hand each line that kubectl prints to `write`, as it comes. Raises Refused with its complaint."""
        command, pipe = [*self._command(), *arguments], subprocess.PIPE
        with subprocess.Popen(command, env=self._variables(), stdout=pipe, stderr=pipe, text=True) as process:
            assert process.stdout
            assert process.stderr
            for line in process.stdout:
                write(line.rstrip("\n"))
            message = process.stderr.read().strip()
        if process.returncode:
            raise Refused(message)

    def _command(self) -> list[str]:
        way = OPTIONS if self.sign_in else ("--kubeconfig", str(self.kubeconfig))
        return [str(tool("kubectl")), *way]

    def _variables(self) -> dict[str, str]:
        return os.environ | (self.sign_in.variables(self.kubeconfig) if self.sign_in else {})


def _text(manifests: list[dict[str, Any]]) -> str:
    """Manifests as kubectl reads them: a list in JSON, which keeps them in order."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})


def way(project: Path, environment: Environment, account: Account) -> Kubectl | None:
    """Find kubectl a way to the cluster; None where only the VPC leads there, and on Slurm, which has no Kubernetes.

    The way is direct, or a tunnel that `podwright connect` holds open.
    """
    if environment.cluster.orchestrator != "eks":
        return None
    cluster = eks_cluster(account, environment)
    endpoint, is_real = urlsplit(cluster["endpoint"]), not is_store(cluster)
    sign_in = SignIn(account, cluster["name"])
    if reachable(endpoint.hostname or "", endpoint.port or 443):
        file = write_kubeconfig(project, environment, account, cluster, cluster["endpoint"])
        return Kubectl(file, is_real, sign_in=sign_in)
    written = project / ".podwright" / "kubeconfig" / environment.name
    if written.is_file():
        server = urlsplit(json.loads(written.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"])
        if server.hostname == "127.0.0.1" and reachable("127.0.0.1", server.port or 443):
            return Kubectl(written, is_real, sign_in=sign_in)
    return None


def required_way(project: Path, environment: Environment, account: Account) -> Kubectl:
    """As `way`. Raises CommandError where there is none."""
    kubectl = way(project, environment, account)
    if kubectl is None:
        raise CommandError(
            f"the Kubernetes API of {environment.name} cannot be reached from here",
            f"run `podwright connect {environment.name}` in another window, then this again",
        )
    return kubectl
