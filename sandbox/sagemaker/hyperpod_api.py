# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""The HyperPod operations of the SageMaker API, with those of quotas and training plans.

moto answers all other SageMaker operations.
"""

from datetime import datetime

from moto.core.responses import ActionResult

from ..hyperpod.answers import group_answer, node_answer
from ..hyperpod.cluster import Cluster, Group, Node
from ..hyperpod.software import describe, status_of
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject, picked
from ..protocol.service import refuse
from .extensions import ExtensionOperations
from .node_health_api import HealthOperations, refuse_controllers
from .schedulers_api import SchedulerOperations
from .tags_api import TagOperations
from .training_plans_api import TrainingPlanOperations


class HyperPodResponse(
    HealthOperations, ExtensionOperations, SchedulerOperations, TrainingPlanOperations, TagOperations
):
    """SageMaker's API with the sandbox's HyperPod, its quotas and training plans."""

    def _cluster(self) -> Cluster:
        return self.service.cluster(self.region, self._get_param("ClusterName"))

    def _group(self, cluster: Cluster, group: Group, timestamp: datetime) -> JsonObject:
        """Return a group in the form of DescribeCluster, which omits the software of restricted groups."""
        answer = group_answer(cluster, group, timestamp, self.service.plans.status(cluster.region, group.plan))
        members = cluster.members(group.name, timestamp)
        return answer if group.restricted else answer | describe(self.service, group, members)

    def create_cluster(self) -> ActionResult:
        return ActionResult({"ClusterArn": self.service.create(self.region, self.arguments()).arn})

    def update_cluster(self) -> ActionResult:
        return ActionResult({"ClusterArn": self.service.update(self.region, self.arguments()).arn})

    def delete_cluster(self) -> ActionResult:
        return ActionResult({"ClusterArn": self.service.delete(self.region, self._get_param("ClusterName")).arn})

    def describe_cluster(self) -> ActionResult:
        """Describe a cluster with its groups, their counts and the conditions that they wait for."""
        cluster, timestamp = self._cluster(), now()
        groups = list(cluster.groups.values())
        return ActionResult(
            {
                **picked(
                    cluster.request,
                    "VpcConfig",
                    "Orchestrator",
                    "NodeRecovery",
                    "NodeProvisioningMode",
                    "TieredStorageConfig",
                    "ClusterRole",
                ),
                "ClusterArn": cluster.arn,
                "ClusterName": cluster.name,
                "ClusterStatus": cluster.status(timestamp),
                "CreationTime": cluster.created,
                "FailureMessage": cluster.failure,
                "InstanceGroups": [self._group(cluster, group, timestamp) for group in groups if not group.restricted],
                "RestrictedInstanceGroups": [
                    self._group(cluster, group, timestamp) for group in groups if group.restricted
                ],
            }
        )

    def list_clusters(self) -> ActionResult:
        """List the clusters of the region."""
        requested = self._get_param("NameContains") or ""
        return self._page(
            [
                {
                    "ClusterArn": cluster.arn,
                    "ClusterName": cluster.name,
                    "CreationTime": cluster.created,
                    "ClusterStatus": cluster.status(now()),
                }
                for cluster in self.service.all(self.region)
                if requested in cluster.name
            ],
            "ClusterSummaries",
        )

    def list_cluster_nodes(self) -> ActionResult:
        cluster, timestamp = self._cluster(), now()
        requested = self._get_param("InstanceGroupNameContains") or ""
        return self._page(
            [
                node_answer(cluster, node, timestamp, False) | self._image(node)
                for node in cluster.nodes
                if requested in node.group
            ],
            "ClusterNodeSummaries",
        )

    def _image(self, node: Node) -> JsonObject:
        if not node.release:
            return {}
        return {"CurrentImageReleaseVersion": node.release, "ImageVersionStatus": status_of(self.service, node.release)}

    def describe_cluster_node(self) -> ActionResult:
        cluster = self._cluster()
        requested = self._get_param("NodeId") or self._get_param("NodeLogicalId")
        for node in cluster.nodes:
            if requested in (node.instance_id, node.logical_id):
                return ActionResult({"NodeDetails": node_answer(cluster, node, now(), True) | self._image(node)})
        raise refuse("ResourceNotFound", f"Node {requested} does not exist in cluster {cluster.name} (sandbox)")

    def update_cluster_software(self) -> ActionResult:
        return ActionResult({"ClusterArn": self.service.update_software(self.region, self.arguments()).arn})

    def batch_add_cluster_nodes(self) -> ActionResult:
        """Raise the target counts of groups. Unknown groups fail alone."""
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
            cluster.settle(self.service, now())
            done += [
                {"NodeLogicalId": node.logical_id, "InstanceGroupName": group.name, "Status": "Pending"}
                for node in cluster.nodes[before:]
            ]
        return ActionResult({"Successful": done, "Failed": failed})

    def batch_delete_cluster_nodes(self) -> ActionResult:
        """Delete nodes, and lower the targets of their groups. A node that cannot be deleted fails alone.

        Which of the codes an unfit node gets is our reading of their names.
        """
        cluster = self._cluster()
        ids, logical_ids = (self._get_param(key) or [] for key in ("NodeIds", "NodeLogicalIds"))
        if not ids and not logical_ids:
            raise refuse("ValidationException", "Either NodeIds or NodeLogicalIds has to be given (sandbox)")
        # Of two nodes with one logical id, the later one is the replacement.
        known = {key: node for node in cluster.nodes for key in (node.instance_id, node.logical_id)}
        named = {name: known.get(name) for name in (*ids, *logical_ids)}
        refuse_controllers(cluster, "deleted", [node for node in named.values() if node])
        with self.service.lock:
            failed = {name: error for name, node in named.items() if (error := _why_it_stays(cluster, node))}
            going = [node for name, node in named.items() if node and name not in failed]
            for group in (cluster.groups[node.group] for node in going):
                group.specification["InstanceCount"] = group.target - 1
            cluster.retire(going)
        answer = {
            "Successful": [name for name in ids if name not in failed],
            "Failed": [failed[name] | {"NodeId": name} for name in ids if name in failed],
            "SuccessfulNodeLogicalIds": [name for name in logical_ids if name not in failed],
            "FailedNodeLogicalIds": [failed[name] | {"NodeLogicalId": name} for name in logical_ids if name in failed],
        }
        # The API's model forbids empty lists.
        return ActionResult({key: items for key, items in answer.items() if items})


def _why_it_stays(cluster: Cluster, node: Node | None) -> JsonObject | None:
    """Return the error of a node that cannot be deleted."""
    if node is None:
        return {"Code": "NodeIdNotFound", "Message": "The node does not exist (sandbox)"}
    status = node.status(now())
    if status in ("ShuttingDown", "SystemUpdating"):
        return {"Code": "InvalidNodeStatus", "Message": f"The node is {status} (sandbox)"}
    if any(repair.instance_id == node.instance_id and repair.labelled for repair in cluster.repairs):
        return {"Code": "NodeIdInUse", "Message": "HyperPod is repairing the node (sandbox)"}
    return None
