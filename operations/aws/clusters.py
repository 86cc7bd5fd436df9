"""HyperPod clusters: groups, nodes and events, as commands use them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal

from ...config.errors import CommandError
from .calls import Clients, find, get, pages
from .questions import ask_all_or_fail

_LONG_LISTING: Final = 500
"""Nodes above which several sequences of pages are read at once. A page has at most 100 nodes, which is also the
default, and only the page before it names its token."""
_LISTINGS_AT_ONCE: Final = 6
"""Concurrent ListClusterNodes calls. A refresh makes three other calls meanwhile; a client has ten connections."""
_Order = Literal["Ascending", "Descending"]


@dataclass(frozen=True, slots=True)
class Group:
    """An instance group."""

    name: str
    type: str
    """Instance type; empty where it has several."""
    current: int
    target: int
    """Nodes that HyperPod keeps it at. Unlike the nodes that run, it stays while one is replaced."""
    status: str
    restricted: bool
    plan: str
    """ARN of its training plan; empty without one."""
    plan_status: str
    release: str
    """Release of HyperPod's image; empty where HyperPod names none, as for an image of your own."""
    desired_release: str
    image_state: str
    """UpToDate, UpdateAvailable, SecurityUpdateRequired or EndOfLife; empty where HyperPod does not say."""
    update: str
    """Status of the last update that was asked for; empty when there was none."""
    renewed: int
    """Nodes that have the desired image."""
    scripts: str
    """S3 prefix of its lifecycle scripts; empty without any."""
    script: str
    """The script that is run, below that prefix."""

    @classmethod
    def of(cls, row: Mapping[str, Any], *, restricted: bool = False) -> "Group":
        """From ClusterInstanceGroupDetails."""
        scripts = row.get("LifeCycleConfig", {})
        return cls(
            row["InstanceGroupName"],
            row.get("InstanceType", ""),
            row.get("CurrentCount", 0),
            row.get("TargetCount", row.get("CurrentCount", 0)),
            row.get("Status", ""),
            restricted,
            row.get("TrainingPlanArn", ""),
            row.get("TrainingPlanStatus", ""),
            row.get("CurrentImageReleaseVersion", ""),
            row.get("DesiredImageReleaseVersion", ""),
            row.get("ImageVersionStatus", ""),
            row.get("SoftwareUpdateStatus", ""),
            row.get("TargetStateCount", 0),
            scripts.get("SourceS3Uri", ""),
            # In extended mode the image sets itself up first, and the script that follows has another name.
            scripts.get("OnCreate") or scripts.get("OnInitComplete", ""),
        )


