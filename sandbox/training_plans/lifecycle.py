"""Bought SageMaker training plans, and their status at a given time.

Nothing runs in the background: every status is calculated from the time. A plan is Pending until it is paid, Scheduled
until its first window, Active in each window, Scheduled again between windows, then Expired. A plan whose payment fails
becomes Failed. Sources: botocore 1.44.5 service model of SageMaker; Amazon SageMaker AI Developer Guide,
"Reserve training plans" (blocks may have gaps between them) and "Training plans utilization" (instances are taken from
30 minutes before the end of their block).
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from ..protocol.json_objects import JsonObject

RECLAIM = timedelta(minutes=30)
"""Time before the end of a window at which its instances are terminated."""
CURRENCY = "USD"


@dataclass(frozen=True)
class Window:
    """A reserved capacity: instances of one type, in one zone, from `start` to `end`."""

    instance_type: str
    instances: int
    zone: str
    zone_id: str
    start: datetime
    end: datetime
    ultraserver_type: str = ""
    ultraservers: int = 0
    arn: str = ""

    @property
    def servers(self) -> list[str]:
        """Return the ids of its UltraServers."""
        name = self.arn.partition("reserved-capacity/")[2].replace("/", "-")
        return [f"us-{name}-{index + 1}" for index in range(self.ultraservers)]


@dataclass
class Extension:
    """A bought extension of a plan's last window, effective from `paid` on."""

    offering: str
    bought: datetime
    paid: datetime
    start: datetime
    end: datetime
    fee: Decimal
    failure: str = ""
    unseen: int = 0

    def holds(self, timestamp: datetime) -> bool:
        """Return True if it is effective."""
        return timestamp >= self.paid and not self.failure

    def status(self, timestamp: datetime) -> str:
        """Return its status: Pending, Failed, Scheduled, Active or Expired."""
        if timestamp < self.paid:
            return "Pending"
        return "Failed" if self.failure else _phase(self.start, self.end, timestamp)


