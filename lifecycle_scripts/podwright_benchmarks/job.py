"""NCCL's collectives between nodes, as one task on each: started by srun, by a Kubernetes training job, or by hand.

The first node's program makes NCCL's id, and its task hands it to the others over TCP.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .gpus import COLLECTIVES
from .judge import judge
from .measured import Measured, Say, finish, results
from .programs import Unavailable, environment, obtain
from .record import Started

PORT = 29599
"""Below 32768, from where Linux gives ports to outgoing connections, any of which could have taken it."""
PATIENCE_SECONDS = 300.0
"""How long tasks wait for each other: nodes of one job do not start at the same moment."""
SECONDS = 900.0
MIB = {"quick": "8192", "thorough": "16384"}
"""Published figures of several nodes are for 8 GiB and more."""


@dataclass(frozen=True)
class TaskRank:
    """This task among those of the job."""

    nodes: int
    node: int
    first: str
    """Host name or address of the first task."""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> TaskRank:
        """From the variables of Slurm, or those of a training job with one task on each node.

        Raises:
            Unavailable: neither is there.
        """
        if "SLURM_NNODES" in variables:
            status, out, err = finish(["scontrol", "show", "hostnames", variables["SLURM_JOB_NODELIST"]], seconds=30)
            if status != 0:
                raise Unavailable(f"scontrol cannot list the nodes of the job: {err.strip()}")
            return cls(int(variables["SLURM_NNODES"]), int(variables["SLURM_NODEID"]), out.split()[0])
        try:
            return cls(int(variables["WORLD_SIZE"]), int(variables["RANK"]), variables["MASTER_ADDR"])
        except KeyError as missing:
            raise Unavailable(
                f"{missing} is not set: start this with srun --ntasks-per-node=1, or as a training job with one task "
                "on each node"
            ) from missing


def job(facts: Mapping[str, Any], instance_type: str, mode: str, bundle: Path, root: Path, say: Say) -> dict[str, Any]:
    """Measure collectives over all nodes of the job, and judge them against the lines for that many nodes.

    Every task returns a record; those of all nodes have the same rates. Arguments are those of `run`.
    """
    started = Started()
    measured, nodes = _measure(facts, mode, bundle, root, say)
    return started.record(facts, instance_type, mode, judge(measured, instance_type, nodes=nodes))


def _measure(facts: Mapping[str, Any], mode: str, bundle: Path, root: Path, say: Say) -> tuple[list[Measured], int]:
    """Run collectives over the nodes of this job. The count says how many nodes took part."""
    try:
        rank = TaskRank.from_environment(os.environ)
        status, out, _ = finish(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], seconds=60)
        if status != 0:
            raise Unavailable("nvidia-smi finds no GPUs")
        programs = obtain(facts["benchmarks"], bundle, root, set(out.replace(".", "").split()), say)
    except Unavailable as missing:
        return [Measured("collectives", (), None, "", str(missing))], 1
    command = [str(programs / "bin/collectives"), "--mib", MIB[mode], *COLLECTIVES[mode][2:]]
    command += ["--nodes", str(rank.nodes), "--node", str(rank.node)]
    say("measuring", program="collectives", nodes=rank.nodes, node=rank.node)
    with tempfile.TemporaryDirectory() as folder:
        shared = Path(folder, "id")
        if rank.node == 0:
            threading.Thread(target=serve, args=(shared, rank.nodes - 1), daemon=True).start()
            command += ["--id-file", str(shared)]
        else:
            try:
                command += ["--id", ask(rank.first)]
            except OSError as error:
                reason = f"{rank.first} does not tell NCCL's id: {error}"
                return [Measured("collectives", (), None, "", reason)], rank.nodes
        ran = results(command, name="collectives", devices=(), environment=environment(programs), seconds=SECONDS)
    return ran, rank.nodes


def serve(shared: Path, others: int, port: int = PORT) -> None:
    """Send what the file `shared` holds, once it is there, to as many tasks as there are others."""
    until = time.monotonic() + PATIENCE_SECONDS
    with socket.create_server(("", port)) as server:
        # A file that is there may still be empty: whoever makes it writes a moment later.
        while not (shared.exists() and shared.stat().st_size) and time.monotonic() < until:
            time.sleep(0.1)
        text = shared.read_bytes()
        for _ in range(others):
            server.settimeout(max(0.1, until - time.monotonic()))
            connection, _ = server.accept()
            with connection:
                connection.sendall(text)


def ask(first: str, port: int = PORT) -> str:
    """NCCL's id from the first task, which may not have started yet.

    Raises:
        OSError: it cannot be reached, or sends nothing.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with socket.create_connection((first, port), timeout=PATIENCE_SECONDS) as connection:
                connection.settimeout(PATIENCE_SECONDS)
                with connection.makefile() as stream:
                    text = stream.read()
            if text:
                return text
            raise ConnectionError("it closed the connection")
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(1)
