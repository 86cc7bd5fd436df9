"""HyperPod clusters: groups, nodes and events, as commands use them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...config.errors import CommandError
from .calls import Clients, find, get, pages


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
    """The nodes of a cluster, or of one of its groups. Raises CommandError when there is no such cluster."""
    # boto3 takes a quarter of a second to load, and this module is imported by commands that need none of it.
    from botocore.exceptions import ClientError

    only: dict[str, Any] = {"InstanceGroupNameContains": group} if group else {}
    try:
        rows = pages(clients, "sagemaker", "list_cluster_nodes", "ClusterNodeSummaries", ClusterName=name, **only)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFound":
            raise
        raise _absent(name) from None
    # HyperPod takes the name as a part of one.
    return [Node.of(row) for row in rows if not group or row["InstanceGroupName"] == group]


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


def _absent(name: str) -> CommandError:
    return CommandError(f"there is no HyperPod cluster {name}", "deploy the environment first")
