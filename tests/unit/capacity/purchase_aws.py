"""AWS for purchases of training plans: a table and a seller, in memory and at the time that a test gives.

The seller is far simpler than the sandbox's, which one test puts in its place.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from podwright.planning.purchase.record import TABLE
from podwright.planning.purchase.steps import Call

NOW = datetime(2027, 1, 1, tzinfo=UTC)
START = datetime(2027, 1, 4, 11, 30, tzinfo=UTC)
END = START + timedelta(days=28)
ARN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/"
Flow = Literal["reserve", "acquire", "extend"]


class Refusal(Exception):
    """An error answer of AWS as far as the code looks at it."""

    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


@dataclass
class Bought:
    """A plan or an extension that the seller sold."""

    shape: dict[str, Any]
    by: str
    unseen: int = 0
    """So many more lists will not show it."""


@dataclass
class PurchaseAccount:
    """The state of everything outside a buyer."""

    duplicates: Literal["refuse", "allow"] = "refuse"
    stale: int = 0
    """So many lists do not show yet what was bought."""
    time: datetime = NOW
    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    table: str = "ACTIVE"
    plans: list[Bought] = field(default_factory=list)
    extensions: list[Bought] = field(default_factory=list)
    late: list[tuple[int, Call, str]] = field(default_factory=list)
    calls: int = 0
    forgotten: list[str] = field(default_factory=list)
    """Records of what was bought that something else was written over."""

    def sold(self, flow: Flow) -> list[Bought]:
        """What stands, not what failed."""
        return [each for each in (self.extensions if flow == "extend" else self.plans) if not failed(each)]

    def call(self, call: Call, by: str) -> Any:
        """Carry out a call of AWS."""
        self.calls += 1
        due = [each for each in self.late if each[0] <= self.calls]
        self.late = [each for each in self.late if each[0] > self.calls]
        for _, other, whose in due:
            self._late_call(other, whose)
        return getattr(self, call.operation)(by, **call.parameters)

    def settle(self) -> None:
        """Let what is under way arrive, lists show everything, and an hour pass."""
        for _, call, by in self.late:
            self._late_call(call, by)
        self.late = []
        for each in (*self.plans, *self.extensions):
            each.unseen = 0
        self.stale, self.time = 0, self.time + timedelta(hours=1)

    def _late_call(self, call: Call, by: str) -> None:
        try:
            getattr(self, call.operation)(by, **call.parameters)
        except Refusal:
            return

    def describe_table(self, by: str, TableName: str) -> Any:
        assert TableName == TABLE
        if not self.table:
            raise Refusal("ResourceNotFoundException")
        return {"Table": {"TableStatus": self.table}}

    def create_table(self, by: str, **parameters: Any) -> Any:
        if self.table:
            raise Refusal("ResourceInUseException")
        assert parameters["DeletionProtectionEnabled"]
        self.table = "ACTIVE"
        return {}

    def describe_continuous_backups(self, by: str, TableName: str) -> Any:
        enabled = {"PointInTimeRecoveryStatus": "ENABLED"}
        return {"ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": enabled}}

    def get_item(self, by: str, TableName: str, Key: Any, ConsistentRead: bool) -> Any:
        assert ConsistentRead
        item = self.items.get(Key["plan"]["S"])
        return {"Item": item} if item else {}

    def put_item(
        self, by: str, TableName: str, Item: Any, ConditionExpression: str = "", ExpressionAttributeValues: Any = None
    ) -> Any:
        existing = self.items.get(Item["plan"]["S"])
        met = {
            "": True,
            "attribute_not_exists(revision)": existing is None,
            "revision = :seen": existing is not None
            and ExpressionAttributeValues is not None
            and existing["revision"] == ExpressionAttributeValues[":seen"],
        }
        if not met[ConditionExpression]:
            raise Refusal("ConditionalCheckFailedException")
        states = (existing["state"]["S"] if existing else "", Item["state"]["S"])
        if existing and existing["attempt"] == Item["attempt"] and states[0] == "bought" != states[1]:
            self.forgotten.append(f"{by} wrote {states[1]} over bought")
        self.items[Item["plan"]["S"]] = Item
        return {}

    def describe_availability_zones(self, by: str) -> Any:
        return {"AvailabilityZones": [{"ZoneName": "us-west-2a", "ZoneId": "usw2-az2"}]}

    def search_training_plan_offerings(self, by: str, **parameters: Any) -> Any:
        part = {
            "InstanceType": parameters["InstanceType"],
            "InstanceCount": parameters["InstanceCount"],
            "AvailabilityZone": "us-west-2a",
            "StartTime": START,
            "EndTime": END,
        }
        offer = {
            "TrainingPlanOfferingId": "tpo-1",
            "TargetResources": ["hyperpod-cluster"],
            "DurationHours": parameters["DurationHours"],
            "UpfrontFee": "442552.32",
            "CurrencyCode": "USD",
            "ReservedCapacityOfferings": [part],
        }
        return {"TrainingPlanOfferings": [offer]}

    def create_training_plan(self, by: str, TrainingPlanName: str, TrainingPlanOfferingId: str, Tags: Any = ()) -> Any:
        namesakes = [each for each in self.plans if each.shape["TrainingPlanName"] == TrainingPlanName]
        if namesakes and self.duplicates == "refuse":
            raise Refusal("ResourceInUse")
        plan = plan_shape(TrainingPlanName, f"{ARN}{len(self.plans)}")
        self.plans.append(Bought(plan, by, self.stale))
        return {"TrainingPlanArn": plan["TrainingPlanArn"]}

    def list_training_plans(self, by: str) -> Any:
        observed = [each.shape for each in self.plans if not each.unseen]
        for each in self.plans:
            each.unseen = max(0, each.unseen - 1)
        return {"TrainingPlanSummaries": observed}

    def extend_training_plan(self, by: str, TrainingPlanExtensionOfferingId: str) -> Any:
        if self.extensions and self.duplicates == "refuse":
            raise Refusal("ResourceInUse")
        shape = {"TrainingPlanExtensionOfferingId": TrainingPlanExtensionOfferingId, "StartDate": END}
        self.extensions.append(Bought(shape, by, self.stale))
        return {"TrainingPlanExtensions": [shape]}

    def describe_training_plan_extension_history(self, by: str, TrainingPlanArn: str) -> Any:
        observed = [each.shape for each in self.extensions if not each.unseen]
        for each in self.extensions:
            each.unseen = max(0, each.unseen - 1)
        return {"TrainingPlanExtensions": observed}


def plan_shape(name: str, arn: str, status: str = "Scheduled", count: int = 16) -> dict[str, Any]:
    """A plan as SageMaker lists it."""
    part = {
        "InstanceType": "ml.p5en.48xlarge",
        "TotalInstanceCount": count,
        "AvailabilityZoneId": "usw2-az2",
        "StartTime": START,
        "EndTime": END,
        "Status": status,
    }
    return {
        "TrainingPlanArn": arn,
        "TrainingPlanName": name,
        "Status": status,
        "TargetResources": ["hyperpod-cluster"],
        "DurationHours": 28 * 24,
        "ReservedCapacitySummaries": [part],
    }


def failed(bought: Bought) -> bool:
    """Whether it came to nothing."""
    return bought.shape.get("Status") == "Failed"
