"""Training plans as they are: what SageMaker says, beside what the file says and the record of purchases."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ...config.settings.environment import Environment
from ...config.settings.plans import TrainingPlan
from ...planning.purchase.offers import Plan, misfits, shown
from ...planning.purchase.record import Record, read
from ...planning.purchase.requests import plan_request
from ...planning.purchase.steps import Engine
from ..aws.account import Account
from ..aws.calls import pages_by_token
from ..aws.plans import plan_answer

Json = dict[str, Any]


def account_plans(environment: Environment, account: Account, only: str | None) -> Json:
    """The plans of the file, or `only` that one, and those of the account that the file does not name."""
    names = [only] if only else list(environment.training_plans)
    own = [_own(environment, name, account) for name in names]
    arns = {plan["arn"] for plan in own}
    summaries = "TrainingPlanSummaries"
    listed = [] if only else pages_by_token(account, "sagemaker", "list_training_plans", summaries, SortBy="StartTime")
    others = [_described(shape) for shape in listed if shape["TrainingPlanArn"] not in arns]
    return {"environment": environment.name, "region": environment.region, "plans": own, "others": others}


def _own(environment: Environment, name: str, account: Account) -> Json:
    """A plan of the file beside what is recorded of its purchase and what AWS has."""
    settings = environment.training_plans[name]
    record, problem = _record(f"{environment.name}/{name}", account)
    arn = settings.arn or (record.arn if record else "")
    shape = plan_answer(account, arn) if arn else None
    return {
        "plan": name,
        "state": settings.state,
        "arn": arn or None,
        "groups": {key: group.count for key, group in environment.groups.items() if group.plan == name},
        "aws": _described(shape) if shape else None,
        "differs": _differs(environment, name, settings, shape) if shape else [],
        "extensions": [_extension(item) for item in extensions(account, arn)] if shape else [],
        "ultraservers": [_ultraserver(item) for item in _ultraservers(account, shape)] if shape else [],
        "record": record and _recorded(record),
        "problem": problem,
    }


def _record(key: str, account: Account) -> tuple[Record | None, str]:
    """The record of a purchase, or why it cannot be read: who may look at plans need not be one who buys."""
    clients: dict[Any, Any] = account.clients("sagemaker", "dynamodb")
    try:
        return Engine(clients).run(read(key)), ""
    except (ClientError, BotoCoreError) as error:
        return None, f"the record of purchases cannot be read: {error}"


def _differs(environment: Environment, name: str, settings: TrainingPlan, shape: Json) -> list[str]:
    """Where SageMaker and the file disagree."""
    # An extension makes a plan longer than what was asked for.
    desired = replace(plan_request(settings, environment.name, name), hours=None, start_after=None, end_before=None)
    result = misfits(desired, Plan.of(shape))
    for field, existing in (("start", shape.get("StartTime")), ("end", shape.get("EndTime"))):
        specified = getattr(settings, field)
        if specified and existing and abs((specified - existing).total_seconds()) >= 60:
            result.append(f"has its {field} at {shown(existing)}, not {shown(specified)}")
    return result


def extensions(account: Account, arn: str) -> list[Json]:
    """The extensions of a plan that were bought."""
    operation, key = "describe_training_plan_extension_history", "TrainingPlanExtensions"
    return pages_by_token(account, "sagemaker", operation, key, TrainingPlanArn=arn)


def _ultraservers(account: Account, shape: Json) -> Iterator[Json]:
    """The UltraServers of a plan's capacities that are there now."""
    operation = "list_ultra_servers_by_reserved_capacity"
    for capacity in shape.get("ReservedCapacitySummaries", ()):
        if capacity.get("ReservedCapacityType") == "UltraServer" and capacity["Status"] == "Active":
            arn = capacity["ReservedCapacityArn"]
            yield from pages_by_token(account, "sagemaker", operation, "UltraServers", ReservedCapacityArn=arn)


def _described(shape: Json) -> Json:
    """A plan for machines: names as in environment files, times in UTC."""
    plan = Plan.of(shape)
    return {
        "name": plan.name,
        "arn": plan.arn,
        "status": plan.status,
        "message": plan.message,
        "targets": list(plan.targets),
        "start": plan.start and shown(plan.start),
        "end": plan.end and shown(plan.end),
        "upfront": None if plan.fee is None else float(plan.fee),
        "currency": plan.currency,
        "total": shape.get("TotalInstanceCount"),
        "free": shape.get("AvailableInstanceCount"),
        "in_use": shape.get("InUseInstanceCount"),
        "unhealthy": shape.get("UnhealthyInstanceCount"),
        "spare": shape.get("AvailableSpareInstanceCount"),
        "ultraservers": shape.get("TotalUltraServerCount"),
        "parts": [
            {
                "status": capacity["Status"],
                "zone": part.zone,
                "instance_type": part.instance_type,
                "count": part.count,
                "ultraserver_type": part.ultraserver_type,
                "ultraserver_count": part.ultraserver_count,
                "start": part.start and shown(part.start),
                "end": part.end and shown(part.end),
            }
            for capacity, part in zip(shape.get("ReservedCapacitySummaries", ()), plan.parts, strict=True)
        ],
    }


def _extension(item: Json) -> Json:
    return {
        "offering": item["TrainingPlanExtensionOfferingId"],
        "status": item.get("Status", ""),
        "payment": item.get("PaymentStatus", ""),
        "start": shown(item["StartDate"]) if item.get("StartDate") else None,
        "end": shown(item["EndDate"]) if item.get("EndDate") else None,
        "upfront": item.get("UpfrontFee", ""),
        "currency": item.get("CurrencyCode", ""),
    }


def _ultraserver(item: Json) -> Json:
    return {
        "id": item["UltraServerId"],
        "type": item["UltraServerType"],
        "health": item.get("HealthStatus", ""),
        "total": item["TotalInstanceCount"],
        "free": item.get("AvailableInstanceCount"),
        "in_use": item.get("InUseInstanceCount"),
        "spare": item.get("AvailableSpareInstanceCount"),
        "unhealthy": item.get("UnhealthyInstanceCount"),
    }


def _recorded(record: Record) -> Json:
    return {
        "state": str(record.state),
        "name": record.name,
        "offering": record.offering,
        "price": record.price,
        "currency": record.currency,
        "buyer": record.buyer,
        "at": record.at,
        "arn": record.arn or None,
        "reason": record.reason,
        "earlier": record.attempts_before,
    }
