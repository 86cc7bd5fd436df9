"""Updates of nodes' software in batches, in shortened time, with alarms and a rollback.

During its update, a node is SystemUpdating for the duration of a boot. It then has the image of the cluster's
Kubernetes version, and the group's current lifecycle scripts have run. As in AWS, nothing drains a node before.

Sources: botocore 1.44.5 (shapes, and the order of SoftwareUpdateStatus); SageMaker Developer Guide, "Update the
SageMaker HyperPod platform software of a cluster" and "Update your AMI version in your SageMaker HyperPod cluster",
2026-11 (batches and alarms on EKS only; alarms are watched between batches). The rollback after failing
scripts is from field notes; messages without a source are podwright's.
"""

from datetime import datetime, timedelta
from typing import Final, Protocol

from ..protocol.clients import Clients
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from ..protocol.service import refuse
from . import logs as hyperpod_logs
from .cluster import Cluster, Group, Node
from .in_progress import SoftwareUpdate

FIRST_RELEASE: Final = "1.0.0"
"""The newest release of HyperPod's image, unless a user of the sandbox has added another."""
_WAIT_SHARE: Final = 1 / 300
"""Simulated seconds for each second of WaitIntervalInSeconds."""


class UpdateService(Protocol):
    """The methods of the service that an update needs."""

    images: dict[str, str]
    failing: dict[str, list[str]]
    clients: Clients

    def kubernetes_version(self, cluster: Cluster) -> str:
        """Return the Kubernetes version of a cluster's control plane."""
        ...


def begin(cluster: Cluster, service: UpdateService, values: JsonObject) -> None:
    """Start an update of the groups that a request names, or of all. Raises the API's errors."""
    if cluster.status(now()) != "InService":
        raise refuse(
            "ConflictException",
            f"Cluster {cluster.name} is in status {cluster.status(now())} and cannot be updated (sandbox)",
        )
    asked = {item["InstanceGroupName"]: item for item in values.get("InstanceGroups") or []}
    if missing := sorted(set(asked) - set(cluster.groups)):
        raise refuse("ValidationException", f"Instance group {', '.join(missing)} does not exist (sandbox)")
    config, image = values.get("DeploymentConfig") or {}, values.get("ImageId", "")
    if config and "Eks" not in cluster.request.get("Orchestrator", {}):
        raise refuse("ValidationException", "DeploymentConfig needs an Amazon EKS orchestrator (sandbox)")
    _alarms(service, cluster, config)
    # The service chooses the images of restricted groups, so DescribeCluster does not show their software.
    groups = [group for name, group in cluster.groups.items() if (name in asked or not asked) and not group.restricted]
    for group in groups:
        if group.specification.get("ImageId", "default") != "default" and not image:
            # Source: botocore, UpdateClusterSoftwareRequest.ImageId.
            raise refuse("ValidationException", f"{group.name} uses a custom AMI; ImageId is needed (sandbox)")
    for group in groups:
        own = image if image.startswith("ami-") else ""
        release = "" if own else asked.get(group.name, {}).get("ImageReleaseVersion") or service.images["latest"]
        group.update = SoftwareUpdate(release, group.release, own, config)
        cluster.note("InstanceGroup", f"Software update of {group.name} has begun (sandbox)", group=group.name)
    cluster.failure = ""
    proceed(cluster, service, now())


def proceed(cluster: Cluster, service: UpdateService, timestamp: datetime) -> None:
    """Perform the due steps of a cluster's updates."""
    for group in cluster.groups.values():
        members = cluster.members(group.name, timestamp)
        for node in members:
            _first(cluster, service, group, node)
        if group.update and group.update.active:
            _proceed(cluster, service, group, group.update, members, timestamp)


def describe(service: UpdateService, group: Group, members: list[Node]) -> JsonObject:
    """Return a group's software in the form of DescribeCluster."""
    update, rolling_back = group.update, bool(group.update and group.update.back)
    requested = update.release if update and update.active and not rolling_back else group.release
    answer: JsonObject = {"CurrentImageReleaseVersion": group.release, "DesiredImageReleaseVersion": requested}
    if update and rolling_back:
        answer = {"CurrentImageReleaseVersion": update.release, "DesiredImageReleaseVersion": update.earlier}
    answer |= {
        "ImageVersionStatus": status_of(service, group.release),
        "TargetStateCount": sum(node.release == answer["DesiredImageReleaseVersion"] for node in members),
    }
    if update:
        answer["SoftwareUpdateStatus"] = update.status
        if update.active and update.config:
            answer["ActiveSoftwareUpdateConfig"] = update.config
    return {key: value for key, value in answer.items() if value != ""}


def status_of(service: UpdateService, release: str) -> str:
    """Return the ImageVersionStatus of a release."""
    if release in ("", service.images["latest"]):
        return "UpToDate"
    return "SecurityUpdateRequired" if service.images.get("security") else "UpdateAvailable"


def _first(cluster: Cluster, service: UpdateService, group: Group, node: Node) -> None:
    """Set the image, Kubernetes version and scripts of a new node, and of a new group."""
    if not group.release and group.specification.get("ImageId", "default") == "default":
        group.release = group.specification.get("ImageReleaseVersion") or service.images["latest"]
    if not node.kubelet:
        update = group.update
        node.release = update.release if update and update.active and not update.back else group.release
        _set_up(cluster, service, group, node)


