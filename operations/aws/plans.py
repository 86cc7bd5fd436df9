"""Training plans as SageMaker has them, for whoever looks at clusters. Purchases have their own, in `planning`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .calls import Clients, find, get

_ABSENT = ("ResourceNotFound", "ResourceNotFoundException")


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a plan: capacity from one moment to another."""

    status: str
    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Plan:
    """A training plan."""

    name: str
    status: str
    end: datetime | None
    fee: str
    """What it cost upfront; empty where SageMaker does not say."""
    currency: str
    total: int
    in_use: int
    available: int
    unhealthy: int
    windows: tuple[Window, ...]
    """By their beginning."""

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "Plan":
        """From DescribeTrainingPlan's answer."""
        parts = (
            Window(part["Status"], part["StartTime"], part.get("EndTime"))
            for part in answer.get("ReservedCapacitySummaries", ())
            if "StartTime" in part
        )
        return cls(
            answer["TrainingPlanName"],
            answer["Status"],
            answer.get("EndTime"),
            answer.get("UpfrontFee", ""),
            answer.get("CurrencyCode", ""),
            answer.get("TotalInstanceCount", 0),
            answer.get("InUseInstanceCount", 0),
            answer.get("AvailableInstanceCount", 0),
            answer.get("UnhealthyInstanceCount", 0),
            tuple(sorted(parts, key=lambda part: part.start)),
        )

    @property
    def until(self) -> datetime | None:
        """When the first capacity that is there now ends; None while there is none."""
        return next((window.end for window in self.windows if window.status == "Active"), None)

    @property
    def starts(self) -> datetime | None:
        """When the next capacity comes; None where none does."""
        return next((window.start for window in self.windows if window.status == "Scheduled"), None)


def plan(clients: Clients, name: str) -> Plan:
    """A plan by its name or ARN."""
    return Plan.of(get(clients, "sagemaker", "describe_training_plan", TrainingPlanName=name))


def plan_answer(clients: Clients, name: str) -> dict[str, Any] | None:
    """DescribeTrainingPlan's whole answer, which a purchase reads; None where there is no such plan."""
    return find(clients, "sagemaker", "describe_training_plan", _ABSENT, TrainingPlanName=name)
