"""SageMaker HyperPod: clusters, instance groups and nodes that go through their states in shortened time.

Nothing runs in the background. A node's status is calculated from its launch time and the `Timing`, so the same history
always gives the same answer, also after a restart. `settle` applies the changes that the service would have made since.

Sources: botocore 1.44.5 service model of SageMaker (shapes, status values); awslabs/awsome-distributed-ai issue 204
(2024-03-09, the message for missing capacity).
"""

import itertools
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from .in_progress import Repair, SoftwareUpdate

HEALTHY: Final = "Schedulable"
"""Health label of a schedulable node."""
NO_CAPACITY = "We currently do not have sufficient capacity for the requested instance type(s). Please try again."


@dataclass
class Timing:
    """Durations in seconds, where real clusters take minutes. `scale` multiplies all of them."""

    boot: float = 2.0
    deep_health_check: float = 2.0
    shutdown: float = 1.0
    scale: float = 1.0


@dataclass
class Shortage:
    """A zone without capacity for an instance type, or for all types if the type is empty."""

    # The sandbox's operation refuses unknown keys.
    __pydantic_config__ = {"extra": "forbid"}

    zone_id: str
    instance_type: str = ""


@dataclass
class Node:
    """One instance of a group."""

    group: str
    instance_type: str
    subnet_id: str
    zone: str
    zone_id: str
    address: str
    boot_seconds: float
    check_seconds: float
    shutdown_seconds: float
    asked_check_seconds: float = 2.0
    launched: datetime = field(default_factory=now)
    ultraserver: JsonObject = field(default_factory=dict)
    spot: int = 0
    """Its position in the zone's network. Nodes with close numbers share switches."""
    software_updated: datetime | None = None
    updating_until: datetime | None = None
    release: str = ""
    kubelet: str = ""
    """Kubernetes version of its image."""
    scripts: str = ""
    """Source of the lifecycle scripts that it last ran."""
    checked: datetime | None = None
    """Start of the last deep health check on request."""
    boots: int = 0
    logged: bool = False
    """True if its lifecycle scripts have written their log."""
    health: str = HEALTHY
    fault: JsonObject = field(default_factory=dict)
    patch: JsonObject = field(default_factory=dict)
    """Changes of its Kubernetes object by clients, as a merge patch."""
    deleted: datetime | None = None
    instance_id: str = field(default_factory=lambda: f"i-{uuid.uuid4().hex[:17]}")
    logical_id: str = field(default_factory=lambda: f"node-{uuid.uuid4().hex[:17]}")

    def status(self, timestamp: datetime) -> str | None:
        """Return the node's status; None for a deleted node."""
        if self.deleted:
            removed = self.deleted + timedelta(seconds=self.shutdown_seconds)
            return "ShuttingDown" if timestamp < removed else None
        if self.updating_until and timestamp < self.updating_until:
            return "SystemUpdating"
        age = (timestamp - self.launched).total_seconds()
        if age < self.boot_seconds:
            return "Pending"
        if self.checked and 0 <= (timestamp - self.checked).total_seconds() < self.asked_check_seconds:
            return "DeepHealthCheckInProgress"
        # A rebooted node is not checked again.
        checks = 0.0 if self.boots else self.check_seconds
        return "DeepHealthCheckInProgress" if age < self.boot_seconds + checks else "Running"

    @property
    def ready(self) -> datetime:
        """The time at which the node becomes Running."""
        return self.launched + timedelta(seconds=self.boot_seconds + self.check_seconds)


def instance_id_at(spot: int) -> str:
    """Return a new instance id. Ids sort in the order of the nodes' positions in the network.

    Schedulers choose between equal nodes by name, so they prefer the nodes that the sandbox makes real first.
    """
    return f"i-0{spot:04x}{uuid.uuid4().hex[:12]}"


