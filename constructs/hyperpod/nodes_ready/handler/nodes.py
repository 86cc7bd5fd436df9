"""What the wait for the nodes of an instance group looks at: SageMaker's instances and Kubernetes' nodes."""

from dataclasses import dataclass, field
from typing import Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from ....common.handler_runtime.kubernetes import KubernetesApi, Node

RETRIES: Final = Config(retries={"mode": "standard", "max_attempts": 8}, connect_timeout=5, read_timeout=20)
_GROUP_LABEL: Final = "sagemaker.amazonaws.com/instance-group-name"
_SHOWN: Final = 5
"""Nodes and events in a failure's reason; CloudFormation keeps it short."""


class CannotCome(Exception):
    """What is waited for cannot come."""


@dataclass
class Seen:
    """What one read found."""

    count: int
    """Nodes that are wanted."""
    instances: dict[str, str] = field(default_factory=dict)
    """Status and message by instance id, as SageMaker has them."""
    running: int = 0
    nodes: list[Node] = field(default_factory=list)
    kubernetes: str = ""
    """Why Kubernetes could not be asked; empty when it answered."""

    @property
    def ready(self) -> int:
        """How many nodes are Ready."""
        return sum(node.ready for node in self.nodes)

    @property
    def complete(self) -> bool:
        """Whether enough nodes are there on both sides."""
        return self.running >= self.count and self.ready >= self.count

    @property
    def data(self) -> dict[str, str]:
        """Attributes of the custom resource."""
        return {"Ready": str(self.ready)}

    def __str__(self) -> str:
        return f"{self.running} running, {self.ready} ready, {self.count} wanted {self.kubernetes}".strip()


@dataclass(frozen=True)
class NodesOfGroup:
    """The nodes of an instance group, running for SageMaker and Ready for Kubernetes."""

    cluster: str
    """Name of the HyperPod cluster."""
    eks_cluster: str
    group: str
    count: int
    timeout_seconds: int

    @classmethod
    def of(cls, properties: dict[str, str]) -> "NodesOfGroup":
        """From the resource's properties; CloudFormation sends every number as text."""
        return cls(
            properties["ClusterName"],
            properties["EksClusterName"],
            properties["InstanceGroup"],
            int(properties["Count"]),
            int(properties["TimeoutSeconds"]),
        )

    @property
    def physical_id(self) -> str:
        """The same for every count, so that a change of it replaces nothing."""
        return f"{self.cluster}/{self.group}"

    def observe(self, session: boto3.Session) -> Seen:
        """What there is now. Raises CannotCome when that is not enough and the cluster has failed."""
        observed = Seen(self.count)
        pages = (
            session.client("sagemaker", config=RETRIES)
            # The filter takes a part of the name: a group `p5` finds those of `p5en` as well.
            .get_paginator("list_cluster_nodes")
            .paginate(ClusterName=self.cluster, InstanceGroupNameContains=self.group)
        )
        for instance in (item for page in pages for item in page["ClusterNodeSummaries"]):
            if instance["InstanceGroupName"] == self.group:
                status = instance["InstanceStatus"]
                observed.instances[instance["InstanceId"]] = f"{status['Status']} {status.get('Message', '')}".strip()
                observed.running += status["Status"] == "Running"
        try:
            observed.nodes = list(KubernetesApi(session, self.eks_cluster).nodes(_GROUP_LABEL, self.group))
        except OSError as error:
            # Refusals too: an access entry takes effect some time after it was made.
            observed.kubernetes = f"Kubernetes: {error}"
        if not observed.complete:
            self._stop_if_failed(session)
        return observed

    def reason(self, session: boto3.Session, observed: Seen) -> str:
        """Why the wait failed."""
        missing = [
            f"{instance} {status}"
            for instance, status in observed.instances.items()
            if not status.startswith("Running")
        ]
        missing += [f"{node.name} NotReady {node.message}".strip() for node in observed.nodes if not node.ready]
        parts = [
            f"{observed.running} of {self.count} nodes of {self.group} are Running for SageMaker and "
            f"{observed.ready} are "
            f"Ready for Kubernetes after {self.timeout_seconds // 60} minutes",
            *missing[:_SHOWN],
            *filter(None, [observed.kubernetes]),
            *self._events(session),
        ]
        return "; ".join(parts)

    def _stop_if_failed(self, session: boto3.Session) -> None:
        cluster = session.client("sagemaker", config=RETRIES).describe_cluster(ClusterName=self.cluster)
        # A cluster that is Failed or Deleting sends no more nodes, so waiting until the time is up would only cost
        # time.
        if cluster["ClusterStatus"] in ("Failed", "Deleting"):
            raise CannotCome(
                f"cluster {self.cluster} is {cluster['ClusterStatus']}: "
                f"{cluster.get('FailureMessage') or 'SageMaker gives no reason'}"
            )

    def _events(self, session: boto3.Session) -> list[str]:
        """What SageMaker says about the group of late. Clusters in the older provisioning mode have no events."""
        try:
            events = session.client("sagemaker", config=RETRIES).list_cluster_events(
                ClusterName=self.cluster,
                InstanceGroupName=self.group,
                # Newest first and one page: what went wrong of late explains why nodes lack.
                SortBy="EventTime",
                SortOrder="Descending",
                MaxResults=20,
            )["Events"]
        except ClientError as error:
            return [f"no events: {error.response['Error']['Message']}"]
        messages = [
            event["Description"]
            for event in events
            if event.get("EventLevel") in ("Warn", "Error") and event.get("Description")
        ]
        # The same message comes for each node; a reader needs it once.
        return list(dict.fromkeys(messages))[:_SHOWN]
