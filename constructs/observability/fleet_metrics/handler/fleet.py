"""What SageMaker and Kubernetes say of a cluster, as samples. Each function is one source, and asks once."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import boto3
from botocore.config import Config

from ....common.handler_runtime.kubernetes import KubernetesApi
from .remote_write import Sample

RETRIES: Final = Config(retries={"mode": "standard", "max_attempts": 4}, connect_timeout=5, read_timeout=20)
_LABEL: Final = "sagemaker.amazonaws.com/"
# Sources differ on the plural.
_FAULT: Final = f"{_LABEL}fault-type"
_STATES: Final = {
    "total": "TotalInstanceCount",
    "available": "AvailableInstanceCount",
    "in_use": "InUseInstanceCount",
    "unhealthy": "UnhealthyInstanceCount",
}


def instances(session: boto3.Session, facts: dict[str, Any]) -> Iterator[Sample]:
    """Instances of each group, and what one costs."""
    cluster = session.client("sagemaker", config=RETRIES).describe_cluster(ClusterName=facts["cluster"])
    for group in (*cluster.get("InstanceGroups", ()), *cluster.get("RestrictedInstanceGroups", ())):
        name, own = group["InstanceGroupName"], group.get("InstanceType", "")
        # A group of several types has no type of its own, and a count for each of them.
        details = {row["InstanceType"]: row.get("CurrentCount", 0) for row in group.get("InstanceTypeDetails", ())}
        for kind, count in ({own: group["CurrentCount"]} if own else details).items():
            labels = {"instance_group": name, "instance_type": kind}
            yield Sample("podwright_instances", {**labels, "state": "current"}, count)
            if kind in facts["prices"]:
                yield Sample("podwright_instance_price_usd_per_hour", labels, facts["prices"][kind])
        labels = {"instance_group": name, "instance_type": own, "state": "target"}
        yield Sample("podwright_instances", labels, group.get("TargetCount", group["CurrentCount"]))


def nodes(session: boto3.Session, facts: dict[str, Any]) -> Iterator[Sample]:
    """Nodes by what SageMaker says of them, and when the instance of each started."""
    pages = (
        session.client("sagemaker", config=RETRIES)
        .get_paginator("list_cluster_nodes")
        # Only clusters with continuous provisioning have logical ids, and the others refuse to be asked for them.
        .paginate(ClusterName=facts["cluster"], IncludeNodeLogicalIds=facts["continuous"])
    )
    counts: Counter[tuple[str, str]] = Counter()
    for node in (item for page in pages for item in page["ClusterNodeSummaries"]):
        group, status = node["InstanceGroupName"], node["InstanceStatus"]["Status"]
        counts[group, status] += 1
        labels = {
            "instance_group": group,
            "node_logical_id": node.get("NodeLogicalId", ""),
            # A node that has not come yet has no instance id, and one that is being replaced keeps its logical id.
            "instance_id": node.get("InstanceId", ""),
        }
        yield Sample("podwright_node_status", {**labels, "status": status}, 1)
        if "LaunchTime" in node:
            yield Sample("podwright_node_launched_timestamp_seconds", labels, node["LaunchTime"].timestamp())
    for (group, status), count in counts.items():
        yield Sample("podwright_nodes", {"instance_group": group, "status": status}, count)


def health(session: boto3.Session, facts: dict[str, Any]) -> Iterator[Sample]:
    """HyperPod's labels of Kubernetes nodes; nothing on Slurm, which has none."""
    if not facts["eks_cluster"]:
        return
    for name, labels in KubernetesApi(session, facts["eks_cluster"]).node_labels():
        group = labels.get(f"{_LABEL}instance-group-name")
        # Nodes of others, such as Karpenter's or a managed node group's, carry no such label.
        if not group:
            continue
        state = {
            "health": labels.get(f"{_LABEL}node-health-status", ""),
            "deep_health_check": labels.get(f"{_LABEL}deep-health-check-status", ""),
        }
        yield Sample("podwright_node_health", {"instance_group": group, "node": name, **state}, 1)
        for fault in sorted(value for key, value in labels.items() if key.startswith(_FAULT)):
            yield Sample("podwright_node_fault", {"instance_group": group, "node": name, "fault": fault}, 1)


def plans(session: boto3.Session, facts: dict[str, Any]) -> Iterator[Sample]:
    """Training plans: their instances, when they start and end, and what they cost."""
    client = session.client("sagemaker", config=RETRIES)
    for name, arn in facts["plans"].items():
        # The call takes the name, while the template knows the ARN.
        plan = client.describe_training_plan(TrainingPlanName=arn.rpartition("/")[2])
        parts = plan.get("ReservedCapacitySummaries", [])
        labels = {"plan": name, "instance_type": parts[0].get("InstanceType", "") if parts else ""}
        for state, field in _STATES.items():
            if field in plan:
                yield Sample("podwright_plan_instances", {**labels, "state": state}, plan[field])
        for what in ("Start", "End"):
            if f"{what}Time" in plan:
                seconds = plan[f"{what}Time"].timestamp()
                yield Sample(f"podwright_plan_{what.lower()}_timestamp_seconds", labels, seconds)
        if "UpfrontFee" in plan:
            yield Sample("podwright_plan_upfront_usd", labels, float(plan["UpfrontFee"]))
