"""Nodes' logs in CloudWatch Logs: of lifecycle scripts, the health agent and deep health checks.

Sources: SageMaker Developer Guide, "Health Monitoring System" (the group, the streams and a record of the agent);
awslabs/awsome-distributed-ai, lifecycle scripts (the first and last line), 2026-11.
"""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta

from moto.logs.models import logs_backends

from ...config.catalog.names import cluster_log_group
from ..protocol.arns import account_of
from ..protocol.json_objects import JsonObject
from .cluster import Cluster, Node

STARTED = "[SageMaker] Downloading lifecycle scripts from {source}"
SUCCEEDED = "[SageMaker] The lifecycle scripts succeeded."
FAILED = "[SageMaker] The lifecycle scripts failed with exit code {code}."


def group_of(cluster: Cluster) -> str:
    """Return the log group of a cluster."""
    return cluster_log_group(cluster.name, cluster.arn.rpartition("/")[2])


def lifecycle(cluster: Cluster, group: str, instance_id: str, lines: Iterable[str], started: datetime) -> None:
    """Write the log of a node's lifecycle scripts, with a line for each second."""
    source = cluster.groups[group].specification.get("LifeCycleConfig", {}).get("SourceS3Uri", "the AMI")
    write(cluster, f"LifecycleConfig/{group}/{instance_id}", [STARTED.format(source=source), *lines], started)


def health(cluster: Cluster, node: Node, condition: str, reason: str, message: str, timestamp: datetime) -> None:
    """Write the health agent's record of a fault."""
    stamp = timestamp.strftime("%Y-%m-%dT%H:%M:%SZ")
    result = f"Node condition {condition} is now: True, reason: {reason}, message: {json.dumps(message)}"
    record: JsonObject = {
        "level": "info",
        "ts": stamp,
        "msg": "NPD caught event: %v",
        "details: ": {"severity": "warn", "timestamp": stamp, "reason": reason, "message": result},
        "HealthMonitoringAgentDetectionEvent": "HealthEvent",
    }
    write(cluster, f"SagemakerHealthMonitoringAgent/{node.group}/{node.instance_id}", [json.dumps(record)], timestamp)


def write(cluster: Cluster, stream: str, lines: Iterable[str], timestamp: datetime) -> None:
    """Add lines to a stream. Its group and the stream are created if missing."""
    backend, name = logs_backends[account_of(cluster.arn)][cluster.region], group_of(cluster)
    if name not in backend.groups:
        backend.create_log_group(name, {})
    if stream not in backend.groups[name].streams:
        backend.create_log_stream(name, stream)
    backend.put_log_events(
        name,
        stream,
        [
            {"timestamp": int((timestamp + timedelta(seconds=index)).timestamp() * 1000), "message": line}
            for index, line in enumerate(lines)
        ],
    )
