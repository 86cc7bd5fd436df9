# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""The HyperPod operations of the SageMaker API, mounted over moto's; every other SageMaker operation stays moto's."""

import uuid
from datetime import timedelta
from functools import lru_cache
from typing import Any, ClassVar

from botocore.session import Session
from moto.core.responses import ActionResult
from moto.sagemaker.responses import SageMakerResponse

from .eks import Eks
from .hyperpod import Cluster, ClusterEvent, Group, Node, Shortage, Timing, group_answer, node_answer
from .providers.base import Clients
from .service import refuse
from .stack import ACCOUNT, now
from .template import JsonObject


@lru_cache(maxsize=1)
def _instance_types() -> list[str]:
    model = Session().get_service_model("sagemaker")
    return list(model.shape_for("ClusterInstanceType").enum)  # pyright: ignore[reportAttributeAccessIssue]


class HyperPod:
    """The clusters of all regions, the capacity that is missing, and the pace of time."""

    def __init__(self, clients: Clients, eks: Eks, timing: Timing):
        self.clients, self.eks, self.timing = clients, eks, timing
        self.clusters: dict[tuple[str, str], Cluster] = {}
        self.shortages: list[Shortage] = []

    def cluster(self, region: str, name_or_arn: str) -> Cluster:
        """A cluster by name or ARN, settled to this moment; raises ResourceNotFound."""
        for (place, name), cluster in list(self.clusters.items()):
            if place == region and name_or_arn in (name, cluster.arn):
                cluster.settle(self.shortages, now())
                if (
                    cluster.outcome == "Deleting"
                    and cluster.status(now()) == "Deleting"
                    and now() >= cluster.busy_until
                ):
                    del self.clusters[place, name]
                    break
                return cluster
        raise refuse("ResourceNotFound", f"Cluster with name '{name_or_arn}' not found (sandbox)")

    def create(self, region: str, values: JsonObject) -> Cluster:
        """Create a cluster; raises the API's errors for what the service refuses."""
        name = values["ClusterName"]
        if any(key == (region, name) and cluster.status(now()) != "Deleting" for key, cluster in self.clusters.items()):
            raise refuse(
                "ResourceInUse",
                f"Resource Already Exists: Cluster with name {name} already exists. Choose a different name.",
            )
        self._check_orchestrator(values)
        request = {
            key: value for key, value in values.items() if key not in ("InstanceGroups", "RestrictedInstanceGroups")
        }
        identifier = uuid.uuid4().hex[:12]
        cluster = Cluster(
            name, f"arn:aws:sagemaker:{region}:{ACCOUNT}:cluster/{identifier}", region, request, self.timing
        )
        groups = self._groups(values)
        if not groups:
            raise refuse("ValidationException", "At least one instance group is needed (sandbox)")
        cluster.groups = {group.name: group for group in groups}
        self._look_up_subnets(cluster)
        self.clusters[region, name] = cluster
        cluster.note("Cluster", f"Cluster {name} is being created.")
        cluster.converge(self.shortages, "Creating")
        return cluster

    def update(self, region: str, values: JsonObject) -> Cluster:
        """Change groups and settings; groups that are not named stay as they are."""
        cluster = self._idle(region, values["ClusterName"])
        for group in self._groups(values):
            cluster.groups[group.name] = group
        for name in values.get("InstanceGroupsToDelete", []):
            group = cluster.groups.pop(name, None)
            if group is None:
                raise refuse("ValidationException", f"Instance group {name} does not exist (sandbox)")
            cluster.retire(cluster.members(name, now()))
        for key in (
            "NodeRecovery",
            "NodeProvisioningMode",
            "TieredStorageConfig",
            "ClusterRole",
            "AutoScaling",
            "RestrictedInstanceGroupsConfig",
            "Orchestrator",
        ):
            if key in values:
                cluster.request[key] = values[key]
        self._look_up_subnets(cluster)
        cluster.converge(self.shortages, "Updating")
        return cluster

    def delete(self, region: str, name: str) -> Cluster:
        """Shut every node down and forget the cluster."""
        cluster = self.cluster(region, name)
        cluster.retire([node for node in cluster.nodes if not node.deleted])
        wait = self.timing.shutdown * self.timing.scale
        cluster.busy, cluster.outcome = "Deleting", "Deleting"
        cluster.busy_until = max([now(), *(node.deleted for node in cluster.nodes if node.deleted)])
        cluster.busy_until += timedelta(seconds=wait)
        return cluster

    def _idle(self, region: str, name: str) -> Cluster:
        cluster = self.cluster(region, name)
        status = cluster.status(now())
        if status != "InService" and not (cluster.continuous and status == "Updating"):
            raise refuse(
                "ConflictException", f"Cluster {cluster.name} is in status {status} and cannot be changed (sandbox)"
            )
        return cluster

    def _groups(self, values: JsonObject) -> list[Group]:
        groups = [Group(dict(item)) for item in values.get("InstanceGroups", [])]
        groups += [Group(dict(item), True) for item in values.get("RestrictedInstanceGroups", [])]
        names = [group.name for group in groups]
        for name in names:
            if names.count(name) > 1:
                raise refuse("ValidationException", f"Instance group name {name} is used more than once (sandbox)")
        for index, group in enumerate(groups, 1):
            if group.instance_type not in _instance_types():
                raise refuse(
                    "ValidationException",
                    f"1 validation error detected: Value '{group.instance_type}' at 'instanceGroups.{index}."
                    "member.instanceType' failed to satisfy constraint: Member must satisfy enum value set: "
                    f"[{', '.join(_instance_types())}]",
                )
            source = group.specification.get("LifeCycleConfig", {}).get("SourceS3Uri", "s3://sagemaker-")
            if not source.startswith("s3://sagemaker"):
                raise refuse(
                    "ValidationException",
                    f"Validation Error: SourceS3Uri {source} does not start with 's3://sagemaker'.",
                )
        return groups

    def _look_up_subnets(self, cluster: Cluster) -> None:
        names = [
            subnet
            for vpc in (
                cluster.request.get("VpcConfig"),
                *(group.specification.get("OverrideVpcConfig") for group in cluster.groups.values()),
            )
            if vpc
            for subnet in vpc["Subnets"]
        ]
        unknown = sorted(set(names) - set(cluster.subnets))
        if unknown:
            answer = self.clients.client("ec2", cluster.region).describe_subnets(SubnetIds=unknown)
            cluster.subnets |= {
                subnet["SubnetId"]: {
                    key: subnet[key] for key in ("SubnetId", "AvailabilityZone", "AvailabilityZoneId", "CidrBlock")
                }
                for subnet in answer["Subnets"]
            }

    def _check_orchestrator(self, values: JsonObject) -> None:
        arn = values.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn")
        if not arn:
            return
        eks = self.eks.by_arn(arn)
        if eks is None:
            raise refuse("ValidationException", f"Amazon EKS cluster {arn} does not exist (sandbox)")
        if eks.description["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
            raise refuse(
                "ValidationException",
                "The authentication mode of the Amazon EKS orchestrator cluster must be "
                "API or API_AND_CONFIG_MAP (sandbox)",
            )
        for cluster in self.clusters.values():
            if cluster.request.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn") == arn:
                raise refuse(
                    "ResourceInUse",
                    f"Amazon EKS cluster {arn} already belongs to HyperPod cluster {cluster.name} (sandbox)",
                )
        if "VpcConfig" not in values:
            raise refuse("ValidationException", "VpcConfig is needed with an Amazon EKS orchestrator (sandbox)")


class HyperPodResponse(SageMakerResponse):
    """SageMaker's API with the sandbox's HyperPod."""

    service: ClassVar[HyperPod]

    def _arguments(self) -> JsonObject:
        return {key: value for key, value in dict(self.params).items() if value is not None}  # pyright: ignore[reportAttributeAccessIssue]

    def _cluster(self) -> Cluster:
        return self.service.cluster(self.region, self._get_param("ClusterName"))

    def _page(self, items: list[Any], key: str) -> ActionResult:
        size, start = int(self._get_param("MaxResults") or 100), int(self._get_param("NextToken") or 0)
        more = {"NextToken": str(start + size)} if len(items) > start + size else {}
        return ActionResult({key: items[start : start + size], **more})

    def create_cluster(self) -> ActionResult:
        return ActionResult({"ClusterArn": self.service.create(self.region, self._arguments()).arn})

    def update_cluster(self) -> ActionResult:
        return ActionResult({"ClusterArn": self.service.update(self.region, self._arguments()).arn})

    def delete_cluster(self) -> ActionResult:
        return ActionResult({"ClusterArn": self.service.delete(self.region, self._get_param("ClusterName")).arn})

    def describe_cluster(self) -> ActionResult:
        cluster, moment = self._cluster(), now()
        groups = list(cluster.groups.values())
        return ActionResult(
            {
                **{
                    key: cluster.request[key]
                    for key in (
                        "VpcConfig",
                        "Orchestrator",
                        "NodeRecovery",
                        "NodeProvisioningMode",
                        "TieredStorageConfig",
                        "ClusterRole",
                    )
                    if key in cluster.request
                },
                "ClusterArn": cluster.arn,
                "ClusterName": cluster.name,
                "ClusterStatus": cluster.status(moment),
                "CreationTime": cluster.created,
                "FailureMessage": cluster.failure,
                "InstanceGroups": [group_answer(cluster, group, moment) for group in groups if not group.restricted],
                "RestrictedInstanceGroups": [
                    group_answer(cluster, group, moment) for group in groups if group.restricted
                ],
            }
        )

    def list_clusters(self) -> ActionResult:
        wanted, found = self._get_param("NameContains") or "", list[JsonObject]()
        for region, name in list(self.service.clusters):
            if region == self.region and wanted in name:
                cluster = self.service.clusters[region, name]
                found.append(
                    {
                        "ClusterArn": cluster.arn,
                        "ClusterName": name,
                        "CreationTime": cluster.created,
                        "ClusterStatus": cluster.status(now()),
                    }
                )
        return self._page(found, "ClusterSummaries")

    def list_cluster_nodes(self) -> ActionResult:
        cluster, moment = self._cluster(), now()
        wanted = self._get_param("InstanceGroupNameContains") or ""
        return self._page(
            [node_answer(cluster, node, moment, False) for node in cluster.nodes if wanted in node.group],
            "ClusterNodeSummaries",
        )

    def describe_cluster_node(self) -> ActionResult:
        cluster = self._cluster()
        wanted = self._get_param("NodeId") or self._get_param("NodeLogicalId")
        for node in cluster.nodes:
            if wanted in (node.instance_id, node.logical_id):
                return ActionResult({"NodeDetails": node_answer(cluster, node, now(), True)})
        raise refuse("ResourceNotFound", f"Node {wanted} does not exist in cluster {cluster.name} (sandbox)")

    def update_cluster_software(self) -> ActionResult:
        cluster = self._cluster()
        names = {item["InstanceGroupName"] for item in self._get_param("InstanceGroups") or []} or set(cluster.groups)
        for node in cluster.nodes:
            if node.group in names:
                node.launched = node.software_updated = now()
        cluster.busy, cluster.outcome = "SystemUpdating", "InService"
        cluster.busy_until = max([now(), *(node.ready for node in cluster.nodes)])
        return ActionResult({"ClusterArn": cluster.arn})

    def batch_add_cluster_nodes(self) -> ActionResult:
        cluster, done, failed = self._continuous("BatchAddClusterNodes"), list[JsonObject](), list[JsonObject]()
        for item in self._get_param("NodesToAdd"):
            group, count = cluster.groups.get(item["InstanceGroupName"]), int(item["IncrementTargetCountBy"])
            if group is None:
                failed.append(
                    {
                        "InstanceGroupName": item["InstanceGroupName"],
                        "ErrorCode": "InstanceGroupNotFound",
                        "FailedCount": count,
                    }
                )
                continue
            group.specification["InstanceCount"] = group.target + count
            before = len(cluster.nodes)
            cluster.settle(self.service.shortages, now())
            done += [
                {"NodeLogicalId": node.logical_id, "InstanceGroupName": group.name, "Status": "Pending"}
                for node in cluster.nodes[before:]
            ]
        return ActionResult({"Successful": done, "Failed": failed})

    def batch_delete_cluster_nodes(self) -> ActionResult:
        found, missing = self._nodes()
        cluster = self._cluster()
        for node in found:
            cluster.groups[node.group].specification["InstanceCount"] = cluster.groups[node.group].target - 1
        cluster.retire(found)
        return ActionResult(
            {
                "Successful": [node.instance_id for node in found],
                "Failed": [
                    {"Code": "NodeIdNotFound", "Message": "The node does not exist (sandbox)", "NodeId": name}
                    for name in missing
                ],
            }
        )

    def batch_reboot_cluster_nodes(self) -> ActionResult:
        found, missing = self._nodes()
        for node in found:
            node.launched = now()
        return self._batch(found, missing)

    def batch_replace_cluster_nodes(self) -> ActionResult:
        found, missing = self._nodes()
        cluster = self._cluster()
        cluster.retire(found)
        for node in found:
            cluster.launch(cluster.groups[node.group], 1)
        return self._batch(found, missing)

    def _batch(self, found: list[Node], missing: list[str]) -> ActionResult:
        return ActionResult(
            {
                "Successful": [node.instance_id for node in found],
                "Failed": [
                    {"ErrorCode": "InstanceIdNotFound", "Message": "The node does not exist (sandbox)", "NodeId": name}
                    for name in missing
                ],
            }
        )

    def _nodes(self) -> tuple[list[Node], list[str]]:
        by_id = {
            key: node
            for node in self._cluster().nodes
            if not node.deleted
            for key in (node.instance_id, node.logical_id)
        }
        names = [*(self._get_param("NodeIds") or []), *(self._get_param("NodeLogicalIds") or [])]
        return [by_id[name] for name in names if name in by_id], [name for name in names if name not in by_id]

    def _continuous(self, operation: str) -> Cluster:
        cluster = self._cluster()
        if not cluster.continuous:
            raise refuse(
                "ValidationException", f"{operation} needs a cluster with NodeProvisioningMode Continuous (sandbox)"
            )
        return cluster

    def list_cluster_events(self) -> ActionResult:
        cluster = self._continuous("ListClusterEvents")
        group, node, kind = (self._get_param(key) for key in ("InstanceGroupName", "NodeId", "ResourceType"))
        events = [
            event
            for event in reversed(cluster.events)
            if (not group or event.group == group)
            and (not node or event.instance_id == node)
            and (not kind or event.resource_type == kind)
        ]
        return self._page([_event(cluster, event, False) for event in events], "Events")

    def describe_cluster_event(self) -> ActionResult:
        cluster = self._continuous("DescribeClusterEvent")
        for event in cluster.events:
            if event.event_id == self._get_param("EventId"):
                return ActionResult({"EventDetails": _event(cluster, event, True)})
        raise refuse("ResourceNotFound", f"Event {self._get_param('EventId')} does not exist (sandbox)")


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
        **({"EventDetails": {"EventMetadata": event.metadata}} if details else {}),
    }