@dataclass(frozen=True, slots=True)
class Cluster:
    """A HyperPod cluster."""

    name: str
    arn: str
    status: str
    message: str
    """HyperPod's own words about a failure."""
    continuous: bool
    """Whether nodes are provisioned continuously. HyperPod keeps events of such clusters only."""
    scales: bool
    """Whether Karpenter sets the counts of ordinary groups."""
    eks: str
    """Name of its EKS cluster; empty with Slurm."""
    groups: tuple[Group, ...]
    """Ordinary groups, then restricted ones."""

    @classmethod
    def of(cls, answer: Mapping[str, Any], name: str = "") -> "Cluster":
        """From DescribeCluster's answer."""
        ordinary, restricted = answer.get("InstanceGroups", ()), answer.get("RestrictedInstanceGroups", ())
        return cls(
            answer.get("ClusterName", name),
            answer.get("ClusterArn", ""),
            answer["ClusterStatus"],
            answer.get("FailureMessage", ""),
            answer.get("NodeProvisioningMode") == "Continuous",
            answer.get("AutoScaling", {}).get("Mode") == "Enable",
            answer.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", "").rpartition("/")[2],
            (*map(Group.of, ordinary), *(Group.of(row, restricted=True) for row in restricted)),
        )

    def group(self, name: str) -> Group:
        """The group of that name."""
        return next(group for group in self.groups if group.name == name)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a HyperPod cluster."""

    id: str
    """Instance id."""
    group: str
    type: str
    status: str
    message: str = ""
    release: str = ""
    """Release of its image, as far as HyperPod tells."""
    launched: datetime | None = None
    updated: datetime | None = None
    """When its software was last updated. HyperPod may refuse to replace a node whose software never was."""

    @property
    def kubernetes_name(self) -> str:
        """Its name in Kubernetes. Source: HyperPod field notes, 2026-07."""
        return f"hyperpod-{self.id}"

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Node":
        """From a ClusterNodeSummary."""
        return cls(
            row["InstanceId"],
            row["InstanceGroupName"],
            row.get("InstanceType", ""),
            row["InstanceStatus"]["Status"],
            row["InstanceStatus"].get("Message", ""),
            row.get("CurrentImageReleaseVersion", ""),
            row.get("LaunchTime"),
            row.get("LastSoftwareUpdateTime"),
        )


@dataclass(frozen=True, slots=True)
class Event:
    """What HyperPod says about a cluster, a group or a node."""

    id: str
    at: datetime
    level: str
    node_or_group: str
    """Instance id, else group; empty where it is about the whole cluster."""
    kind: str
    """Kind of thing that it is about."""
    text: str

    @property
    def about(self) -> str:
        """What it is about, shortly."""
        return self.node_or_group or self.kind

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Event":
        """From a ClusterEventSummary."""
        return cls(
            row["EventId"],
            row["EventTime"],
            row.get("EventLevel", "Info"),
            row.get("InstanceId") or row.get("InstanceGroupName", ""),
            row.get("ResourceType", ""),
            row.get("Description", ""),
        )


def cluster(clients: Clients, name: str) -> Cluster | None:
    """A cluster; None when there is none of that name."""
    result = find(clients, "sagemaker", "describe_cluster", ("ResourceNotFound",), ClusterName=name)
    return Cluster.of(result, name) if result else None


def existing_cluster(clients: Clients, name: str) -> Cluster:
    """A cluster. Raises CommandError when there is none of that name."""
    resolved_cluster = cluster(clients, name)
    if resolved_cluster is None:
        raise _absent(name)
    return resolved_cluster


def nodes(clients: Clients, name: str, group: str = "") -> list[Node]:
    """List the nodes of a cluster, or of one of its groups. Raises CommandError if the cluster does not exist."""
    only: dict[str, Any] = {"InstanceGroupNameContains": group} if group else {}
    # The filter also returns groups whose name contains this one.
    return [node for node in _listed(clients, name, **only) if not group or node.group == group]


def nodes_by_group(clients: Clients, cluster: Cluster) -> list[Node]:
    """List a cluster's nodes, with concurrent calls if it has more than 500.

    It reads each instance group by itself, and a group of more than 500 nodes from its oldest and its newest node at
    the same time. Groups that are empty and not changing cost no call.

    Returns:
        Each node once, in no order. Nodes of a group that HyperPod adds after it described `cluster` are missing.

    Raises:
        CommandError: the cluster no longer exists.
        ClientError: SageMaker refuses a call. The client has retried throttled calls by then.
    """
    if _nodes_to_list(cluster.groups) <= _LONG_LISTING:
        return nodes(clients, cluster.name)
    groups = [group for group in cluster.groups if group.current or group.target or group.status != "InService"]
    questions: dict[str, Callable[[], list[Node]]] = {}
    for name in _shortest({group.name for group in groups}):
        # The filter also returns the groups whose name contains this one.
        covered = [group for group in groups if name in group.name]
        listing = _Listing(clients, cluster.name, name, sum(group.current for group in covered))
        is_long = _nodes_to_list(covered) > _LONG_LISTING
        orders: tuple[_Order, ...] = ("Ascending", "Descending") if is_long else ("Ascending",)
        questions |= {f"nodes of {name}, {order.lower()}": partial(listing.read, order) for order in orders}
    by_id: dict[str, Node] = {}
    for answer in ask_all_or_fail(questions, at_once=_LISTINGS_AT_ONCE).values():
        # Sequences overlap where they meet, and where a group's name contains the names of two groups.
        by_id |= {node.id: node for node in answer}
    return list(by_id.values())


class _Listing:
    """Lists the nodes of the groups whose name contains a text, from the oldest, the newest, or both."""

    def __init__(self, clients: Clients, cluster: str, name: str, count: int) -> None:
        """Lists the `count` or more nodes of the groups of `cluster` that have `name` in theirs."""
        self._clients, self._cluster, self._name, self._count = clients, cluster, name, count
        self._launches: dict[_Order, dict[str, datetime | None]] = {"Ascending": {}, "Descending": {}}

    def read(self, order: _Order) -> list[Node]:
        """Read pages in that order of creation, until both orders together have every node or there is no page left."""
        return _listed(
            self._clients,
            self._cluster,
            until=partial(self._is_complete, order),
            InstanceGroupNameContains=self._name,
            SortBy="CREATION_TIME",
            SortOrder=order,
        )

    def _is_complete(self, order: _Order, rows: Sequence[Mapping[str, Any]]) -> bool:
        """True if both orders have passed each other: the oldest-first one is at a later launch than the other.

        Nodes of the same launch time may come in either sequence, so equal times prove nothing. Launch times that
        do not follow the order, or fewer nodes than HyperPod counts, mean that pages have to be read to the last one.
        """
        self._launches[order] = {row["InstanceId"]: row.get("LaunchTime") for row in rows}
        rising, falling = self._launches["Ascending"], self._launches["Descending"]
        if len(rising | falling) < self._count:
            return False
        up = [time for time in rising.values() if time]
        down = [time for time in falling.values() if time]
        if not up or not down or len(up) < len(rising) or len(down) < len(falling):
            return False
        return up == sorted(up) and down == sorted(down, reverse=True) and up[-1] > down[-1]


def node_details(clients: Clients, name: str, id: str) -> dict[str, Any]:
    """DescribeClusterNode's answer."""
    return get(clients, "sagemaker", "describe_cluster_node", ClusterName=name, NodeId=id)["NodeDetails"]


