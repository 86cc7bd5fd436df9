"""Brings a training plan into a deployment: one that exists is resolved, any other is bought, exactly once.

It is there once it is Scheduled or Active; Active may be weeks away. Then it has to fit the groups that draw on it, and
people are reminded of its end. Delete cancels nothing, because nothing cancels a plan, and says so.

A request may wait longer than a Lambda function runs. Before its time is up the function invokes itself with the same
request, which then carries deadline and ARN, and the last invocation answers. Every run may be a repeated one: whether
one buys is decided by `plan_purchase` and its record.
"""

import json
import logging
import time
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from .....planning.purchase.offers import Plan, Request
from .....planning.purchase.offers import misfits as differences
from .....planning.purchase.purchase import NoOffer, acquire
from .....planning.purchase.run import Result
from .....planning.purchase.steps import ONE_ATTEMPT, Engine, Service, code_of
from .....planning.purchase.words import shown
from ....common.handler_runtime.response import Answer, answering
from .fit import Need, misfits
from .reminders import SUBJECT_CHARACTERS, keep, reminders

_READY: Final = ("Scheduled", "Active")
_POLL_SECONDS: Final = 15
# Enough for one more call of SageMaker with its retries, and for the answer to CloudFormation.
_MARGIN_SECONDS: Final = 90
"""Time that one more look, the invocation of the next run and a slow answer may take."""
_RETRIES = Config(retries={"mode": "standard", "max_attempts": 8}, connect_timeout=5, read_timeout=20)

logger = logging.getLogger()


class Unusable(Exception):
    """The plan cannot serve the deployment."""


@dataclass(frozen=True)
class Wanted:
    """What a request is about."""

    environment: str
    name: str
    """The plan's name in the environment file."""
    arn: str
    """Of a plan that exists; empty for one to buy."""
    request: Request | None
    """What to buy; None for a plan that exists."""
    tags: dict[str, str]
    """Of what is bought."""
    needs: tuple[Need, ...]
    reminders: dict[str, str]
    timeout_seconds: int

    @classmethod
    def of(cls, properties: dict[str, Any]) -> "Wanted":
        """From the resource's properties; CloudFormation sends every number as text."""
        return cls(
            properties["Environment"],
            properties["Plan"],
            properties.get("Arn", ""),
            Request.of_properties(properties["Request"]) if "Request" in properties else None,
            properties.get("Tags", {}),
            tuple(Need.of(need) for need in properties.get("Needs", ())),
            properties["Reminders"],
            int(properties["TimeoutSeconds"]),
        )


def handle(event: dict[str, Any], context: Any) -> Answer | None:
    """Carry out one request; None when another invocation continues with it."""
    session = boto3.Session()
    desired = Wanted.of(event["ResourceProperties"])
    if event["RequestType"] == "Delete":
        _say_that_it_stays(session, desired, event["PhysicalResourceId"])
        return Answer(event["PhysicalResourceId"])
    # Kept in the request, so that the invocations that follow share one deadline.
    deadline = event.setdefault("Deadline", time.time() + desired.timeout_seconds)
    if "Arn" not in event:
        event["Arn"] = desired.arn or _bought(session, desired, event["StackId"])
    arn: str = event["Arn"]
    while True:
        plan = _observe(session, desired, arn)
        logger.info("%s is %s", arn, plan.get("Status", "not to be seen yet"))
        if plan.get("Status") in _READY:
            # Scheduled is enough: instances come with the plan's start, for which no deployment can wait.
            return _accept(session, desired, plan)
        if plan.get("Status") in ("Failed", "Expired"):
            raise Unusable(_why_over(desired, plan))
        if time.time() + _POLL_SECONDS > deadline:
            raise Unusable(
                f"{arn} is still Pending after {desired.timeout_seconds // 60} minutes: SageMaker has not got the "
                "payment through. It is bought; deploy again to keep waiting, and look at it in the console meanwhile"
            )
        if context.get_remaining_time_in_millis() / 1000 < _MARGIN_SECONDS + _POLL_SECONDS:
            session.client("lambda", config=_RETRIES).invoke(
                # Event: the invocation returns at once, and this one ends while the next one works on.
                FunctionName=context.invoked_function_arn,
                InvocationType="Event",
                Payload=json.dumps(event),
            )
            return None
        time.sleep(_POLL_SECONDS)


