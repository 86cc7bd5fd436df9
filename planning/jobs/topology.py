"""Where the pods of a job lie to each other: in one UltraServer, or near each other in the network."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ...config.catalog.instance_type import InstanceType, UltraServer
from ...config.catalog.instance_types import Catalog
from ...config.catalog.topologies import topology
from ...config.settings.jobs.base import DistributedJob, TopologyLevel

LABELS: Final[dict[TopologyLevel, str]] = {
    "ultraserver": "topology.k8s.aws/ultraserver-id",
    "network_layer_1": "topology.k8s.aws/network-node-layer-1",
    "network_layer_2": "topology.k8s.aws/network-node-layer-2",
    "network_layer_3": "topology.k8s.aws/network-node-layer-3",
}
"""Node labels. Layer 3 is the switch that a node hangs on, layer 1 the furthest. Source: SageMaker Developer Guide,
topology-aware scheduling, 2026-11."""


class Placement(NamedTuple):
    """Nodes with the same value of a label, which a job's pods share."""

    topology: str
    """Name of the topology that has the label."""
    label: str
    required: bool
    """Wait for it, rather than only prefer it."""


def ultraserver(rows: Sequence[InstanceType], types: Catalog) -> UltraServer | None:
    """The largest UltraServer that instances of these types form on HyperPod."""
    names = {row.name for row in rows}
    units = [each for each in types.ultraservers.values() if each.hyperpod and each.instance_type in names]
    return max(units, key=lambda each: each.instances, default=None)


def placement(job: DistributedJob, rows: Sequence[InstanceType], types: Catalog) -> Placement | None:
    """Where the pods of a job lie to each other; None where it does not matter or nodes do not say where they are."""
    known = topology([row.name for row in rows], types)
    most = job.sizes[-1]
    # With one level every node is its own place, so there is nothing to be near to.
    if job.topology == "none" or (job.topology is None and (most == 1 or len(known.levels) == 1)):
        return None
    # The last level is the node itself; the one before it is the nearest that nodes share.
    label = LABELS[job.topology] if job.topology else known.levels[-2]
    server = ultraserver(rows, types) if label == LABELS["ultraserver"] else None
    # Within one NVLink domain a job fits or does not; a preference would run it at a fraction of the speed.
    required = server is not None and most <= server.instances
    return Placement(known.name, label, required if job.topology_required is None else job.topology_required)
