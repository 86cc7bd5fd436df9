"""Whether nodes can be real on this machine, and how many."""

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ...planning.helm.operators import NODE_PARTS
from ..control_plane.cache import Cache, State
from ..control_plane.pins import Pins, minor_of
from . import cgroups
from .cgroups import Obstacle
from .settings import CNI, Programs

_PROGRAMS: Final = {
    "containerd": "containerd",
    "runc": "runc",
    "busybox": "busybox-static",
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
}
_PLUGINS: Final = "containernetworking-plugins"
_SKEW: Final = 3
_PROBE: Final = [
    *("unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c"),
    "mount -t tmpfs tmpfs /tmp && mknod /tmp/null c 1 3",
]
"""Tries, in Linux namespaces of its own, what starting a node needs: root in a container may be refused it."""
_BYTES_OF_NODE: Final = 600_000_000
"""Memory that a node is expected to take with its pods; its own programs take 360 MB."""
_BYTES_KEPT: Final = 1_000_000_000
NONE_DESIRED: Final = "`--real-nodes` is 0"
"""Why no node is real where the user wants none."""


class Offer(NamedTuple):
    """Real nodes of a cluster."""

    count: int
    why_not_more: str = ""
    """Empty if there are as many as desired."""
    action: str = ""
    """The user's next step for more real nodes; empty if `--real-nodes` is 0 or enough."""


def obstacle(pins: Pins, cache: Cache) -> Obstacle | None:
    """Return why no node of a cluster of these pins is real on this machine; None if nodes can be.

    Args:
        pins: Versions of the cluster's parts.
        cache: Cache that the parts are installed in.
    """
    if sys.platform != "linux":
        return Obstacle("real nodes need Linux", "run the sandbox in a virtual machine with Linux")
    if os.geteuid() != 0:
        reason = "real nodes need root, for namespaces and control groups"
        return Obstacle(reason, "stop the sandbox, and start it as root")
    absent = [package for program, package in _PROGRAMS.items() if shutil.which(program) is None]
    absent += [_PLUGINS] * (not (Path(CNI) / "ptp").exists())
    if absent:
        reason = "real nodes need programs that are not installed"
        return Obstacle(reason, f"`apt-get install {' '.join(absent)}`")
    absent = [name for name in NODE_PARTS if cache.state(pins.part(name)) is not State.INSTALLED]
    if absent:
        reason = f"real nodes need {' and '.join(absent)}"
        return Obstacle(reason, "`podwright sandbox kubernetes install`")
    kubelet = pins.part("kubelet")
    behind = _minor(pins.minor) - _minor(minor_of(kubelet.version))
    if not 0 <= behind <= _SKEW:
        reason = f"the kubelet {kubelet.version} does not join Kubernetes {pins.minor}"
        return Obstacle(reason, f"create the cluster with Kubernetes {minor_of(kubelet.version)}")
    if unusable := cgroups.obstacle():
        return unusable
    tried = subprocess.run(_PROBE, capture_output=True, text=True)
    if tried.returncode:
        return Obstacle(
            f"real nodes need permission for Linux namespaces, mounts and device files: {tried.stderr.strip()}",
            "start a container of Docker with --privileged",
        )
    return None


def programs(pins: Pins, cache: Cache) -> Programs:
    """Return the programs of nodes, whose parts are installed."""
    kubernetes, coredns = cache.folder(pins.part("kubelet")), cache.folder(pins.part("coredns"))
    return Programs(str(kubernetes / "kubelet"), str(kubernetes / "kube-proxy"), str(coredns / "coredns"))


def offer(desired: int, pins: Pins, cache: Cache) -> Offer:
    """Return how many of the desired nodes of a cluster can be real now.

    Args:
        desired: Nodes of each cluster that the user wants to be real.
        pins: Versions of the cluster's parts.
        cache: Cache that the parts are installed in.
    """
    if not desired:
        return Offer(0, NONE_DESIRED)
    if unusable := obstacle(pins, cache):
        return Offer(0, *unusable)
    return _limited(desired, _affordable())


@dataclass(slots=True)
class NodeBudget:
    """The real nodes of all clusters of one server, which share this machine's memory."""

    each: int
    """Nodes of each cluster that should be real."""
    _left: int | None = None
    """Nodes that no cluster has reserved; None before the first cluster."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> Offer:
        """Reserve real nodes for a new cluster.

        Free memory limits them, and so do reservations of clusters that have not used their memory yet.
        """
        with self._lock:
            affordable = _affordable()
            self._left = affordable if self._left is None else self._left
            granted = _limited(self.each, min(affordable, self._left))
            self._left -= granted.count
            return granted

    def give_back(self, count: int) -> None:
        """Free the nodes of a cluster that has ended."""
        with self._lock:
            self._left = (self._left or 0) + count


def _limited(desired: int, affordable: int) -> Offer:
    if affordable >= desired:
        return Offer(desired)
    return Offer(
        affordable,
        f"{_available_bytes() / 1e9:.1f} GB of memory are left for this and other clusters, and a real node takes "
        f"{_BYTES_OF_NODE / 1e9} GB",
        "free memory",
    )


def _affordable() -> int:
    return max(0, _available_bytes() - _BYTES_KEPT) // _BYTES_OF_NODE


def _available_bytes() -> int:
    """Return the memory that new programs can have without swapping, within the limit of this process's group."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    free = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    limited = cgroups.memory_left()
    return free if limited is None else min(free, limited)


def _minor(version: str) -> int:
    return int(version.partition(".")[2])
