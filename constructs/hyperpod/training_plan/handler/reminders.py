"""One-time schedules that tell people, by an SNS topic, that the instances of a training plan go soon."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

BEFORE: Final = {
    "14d": (timedelta(days=14), "14 days"),
    "7d": (timedelta(days=7), "7 days"),
    "1d": (timedelta(days=1), "1 day"),
    "1h": (timedelta(hours=1), "1 hour"),
}
"""How long before an end people are reminded, by the ending of the schedule's name."""
SUBJECT_CHARACTERS: Final = 100
"""Longest subject of a message. Source: Amazon SNS API Reference, "Publish", 2026-10."""


@dataclass(frozen=True)
class Reminder:
    """One message at one moment."""

    name: str
    """Name of its schedule: which end, and how long before."""
    at: datetime
    subject: str
    message: str


def reminders(
    plan: dict[str, Any], *, name: str, environment: str, reclaim_minutes: int, now: datetime
) -> Iterator[Reminder]:
    """What to say, and when, about each moment at which instances of the plan go.

    A plan of several parts loses its instances at the end of each. Left out are reminders whose time has passed, and
    those from before the part's instances have come.

    Args:
        plan: The plan as SageMaker describes it.
        name: Its name in the environment file.
        environment: The environment's name.
        reclaim_minutes: How long before the end SageMaker takes the instances.
        now: The current time.
    """
    starts: dict[datetime, datetime] = {}
    for start, end in _parts(plan):
        starts[end] = min(start, starts.get(end, start))
    for end, start in starts.items():
        # Two parts that end together are one moment, and the earlier start decides from when on a reminder makes sense.
        last = end == max(starts)
        coming = min((other for other in starts.values() if other >= end), default=None)
        what = f"Training plan {name} of {environment}" if last else f"A part of plan {name} of {environment}"
        deleted = end - timedelta(minutes=reclaim_minutes)
        if last:
            after = (
                f"Should work continue, extend it: `podwright capacity extend {environment} {name}`. "
                "Otherwise take the plan out of the environment file."
            )
        elif coming:
            after = f"The next part starts at {_said(coming)}; until then these instances are missing."
        else:
            after = "The plan's other parts continue."
        for label, (before, words) in BEFORE.items():
            at = end - before
            if at > now and at >= start:
                yield Reminder(
                    # The name says what and when, so a deployment that runs again finds its own schedules and moves
                    # none.
                    f"{end:%Y%m%dT%H%MZ}-{label}",
                    at,
                    f"{what} ends in {words}"[:SUBJECT_CHARACTERS],
                    f"{what} ends at {_said(end)}, in {words}. SageMaker takes its instances {reclaim_minutes} minutes "
                    f"before, at {_said(deleted)}: jobs must have written a checkpoint by then.\n\n{after}\n\n"
                    f"{plan['TrainingPlanArn']}",
                )


def keep(scheduler: Any, *, group: str, topic: str, role: str, desired: list[Reminder]) -> None:
    """Have exactly the schedules of `desired` in a schedule group, whatever was there before.

    Args:
        scheduler: boto3's EventBridge Scheduler client.
        group: Name of the schedule group, which holds nothing else.
        topic: ARN of the SNS topic.
        role: ARN of the role with which Scheduler publishes to it.
        desired: The reminders.
    """
    partition = topic.split(":")[1]
    existing = {
        schedule["Name"]
        for page in scheduler.get_paginator("list_schedules").paginate(GroupName=group)
        for schedule in page["Schedules"]
    }
    for reminder in desired:
        schedule = {
            "Name": reminder.name,
            "GroupName": group,
            # Scheduler takes a time without zone, and beside it the zone.
            "ScheduleExpression": f"at({reminder.at:%Y-%m-%dT%H:%M:%S})",
            "ScheduleExpressionTimezone": "UTC",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            # A schedule that has run would stay otherwise, and count against the account's quota.
            "ActionAfterCompletion": "DELETE",
            "Target": {
                # A universal target: Scheduler calls SNS itself, without a function between.
                "Arn": f"arn:{partition}:scheduler:::aws-sdk:sns:publish",
                "RoleArn": role,
                "Input": json.dumps(
                    {"TopicArn": topic, "Subject": reminder.subject, "Message": reminder.message}, sort_keys=True
                ),
            },
        }
        try:
            scheduler.create_schedule(**schedule)
        except scheduler.exceptions.ConflictException:
            # It is there already, or another run of this request was faster.
            scheduler.update_schedule(**schedule)
    for name in sorted(existing - {reminder.name for reminder in desired}):
        # It may have run meanwhile, or another run of this request was faster.
        with suppress(scheduler.exceptions.ResourceNotFoundException):
            scheduler.delete_schedule(Name=name, GroupName=group)


def _parts(plan: dict[str, Any]) -> Iterator[tuple[datetime, datetime]]:
    """Start and end of each part, or of the plan where SageMaker lists none."""
    for part in plan.get("ReservedCapacitySummaries") or [plan]:
        if "StartTime" in part and "EndTime" in part and part.get("Status") not in ("Expired", "Failed"):
            yield part["StartTime"], part["EndTime"]


def _said(timestamp: datetime) -> str:
    return f"{timestamp:%Y-%m-%d %H:%M} UTC"
