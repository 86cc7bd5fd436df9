"""What HyperPod tells EventBridge: changes of a cluster's status, the health of nodes, and each cluster event.

The copy of a cluster event carries no failure message, as in AWS: only DescribeClusterEvent does. Sources: SageMaker
Developer Guide, "Events that Amazon SageMaker AI sends to Amazon EventBridge" and "SageMaker HyperPod cluster events
reference", 2026-11.
"""

from datetime import datetime

from ..protocol.json_objects import JsonObject
from .cluster import Cluster, ClusterEvent

STATE = "SageMaker HyperPod Cluster State Change"
HEALTH = "SageMaker HyperPod Cluster Node Health Event"
EVENT = "SageMaker HyperPod Cluster Event"


def news(cluster: Cluster, moment: datetime) -> list[tuple[str, JsonObject]]:
    """What is new since the last time, by type. The first time nothing is: who listens late has missed the past."""
    told, status = cluster.told, cluster.status(moment)
    first, found = "status" not in told, list[tuple[str, JsonObject]]()
    if status != told.get("status"):
        found.append((STATE, _state(cluster, status, moment)))
    found += [(HEALTH, _of(cluster) | item) for item in cluster.health_events[told.get("health", 0) :]]
    if cluster.continuous:
        events = cluster.events[told.get("events", 0) :]
        found += [(EVENT, {"EventDetails": _event(cluster, event)}) for event in events]
    told |= {"status": status, "health": len(cluster.health_events), "events": len(cluster.events)}
    return [] if first else found


def _of(cluster: Cluster) -> JsonObject:
    return {"ClusterArn": cluster.arn, "ClusterName": cluster.name}


def _state(cluster: Cluster, status: str, moment: datetime) -> JsonObject:
    groups = [
        {
            "InstanceGroupName": group.name,
            "InstanceType": group.instance_type,
            "Status": cluster.group_status(group, moment),
            "CurrentCount": sum(node.status(moment) == "Running" for node in cluster.members(group.name, moment)),
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
