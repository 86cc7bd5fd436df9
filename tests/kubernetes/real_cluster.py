"""A control plane of its own, as measurements start one: Kueue, nodes of HyperPod, and what its processes take."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.hyperpod.answers import kubernetes_node
from podwright.sandbox.hyperpod.cluster import Cluster, Node, Timing
from podwright.sandbox.hyperpod.kubelets import Kubelets
from podwright.sandbox.kubernetes.api_objects import Connection, connection
from podwright.sandbox.protocol.clock import now
from waiting import until

REGION: Final = "us-east-1"


@contextmanager
def started(folder: Path) -> Iterator[ControlPlane]:
    """A control plane in a folder, without operators. `podwright sandbox kubernetes install` has to be done."""
    plane = ControlPlane(folder, pins(), Cache.of_user())
    plane.start()
    try:
        yield plane
    finally:
        plane.stop()


def api(plane: ControlPlane) -> Connection:
    """A connection to its API server, as its administrator."""
    return connection(plane.kubeconfig, plane.kubeconfig.stat().st_mtime_ns)


def add_nodes(plane: ControlPlane, groups: Mapping[str, tuple[str, int]]) -> None:
    """Make Nodes as the sandbox does, by group: the instance type, and how many. Returns once all are ready."""
    nodes = [(name, instance_type) for name, (instance_type, count) in groups.items() for _ in range(count)]
    Kubelets(plane.kubeconfig, REGION, "measured", 0).follow(_Nodes(nodes))
    until(lambda: _ready(plane) == len(nodes))


def resident_mib(pid: int) -> float:
    """What a process has in memory."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024


def _ready(plane: ControlPlane) -> int:
    conditions = [item["status"].get("conditions", ()) for item in api(plane).request("GET", "/api/v1/nodes")["items"]]
    return sum(any(entry["type"] == "Ready" and entry["status"] == "True" for entry in each) for each in conditions)


class _Nodes:
    """Running nodes of HyperPod, which nobody changes."""

    def __init__(self, nodes: list[tuple[str, str]]) -> None:
        cluster = Cluster("measured", "arn", REGION, {}, Timing())
        running = [
            Node(group, instance_type, "s", f"{REGION}a", "use1-az4", f"10.0.{index // 250}.{index % 250}", 0, 0, 0)
            for index, (group, instance_type) in enumerate(nodes)
        ]
        for spot, node in enumerate(running):
            node.spot = spot
        self._objects = [kubernetes_node(cluster, node, now()) for node in running]

    def kubernetes_nodes(self, region: str, eks_cluster: str) -> list[dict[str, Any]]:
        """All of them."""
        return self._objects

    def patch_node(self, region: str, eks_cluster: str, name: str, patch: dict[str, Any]) -> None:
        """Nobody does."""
        raise AssertionError(f"somebody changed {name} of {eks_cluster} in {region}: {patch}")