@dataclass
class Group:
    """An instance group: its specification and its target count."""

    specification: JsonObject
    restricted: bool = False
    release: str = ""
    """Release of HyperPod's image on its nodes."""
    update: SoftwareUpdate | None = None
    """The last update of its nodes' software."""

    @property
    def name(self) -> str:
        """The group's name."""
        return self.specification["InstanceGroupName"]

    @property
    def target(self) -> int:
        """The group's target number of nodes."""
        return int(self.specification["InstanceCount"])

    @property
    def plan(self) -> str:
        """The ARN of the training plan of its nodes; empty without one."""
        return self.specification.get("TrainingPlanArn", "")

    @property
    def slurm_type(self) -> str | None:
        """Its node type in Slurm, if the API sets it: Controller, Login or Compute."""
        return self.specification.get("SlurmConfig", {}).get("NodeType")

    @property
    def instance_type(self) -> str:
        """The type, or the first of the allowed types."""
        types = self.specification.get("InstanceRequirements", {}).get("InstanceTypes", [])
        return self.specification.get("InstanceType") or types[0]


@dataclass
class ClusterEvent:
    """An entry of ListClusterEvents."""

    resource_type: str
    description: str
    level: str = "Info"
    group: str | None = None
    instance_id: str | None = None
    metadata: JsonObject = field(default_factory=dict)
    time: datetime = field(default_factory=now)
    event_id: str = field(default_factory=lambda: str(uuid.uuid4()))


class Provisioning(Protocol):
    """The limits of groups: capacity, quotas and training plans."""

    def obstacle(self, cluster: "Cluster", group: Group) -> str | None:
        """Return the reason for which a group gets no new nodes now; None if it gets them."""
        ...

    def waits(self, cluster: "Cluster", group: Group) -> str | None:
        """Return the condition that a group without an obstacle waits for; None if it does not wait."""
        ...

    def places(self, cluster: "Cluster", group: Group) -> list[JsonObject] | None:
        """Return the UltraServers ({} for none) of a training plan's remaining nodes; None without a plan."""
        ...

    def surplus(self, cluster: "Cluster", group: Group) -> int:
        """Return the number of a group's nodes that its training plan no longer provides."""
        ...


