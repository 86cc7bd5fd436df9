"""Time, SageMaker, Scheduler, SNS and CloudFormation as the handler of training plans sees them, all in memory."""

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from modelled_client import ModelledClient
from podwright.constructs.hyperpod.training_plan.handler import index
from podwright.planning.purchase.offers import Request
from podwright.planning.purchase.steps import Call
from podwright.sandbox.training_plans.plans import TrainingPlans
from purchase_aws import PurchaseAccount as Ledger

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
TYPE = "ml.p5en.48xlarge"
FUNCTION_ARN = "arn:aws:lambda:us-west-2:111122223333:function:plans"
TOPIC = "arn:aws:sns:us-west-2:111122223333:reminders"
REQUEST = Request(
    "prod",
    "q1",
    ("usw2-az2",),
    instance_type=TYPE,
    count=4,
    hours=28 * 24,
    start_after=NOW + timedelta(days=6),
    max_upfront_usd=200_000,
)
NEEDS = [{"Group": "h200", "Zone": "usw2-az2", "InstanceType": TYPE, "Count": "4"}]
_EXCEPTIONS = boto3.Session("key", "secret", region_name="us-west-2").client("scheduler").exceptions


class Schedules:
    """EventBridge Scheduler, one group."""

    exceptions = _EXCEPTIONS

    def __init__(self) -> None:
        self.there: dict[str, dict[str, Any]] = {}
        self.hidden: set[str] = set()
        """Names that a list does not show yet."""

    def get_paginator(self, operation: str) -> "Schedules":
        assert operation == "list_schedules"
        return self

    def paginate(self, GroupName: str) -> list[dict[str, Any]]:
        assert GroupName == "reminders"
        return [{"Schedules": [{"Name": name} for name in self.there if name not in self.hidden]}]

    def create_schedule(self, **schedule: Any) -> None:
        if schedule["Name"] in self.there:
            raise _EXCEPTIONS.ConflictException({"Error": {"Code": "ConflictException"}}, "CreateSchedule")
        self.there[schedule["Name"]] = schedule

    def update_schedule(self, **schedule: Any) -> None:
        assert schedule["Name"] in self.there
        self.there[schedule["Name"]] = schedule

    def delete_schedule(self, Name: str, GroupName: str) -> None:
        if Name not in self.there:
            raise _EXCEPTIONS.ResourceNotFoundException(
                {"Error": {"Code": "ResourceNotFoundException"}}, "DeleteSchedule"
            )
        del self.there[Name]


class SageMakerWithoutRetry:
    """SageMaker by a client that sends a call again when it has no answer, so it must not buy."""

    def __init__(self, plans: TrainingPlans) -> None:
        self.plans = plans

    def __getattr__(self, operation: str) -> Any:
        assert operation not in ("create_training_plan", "extend_training_plan")
        return getattr(self.plans, operation)


class Table:
    """DynamoDB and EC2, by the world of purchases."""

    def __init__(self, service: Any) -> None:
        self.service, self.ledger = service, Ledger(table="")

    def __getattr__(self, operation: str) -> Any:
        return lambda **parameters: self.ledger.call(Call(self.service, operation, parameters), "handler")


