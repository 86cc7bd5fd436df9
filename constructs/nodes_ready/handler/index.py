"""Waits until an instance group has its nodes: running for SageMaker, Ready for Kubernetes.

In continuous mode a HyperPod cluster is InService before any node exists, so CloudFormation would go on to what needs
nodes. A request may wait longer than a Lambda function runs: before its time is up the function invokes itself with the
same request, which then carries the deadline, and the last invocation answers.

Lambda stops a function that has invoked itself about 16 times; at 13 minutes each an hour takes five.
Source: AWS Lambda Developer Guide, "Recursive loop detection", 2026-10.
"""

import json
import logging
import time
from dataclasses import dataclass, field
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from ...handler_runtime.response import Answer, answering
from .kubernetes import KubernetesApi, Node

_GROUP_LABEL: Final = "sagemaker.amazonaws.com/instance-group-name"
_POLL_SECONDS: Final = 15
_MARGIN_SECONDS: Final = 90
"""Time that one more look, the invocation of the next run and a slow answer may take."""
_SHOWN: Final = 5
"""Nodes and events in a failure's reason; CloudFormation keeps it short."""
_RETRIES = Config(retries={"mode": "standard", "max_attempts": 8}, connect_timeout=5, read_timeout=20)

logger = logging.getLogger()


@dataclass(frozen=True)
class Wanted:
    """What a request waits for."""

    cluster: str
    """Name of the HyperPod cluster."""
    eks_cluster: str
    group: str
    count: int
    timeout_seconds: int

    @classmethod
    def of(cls, properties: dict[str, str]) -> "Wanted":
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


@dataclass
class Seen:
    """What one look found."""

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

    def complete(self, wanted: Wanted) -> bool:
        """Whether enough nodes are there on both sides."""
        return self.running >= wanted.count and self.ready >= wanted.count


class NotReady(Exception):
    """The nodes did not come in time, or cannot come."""


def handle(event: dict[str, Any], context: Any) -> Answer | None:
    """Carry out one request; None when another invocation goes on with it."""
    if event["RequestType"] == "Delete":
        return Answer(event["PhysicalResourceId"])
    wanted = Wanted.of(event["ResourceProperties"])
    deadline = event.setdefault("Deadline", time.time() + wanted.timeout_seconds)
    session = boto3.Session()
    while True:
        seen = _look(session, wanted)
        logger.info(
            "%s: %d running, %d ready, %d wanted %s",
            wanted.physical_id,
            seen.running,
            seen.ready,
            wanted.count,
            seen.kubernetes,
        )
        if seen.complete(wanted):
            return Answer(wanted.physical_id, {"Ready": str(seen.ready)})
        _stop_if_failed(session, wanted)
        if time.time() + _POLL_SECONDS > deadline:
            raise NotReady(_reason(session, wanted, seen))
        if context.get_remaining_time_in_millis() / 1000 < _MARGIN_SECONDS + _POLL_SECONDS:
            session.client("lambda", config=_RETRIES).invoke(
                FunctionName=context.invoked_function_arn, InvocationType="Event", Payload=json.dumps(event)
            )
            return None
        time.sleep(_POLL_SECONDS)


def _look(session: boto3.Session, wanted: Wanted) -> Seen:
    seen = Seen()
    pages = (
        session.client("sagemaker", config=_RETRIES)
        .get_paginator("list_cluster_nodes")
        .paginate(ClusterName=wanted.cluster, InstanceGroupNameContains=wanted.group)
    )
    for instance in (item for page in pages for item in page["ClusterNodeSummaries"]):
        if instance["InstanceGroupName"] == wanted.group:
            status = instance["InstanceStatus"]
            seen.instances[instance["InstanceId"]] = f"{status['Status']} {status.get('Message', '')}".strip()
            seen.running += status["Status"] == "Running"
    try:
        seen.nodes = list(KubernetesApi(session, wanted.eks_cluster).nodes(_GROUP_LABEL, wanted.group))
    except OSError as error:
        # Refusals too: an access entry takes effect some time after it was made.
        seen.kubernetes = f"Kubernetes: {error}"
    return seen


def _stop_if_failed(session: boto3.Session, wanted: Wanted) -> None:
    cluster = session.client("sagemaker", config=_RETRIES).describe_cluster(ClusterName=wanted.cluster)
    if cluster["ClusterStatus"] in ("Failed", "Deleting"):
        raise NotReady(
            f"cluster {wanted.cluster} is {cluster['ClusterStatus']}: "
            f"{cluster.get('FailureMessage') or 'SageMaker gives no reason'}"
        )


def _reason(session: boto3.Session, wanted: Wanted, seen: Seen) -> str:
    missing = [
        f"{instance} {status}" for instance, status in seen.instances.items() if not status.startswith("Running")
    ]
    missing += [f"{node.name} NotReady {node.message}".strip() for node in seen.nodes if not node.ready]
    parts = [
        f"{seen.running} of {wanted.count} nodes of {wanted.group} are Running for SageMaker and {seen.ready} are "
        f"Ready for Kubernetes after {wanted.timeout_seconds // 60} minutes",
        *missing[:_SHOWN],
        *filter(None, [seen.kubernetes]),
        *_events(session, wanted),
    ]
    return "; ".join(parts)


def _events(session: boto3.Session, wanted: Wanted) -> list[str]:
    """What SageMaker says about the group of late. Clusters in the older provisioning mode have no events."""
    try:
        events = session.client("sagemaker", config=_RETRIES).list_cluster_events(
            ClusterName=wanted.cluster,
            InstanceGroupName=wanted.group,
            SortBy="EventTime",
            SortOrder="Descending",
            MaxResults=20,
        )["Events"]
    except ClientError as error:
        return [f"no events: {error.response['Error']['Message']}"]
    told = [
        event["Description"]
        for event in events
        if event.get("EventLevel") in ("Warn", "Error") and event.get("Description")
    ]
    return list(dict.fromkeys(told))[:_SHOWN]


handler = answering(handle)
