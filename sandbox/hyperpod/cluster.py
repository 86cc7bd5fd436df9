"""SageMaker HyperPod: clusters, instance groups and nodes that live through their states in shortened time.

Nothing runs in the background. A node's status follows from when it was launched and the `Timing`, so the same history
gives the same answer at any moment, also after a restart. `settle` does what the service would have done meanwhile.

Sources: botocore 1.44.5 service model of SageMaker (shapes, status values); the words for missing capacity are those of
awslabs/awsome-distributed-ai issue 204 (2024-03-09).
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
"""The health label of a node that takes work."""
NO_CAPACITY = "We currently do not have sufficient capacity for the requested instance type(s). Please try again."


@dataclass
class Timing:
    """How long things take, in seconds; real clusters need minutes. `scale` stretches all of them."""

    boot: float = 2.0
    deep_health_check: float = 2.0
    shutdown: float = 1.0
    scale: float = 1.0


@dataclass
class Shortage:
    """A zone that has no capacity for a type; an empty instance type stands for all types."""

    # An unknown key of the sandbox's own operation is refused.
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
    """Where in its zone's network it is; nodes with numbers near each other are near each other."""
    software_updated: datetime | None = None
    updating_until: datetime | None = None
    release: str = ""
    kubelet: str = ""
    """Kubernetes version of its image."""
    scripts: str = ""
    """Where the lifecycle scripts were that it last ran."""
    checked: datetime | None = None
    """When a deep health check was last begun on request."""
    boots: int = 0
    logged: bool = False
    """Whether its lifecycle scripts have written their log."""
    health: str = HEALTHY
    fault: JsonObject = field(default_factory=dict)
    patch: JsonObject = field(default_factory=dict)
    """What somebody has changed of its Kubernetes object."""
    deleted: datetime | None = None
    instance_id: str = field(default_factory=lambda: f"i-{uuid.uuid4().hex[:17]}")
    logical_id: str = field(default_factory=lambda: f"node-{uuid.uuid4().hex[:17]}")

    def status(self, timestamp: datetime) -> str | None:
        """The node's status, or None once it is gone."""
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
        # What is rebooted is not checked again.
        checks = 0.0 if self.boots else self.check_seconds
        return "DeepHealthCheckInProgress" if age < self.boot_seconds + checks else "Running"

    @property
    def ready(self) -> datetime:
        """When the node is Running."""
        return self.launched + timedelta(seconds=self.boot_seconds + self.check_seconds)


def instance_id_at(spot: int) -> str:
    """Return a new instance id. In the order of ids, nodes are in the order of their locations.

    Schedulers choose between equal nodes by name, so they take those first that the sandbox makes real first.
    """
    return f"i-0{spot:04x}{uuid.uuid4().hex[:12]}"


@dataclass
class Group:
    """An instance group: its specification as given, and how many nodes it should have."""

    specification: JsonObject
    restricted: bool = False
    release: str = ""
    """Release of HyperPod's image that its nodes have."""
    update: SoftwareUpdate | None = None
    """The last update of its nodes' software."""

    @property
    def name(self) -> str:
        """The group's name."""
        return self.specification["InstanceGroupName"]

    @property
    def target(self) -> int:
        """How many nodes the group should have."""
        return int(self.specification["InstanceCount"])

    @property
    def plan(self) -> str:
        """The ARN of the training plan that its nodes come from; empty without one."""
        return self.specification.get("TrainingPlanArn", "")

    @property
    def slurm_type(self) -> str | None:
        """What its nodes are to Slurm, if the API says so: Controller, Login or Compute."""
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
    """Tells what nodes a group can have."""

    def obstacle(self, cluster: "Cluster", group: Group) -> str | None:
        """Why a group gets no new nodes now; None when it does."""
        ...

    def waits(self, cluster: "Cluster", group: Group) -> str | None:
        """What a group without an obstacle waits for before it gets nodes; None when for nothing."""
        ...

    def places(self, cluster: "Cluster", group: Group) -> list[JsonObject] | None:
        """The UltraServers ({} for none) of the nodes that a group's training plan still has; None without a plan."""
        ...

    def surplus(self, cluster: "Cluster", group: Group) -> int:
        """How many nodes of a group its training plan no longer holds."""
        ...


