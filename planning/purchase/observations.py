"""Looking for what a purchase brought about: SageMaker's lists, and how long to trust that they show nothing.

Standard library only: this module travels into the Lambda function that buys, beside `plan_purchase`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from .offers import Plan, Request, misfits
from .record import Record
from .steps import Call, Sleep, Steps, Tell

# SageMaker's lists may be late. A further look takes seconds, a second purchase costs the whole price again.
READS_BEFORE: Final = 2
READS_AFTER: Final = 6
"""Looks that have to agree that nothing is there, before and after a call."""
_PAUSE: Final = 5


@dataclass(frozen=True, slots=True)
class PurchasedPlan:
    """One thing that SageMaker lists under the name of a purchase."""

    arn: str
    failed: bool
    fits: bool
    """Whether it is what this purchase called for, as far as can be seen."""
    plan: Plan | None = None


def find(record: Record, reads: int, *, patient: bool = False) -> Steps[list[PurchasedPlan]]:
    """What SageMaker lists under a purchase's name; nothing once so many looks saw nothing.

    A look that fails is an error, or when `patient` one that saw nothing.
    """
    for attempt in range(reads):
        if attempt:
            yield Sleep(_PAUSE)
        try:
            result = yield from _extensions(record) if record.kind == "extension" else _plans(record)
        except Exception as error:
            if not patient:
                raise
            yield Tell(f"the look failed: {error}")
            continue
        if result:
            return result
    return []


def _plans(record: Record) -> Steps[list[PurchasedPlan]]:
    pages = yield from _pages("list_training_plans", {}, "TrainingPlanSummaries")
    plans = [Plan.of(each) for each in pages if each["TrainingPlanName"] == record.name]
    asked = Request.of_properties(json.loads(record.terms))
    return [PurchasedPlan(plan.arn, plan.status == "Failed", _is_what_was_bought(asked, plan), plan) for plan in plans]


def _is_what_was_bought(asked: Request, plan: Plan) -> bool:
    """Whether type and number agree. Times may be shifted a little by the service, and a zone come late."""
    zones = tuple(part.zone for part in plan.parts)
    loose = replace(asked, zones=zones, hours=None, start_after=None, end_before=None)
    return not misfits(loose, plan)


def _extensions(record: Record) -> Steps[list[PurchasedPlan]]:
    """Extensions from the same moment; fitting are those that an attempt of this purchase called for."""
    pages = yield from _pages(
        "describe_training_plan_extension_history", {"TrainingPlanArn": record.base}, "TrainingPlanExtensions"
    )
    start = datetime.fromisoformat(json.loads(record.terms)["start"])
    ours = {record.offering, *(each["offering"] for each in record.attempts_before)}
    # Either by the offer, or by the moment from which a plan can be extended once.
    return [
        PurchasedPlan(record.base, _failed(each), each["TrainingPlanExtensionOfferingId"] in ours)
        for each in pages
        if each["TrainingPlanExtensionOfferingId"] in ours or each.get("StartDate") == start
    ]


def _failed(extension: Mapping[str, Any]) -> bool:
    # Both are free text in the API; plans use this word.
    return "failed" in (extension.get("Status", "").lower(), extension.get("PaymentStatus", "").lower())


def _pages(operation: str, parameters: dict[str, Any], key: str) -> Steps[list[dict[str, Any]]]:
    pages: list[dict[str, Any]] = []
    token: dict[str, str] = {}
    while True:
        page = yield Call("sagemaker", operation, parameters | token)
        pages += page[key]
        if not page.get("NextToken"):
            return pages
        token = {"NextToken": page["NextToken"]}