def newest_events(clients: Clients, name: str, count: int, **only: str) -> list[Event]:
    """The newest events of a cluster, or of `only` some of its resources; the newest comes first. One call."""
    answer = get(
        clients,
        "sagemaker",
        "list_cluster_events",
        ClusterName=name,
        SortBy="EventTime",
        SortOrder="Descending",
        MaxResults=count,
        **only,
    )
    return [Event.of(row) for row in answer["Events"]]


def events_since(clients: Clients, name: str, since: datetime) -> list[Event]:
    """The events of a cluster since a moment, the oldest first."""
    request = {"ClusterName": name, "EventTimeAfter": since, "SortBy": "EventTime", "SortOrder": "Ascending"}
    return [Event.of(row) for row in pages(clients, "sagemaker", "list_cluster_events", "Events", **request)]


def _listed(
    clients: Clients, cluster: str, until: Callable[[list[Any]], bool] | None = None, **only: Any
) -> list[Node]:
    # Importing botocore takes a quarter of a second, and commands without AWS import this module too.
    from botocore.exceptions import ClientError

    key = "ClusterNodeSummaries"
    try:
        rows = pages(clients, "sagemaker", "list_cluster_nodes", key, until=until, ClusterName=cluster, **only)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFound":
            raise
        raise _absent(cluster) from None
    return [Node.of(row) for row in rows]


def _nodes_to_list(groups: Iterable[Group]) -> int:
    """Upper bound on the nodes that SageMaker lists: those that run, or all that are wanted."""
    return sum(max(group.current, group.target) for group in groups)


def _shortest(names: Collection[str]) -> list[str]:
    """The names that contain no other of them."""
    return sorted(name for name in names if not _contains_another(name, names))


def _contains_another(name: str, names: Collection[str]) -> bool:
    return any(other in name for other in names if other != name)


def _absent(name: str) -> CommandError:
    return CommandError(f"there is no HyperPod cluster {name}", "deploy the environment first")
