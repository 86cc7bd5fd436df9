# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""The SageMaker operations that check, reboot and replace nodes and list events."""

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, NamedTuple

from moto.core.responses import ActionResult
from moto.sagemaker.responses import SageMakerResponse

from ..hyperpod import logs as hyperpod_logs
from ..hyperpod.cluster import Cluster, ClusterEvent, Node
from ..hyperpod.repair import reboot, replace
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject, without
from ..protocol.service import refuse
from .service import HyperPod


class _Named(NamedTuple):
    """The nodes of a call."""

    cluster: Cluster
    nodes: list[Node]
    missing: list[str]
    """Names without a node."""


class HealthOperations(SageMakerResponse):
    """SageMaker's API with the sandbox's node operations."""

    service: ClassVar[HyperPod]

    def start_cluster_health_check(self) -> ActionResult:
        """Start deep health checks on nodes. Refuses all if one of them is busy."""
        cluster = self.service.cluster(self.region, self._get_param("ClusterName"))
        started, checked = now(), list[Node]()
        with self.service.lock:
            for item in self._get_param("DeepHealthCheckConfigurations"):
                group, requested = item["InstanceGroupName"], set(item.get("InstanceIds") or [])
                if group not in cluster.groups:
                    raise refuse("ValidationException", f"Instance group {group} does not exist (sandbox)")
                members = [
                    node for node in cluster.members(group, started) if not requested or node.instance_id in requested
                ]
                if missing := sorted(requested - {node.instance_id for node in members}):
                    raise refuse("ValidationException", f"{group} has no {', '.join(missing)} (sandbox)")
                if busy := [node.instance_id for node in members if node.status(started) != "Running"]:
                    raise refuse("ValidationException", f"{', '.join(busy)} cannot be checked now (sandbox)")
                checked += members
                lines = [f"{check}: passed (sandbox)" for check in item["DeepHealthChecks"]]
                for node in members:
                    hyperpod_logs.write(cluster, f"DeepHealthCheckResults/{node.instance_id}", lines, started)
            for node in checked:
                node.checked = started
            seconds = max((node.asked_check_seconds for node in checked), default=0.0)
            self._begin(cluster, "DeepHealthCheck", started, seconds)
        return ActionResult({"ClusterArn": cluster.arn})

    def _begin(self, cluster: Cluster, kind: str, started: datetime, seconds: float) -> None:
        operation = {"OperationId": str(uuid.uuid4()), "ClusterArn": cluster.arn, "Type": kind, "CreationTime": started}
        cluster.operations.append(operation | {"until": started + timedelta(seconds=seconds)})

    def list_cluster_operations(self) -> ActionResult:
        cluster = self.service.cluster(self.region, self._get_param("ClusterName"))
        items = [
            without(item, "until") | {"Status": "InProgress" if now() < item["until"] else "Done"}
            for item in reversed(cluster.operations)
        ]
        for name in ("Status", "Type"):
            if requested := self._get_param(name):
                items = [item for item in items if item[name] == requested]
        return self._page(items, "ClusterOperationSummaries")

    def batch_reboot_cluster_nodes(self) -> ActionResult:
        named = self._named()
        with self.service.lock:
            for node in named.nodes:
                reboot(named.cluster, node)
        return self._batch(named)

    def batch_replace_cluster_nodes(self) -> ActionResult:
        named = self._named()
        refuse_controllers(named.cluster, "replaced", named.nodes)
        with self.service.lock:
            for node in named.nodes:
                replace(named.cluster, node, self.service)
        return self._batch(named)

    def _batch(self, named: _Named) -> ActionResult:
        nodes, missing = named.nodes, named.missing
        by_logical = set(self._get_param("NodeLogicalIds") or [])
        words = {"ErrorCode": "InstanceIdNotFound", "Message": "The node does not exist (sandbox)"}
        answer = {
            "Successful": [node.instance_id for node in nodes if node.logical_id not in by_logical],
            "Failed": [{**words, "NodeId": name} for name in missing if name not in by_logical],
        }
        if by_logical:
            answer |= {
                "SuccessfulNodeLogicalIds": [node.logical_id for node in nodes if node.logical_id in by_logical],
                "FailedNodeLogicalIds": [{**words, "NodeLogicalId": name} for name in missing if name in by_logical],
            }
        return ActionResult(answer)

    def _named(self) -> _Named:
        """Return the nodes that a call names, by instance or logical id."""
        cluster = self.service.cluster(self.region, self._get_param("ClusterName"))
        by_id = {key: node for node in cluster.nodes if not node.deleted for key in (node.instance_id, node.logical_id)}
        names = [*(self._get_param("NodeIds") or []), *(self._get_param("NodeLogicalIds") or [])]
        missing = [name for name in names if name not in by_id]
        return _Named(cluster, [by_id[name] for name in names if name in by_id], missing)

    def list_cluster_events(self) -> ActionResult:
        """List the events of a cluster, newest first, filtered by group, node, kind and time."""
        cluster = self._continuous("ListClusterEvents")
        group, node, kind = (self._get_param(key) for key in ("InstanceGroupName", "NodeId", "ResourceType"))
        after, before = (self._moment(key) for key in ("EventTimeAfter", "EventTimeBefore"))
        events = [
            event
            for event in cluster.events
            if (not group or event.group == group)
            and (not node or event.instance_id == node)
            and (not kind or event.resource_type == kind)
            and (not after or event.time > after)
            and (not before or event.time < before)
        ]
        if self._get_param("SortOrder") != "Ascending":
            events.reverse()
        return self._page([_event(cluster, event, False) for event in events], "Events")

    def _moment(self, key: str) -> datetime | None:
        value: datetime | None = self._get_param(key)
        return value.replace(tzinfo=value.tzinfo or UTC) if value else None

    def describe_cluster_event(self) -> ActionResult:
        cluster = self._continuous("DescribeClusterEvent")
        for event in cluster.events:
            if event.event_id == self._get_param("EventId"):
                return ActionResult({"EventDetails": _event(cluster, event, True)})
        raise refuse("ResourceNotFound", f"Event {self._get_param('EventId')} does not exist (sandbox)")

    def _continuous(self, operation: str) -> Cluster:
        cluster = self.service.cluster(self.region, self._get_param("ClusterName"))
        if not cluster.continuous:
            raise refuse(
                "ValidationException", f"{operation} needs a cluster with NodeProvisioningMode Continuous (sandbox)"
            )
        return cluster

    def _page(self, items: list[Any], key: str) -> ActionResult:
        size, start = int(self._get_param("MaxResults") or 100), int(self._get_param("NextToken") or 0)
        more = {"NextToken": str(start + size)} if len(items) > start + size else {}
        return ActionResult({key: items[start : start + size], **more})


def refuse_controllers(cluster: Cluster, verb: str, nodes: Iterable[Node]) -> None:
    """Raise the API's error if one of the nodes is a Slurm controller."""
    if controllers := [node.instance_id for node in nodes if cluster.groups[node.group].slurm_type == "Controller"]:
        raise refuse("ValidationException", f"Slurm controllers cannot be {verb}: {', '.join(controllers)} (sandbox)")


def _event(cluster: Cluster, event: ClusterEvent, details: bool) -> JsonObject:
    return {
        "EventId": event.event_id,
        "ClusterArn": cluster.arn,
        "ClusterName": cluster.name,
        "ResourceType": event.resource_type,
        "EventTime": event.time,
        "Description": event.description,
        "EventLevel": event.level,
        "InstanceGroupName": event.group,
        "InstanceId": event.instance_id,
        **({"EventDetails": {"EventMetadata": event.metadata}} if details and event.metadata else {}),
    }
