"""Checks of training plans: those that the file names by ARN, and those that it wants."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from ...config.catalog.limits import limits
from ...config.findings import listed
from ...config.settings.plans import TrainingPlan
from ...planning.rules.capacity.zones import sections
from ...planning.rules.framework.rule import Problem
from .check import Answers, Ask, Note, check
from .shared import running, stack

_TARGET: Final = "hyperpod-cluster"
_SOON: Final = timedelta(days=14)


@check("PRE040")
def there(ask: Ask) -> Answers:
    """Whether each plan exists."""
    for name, plan in _existing(ask):
        result = _described(ask, plan)
        if result is None:
            yield Problem(
                ("training_plans", name, "arn"),
                f"there is no training plan {plan.arn}",
                f"`aws sagemaker list-training-plans --region {ask.environment.region}` lists what there is; without "
                f"arn, `podwright capacity reserve {ask.environment.name} {name}` buys one",
            )
        else:
            yield Note(f"{name} is {result['Status']}")


@check("PRE041")
def zones(ask: Ask) -> Answers:
    """Where the capacity of each plan is, against where the file has it."""
    for name, plan in _existing(ask):
        parts = (_described(ask, plan) or {}).get("ReservedCapacitySummaries", [])
        actual = list(dict.fromkeys(part["AvailabilityZoneId"] for part in parts if part.get("AvailabilityZoneId")))
        if strays := [zone for zone in actual if zone not in plan.zones]:
            subnets = ask.environment.network.zones
            missing = [zone for zone in strays if zone not in subnets]
            yield Problem(
                ("training_plans", name, "zone"),
                f"the capacity of {name} is in {listed(actual, 'and')}, and the file says {listed(plan.zones, 'and')}",
                f"either write zone: {strays[0]}"
                + (f" and add {listed(missing, 'and')} to network.zones" if missing else "")
                + ", with the file system of its groups there too; or reserve another plan in "
                f"{plan.zone} (`podwright capacity search {ask.environment.name}`): a plan never moves",
            )
        elif actual:
            yield Note(f"{name} in {', '.join(actual)}")


@check("PRE042")
def fits(ask: Ask) -> Answers:
    """What each plan holds and for whom, against the groups that use it."""
    nodes = running(ask) if any(True for _ in _existing(ask)) else {}
    for name, plan in _existing(ask):
        if result := _described(ask, plan):
            path = ("training_plans", name)
            yield from _usable(name, result)
            yield from _as_written(name, plan, result)
            users = [(where, group) for where, group in sections(ask.environment) if group.plan == name]
            types = {part["InstanceType"] for part in result.get("ReservedCapacitySummaries", [])}
            for where, group in users:
                if types and not set(group.types) <= types:
                    yield Problem(
                        (*where, "instance_type"),
                        f"{where[-1]} has {listed(group.types, 'and')}; {name} holds {listed(sorted(types), 'and')}",
                        "give the group the plan's type, or other capacity",
                    )
            desired = sum(group.count for _, group in users)
            mine = sum(min(group.count, nodes.get(str(where[-1]), 0)) for where, group in users)
            total = result.get("TotalInstanceCount", desired)
            free = mine + result.get("AvailableInstanceCount", total)
            if desired > total:
                yield Problem(
                    path, f"groups want {desired} instances of {name}, which has {total}", "lower their counts"
                )
            elif result["Status"] == "Active" and desired > free:
                yield Problem(
                    path,
                    f"groups want {desired} instances of {name}; {free} of {total} are theirs or free: others use the "
                    "rest, or the plan is in its last minutes",
                    "lower their counts, take from others what they use, or wait for the next part of the plan",
                )
            yield Note(f"{name}: {desired} of {total} instances")


@check("PRE043")
def times(ask: Ask) -> Answers:
    """Plans that give no capacity today, or only for days to come."""
    for name, plan in _existing(ask):
        result, path = _described(ask, plan) or {}, ("training_plans", name)
        start, end = result.get("StartTime"), result.get("EndTime")
        if result.get("Status") in ("Pending", "Scheduled") and start:
            later = [part["StartTime"] for part in result.get("ReservedCapacitySummaries", []) if part.get("StartTime")]
            following = min((time for time in later if time > ask.now), default=start)
            yield Problem(
                path,
                f"{name} is {result['Status']}: its capacity comes {_when(following, ask.now)}",
                "deploy before that with min_count: 0 on its groups, which then fill by themselves, or wait",
            )
        elif result.get("Status") == "Active" and end and end - ask.now < _SOON:
            ahead = limits().training_plan.reclaim_minutes
            yield Problem(
                path,
                f"{name} ends {_when(end, ask.now)}; its instances go {ahead} minutes before",
                f"extend it (`podwright capacity extend {ask.environment.name} {name}`), or let jobs end",
            )
        elif end:
            yield Note(f"{name} until {end:%Y-%m-%d %H:%M} UTC")


@check("PRE044")
def names(ask: Ask) -> Answers:
    """Plans that are to be bought although one of their name is there."""
    environment = ask.environment
    desired = {name: plan for name, plan in environment.training_plans.items() if plan.state != "exists"}
    if not desired:
        return
    rows = ask.aws.pages("sagemaker", "list_training_plans", "TrainingPlanSummaries")
    by_name = {row["TrainingPlanName"]: row for row in rows if row["Status"] not in ("Expired", "Failed")}
    deployed = stack(ask, "capacity") is not None
    for name, plan in desired.items():
        result = by_name.get(f"{environment.name}-{name}")
        # Once its stack is there, a plan of that name is the one that the stack bought.
        if result and not (plan.purchase and deployed):
            yield Problem(
                ("training_plans", name),
                f"there is a plan {result['TrainingPlanName']} already ({result['Status']}, "
                f"{result['TrainingPlanArn']})",
                f"if it is the one you mean, write arn: {result['TrainingPlanArn']}; else give this one another name",
            )
        else:
            yield Note(f"{environment.name}-{name} is {'bought' if result else 'free'}")


def _existing(ask: Ask) -> Iterator[tuple[str, TrainingPlan]]:
    for name, plan in ask.environment.training_plans.items():
        if plan.state == "exists":
            yield name, plan


def _described(ask: Ask, plan: TrainingPlan) -> dict[str, Any] | None:
    name = (plan.arn or "").rpartition("/")[2]
    result = ask.aws.find("sagemaker", "describe_training_plan", {"ResourceNotFound"}, TrainingPlanName=name)
    return result if result and result["TrainingPlanArn"] == plan.arn else None


def _usable(name: str, result: dict[str, Any]) -> Answers:
    """What keeps a plan of the account from serving clusters: its status, or that it was bought for something else."""
    path = ("training_plans", name)
    if result["Status"] in ("Failed", "Expired"):
        reason = f" ({result['StatusMessage']})" if result.get("StatusMessage") else ""
        yield Problem(
            path,
            f"{name} is {result['Status']}{reason}: it no longer has instances",
            "remove it from the file, and give its groups another plan or on-demand capacity",
        )
    targets = result.get("TargetResources", [_TARGET])
    if _TARGET not in targets:
        yield Problem(
            path,
            f"{name} was bought for {listed(targets, 'and')}, and serves nothing else",
            f"name a plan whose target is {_TARGET}",
        )


def _as_written(name: str, plan: TrainingPlan, result: dict[str, Any]) -> Answers:
    """Facts of the plan that the file states otherwise."""
    parts = result.get("ReservedCapacitySummaries", [])
    servers = {part["UltraServerType"] for part in parts if part.get("UltraServerType")}
    actual = {
        "count": result.get("TotalInstanceCount"),
        "ultraserver_count": result.get("TotalUltraServerCount"),
        "ultraserver_type": min(servers, default=None),
    }
    for field, value in actual.items():
        written = getattr(plan, field)
        if written is not None and value is not None and written != value:
            yield Problem(
                ("training_plans", name, field),
                f"{field} of {name} is {written} in the file and {value} in AWS",
                f"write {field}: {value}",
            )


def _when(timestamp: datetime, now: datetime) -> str:
    days = (timestamp - now).days
    return f"on {timestamp:%Y-%m-%d %H:%M} UTC, {f'in {days} days' if days else 'within a day'}"
