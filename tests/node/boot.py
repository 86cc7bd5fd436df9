"""How long a node's set-up takes on a stand-in of a node whose programs take as long as real ones."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fake_node import FILE_SYSTEMS, FakeNode, make_node
from podwright.lifecycle_scripts.podwright_node import __main__ as node_main

# Seconds, as such programs take them on accelerated instances while these boot: orders of magnitude, not measurements.
DELAYS = {
    "systemctl start dlami-nvme.service": 6,
    "systemctl start nvidia-fabricmanager.service": 9,
    "systemctl restart podwright-lnet.service": 5,
    "systemctl start fsx.mount": 3,
    "systemctl start scratch-1.mount": 3,
    "systemctl start home.mount": 1.5,
    "systemctl restart podwright-persistence.service": 4,
    "systemctl stop *docker*": 3,
    "systemctl start containerd": 1,
    "systemctl start docker": 2,
    "systemctl daemon-reload": 0.3,
    "nvidia-smi --query*": 1.5,
    "chronyc waitsync *": 3,
    "modprobe gdrdrv": 1,
    "logrotate *": 0.3,
    "sshd *": 0.1,
    "sysctl *": 0.2,
    "prlimit *": 0.05,
}
STEPS = (
    "clock",
    "efa",
    "fabric-manager",
    "gdrcopy",
    "homes",
    "limits",
    "log-rotation",
    "lustre",
    "persistence",
    "ssh",
    "storage",
)
KIND: dict[str, Any] = {
    "instance_type": "ml.p5.48xlarge",
    "orchestrator": "slurm",
    "system": "ubuntu22.04",
    "file_systems": FILE_SYSTEMS,
}


@dataclass
class Boot:
    """A boot, with seconds by step."""

    seconds: float
    steps: dict[str, float]


def boot(*, serial: bool) -> Boot:
    """Set up a Slurm compute node with eight GPUs, 32 EFA devices and three file systems."""
    with tempfile.TemporaryDirectory(prefix="podwright-boot-") as folder:
        node = make_node(Path(folder), **KIND)
        node.running("containerd", "docker", "docker.socket", "slurmd")
        node.behave(*(f"{pattern}|{seconds:.3f}" for pattern, seconds in DELAYS.items()))
        node.environment["PODWRIGHT_PATIENCE"] = "1"
        result = node.shell(node.only(*STEPS, serial=serial))
        if result.returncode != 0:
            raise RuntimeError(node.log)
        return measured(node)


def measured(node: FakeNode) -> Boot:
    """What the summary says."""
    return Boot(node.summary["seconds"], {name: step["seconds"] for name, step in node.summary["steps"].items()})


def longest_chain(alone: dict[str, float]) -> tuple[float, tuple[str, ...]]:
    """The chain of needs that takes longest when each step takes as long as `alone` says."""
    needs = {step.name: step.needs for step in node_main.STEPS}

    def ending(name: str) -> tuple[float, tuple[str, ...]]:
        before = max((ending(need) for need in needs[name] if need in alone), default=(0.0, ()))
        return before[0] + alone[name], (*before[1], name)

    return max(ending(name) for name in alone)