@dataclass
class Cluster:
    """A HyperPod cluster. `request` holds the members of CreateCluster that are neither groups nor tags."""

    name: str
    arn: str
    region: str
    request: JsonObject
    timing: Timing
    groups: dict[str, Group] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    events: list[ClusterEvent] = field(default_factory=list)
    created: datetime = field(default_factory=now)
    # The operation under way: its status, when it ends, and the status and message that it ends with.
    busy: str = "Creating"
    busy_until: datetime = field(default_factory=now)
    outcome: str = "InService"
    failure: str = ""
    # False until a Slurm cluster with continuous provisioning has the nodes that it needs to be in service.
    begun: bool = True
    subnets: dict[str, JsonObject] = field(default_factory=dict)
    repairs: list[Repair] = field(default_factory=list)
    extensions: dict[str, JsonObject] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    operations: list[JsonObject] = field(default_factory=list)
    health_events: list[JsonObject] = field(default_factory=list)
    # How much of its events, and which status, EventBridge has had.
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def continuous(self) -> bool:
        """Whether nodes come independently of the cluster's status."""
        return self.request.get("NodeProvisioningMode") == "Continuous"

    def status(self, timestamp: datetime) -> str:
        """The cluster's status."""
        if timestamp < self.busy_until:
            return self.busy
        if any(group.update and group.update.active for group in self.groups.values()):
            return "SystemUpdating"
        return self.outcome if self.begun or self.outcome != "InService" else "Creating"

    def runs(self, timestamp: datetime, *slurm_types: str) -> bool:
        """Whether each group of these node types, if there is one with nodes to be, has a node that runs."""
        return all(
            self.running(group.name, timestamp)
            for group in self.groups.values()
            if group.slurm_type in slurm_types and group.target
        )

    def turn_of(self, group: Group, timestamp: datetime) -> bool:
        """Whether nodes of a group may come: with continuous provisioning all others wait for a Slurm controller."""
        return not self.continuous or group.slurm_type in (None, "Controller") or self.runs(timestamp, "Controller")

    def members(self, group: str, timestamp: datetime) -> list[Node]:
        """The nodes of a group that are not gone and not going."""
        return [node for node in self.nodes if node.group == group and not node.deleted]

    def running(self, group: str, timestamp: datetime) -> int:
        """How many of those nodes run."""
        return sum(node.status(timestamp) == "Running" for node in self.members(group, timestamp))

    def group_status(self, group: Group, timestamp: datetime) -> str:
        """A group's status. A group without its nodes is Degraded once the cluster is in service."""
        if self.status(timestamp) in ("Creating", "Updating", "Deleting", "Failed"):
            return self.status(timestamp)
        statuses = [node.status(timestamp) for node in self.nodes if node.group == group.name]
        if group.update and group.update.active:
            return "SystemUpdating"
        if any(status != "Running" for status in statuses if status):
            return "Updating"
        return "InService" if statuses.count("Running") >= group.target else "Degraded"

    def settle(self, provisioning: Provisioning, timestamp: datetime) -> None:
        """Do what the service did meanwhile: drop nodes that are gone, launch what is missing and has no obstacle.

        Nodes come by themselves with continuous provisioning, and to groups of a training plan once it is active; they
        go by themselves when its time is over.
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
        """The VpcConfig that holds for a group."""
        return group.specification.get("OverrideVpcConfig") or self.request.get("VpcConfig") or {}

    def zone_of(self, group: Group) -> JsonObject:
        """The first subnet of a group, as EC2 describes it."""
        return self.subnets.get((self.vpc_of(group).get("Subnets") or [""])[0], {})

    def short_of(self, group: Group, shortages: list[Shortage]) -> bool:
        """Whether the group's zone has no capacity for its type."""
        zone_id = self.zone_of(group).get("AvailabilityZoneId")
        return any(item.zone_id == zone_id and item.instance_type in ("", group.instance_type) for item in shortages)

    def launch(self, group: Group, count: int, provisioning: Provisioning) -> None:
        """Start nodes: as many as the group's training plan still has, if it has one."""
        subnet, timing, locations = self.zone_of(group), self.timing, provisioning.places(self, group)
        checks = timing.deep_health_check if group.specification.get("OnStartDeepHealthChecks") else 0.0
        for ultraserver in [{}] * count if locations is None else locations[:count]:
            prefix = subnet.get("CidrBlock", "10.0.0.0/16").rsplit(".", 2)[0]
            # EC2 keeps the first addresses of each subnet for itself.
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
        """The first place in a zone where no node of this cluster is; a node's replacement so takes its place."""
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
        """Start what brings every group to its target, and settle how the operation ends.

        Without continuous provisioning it ends when all nodes run, and fails as a whole where a group cannot grow: the
        new nodes go, and a new cluster ends Failed, an updated one InService with the message.
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
            # Of all groups only a controller that cannot come ends the creation of a continuous cluster.
            lost = [reason for name, reason in short.items() if self.groups[name].slurm_type == "Controller"]
            self.failure, self.outcome = (lost[0], "Failed") if lost else ("", "InService")
        if not self.continuous:
            self.busy_until = max([self.busy_until, *(node.ready for node in launched)])
            if short:
                self.failure = next(iter(short.values()))
                self.outcome = "Failed" if verb == "Creating" else "InService"
                # The update is taken back as a whole, the counts that it asked for with it.
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
        """Write an event."""
        self.events.append(ClusterEvent(resource_type, description, level, group, instance_id, metadata or {}))

    def note_health(self, node: Node, reason: str, action: str) -> None:
        """Write that a node is unhealthy, with the reason and what is done about it; without a reason it is healthy."""
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
