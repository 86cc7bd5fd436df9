"""The server process of the sandbox: `python -m podwright.sandbox PORT DIRECTORY SOCKET SOCKET`.

Use `podwright sandbox start`. The process inherits its two listening sockets by their file descriptors, loads, prints
its process id and leaves the terminal; so a caller that waits for the command knows that the sandbox and its clusters
answer. Without a request for the time of `--idle` it ends as by SIGTERM, and writes down when and why. It ends without
saving its state if DIRECTORY is deleted or moved.
"""

import argparse
import gc
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

from werkzeug.serving import make_server

from ..config.catalog.sandbox_account import IDLE_END
from ..config.errors import CommandError
from ..planning.helm.operators import BASE_PARTS, NODE_PARTS
from .control_plane.cache import Cache
from .control_plane.control_plane import missing_parts
from .control_plane.pins import pins
from .control_plane.toolchain import MEANWHILE
from .hyperpod.cluster import Timing
from .kubernetes.secure_server import secure_server
from .nodes.support import offer
from .protocol.clock import now
from .server.application import Sandbox
from .server.persistence import DamagedSnapshot
from .slurm.clusters import why_none_is_real

_HOST = "127.0.0.1"
_LISTEN_SECONDS = 0.5
_MOST_BYTES = 65_536


def main() -> None:
    """Serve on the loopback interface until SIGTERM."""
    parser = argparse.ArgumentParser(prog="podwright.sandbox")
    parser.add_argument("port", type=int)
    parser.add_argument("directory", type=Path)
    parser.add_argument("sockets", type=int, nargs=2, help="for AWS over HTTP, for the clusters' Kubernetes over HTTPS")
    parser.add_argument("--time-scale", type=float, default=1.0)
    parser.add_argument(
        "--idle", type=float, default=0, help="minutes without a request after which it ends (0: never)"
    )
    parser.add_argument("--real-nodes", type=int, default=0, help="real nodes of each EKS cluster at most")
    parser.add_argument("--kubernetes", choices=["real", "store", "installed"], default="store")
    options = parser.parse_args()
    aws_socket, kubernetes_socket = (socket.socket(fileno=number) for number in options.sockets)
    kubernetes_port = kubernetes_socket.getsockname()[1]
    try:
        missing = _missing_parts(options.kubernetes)
    except CommandError as error:
        sys.exit(f"{error}\n    → {error.hint}")
    timing = Timing(scale=options.time_scale)
    real_slurm = options.kubernetes != "store"
    nodes = offer(options.real_nodes, pins(), Cache.of_user())
    sandbox = Sandbox(
        options.port, kubernetes_port, options.directory, timing, options.kubernetes, real_slurm, options.real_nodes
    )
    aws, kubernetes = sandbox.mount()
    server = make_server(_HOST, options.port, aws, threaded=True, fd=aws_socket.fileno())
    clusters = secure_server(kubernetes, sandbox.server, port=kubernetes_port, socket=kubernetes_socket.fileno())
    try:
        sandbox.snapshots.load()
    except DamagedSnapshot as error:
        sys.exit(
            f"{error}\n    → `podwright sandbox reset` starts afresh: what the sandbox held is lost, clusters included"
        )
    store = options.kubernetes == "store" or not missing.isdisjoint(BASE_PARTS)
    kinds: dict[str, Any] = {"kubernetes": "store" if store else "real", "slurm": why_none_is_real(real_slurm)}
    kinds |= {"real_nodes": nodes.count, "why_simulated": nodes.why_not_more, "more_real": nodes.action}
    clusters_are = kinds | {"missing_parts": [part.name for part in pins().parts if part.name in missing]}
    # While it is open, no other folder gets its number.
    folder = os.open(options.directory, os.O_RDONLY)
    answering = _leave_terminal(options.directory / "server.log", clusters_are)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    if sandbox.snapshots.foreign:
        logging.warning("%s was written by another version; the sandbox starts empty", sandbox.snapshots.file)

    def stop(signum: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    # What is loaded by now stays until the end; looking through it again and again is a tenth of the server's work.
    gc.freeze()
    threading.Thread(target=clusters.serve_forever, daemon=True, name="kubernetes").start()
    threading.Thread(target=server.serve_forever, daemon=True, name="aws").start()
    failed = sandbox.start_clusters()
    os.write(answering, "".join(f"podwright: {reason}\n" for reason in failed).encode() or b"\n")
    os.close(answering)
    sandbox.resume()
    sandbox.keep_saving()
    sandbox.keep_time()
    sandbox.keep_nodes()
    if real_slurm:
        sandbox.keep_slurm()
    try:
        # Not signal.pause(): a signal that reaches another thread does not wake this one, which alone handles it.
        while not options.idle or sandbox.idle_seconds < 60 * options.idle:
            time.sleep(_LISTEN_SECONDS)
            if not _is_folder(folder, options.directory):
                logging.warning("the sandbox ends, since its folder was deleted or moved: %s", options.directory)
                return
        words = f"on {now():%Y-%m-%d at %H:%M} UTC, after {options.idle:g} minutes without a request"
        (options.directory / IDLE_END).write_text(words)
        logging.warning("the sandbox ended by itself %s", words)
    finally:
        sandbox.close()


def _missing_parts(kind: str) -> set[str]:
    """Return the parts of the control plane that are not installed.

    Raises:
        CommandError: Clusters must be real, and a part that every cluster needs is not installed.
    """
    names = [part.name for part in pins().parts if part.name not in NODE_PARTS]
    missing = missing_parts(names, pins(), Cache.of_user())
    if kind == "real" and not set(missing).isdisjoint(BASE_PARTS):
        raise CommandError(
            f"the control plane lacks {', '.join(missing)}", f"`podwright sandbox kubernetes install`; {MEANWHILE}"
        )
    return set(missing)


def _is_folder(folder: int, path: Path) -> bool:
    """True if an open folder is the one at a path."""
    try:
        return os.path.samestat(os.fstat(folder), path.stat())
    except FileNotFoundError:
        return False


def _leave_terminal(log: Path, clusters_are: dict[str, Any]) -> int:
    """Go on as a process of its own, once it has written to the returned file descriptor.

    Its id is printed then with what its clusters are, as JSON. What it writes there at once goes to stderr.
    """
    waiting, answering = os.pipe()
    process = os.fork()
    if process:
        os.close(answering)
        message = os.read(waiting, _MOST_BYTES)
        if not message:
            os.write(2, f"it ended at its start\n    → its log is {log}\n".encode())
            os._exit(1)
        os.write(2, message.lstrip())
        os.write(1, json.dumps({"pid": process} | clusters_are).encode())
        os._exit(0)
    os.close(waiting)
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(nowhere, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    return answering


if __name__ == "__main__":
    main()
