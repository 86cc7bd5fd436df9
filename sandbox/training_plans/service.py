"""Training plans of all regions: their clock, and what they mean for HyperPod's groups.

A group on a plan has nodes only while the plan has an open window in the group's zone. Before that it waits, and it
grows by itself; its nodes go 30 minutes before the window ends. A plan in another zone, of another type, that is used
up or over, gives what HyperPod gives where there is no capacity. Sources: botocore 1.44.5 service model of SageMaker
("when the plan start date arrives, instance groups are provisioned"); Amazon SageMaker AI Developer Guide, "Training
plans utilization"; awslabs/awsome-distributed-ai (a plan needs a subnet of its own zone).
"""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from ..hyperpod.cluster import NO_CAPACITY, Cluster, Group
from ..protocol.clients import Clients
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from ..protocol.service import refuse
from .lifecycle import Plan
from .offers import default_supply
from .plans import Ledger, TrainingPlans

TARGET = "hyperpod-cluster"
InUse = Callable[[str, str, str], Counter[str]]


@dataclass
class PlanTime:
    """The time that plans live in: since `anchor` it has gone `speed` times as fast as the clock on the wall."""

    anchor: datetime = field(default_factory=now)
    moment: datetime = field(default_factory=now)
    speed: float = 1.0

    def now(self) -> datetime:
        """The time for plans."""
        return self.moment + (now() - self.anchor) * self.speed

    def set(self, timestamp: datetime, speed: float) -> None:
        """Continue from another moment, at another speed."""
        self.anchor, self.moment, self.speed = now(), timestamp, speed


class TrainingPlanService:
    """The plans of all regions, each with a time of its own.

    `in_use` counts the nodes that have capacity of a plan in a zone, by UltraServer (region, ARN, zone id).
    """

    def __init__(self, clients: Clients, in_use: InUse):
        self.clients, self.in_use = clients, in_use
        self.ledgers: dict[str, Ledger] = {}
        self.times: dict[str, PlanTime] = {}
        self._regions: dict[str, TrainingPlans] = {}
        self._lock = threading.Lock()

    def region(self, region: str) -> TrainingPlans:
        """The operations in a region."""
        with self._lock:
            known = self._regions.get(region)
            # A restored state brings other ledgers: operations over the former one would sell what nobody keeps.
            if known is None or known.ledger is not self.ledgers.get(region):
                answer = self.clients.client("ec2", region).describe_availability_zones()["AvailabilityZones"]
                zones = {zone["ZoneId"]: zone["ZoneName"] for zone in answer}
                known = self._regions[region] = TrainingPlans(
                    partial(self.now, region),
                    account=self.clients.account,
                    region=region,
                    zones=zones,
                    ledger=self.ledgers.setdefault(region, Ledger(default_supply(zones))),
                    in_use=partial(self.in_use, region),
                )
            return known

    def now(self, region: str) -> datetime:
        """The time for the plans of a region."""
        return self.times.setdefault(region, PlanTime()).now()

    def check(self, region: str, before: dict[str, Group], groups: list[Group]) -> None:
        """Raise the API's error for a group whose new plan it cannot have."""
        for group in groups:
            old = before.get(group.name)
            # A plan that a group has already is not judged again, also when it has ended since.
            if not group.plan or (old and old.plan == group.plan):
                continue
            plan = self.region(region).find(group.plan)
            if plan is None:
                raise refuse(
                    "ValidationException",
                    f"Training plan {group.plan} of instance group {group.name} does not exist. The sandbox knows the "
                    "plans that were bought in it, and those of PUT /podwright/training-plans (sandbox)",
                )
            status = plan.status(self.now(region))
            types = sorted({window.instance_type for window in plan.windows})
            problem = None
            if TARGET not in plan.target:
                problem = f"is for {', '.join(plan.target)}, not for {TARGET}"
            elif group.instance_type not in types:
                problem = f"reserves {', '.join(types)}, not {group.instance_type}"
            elif status not in ("Scheduled", "Active"):
                problem = f"is {status}; only one that is Scheduled or Active can be used"
            if problem:
                raise refuse(
                    "ValidationException",
                    f"Training plan {group.plan} of instance group {group.name} {problem} (sandbox)",
                )

    def status(self, region: str, arn: str) -> str | None:
        """The status of a group's plan; None without one."""
        plan = self.region(region).find(arn) if arn else None
        return plan.status(self.now(region)) if plan else None

    def obstacle(self, cluster: Cluster, group: Group) -> str | None:
        """Why a group on a plan gets no nodes; None when it does, or when it has only to wait."""
        if self.waits(cluster, group):
            return None
        left = len(self.places(cluster, group) or [])
        missing = group.target - len(cluster.members(group.name, now()))
        return NO_CAPACITY if left == 0 or (left < missing and not cluster.continuous) else None

    def waits(self, cluster: Cluster, group: Group) -> str | None:
        """Which window of its plan a group waits for; None when for none."""
        plan, timestamp, zone_id = self._plan(cluster, group), self.now(cluster.region), _zone(cluster, group)
        if (
            plan is None
            or plan.status(timestamp) not in ("Scheduled", "Active")
            or plan.open_windows(timestamp, zone_id)
        ):
            return None
        anywhere = plan.status(timestamp) == "Scheduled"
        starts = [
            window.start
            for window in plan.windows
            if window.start > timestamp and (anywhere or window.zone_id == zone_id)
        ]
        return f"training plan {plan.name} has its next instances at {min(starts):%F %H:%M} UTC" if starts else None

    def places(self, cluster: Cluster, group: Group) -> list[JsonObject]:
        """The UltraServers ({} for none) of the nodes that a group's plan still has in the group's zone."""
        plan = self._plan(cluster, group)
        if plan is None:
            return []
        kinds = {server: window.ultraserver_type for window in plan.windows for server in window.servers}
        left = self.region(cluster.region).places(plan, _zone(cluster, group))
        return [{"Id": server, "Type": kinds[server]} if server else {} for server in left]

    def surplus(self, cluster: Cluster, group: Group) -> int:
        """How many nodes of a group its plan no longer holds."""
        plan, zone_id = self._plan(cluster, group), _zone(cluster, group)
        held = plan.usable(self.now(cluster.region), zone_id) if plan else 0
        used = self.in_use(cluster.region, group.plan, zone_id).total()
        return min(max(0, used - held), len(cluster.members(group.name, now())))

    def add_existing(self, region: str, plan: Plan) -> None:
        """Let a plan exist that was bought elsewhere; one of the same ARN gives way."""
        ledger = self.region(region).ledger
        ledger.plans = [*(item for item in ledger.plans if item.arn != plan.arn), plan]

    def _plan(self, cluster: Cluster, group: Group) -> Plan | None:
        return self.region(cluster.region).find(group.plan)


def _zone(cluster: Cluster, group: Group) -> str:
    return cluster.zone_of(group).get("AvailabilityZoneId", "")
