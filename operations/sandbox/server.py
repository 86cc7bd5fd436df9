"""Starting and stopping the sandbox's server process. Cheap to import: nothing of AWS is loaded here."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

STATE_DIRECTORY = Path(".podwright/sandbox")
DEFAULT_PORT = 4599
_RECORD = "server.json"
_STOP_SECONDS = 30.0


class SandboxError(Exception):
    """The sandbox cannot be started or stopped; the message says why and what to do."""


@dataclass(frozen=True)
class Running:
    """A server process: where AWS and the clusters' Kubernetes APIs listen, and which process it is."""

    port: int
    kubernetes_port: int
    pid: int
    log: str

    @property
    def endpoint(self) -> str:
        """The URL for AWS_ENDPOINT_URL."""
        return f"http://localhost:{self.port}"

    def environment(self, region: str) -> dict[str, str]:
        """The variables that point boto3, the AWS CLI and the CDK at the sandbox, and at nothing else."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "sandbox",
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }


def status(root: Path) -> Running | None:
    """The running server of a project, or None. A record whose process is gone, or is another's, counts as none."""
    running = _record(root)
    return running if running and _is_ours(running) else None


def start(root: Path, port: int | None = None, time_scale: float = 1.0) -> Running:
    """Start the server for a project and wait until it answers; a running one is returned as it is.

    What an earlier server held is there again. `port` defaults to that server's, else to DEFAULT_PORT, else to a free
    one. `time_scale` stretches the shortened waiting times of the sandbox (node boot and the like). Raises SandboxError
    if it does not come up.
    """
    running = status(root)
    if running:
        return running
    directory = (root / STATE_DIRECTORY).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    former = _record(root) or Running(DEFAULT_PORT, DEFAULT_PORT + 1, 0, "")
    chosen = port or free_port(former.port)
    # EKS endpoints carry this port, and kubeconfig files keep them.
    kubernetes_port = free_port(former.kubernetes_port if chosen == former.port else chosen + 1)
    command = [sys.executable, "-m", "podwright.operations.sandbox", str(chosen), str(kubernetes_port), str(directory)]
    result = subprocess.run([*command, "--time-scale", str(time_scale)], capture_output=True, text=True, cwd=root)
    if result.returncode:
        raise SandboxError(f"The sandbox did not come up on port {chosen}:\n{result.stderr.strip()}")
    running = Running(chosen, kubernetes_port, int(result.stdout), str(directory / "server.log"))
    (directory / _RECORD).write_text(json.dumps(asdict(running)))
    return running


def stop(root: Path) -> bool:
    """Stop the server of a project; False if none was running. What it holds is kept.

    Only a process that is verified to be ours is ended.
    """
    running = status(root)
    if running is None:
        return False
    os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while _is_ours(running) or _listens(running.port):
        if time.monotonic() > deadline:
            raise SandboxError(
                f"The sandbox (process {running.pid}) did not stop in {_STOP_SECONDS:.0f} seconds; see {running.log}"
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
    command = Path(f"/proc/{running.pid}/cmdline")
    if command.parent.parent.exists():
        words = command.read_bytes().split(b"\0") if command.exists() else []
    else:  # no procfs, as on macOS
        listing = subprocess.run(["ps", "-o", "command=", "-p", str(running.pid)], capture_output=True, check=False)
        words = listing.stdout.split()
    return b"podwright.operations.sandbox" in words and str(running.port).encode() in words


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port(preferred: int = 0) -> int:
    """A port of the loopback interface that is free now: the preferred one if possible."""
    for candidate in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise SandboxError("No port of the loopback interface is free.")