@dataclass
class Plan:
    """A bought training plan. `unseen` is the number of further list calls that do not show it yet."""

    name: str
    arn: str
    offering: str
    created: datetime
    paid: datetime
    windows: list[Window]
    fee: Decimal
    target: list[str]
    spares: int = 0
    failure: str = ""
    unseen: int = 0
    extensions: list[Extension] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)

    def end_of(self, window: Window, timestamp: datetime) -> datetime:
        """Return the end of a window. Extensions prolong the last one."""
        if window != self.windows[-1]:
            return window.end
        return max([window.end, *(item.end for item in self.extensions if item.holds(timestamp))])

    def end(self, timestamp: datetime) -> datetime:
        """Return the end of the plan."""
        return max(self.end_of(window, timestamp) for window in self.windows)

    def status(self, timestamp: datetime) -> str:
        """Return its status: Pending, Failed, Scheduled, Active or Expired."""
        if early := self._early(timestamp):
            return early
        phases = [self.window_status(window, timestamp) for window in self.windows]
        if "Active" in phases:
            return "Active"
        return "Scheduled" if "Scheduled" in phases else "Expired"

    def window_status(self, window: Window, timestamp: datetime) -> str:
        """Return the status of a reserved capacity."""
        return self._early(timestamp) or _phase(window.start, self.end_of(window, timestamp), timestamp)

    def _early(self, timestamp: datetime) -> str | None:
        if timestamp < self.paid:
            return "Pending"
        return "Failed" if self.failure else None

    def holds(self, timestamp: datetime) -> bool:
        """Return True if its capacity reduces the supply, which a failed payment ends."""
        return self.status(timestamp) != "Failed"

    def spare_instances(self, window: Window) -> int:
        """Return the number of a window's instances that are reserved for repairs."""
        return self.spares * window.ultraservers

    def open_windows(self, timestamp: datetime, zone_id: str) -> list[Window]:
        """Return the windows with usable instances in a zone, which excludes the last 30 minutes of each."""
        return [
            window
            for window in self.windows
            if window.zone_id == zone_id
            and self.window_status(window, timestamp) == "Active"
            and timestamp < self.end_of(window, timestamp) - RECLAIM
        ]

    def usable(self, timestamp: datetime, zone_id: str) -> int:
        """Return the number of usable instances in a zone."""
        return sum(window.instances - self.spare_instances(window) for window in self.open_windows(timestamp, zone_id))

    def describe(self, timestamp: datetime, in_use: int) -> JsonObject:
        """Return the plan in the form of ListTrainingPlans. `in_use` is the number of its instances in clusters."""
        total = max(window.instances for window in self.windows)
        zones = {window.zone_id for window in self.windows}
        usable = sum(self.usable(timestamp, zone_id) for zone_id in zones)
        servers = max(window.ultraservers for window in self.windows)
        message = {"StatusMessage": self.failure} if self.status(timestamp) == "Failed" else {}
        seconds = sum((self.end_of(window, timestamp) - window.start).total_seconds() for window in self.windows)
        return {
            "TrainingPlanArn": self.arn,
            "TrainingPlanName": self.name,
            "Status": self.status(timestamp),
            **message,
            **duration(timedelta(seconds=seconds)),
            "StartTime": min(window.start for window in self.windows),
            "EndTime": self.end(timestamp),
            "UpfrontFee": money(self.fee),
            "CurrencyCode": CURRENCY,
            "TotalInstanceCount": total,
            "AvailableInstanceCount": max(0, usable - in_use),
            "InUseInstanceCount": in_use,
            **({"TotalUltraServerCount": servers} if servers else {}),
            "TargetResources": list(self.target),
            "ReservedCapacitySummaries": [self._summary(window, timestamp) for window in self.windows],
        }

    def _summary(self, window: Window, timestamp: datetime) -> JsonObject:
        end = self.end_of(window, timestamp)
        return {
            "ReservedCapacityArn": window.arn,
            **kind(window),
            "InstanceType": window.instance_type,
            "TotalInstanceCount": window.instances,
            "Status": self.window_status(window, timestamp),
            "AvailabilityZone": window.zone,
            "AvailabilityZoneId": window.zone_id,
            **duration(end - window.start),
            "StartTime": window.start,
            "EndTime": end,
        }

    def history(self, timestamp: datetime) -> list[JsonObject]:
        """Return its extensions as DescribeTrainingPlanExtensionHistory does. PaymentStatus is synthetic."""
        last = self.windows[-1]
        return [
            {
                "TrainingPlanExtensionOfferingId": item.offering,
                "ExtendedAt": item.bought,
                "StartDate": item.start,
                "EndDate": item.end,
                "Status": item.status(timestamp),
                "PaymentStatus": {"Pending": "Pending", "Failed": "Failed"}.get(item.status(timestamp), "Completed"),
                "AvailabilityZone": last.zone,
                "AvailabilityZoneId": last.zone_id,
                "DurationHours": duration(item.end - item.start)["DurationHours"],
                "UpfrontFee": money(item.fee),
                "CurrencyCode": CURRENCY,
            }
            for item in self.extensions
        ]


def _phase(start: datetime, end: datetime, timestamp: datetime) -> str:
    if timestamp < start:
        return "Scheduled"
    return "Active" if timestamp < end else "Expired"


def duration(length: timedelta) -> JsonObject:
    """Return a duration in the API's form: whole hours and remaining minutes."""
    minutes = round(length.total_seconds()) // 60
    return {"DurationHours": minutes // 60, "DurationMinutes": minutes % 60}


def money(fee: Decimal) -> str:
    """Return a fee in the API's form."""
    return f"{fee:.2f}"


def kind(window: Window) -> JsonObject:
    """Return the API's name for the kind of a window: instances or UltraServers."""
    if not window.ultraservers:
        return {"ReservedCapacityType": "Instance"}
    return {
        "ReservedCapacityType": "UltraServer",
        "UltraServerType": window.ultraserver_type,
        "UltraServerCount": window.ultraservers,
    }
