"""The nodes that an environment will have, as Kubernetes shows them: a simulation places work on them beforehand."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...config.catalog.instance_types import Catalog
from ...config.catalog.topologies import HOSTNAME, topology
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup
from ..jobs.plan import ARCHITECTURE_LABEL, GROUP_LABEL, TYPE_LABEL, Planner
from ..jobs.topology import LABELS, ultraserver
from ..quota.amounts import CPU, MEMORY, quantity
from ..quota.stock import Stock

NODES_PER_SWITCH: Final = 8
"""Nodes of a group that share the last layer of the network. AWS publishes no such number; it is ours."""
LAYOUT: Final = (
    f"{NODES_PER_SWITCH} nodes of a group share a switch, and all of them the layers above; every node of the file is "
    "ready as long as it is there"
)
"""The assumption behind the labels of planned nodes."""
_SWITCH: Final = LABELS["network_layer_3"]
_ULTRASERVER: Final = LABELS["ultraserver"]


def planned_nodes(
    environment: Environment, types: Catalog, present: Mapping[str, int] | None = None
) -> Iterator[dict[str, Any]]:
    """A Node for each instance of each group but the system's, all ready, with what jobs may take of it.

    Args:
        environment: The environment.
        types: Its instance catalog.
        present: How many nodes groups have at the time; all of the file where one is not named.
    """
    planner = Planner(environment, types)
    stock = Stock(environment.instance_groups, types, environment.governance.engine)
    for name, group in sorted(environment.instance_groups.items()):
        if name == environment.cluster.system_group or name not in stock.nodes:
            continue
        free = planner.allocatable(name)
        amounts = stock.nodes[name].brings | {CPU: free.cpu_millis, MEMORY: free.memory_mib}
        allocatable = {resource: quantity(resource, amount) for resource, amount in amounts.items()}
        for index in range((present or {}).get(name, group.count)):
            yield _node(name, group, index, allocatable | {"pods": str(free.pods)}, types)


def _node(
    group: str, settings: InstanceGroup, index: int, allocatable: dict[str, str], types: Catalog
) -> dict[str, Any]:
    """One node of a group, with the labels of its topology."""
    name, rows = f"{group.lower()}-{index:04}", [types.get(each) for each in settings.types]
    server = ultraserver(rows, types)
    values = {
        HOSTNAME: name,
        _SWITCH: f"{group}-switch-{index // NODES_PER_SWITCH}",
        _ULTRASERVER: f"{group}-ultraserver-{index // (server.instances if server else 1)}",
    }
    levels = topology(settings.types, types).levels
    labels = {GROUP_LABEL: group, TYPE_LABEL: rows[0].name, ARCHITECTURE_LABEL: rows[0].kubernetes_architecture}
    labels |= {level: values.get(level, group) for level in levels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": settings.labels | labels},
        "spec": {"taints": [taint.model_dump(exclude_none=True) for taint in settings.taints]},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }
