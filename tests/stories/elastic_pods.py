"""Pods of an elastic training as processes: AWS's real agent in each, and what its operator asks of them.

The operator is closed. What it can ask is in hyperpod-elastic-agent 1.1.3: `/start` with rank and size, `/stop` with a
time for a checkpoint, `/status`.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from needs import needs
from podwright.operations.kubernetes.job_manifests import job_manifests
from podwright.sandbox.control_plane.cache import State
from podwright.sandbox.control_plane.pytorch import INSTALL, PyTorch
from rule_pages import loaded
from waiting import CEILING_SECONDS, until

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/examples/elastic"
PYTORCH = PyTorch.of_user()
NEEDS_PYTORCH = needs(PYTORCH.state is State.INSTALLED, f"PyTorch: `{INSTALL}`")
PROCESSES = 2
"""Of a pod."""
_LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


def rendered_command(piece: str, name: str) -> list[str]:
    """The command of the pods of a job, as podwright renders it for a piece of an environment file."""
    (job,) = job_manifests(loaded(piece), [name])[name]
    (container,) = job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"]
    return container["command"] + container["args"]


class Pod:
    """A pod: hyperpodrun with the rendered arguments, and what only a machine without GPUs and EKS has another of."""

    def __init__(self, folder: Path, number: int, command: Sequence[str], variables: dict[str, str]) -> None:
        self.port = free_port()
        script = command.index("train.py")
        own = {
            "nproc-per-node": PROCESSES,
            "log-dir": folder / f"logs-{number}",
            "rdzv-conf": f"resource_config_dir={folder / f'config-{number}'}",
            "server-host": _LOOPBACK,
            "server-port": self.port,
            "monitor-interval": 0.1,
        }
        # A later option wins over the same one before.
        changed = [f"--{name}={value}" for name, value in own.items()]
        self.log = folder / f"pod-{number}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(PYTORCH.programs / command[0]), *command[1:script], *changed, *command[script:]],
                cwd=EXAMPLE,
                env=os.environ | variables | {"NNODES": "1"},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = Request(
            f"http://{_LOOPBACK}:{self.port}/{path}", data=data, headers={"Content-Type": "application/json"}
        )
        with urlopen(request, timeout=CEILING_SECONDS) as answer:
            text = answer.read()
        return json.loads(text) if text else {}

    def status(self) -> str:
        """What the agent says of itself; empty while it does not answer."""
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self._ask("status")["status"]
        except (URLError, ConnectionError):
            return ""

    def start(self, rank: int, pods: int, port: int) -> None:
        """Start its processes."""
        body = {"rank": rank, "nnodes": pods, "faultCount": 0, "master_addr": _LOOPBACK, "master_port": port}
        self._ask("start", body)

    def stop(self, seconds: int) -> None:
        """Let its processes save a checkpoint, and end them."""
        self._ask("stop", {"is_graceful": True, "timeout": seconds})

    def abandon(self) -> None:
        """End its processes, after a fault."""
        self._ask("stop", {})

    def lose(self) -> None:
        """Lose the pod with its node: the agent and its processes are gone at once."""
        agent = self.process.pid
        children = [Path(f"/proc/{agent}/task/{task.name}/children") for task in Path(f"/proc/{agent}/task").iterdir()]
        sessions = [int(child) for file in children for child in file.read_text().split()]
        self.process.kill()
        for session in sessions:
            # Each process of the training leads a session of its own; its loaders end when they miss it.
            os.killpg(session, signal.SIGKILL)
        self.process.wait(CEILING_SECONDS)

    def terminate(self) -> None:
        """What Kubernetes does first when it removes a pod."""
        self.process.send_signal(signal.SIGTERM)


class Operator:
    """What AWS's operator does with the pods of a job, as far as the agent shows."""

    def __init__(self, folder: Path, command: Sequence[str], variables: dict[str, str]) -> None:
        self.folder, self.command, self.variables = folder, command, variables
        self.pods: list[Pod] = []
        self.removed: list[Pod] = []

    def run_on(self, number: int) -> None:
        """Start the job on so many pods, of which those that are missing are made."""
        while len(self.pods) < number:
            made = len(self.pods) + len(self.removed)
            self.pods.append(Pod(self.folder, made, self.command, self.variables))
        port = free_port()
        until(lambda: all(pod.status() == "ready" for pod in self.pods), "all agents are ready")
        for rank, pod in enumerate(self.pods):
            pod.start(rank, len(self.pods), port)

    def stop(self, keep: int) -> None:
        """Stop the job gracefully, while Kubernetes removes all pods but so many."""
        self.pods, going = self.pods[:keep], self.pods[keep:]
        self.removed += going
        for pod in going:
            pod.terminate()
        until(lambda: all(pod.process.poll() is not None for pod in going), "removed pods have ended")
        # What the others say now decides whether their job is taken for complete.
        assert [pod.status() for pod in self.pods] == ["running"] * keep
        for pod in self.pods:
            pod.stop(seconds=60)
        until(lambda: all(pod.status() == "ready" for pod in self.pods), "processes have ended")

    def lose(self) -> None:
        """Lose the last pod, wait until the others notice, and end what is left of the job."""
        lost = self.pods.pop()
        lost.lose()
        self.removed.append(lost)
        until(lambda: all(pod.status() == "faulted" for pod in self.pods), "the loss is noticed")
        for pod in self.pods:
            pod.abandon()
        until(lambda: all(pod.status() == "ready" for pod in self.pods), "processes have ended")

    def finish(self) -> None:
        """Wait for the end of the training."""
        until(lambda: all(pod.status() == "completed" for pod in self.pods), "the training is complete")


@contextlib.contextmanager
def operator(folder: Path, command: Sequence[str], variables: dict[str, str]) -> Iterator[Operator]:
    """An operator whose pods are gone afterwards, with all their processes."""
    actual = Operator(folder, command, variables)
    try:
        yield actual
    finally:
        for pod in (*actual.pods, *actual.removed):
            # The agent ends its processes on SIGTERM; those have sessions of their own.
            pod.process.terminate()
            pod.process.wait(CEILING_SECONDS)