@dataclass
class Recorded:
    """A client that notes what it was asked to do."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    error: Exception | None = None

    def _note(self, **parameters: Any) -> None:
        if self.error:
            raise self.error
        self.calls.append(parameters)

    publish = invoke = _note


class HandlerAccount:
    """What the handler's process sees."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = NOW
        self.lambda_ends = NOW + timedelta(minutes=15)
        self.plans = TrainingPlans(lambda: self.now)
        self.schedules = Schedules()
        self.invoked, self.published = Recorded(), Recorded()
        zones = [{"ZoneName": name, "ZoneId": zone} for zone, name in self.plans.zones.items()]
        table = Table("dynamodb")
        table.ledger.describe_availability_zones = lambda by: {"AvailabilityZones": zones}
        self.clients = {
            "sagemaker": self.plans,
            "dynamodb": table,
            "ec2": table,
            "scheduler": self.schedules,
            "sns": self.published,
            "lambda": self.invoked,
        }
        self.answers: list[dict[str, Any]] = []
        monkeypatch.setattr(index.boto3, "Session", lambda: self)
        monkeypatch.setattr(index.time, "sleep", self.sleep)
        monkeypatch.setattr(index.time, "time", lambda: self.now.timestamp())
        monkeypatch.setattr("urllib.request.urlopen", self._answered)

    def client(self, name: str, config: Any) -> Any:
        if name == "sagemaker" and config.retries.get("total_max_attempts") != 1:
            return ModelledClient(name, SageMakerWithoutRetry(self.plans))
        return ModelledClient(name, self.clients[name])

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @contextmanager
    def _answered(self, request: Any, **_: Any) -> Any:
        self.answers.append(json.loads(request.data))
        yield

    @property
    def charges(self) -> list[str]:
        """The offers that were paid."""
        return [offer for _, offer in self.plans.ledger.charges]

    def bought(self, count: int = 4, target: str = "hyperpod-cluster", parts: int = 1, **wish: Any) -> str:
        """The ARN of a plan that somebody else bought: 28 days in a week's time, in usw2-az2 when in one part."""
        usual = {"InstanceType": TYPE, "DurationHours": 28 * 24, "StartTimeAfter": NOW + timedelta(days=6)}
        training_plan_offerings = self.plans.search_training_plan_offerings(
            **{"InstanceCount": count, "TargetResources": [target], **usual, **wish}
        )["TrainingPlanOfferings"]
        offer = next(each for each in training_plan_offerings if len(each["ReservedCapacityOfferings"]) == parts)
        arn = self.plans.create_training_plan(
            TrainingPlanName="other", TrainingPlanOfferingId=offer["TrainingPlanOfferingId"]
        )["TrainingPlanArn"]
        self.now += self.plans.ledger.payment
        return arn

    def event(self, kind: str = "Create", **changes: Any) -> dict[str, Any]:
        """A request; `Arn` or else REQUEST says which plan."""
        physical_id = {"PhysicalResourceId": changes.pop("PhysicalResourceId")} if kind != "Create" else {}
        properties = {
            "Environment": "prod",
            "Plan": "q1",
            "Needs": NEEDS,
            "Reminders": {"Group": "reminders", "Topic": TOPIC, "Role": "role", "ReclaimMinutes": "30"},
            "TimeoutSeconds": "3300",
            **changes,
        }
        if "Arn" not in changes:
            properties = {"Request": REQUEST.to_properties(), "Tags": {"team": "x"}} | properties
        return {
            "RequestType": kind,
            "ResponseURL": "https://cloudformation.invalid/answer",
            "StackId": "stack",
            "RequestId": "request",
            "LogicalResourceId": "Plan",
            "ResourceType": "Custom::PodwrightTrainingPlan",
            "ResourceProperties": properties,
            **physical_id,
        }

    def run(self, kind: str = "Create", **changes: Any) -> dict[str, Any] | None:
        """Carry a request out and return what CloudFormation got, if it got anything."""
        return self.run_event(self.event(kind, **changes))

    def run_event(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Carry out one invocation; `event` comes as JSON, as from Lambda."""
        self.lambda_ends = self.now + timedelta(minutes=15)
        before = len(self.answers)
        index.handler(json.loads(json.dumps(event)), self)
        assert len(self.answers) <= before + 1
        return self.answers[before] if len(self.answers) > before else None

    # The Lambda context.
    invoked_function_arn, log_group_name, log_stream_name = FUNCTION_ARN, "group", "stream"

    def get_remaining_time_in_millis(self) -> int:
        return int((self.lambda_ends - self.now).total_seconds() * 1000)
