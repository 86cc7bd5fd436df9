"""How the cluster of a bundle stands: its groups and nodes, and which of them are well."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from .bundle import Bundle, moment
from .evidence import Group, Node, Scene

FILLING: Final = timedelta(minutes=45)
"""A group may take so long to fill. HyperPod makes a node in 15–25 minutes and replaces one in 20–30 (facts of
awsome-distributed-ai's mental model, 2026-07); nobody should be told of less than one attempt and a half."""
HEALTH_LABEL: Final = "sagemaker.amazonaws.com/node-health-status"
DEEP_CHECK_LABEL: Final = "sagemaker.amazonaws.com/deep-health-check-status"
_UNHEALTHY: Final = re.compile(r"unhealthy|fail|fault|error|replac|reboot|impaired", re.IGNORECASE)
_COMING: Final = ("Pending", "SystemUpdating", "DeepHealthCheckInProgress")


def scene_of(bundle: Bundle) -> Scene:
    """The scene of a bundle; without groups and nodes where nobody could look at the cluster."""
    cluster = bundle.json("cluster") or {}
    kubernetes = {node_id(item): item for item in bundle.items("kubernetes_nodes", "items")}
    started = _begun(bundle, cluster)
    nodes = {node.id: node for node in _nodes(bundle, kubernetes) if node.id}
    launched: dict[str, datetime] = {}
    # A node that is on its way shows that the group is being filled, whatever operations say.
    for node in nodes.values():
        if node.launched and node.status in _COMING:
            launched[node.group] = max(node.launched, launched.get(node.group, node.launched))
    groups = {}
    for item in (*cluster.get("InstanceGroups", ()), *cluster.get("RestrictedInstanceGroups", ())):
        # A group may lie in a network of its own.
        network = {**(cluster.get("VpcConfig") or {}), **(item.get("OverrideVpcConfig") or {})}
        name = item.get("InstanceGroupName", "")
        # The latest of these is when waiting began.
        newest = max(filter(None, (started.get(name), started.get(""), launched.get(name))), default=None)
        groups[name] = Group(
            name=name,
            instance_type=item.get("InstanceType") or "",
            current=item.get("CurrentCount", _listed(bundle, nodes, name, item.get("TargetCount", 0))),
            target=item.get("TargetCount", 0),
            status=item.get("Status") or "",
            subnets=tuple(network.get("Subnets") or ()),
            security_groups=tuple(network.get("SecurityGroupIds") or ()),
            plan=item.get("TrainingPlanArn") or "",
            # By the bundle's own time, as a bundle may be read weeks later.
            waits=newest is not None and bundle.index.taken - newest < FILLING,
        )
    return Scene(
        now=bundle.index.taken,
        status=cluster.get("ClusterStatus", ""),
        groups=groups,
        nodes=nodes,
        labelled=frozenset(kubernetes),
        # A list of nodes without a cluster: there is one, and nobody could read it.
        hidden="cluster" in bundle.unseen or (not cluster and bool(nodes)),
    )


def _listed(bundle: Bundle, nodes: dict[str, Node], group: str, target: int) -> int:
    """How many instances of a group are listed; where there is no list, nothing says that one is missing."""
    return target if bundle.json("nodes") is None else sum(node.group == group for node in nodes.values())


def node_id(item: dict[str, Any]) -> str:
    """The instance id of a Kubernetes node."""
    return item.get("metadata", {}).get("name", "").removeprefix("hyperpod-")


def health_of(item: dict[str, Any]) -> str:
    """What HyperPod's label says of a Kubernetes node; empty where it has none."""
    return item.get("metadata", {}).get("labels", {}).get(HEALTH_LABEL, "")


def is_ready(item: dict[str, Any]) -> bool:
    """Whether a Kubernetes node is Ready; a node that does not tell is."""
    conditions = item.get("status", {}).get("conditions", ())
    ready = (condition for condition in conditions if condition.get("type") == "Ready")
    return all(condition.get("status", "True") == "True" for condition in ready)


def _ready_for_kubernetes(item: dict[str, Any]) -> bool:
    labels = item.get("metadata", {}).get("labels", {})
    return health_of(item) in ("", "Schedulable") and labels.get(DEEP_CHECK_LABEL) != "Failed" and is_ready(item)


def _nodes(bundle: Bundle, kubernetes: dict[str, dict[str, Any]]) -> Iterator[Node]:
    """The nodes; healthy is what SageMaker has no fault of, and what is ready for Kubernetes where that knows it."""
    details = bundle.entries("node_details")
    for item in bundle.items("nodes", "ClusterNodeSummaries"):
        id = item.get("InstanceId", "")
        more = details.get(id, {})
        # Bundles of different ages wrap the answer, or do not.
        more = more.get("NodeDetails", more)
        status = {**(item.get("InstanceStatus") or {}), **(more.get("InstanceStatus") or {})}
        launched = moment(item.get("LaunchTime"))
        waits = launched is not None and bundle.index.taken - launched < FILLING
        known = kubernetes.get(id)
        yield Node(
            id=id,
            group=item.get("InstanceGroupName", ""),
            instance_type=item.get("InstanceType", ""),
            status=status.get("Status", ""),
            message=status.get("Message") or "",
            # Details come last: they are asked for after the list, and newer.
            launched=launched,
            healthy=_is_healthy(status, waits) and (known is None or _ready_for_kubernetes(known)),
        )


def _is_healthy(status: dict[str, Any], waits: bool) -> bool:
    message = status.get("Message") or ""
    if status.get("Status") == "Running":
        return not _UNHEALTHY.search(message)
    if "Status" not in status:
        return not message
    return status.get("Status") in (*_COMING, "ShuttingDown") and waits and not message


def _begun(bundle: Bundle, cluster: dict[str, Any]) -> dict[str, datetime]:
    """When groups, or the whole cluster (""), were last asked to change."""
    started: dict[str, datetime] = {}
    created = moment(cluster.get("CreationTime"))
    if created:
        started[""] = created
    for operation in bundle.items("operations", "ClusterOperationSummaries"):
        time = moment(operation.get("CreationTime"))
        if time and operation.get("Type", "Scaling") == "Scaling":
            started[""] = max(time, started.get("", time))
    return started
