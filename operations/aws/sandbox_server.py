"""Starting and stopping the sandbox's server process. Cheap to import: nothing of AWS is loaded here."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ...config.catalog.sandbox_account import IDLE_END, SANDBOX_ACCOUNT, access_key
from ...config.errors import CommandError
from ..programs.process import command_line

STATE_DIRECTORY = Path(".podwright/sandbox")
DEFAULT_PORT = 4599
IDLE_MINUTES = 240.0
REAL_NODES = 2
"""Nodes of each EKS cluster that are real without a setting. A job can have pods on real and on simulated nodes."""
_REAL_NODES_VARIABLE = "PODWRIGHT_SANDBOX_REAL_NODES"
_RECORD = "server.json"
_STOP_SECONDS = 30.0
_BACKLOG = 128
_HINT = "\n    → "
"""Separates the reason from the hint in the error output of a server."""
MALLOC_SETTINGS = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "131072"}
"""Variables for glibc, which by default keeps freed memory for each thread of the server."""


class SandboxError(CommandError):
    """The sandbox cannot be started or stopped; it says why and what to do."""


@dataclass(frozen=True)
class Running:
    """A server process: where AWS and the clusters' Kubernetes APIs listen, and which process it is."""

    port: int
    kubernetes_port: int
    pid: int
    log: str
    kubernetes: str = ""
    """What new clusters have: `real`, a control plane of upstream's programs, or `store`."""
    slurm: str | None = None
    """Why Slurm clusters have no real Slurm; empty where they have, None where nothing is on record."""
    real_nodes: int = 0
    """Nodes of each EKS cluster that could be real when the server started; the others are simulated."""
    why_simulated: str = ""
    """Why no more nodes could be real; empty where there are as many as desired."""
    more_real: str = ""
    """The user's next step for more real nodes; empty where there are as many as desired."""
    missing_parts: Sequence[str] = ()
    """Parts of the control plane that were not installed when the server started."""

    @property
    def endpoint(self) -> str:
        """The URL for AWS_ENDPOINT_URL."""
        return f"http://localhost:{self.port}"

    def environment(self, region: str, account: str = SANDBOX_ACCOUNT) -> dict[str, str]:
        """The variables that point boto3, the AWS CLI and the CDK at an account of the sandbox, and at nothing else."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": access_key(account),
            "AWS_SECRET_ACCESS_KEY": "sandbox",
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            # Without it an SDK that finds no credentials asks the metadata service, and waits for it.
            "AWS_EC2_METADATA_DISABLED": "true",
            # A profile of the user could name another endpoint or role.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }


def status(root: Path) -> Running | None:
    """The running server of a project, or None. A record whose process is gone, or is another's, counts as none."""
    running = _record(root)
    return running if running and _is_ours(running) else None


def ended_idle(root: Path) -> str:
    """When and why the server of a project ended by itself; empty where it runs, or somebody stopped it."""
    file = root / STATE_DIRECTORY / IDLE_END
    return file.read_text() if file.exists() and status(root) is None else ""


def start(
    root: Path,
    port: int | None = None,
    time_scale: float = 1.0,
    kubernetes: str | None = None,
    idle_minutes: float = IDLE_MINUTES,
    real_nodes: int | None = None,
) -> Running:
    """Start the server for a project and wait until it answers; a running one is returned as it is.

    What an earlier server held is there again. `port` defaults to that server's, else to DEFAULT_PORT, else to a free
    one, which 0 asks for. `time_scale` stretches the shortened waiting times of the sandbox (node boot and the like).
    `kubernetes` says what new clusters have, `real` or `store`; without it $PODWRIGHT_SANDBOX_KUBERNETES does, and else
    they are real where the control plane is installed. `real_nodes` is the number of real nodes of each cluster;
    without it $PODWRIGHT_SANDBOX_REAL_NODES says it, and else it is REAL_NODES. After `idle_minutes` without a request
    it ends by itself, and keeps what it holds; 0 means never. Raises SandboxError if it does not come up.
    """
    # Most commands find a server, or need none.
    from filelock import FileLock

    directory = (root / STATE_DIRECTORY).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    # Two commands that find no server at the same time start one between them.
    with FileLock(directory / "start.lock"):
        return status(root) or _started(root, directory, port, time_scale, kubernetes, idle_minutes, real_nodes)


