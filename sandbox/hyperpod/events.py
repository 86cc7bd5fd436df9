"""HyperPod's events in EventBridge: changes of a cluster's status, the health of nodes, and cluster events.

The copy of a cluster event has no failure message, as in AWS: only DescribeClusterEvent does. Sources: SageMaker
Developer Guide, "Events that Amazon SageMaker AI sends to Amazon EventBridge" and "SageMaker HyperPod cluster events
reference", 2026-11.
"""

from datetime import datetime

from ..protocol.json_objects import JsonObject
from .cluster import Cluster, ClusterEvent

STATE = "SageMaker HyperPod Cluster State Change"
HEALTH = "SageMaker HyperPod Cluster Node Health Event"
EVENT = "SageMaker HyperPod Cluster Event"


def cluster_events(cluster: Cluster, timestamp: datetime) -> list[tuple[str, JsonObject]]:
    """Yield the events since the last call of this function or of `skip_events`, by type."""
    messages, status = cluster.told, cluster.status(timestamp)
    result = list[tuple[str, JsonObject]]()
    if status != messages.get("status"):
        result.append((STATE, _state(cluster, status, timestamp)))
    result += [(HEALTH, _of(cluster) | item) for item in cluster.health_events[messages.get("health", 0) :]]
    if cluster.continuous:
        events = cluster.events[messages.get("events", 0) :]
        result += [(EVENT, {"EventDetails": _event(cluster, event)}) for event in events]
    skip_events(cluster, timestamp)
    return result


def skip_events(cluster: Cluster, timestamp: datetime) -> None:
    """Mark all past events as sent, so that a later rule does not get them."""
    cluster.told |= {
        "status": cluster.status(timestamp),
        "health": len(cluster.health_events),
        "events": len(cluster.events),
    }


def _of(cluster: Cluster) -> JsonObject:
    return {"ClusterArn": cluster.arn, "ClusterName": cluster.name}


def _state(cluster: Cluster, status: str, timestamp: datetime) -> JsonObject:
    groups = [
        {
            "InstanceGroupName": group.name,
            "InstanceType": group.instance_type,
            "Status": cluster.group_status(group, timestamp),
            "CurrentCount": cluster.running(group.name, timestamp),
            "TargetCount": group.target,
        }
        for group in cluster.groups.values()
    ]
    created = int(cluster.created.timestamp() * 1000)
    return {**_of(cluster), "ClusterStatus": status, "CreationTime": created, "InstanceGroups": groups}


def _event(cluster: Cluster, event: ClusterEvent) -> JsonObject:
    about = {"InstanceGroupName": event.group, "InstanceId": event.instance_id}
    return {
        "EventId": event.event_id,
        **_of(cluster),
        **{name: value for name, value in about.items() if value},
        "ResourceType": event.resource_type,
        "EventTime": int(event.time.timestamp() * 1000),
        "EventLevel": event.level,
        "Description": event.description,
        "EventDetails": {"EventMetadata": dict.fromkeys(event.metadata)},
    }