def _bought(session: boto3.Session, desired: Wanted, stack: str) -> str:
    """ARN of the plan that was bought for this request, now or before."""
    if desired.request is None:
        raise Unusable(f"training plan {desired.name} has neither an ARN nor a request; deploy it anew")
    clients: dict[Service, Any] = {
        "sagemaker": session.client("sagemaker", config=_RETRIES),
        # What buys is sent once and never again by botocore: a lost answer would buy a second plan.
        "seller": session.client("sagemaker", config=Config(**ONE_ATTEMPT)),
        "dynamodb": session.client("dynamodb", config=_RETRIES),
        "ec2": session.client("ec2", config=_RETRIES),
    }
    steps = acquire(desired.request, buyer=stack, run=str(uuid.uuid4()), tags=desired.tags)
    try:
        outcome = Engine(clients, clock=_now, sleep=time.sleep, tell=logger.info).run(steps)
    except NoOffer as error:
        search = f"`podwright capacity search {desired.environment} {desired.name}` shows the nearest ones"
        raise Unusable(f"{error}. {search}") from None
    if outcome.result is not Result.BOUGHT:
        raise Unusable(outcome.text)
    logger.info(outcome.text)
    return outcome.arn


def _observe(session: boto3.Session, desired: Wanted, arn: str) -> dict[str, Any]:
    """The plan as SageMaker describes it; empty while a plan that was just bought is not to be seen."""
    try:
        return session.client("sagemaker", config=_RETRIES).describe_training_plan(TrainingPlanName=arn)
    # Right after a purchase SageMaker may not know the plan yet, so a missing one counts as not yet seen.
    except ClientError as error:
        if code_of(error) != "ResourceNotFound":
            raise
        if desired.arn:
            raise Unusable(
                f"there is no training plan {arn} in this account and region; correct `arn` of {desired.name}"
            ) from None
        return {}


def _accept(session: boto3.Session, desired: Wanted, plan: dict[str, Any]) -> Answer:
    """Take a plan that is there, and set its reminders. Raises Unusable when it is not what was asked for."""
    if problems := [*_not_as_asked(desired, plan), *misfits(plan, list(desired.needs))]:
        raise Unusable("; ".join(problems))
    keep(
        session.client("scheduler", config=_RETRIES),
        group=desired.reminders["Group"],
        topic=desired.reminders["Topic"],
        role=desired.reminders["Role"],
        desired=list(
            reminders(
                plan,
                name=desired.name,
                environment=desired.environment,
                reclaim_minutes=int(desired.reminders["ReclaimMinutes"]),
                now=_now(),
            )
        ),
    )
    return Answer(plan["TrainingPlanArn"], {"Status": plan["Status"]})


def _not_as_asked(desired: Wanted, shape: dict[str, Any]) -> list[str]:
    """How a plan that was bought differs from what the file asks for by now."""
    plan, asked = Plan.of(shape), desired.request
    if asked is None:
        return []
    # A plan that was extended is longer than what was asked for, and that is no difference.
    if asked.hours and plan.length >= timedelta(hours=asked.hours):
        asked = replace(asked, hours=None, end_before=None)  # as bought, or extended since
    if not (result := differences(asked, plan)):
        return []
    return [
        f"{plan.name} is bought already and {', '.join(result)}; no plan can be changed, and none is bought in its "
        f"place: put {desired.name} back as it was, or add another plan under a name of its own "
        f"(`podwright capacity extend {desired.environment} {desired.name}` makes it longer)"
    ]


def _why_over(desired: Wanted, plan: dict[str, Any]) -> str:
    arn, message = plan["TrainingPlanArn"], plan.get("StatusMessage") or "SageMaker gives no reason"
    if plan["Status"] == "Expired":
        ended = f" at {shown(plan['EndTime'])}" if "EndTime" in plan else ""
        return (
            f"{arn} ended{ended}, and its instances are gone; take {desired.name} and what draws on it out of the "
            "environment file, or reserve another plan under a new name"
        )
    again = "deploying again looks for a new offer" if desired.request else "reserve another plan"
    return f"{arn} failed: {message}; {again}"


def _say_that_it_stays(session: boto3.Session, desired: Wanted, physical_id: str) -> None:
    """Tell people, by the log and the topic, that a plan which left the stack is paid for all the same."""
    if ":training-plan/" not in physical_id:
        return  # nothing came of the request that made it
    message = (
        f"Training plan {desired.name} has left environment {desired.environment}. It was not cancelled: "
        f"nothing cancels "
        f"a plan, and it is paid for until its end.\n\n{physical_id}"
    )
    logger.warning(message)
    try:
        session.client("sns", config=_RETRIES).publish(
            TopicArn=desired.reminders["Topic"],
            Subject=f"Training plan {desired.name} of {desired.environment} was not cancelled"[:SUBJECT_CHARACTERS],
            Message=message,
        )
    except Exception:
        # A stack that goes takes topic and permissions along; that must not keep it from going.
        logger.exception("nobody could be told")


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


handler = answering(handle)