def run_server(
    arguments: Sequence[str], listeners: tuple[socket.socket, socket.socket], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run `python -m podwright.sandbox` until its server answers or fails, and return what it printed.

    Args:
        arguments: Its arguments without the two sockets.
        listeners: The sockets that the server inherits, for AWS and for the clusters' Kubernetes APIs.
        folder: Its working directory.
    """
    sockets = [listener.fileno() for listener in listeners]
    return subprocess.run(
        [sys.executable, "-m", "podwright.sandbox", *arguments, *map(str, sockets)],
        capture_output=True,
        text=True,
        cwd=folder,
        pass_fds=sockets,
        env=os.environ | MALLOC_SETTINGS,
    )


def _started(
    root: Path,
    directory: Path,
    port: int | None,
    time_scale: float,
    kubernetes: str | None,
    idle_minutes: float,
    real_nodes: int | None,
) -> Running:
    """Start a server, wait until it answers, and record it in the state directory."""
    (directory / IDLE_END).unlink(missing_ok=True)
    former = _record(root) or Running(DEFAULT_PORT, DEFAULT_PORT + 1, 0, "")
    # The server inherits both sockets, so no other program can take its ports while it starts.
    with (
        _listen(*([former.port, 0] if port is None else [port])) as aws,
        # EKS endpoints carry the second port, and kubeconfig files keep them.
        _listen(former.kubernetes_port if _port(aws) == former.port else _port(aws) + 1, 0) as clusters,
    ):
        running = Running(_port(aws), _port(clusters), 0, str(directory / "server.log"))
        kind = kubernetes or os.environ.get("PODWRIGHT_SANDBOX_KUBERNETES") or "installed"
        result = run_server(
            [
                *("--time-scale", str(time_scale), "--kubernetes", kind, "--idle", str(idle_minutes)),
                *("--real-nodes", str(_real_nodes() if real_nodes is None else real_nodes)),
                *(str(running.port), str(directory)),
            ],
            (aws, clusters),
            root,
        )
    if result.returncode:
        reason, _, hint = result.stderr.strip().partition(_HINT)
        raise SandboxError(f"the sandbox did not start on port {running.port}:\n{reason}", hint)
    # Such as a cluster whose control plane did not start.
    sys.stderr.write(result.stderr)
    running = replace(running, **json.loads(result.stdout))
    # The next command would wait for a recorded server that failed to start.
    (directory / _RECORD).write_text(json.dumps(asdict(running)))
    return running


def _real_nodes() -> int:
    """Return the number of real nodes that the environment variable says. Raises SandboxError if it is none."""
    text = os.environ.get(_REAL_NODES_VARIABLE) or str(REAL_NODES)
    if not text.isdecimal():
        raise SandboxError(f"{_REAL_NODES_VARIABLE} is {text!r}; allowed: a whole number from 0", "change or unset it")
    return int(text)


def stop(root: Path) -> bool:
    """Stop the server of a project; False if none was running. What it holds is kept.

    Only a process that is verified to be ours is ended.
    """
    running = status(root)
    if running is None:
        return False
    os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    # Until the port is free as well, so that a start that follows gets the same one.
    while _is_ours(running) or _listens(running.port):
        if time.monotonic() > deadline:
            raise SandboxError(
                f"the sandbox (process {running.pid}) did not stop in {_STOP_SECONDS:.0f} seconds",
                f"its log is {running.log}",
            )
        time.sleep(0.05)
    return True


def reset(root: Path) -> bool:
    """Forget everything that the sandbox of a project holds; True if its server ran. It is not started again."""
    ran = stop(root)
    directory = root / STATE_DIRECTORY
    if directory.exists():
        shutil.rmtree(directory)
    return ran


def _record(root: Path) -> Running | None:
    try:
        return Running(**json.loads((root / STATE_DIRECTORY / _RECORD).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        # There is none, or it is damaged, or of another version.
        return None


def _is_ours(running: Running) -> bool:
    """Whether the recorded process is a living sandbox server."""
    words = command_line(running.pid)
    return b"podwright.sandbox" in words and str(running.port).encode() in words


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _listen(*ports: int) -> socket.socket:
    """A socket that listens on the loopback interface: on the first of the ports that is free (0: any)."""
    for port in ports:
        listener = socket.socket()
        # A port of a server that has just ended is still in TIME_WAIT.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
        else:
            return listener
    raise SandboxError(f"port {ports[0]} is in use by another program", "name another with --port, or leave it out")


def _port(listener: socket.socket) -> int:
    return listener.getsockname()[1]