@dataclass
class Cluster:
    """A HyperPod cluster. `request` has the members of CreateCluster except for groups and tags."""

    name: str
    arn: str
    region: str
    request: JsonObject
    timing: Timing
    groups: dict[str, Group] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    events: list[ClusterEvent] = field(default_factory=list)
    created: datetime = field(default_factory=now)
    # The current operation: its status, its end, and the status and message at its end.
    busy: str = "Creating"
    busy_until: datetime = field(default_factory=now)
    outcome: str = "InService"
    failure: str = ""
    # False until a Slurm cluster with continuous provisioning has the nodes that InService requires.
    begun: bool = True
    subnets: dict[str, JsonObject] = field(default_factory=dict)
    repairs: list[Repair] = field(default_factory=list)
    extensions: dict[str, JsonObject] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    operations: list[JsonObject] = field(default_factory=list)
    health_events: list[JsonObject] = field(default_factory=list)
    # Number of events, and the last status, that were sent to EventBridge.
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def continuous(self) -> bool:
        """True if HyperPod adds nodes independently of the cluster's status."""
        return self.request.get("NodeProvisioningMode") == "Continuous"

    def status(self, timestamp: datetime) -> str:
        """Return the cluster's status."""
        if timestamp < self.busy_until:
            return self.busy
        if any(group.update and group.update.active for group in self.groups.values()):
            return "SystemUpdating"
        return self.outcome if self.begun or self.outcome != "InService" else "Creating"

    def runs(self, timestamp: datetime, *slurm_types: str) -> bool:
        """Return True if each group of these Slurm node types whose target is not 0 has a running node."""
        return all(
            self.running(group.name, timestamp)
            for group in self.groups.values()
            if group.slurm_type in slurm_types and group.target
        )

    def turn_of(self, group: Group, timestamp: datetime) -> bool:
        """Return True if a group may get nodes. With continuous provisioning, groups wait for Slurm's controller."""
        return not self.continuous or group.slurm_type in (None, "Controller") or self.runs(timestamp, "Controller")

    def members(self, group: str, timestamp: datetime) -> list[Node]:
        """Return the nodes of a group that are not being deleted."""
        return [node for node in self.nodes if node.group == group and not node.deleted]

    def running(self, group: str, timestamp: datetime) -> int:
        """Return the number of a group's running nodes."""
        return sum(node.status(timestamp) == "Running" for node in self.members(group, timestamp))

    def group_status(self, group: Group, timestamp: datetime) -> str:
        """Return a group's status. In a cluster that is in service, a group that lacks nodes is Degraded."""
        if self.status(timestamp) in ("Creating", "Updating", "Deleting", "Failed"):
            return self.status(timestamp)
        statuses = [node.status(timestamp) for node in self.nodes if node.group == group.name]
        if group.update and group.update.active:
            return "SystemUpdating"
        if any(status != "Running" for status in statuses if status):
            return "Updating"
        return "InService" if statuses.count("Running") >= group.target else "Degraded"

    def settle(self, provisioning: Provisioning, timestamp: datetime) -> None:
        """Apply the changes since the last call: remove deleted nodes, and launch missing ones if nothing prevents it.

        Nodes are launched with continuous provisioning, and in groups of a training plan once the plan is active. They
        are terminated at the end of the plan.
        """
        self.nodes = [node for node in self.nodes if node.status(timestamp)]
        if self.outcome in ("Deleting", "Failed"):
            return
        self.begun = self.begun or (self.continuous and self.runs(timestamp, "Controller", "Login"))
        for group in self.groups.values():
            if surplus := provisioning.surplus(self, group):
                self.retire(self.members(group.name, timestamp)[-surplus:])
            missing = group.target - len(self.members(group.name, timestamp))
            alone = self.continuous or group.plan
            if alone and missing > 0 and self.turn_of(group, timestamp) and provisioning.obstacle(self, group) is None:
                self.launch(group, missing, provisioning)

    def vpc_of(self, group: Group) -> JsonObject:
        """Return the VpcConfig of a group, by default the cluster's."""
        return group.specification.get("OverrideVpcConfig") or self.request.get("VpcConfig") or {}

    def zone_of(self, group: Group) -> JsonObject:
        """Return EC2's description of a group's first subnet."""
        return self.subnets.get((self.vpc_of(group).get("Subnets") or [""])[0], {})

    def short_of(self, group: Group, shortages: list[Shortage]) -> bool:
        """Return True if the group's zone has no capacity for its type."""
        zone_id = self.zone_of(group).get("AvailabilityZoneId")
        return any(item.zone_id == zone_id and item.instance_type in ("", group.instance_type) for item in shortages)

    def launch(self, group: Group, count: int, provisioning: Provisioning) -> None:
        """Launch nodes, at most the remaining ones of the group's training plan."""
        subnet, timing, locations = self.zone_of(group), self.timing, provisioning.places(self, group)
        checks = timing.deep_health_check if group.specification.get("OnStartDeepHealthChecks") else 0.0
        for ultraserver in [{}] * count if locations is None else locations[:count]:
            prefix = subnet.get("CidrBlock", "10.0.0.0/16").rsplit(".", 2)[0]
            # EC2 reserves the first addresses of each subnet.
            index = len(self.nodes) + 10
            spot = self._free_spot(subnet.get("AvailabilityZoneId", ""))
            node = Node(
                group.name,
                group.instance_type,
                subnet.get("SubnetId", ""),
                subnet.get("AvailabilityZone", ""),
                subnet.get("AvailabilityZoneId", ""),
                f"{prefix}.{index // 250}.{index % 250}",
                timing.boot * timing.scale,
                checks * timing.scale,
                timing.shutdown * timing.scale,
                timing.deep_health_check * timing.scale,
                ultraserver=ultraserver,
                spot=spot,
                instance_id=instance_id_at(spot),
            )
            self.nodes.append(node)
            self.note(
                "Instance",
                f"Instance {node.instance_id} is being launched.",
                group=group.name,
                instance_id=node.instance_id,
                metadata={"Instance": {"NodeLogicalId": node.logical_id, "LcsExecutionState": "Pending"}},
            )

    def _free_spot(self, zone: str) -> int:
        """Return the first free position in a zone's network. A replacement gets the position of its node."""
        taken = {node.spot for node in self.nodes if node.zone_id == zone and not node.deleted}
        return next(spot for spot in itertools.count() if spot not in taken)

    def retire(self, nodes: list[Node]) -> None:
        """Shut nodes down."""
        for node in nodes:
            node.deleted = now()
            self.note(
                "Instance",
                f"Instance {node.instance_id} is shutting down.",
                group=node.group,
                instance_id=node.instance_id,
            )

    def converge(self, provisioning: Provisioning, verb: str) -> None:
        """Launch and terminate nodes so that every group reaches its target, and set the end of the operation.

        Without continuous provisioning, it ends when all nodes run. If a group cannot grow, the whole operation fails:
        no node is launched, and a new cluster becomes Failed, an updated one InService with the message.
        """
        timestamp, launched = now(), list[Node]()
        short = {
            group.name: reason
            for group in self.groups.values()
            if group.target > len(self.members(group.name, timestamp))
            and (reason := provisioning.obstacle(self, group))
        }
        self.failure = ""
        for group in self.groups.values():
            members = self.members(group.name, timestamp)
            if len(members) > group.target:
                self.retire(members[group.target :])
            elif group.name not in short and (self.continuous or not short) and self.turn_of(group, timestamp):
                before = len(self.nodes)
                self.launch(group, group.target - len(members), provisioning)
                if reason := provisioning.waits(self, group):
                    self._note_scaling(group, f"Instance group {group.name} waits: {reason}", "Info", reason)
                launched += self.nodes[before:]
        for name, reason in short.items():
            self._note_scaling(
                self.groups[name], f"Instance group {name} could not be scaled: {reason}", "Error", reason
            )
        wait = self.timing.scale * (0.5 if self.continuous else self.timing.boot)
        self.busy, self.busy_until, self.outcome = verb, timestamp + timedelta(seconds=wait), "InService"
        if self.continuous and verb == "Creating":
            # With continuous provisioning, only a missing Slurm controller lets the creation fail.
            lost = [reason for name, reason in short.items() if self.groups[name].slurm_type == "Controller"]
            self.failure, self.outcome = (lost[0], "Failed") if lost else ("", "InService")
        if not self.continuous:
            self.busy_until = max([self.busy_until, *(node.ready for node in launched)])
            if short:
                self.failure = next(iter(short.values()))
                self.outcome = "Failed" if verb == "Creating" else "InService"
                # The whole update is rolled back, with the requested counts.
                for name in short:
                    self.groups[name].specification["InstanceCount"] = len(self.members(name, timestamp))

    def note(
        self,
        resource_type: str,
        description: str,
        level: str = "Info",
        group: str | None = None,
        instance_id: str | None = None,
        metadata: JsonObject | None = None,
    ) -> None:
        """Add an event."""
        self.events.append(ClusterEvent(resource_type, description, level, group, instance_id, metadata or {}))

    def note_health(self, node: Node, reason: str, action: str) -> None:
        """Add an event about an unhealthy node with reason and action; without a reason, about a healthy one."""
        summary = {
            "HealthStatus": "Unhealthy" if reason else "Healthy",
            "HealthStatusReason": reason,
            "RepairAction": action,
            "Recommendation": "",
        }
        self.health_events.append({"InstanceId": node.instance_id, "HealthSummary": summary})

    def _note_scaling(self, group: Group, description: str, level: str, reason: str) -> None:
        counts = {"InstanceCount": len(self.members(group.name, now())), "TargetCount": group.target}
        metadata = {"InstanceGroupScaling": {**counts, "FailureMessage": reason}}
        self.note("InstanceGroup", description, level, group.name, metadata=metadata)