def _set_up(cluster: Cluster, service: UpdateService, group: Group, node: Node) -> None:
    node.kubelet = service.kubernetes_version(cluster)
    node.scripts = group.specification.get("LifeCycleConfig", {}).get("SourceS3Uri", "")


def _proceed(
    cluster: Cluster,
    service: UpdateService,
    group: Group,
    update: SoftwareUpdate,
    members: list[Node],
    timestamp: datetime,
) -> None:
    """Start the next batch of an update after the former one, or roll back if too many nodes failed."""
    by_id = {node.instance_id: node for node in members}
    update.under_way = [name for name in update.under_way if name in by_id]
    if any(by_id[name].status(timestamp) == "SystemUpdating" for name in update.under_way):
        return
    if update.under_way:
        _landed(cluster, service, group, update, [by_id[name] for name in update.under_way], timestamp)
    # An alarm before the first batch is not about the new image.
    if update.status == "InProgress" and update.done and (alarm := _ringing(service, cluster, update.config)):
        _turn_back(cluster, group, update, f"Alarm {alarm} is in state ALARM")
    if not update.active or timestamp < update.next_at:
        return
    left = [node for node in members if _has_to_go(update, node)]
    if not left:
        _end(cluster, group, update)
        return
    update.status = "InProgress" if update.status == "Pending" else update.status
    for node in left[: _batch(update, group.target)]:
        node.updating_until = timestamp + timedelta(seconds=node.boot_seconds)
        update.under_way.append(node.instance_id)


def _has_to_go(update: SoftwareUpdate, node: Node) -> bool:
    # An update continues with the other nodes; a rollback with the updated ones.
    return (node.instance_id in update.done) == update.back


def _landed(
    cluster: Cluster,
    service: UpdateService,
    group: Group,
    update: SoftwareUpdate,
    nodes: list[Node],
    timestamp: datetime,
) -> None:
    """Install the new image on nodes, and run their lifecycle scripts."""
    lines = service.failing.get(group.name)
    for node in nodes:
        node.software_updated = timestamp
        update.under_way.remove(node.instance_id)
        if update.back:
            update.done.remove(node.instance_id)
        else:
            update.done.append(node.instance_id)
        node.release = update.earlier if update.back else update.release
        _set_up(cluster, service, group, node)
        code = hyperpod_logs.FAILED.format(code=1) if lines else hyperpod_logs.SUCCEEDED
        hyperpod_logs.lifecycle(cluster, group.name, node.instance_id, [*(lines or []), code], timestamp)
    # Alarms are watched during WaitIntervalInSeconds, but not in a rollback.
    wait = 0.0 if update.back else float(update.config.get("WaitIntervalInSeconds", 0)) * _WAIT_SHARE
    update.next_at = timestamp + timedelta(seconds=wait * cluster.timing.scale)
    if lines and not update.back:
        reason = f"Lifecycle scripts did not run successfully on {nodes[0].instance_id}"
        _turn_back(cluster, group, update, f"{reason}. To view the logs, visit {hyperpod_logs.group_of(cluster)}")
    # The scripts fail with the former image too, so a rollback cannot help.
    elif lines:
        update.status = "Failed"
        cluster.failure = update.reason


def _turn_back(cluster: Cluster, group: Group, update: SoftwareUpdate, reason: str) -> None:
    update.status, update.reason, update.next_at = "RollbackInProgress", reason, now()
    cluster.note("InstanceGroup", f"Software update of {group.name} is rolled back: {reason}", "Error", group.name)


def _end(cluster: Cluster, group: Group, update: SoftwareUpdate) -> None:
    if update.back:
        update.status, cluster.failure = "RollbackComplete", update.reason
    else:
        update.status, group.release = "Succeeded", update.release
        group.specification["ImageId"] = update.image_id or "default"
    cluster.note("InstanceGroup", f"Software update of {group.name}: {update.status} (sandbox)", group=group.name)


def _batch(update: SoftwareUpdate, count: int) -> int:
    """Return the size of a batch: by default all nodes."""
    policy = update.config.get("RollingUpdatePolicy", {})
    size = (update.back and policy.get("RollbackMaximumBatchSize")) or policy.get("MaximumBatchSize")
    if not size:
        return count
    value = int(size["Value"])
    # Rounded up to one at least; otherwise the update of a small group would never start.
    return max(1, -(-count * value // 100) if size["Type"] == "CAPACITY_PERCENTAGE" else value)


def _names(config: JsonObject) -> list[str]:
    return [item["AlarmName"] for item in config.get("AutoRollbackConfiguration", [])]


def _alarms(service: UpdateService, cluster: Cluster, config: JsonObject) -> None:
    if names := _names(config):
        metric_alarms = service.clients.client("cloudwatch", cluster.region).describe_alarms(AlarmNames=names)[
            "MetricAlarms"
        ]
        if missing := sorted(set(names) - {alarm["AlarmName"] for alarm in metric_alarms}):
            raise refuse("ValidationException", f"Alarm {', '.join(missing)} does not exist (sandbox)")


def _ringing(service: UpdateService, cluster: Cluster, config: JsonObject) -> str | None:
    if not (names := _names(config)):
        return None
    metric_alarms = service.clients.client("cloudwatch", cluster.region).describe_alarms(AlarmNames=names)[
        "MetricAlarms"
    ]
    return next((alarm["AlarmName"] for alarm in metric_alarms if alarm["StateValue"] == "ALARM"), None)
