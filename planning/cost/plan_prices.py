"""What an instance of a training plan costs an hour: what was paid for the plan, spread over all hours it bought.

A plan is paid in full at its purchase, so no bill ever names an hourly price. Spreading the payment evenly over the
plan's instance-hours is what Cost Explorer calls amortised cost.
"""

import sys
from datetime import datetime

from ...config.catalog.instance_types import environment_types
from ...config.catalog.prices import HOURS_PER_MONTH, Price
from ...config.settings.environment import Environment
from ...config.settings.plans import PlanWindow, TrainingPlan


def instance_hours(environment: Environment, name: str) -> float | None:
    """Hours of all instances of a plan, from its first to its last; None where the file does not say.

    Parts count each for themselves. Without a count in the file that of the groups on the plan stands for it.
    """
    plan = environment.training_plans[name]
    if plan.windows:
        return sum(part.count * _hours(part.start, part.end) for part in plan.windows)
    length = _length(plan)
    return None if length is None else length * (_instances(environment, name, plan) or 0) or None


def paid_price(environment: Environment, name: str) -> Price | None:
    """The price of an instance-hour of a plan that is paid; None where the file does not say what was paid."""
    plan = environment.training_plans.get(name)
    hours = instance_hours(environment, name) if plan and plan.paid_usd else None
    if plan is None or plan.paid_usd is None or hours is None:
        return None
    words = f"${plan.paid_usd:,} paid for plan {name}, spread over its {hours:,.0f} instance-hours"
    return Price(plan.paid_usd / hours, "plan", words)


def paid_by_group(environment: Environment) -> dict[str, Price]:
    """The price of an instance-hour by each group on a plan that is paid, for what knows groups and no plans."""
    prices = {name: paid_price(environment, group.plan) for name, group in environment.groups.items() if group.plan}
    return {name: price for name, price in prices.items() if price}


def parts(plan: TrainingPlan) -> list[PlanWindow]:
    """The parts of a plan with their start, end and instances; one that is whole is a single part.

    Empty where the file does not say when it starts and ends. Without a count in the file a part has room for all.
    """
    if plan.windows or not (plan.start and plan.end):
        return list(plan.windows)
    return [PlanWindow(start=plan.start, end=plan.end, count=plan.count or sys.maxsize, zone=plan.zone)]


def hours_of_term(plan: TrainingPlan, instances: int) -> float | None:
    """Hours in which a plan has capacity for each of so many instances; None where the file does not say.

    Parts are added up. One with fewer instances counts for as many as it has.
    """
    if plan.windows:
        hours = sum(min(instances, part.count) * _hours(part.start, part.end) for part in plan.windows)
        return hours / instances
    return _length(plan)


def hours_by_group(environment: Environment) -> dict[str, float]:
    """Hours of a month of 730 by each group on an existing plan that is shorter."""
    hours: dict[str, float] = {}
    for name, group in environment.groups.items():
        plan = environment.training_plans.get(group.plan or "")
        term = hours_of_term(plan, group.count) if plan and plan.state == "exists" and group.count else None
        if term and term < HOURS_PER_MONTH:
            hours[name] = term
    return hours


def _length(plan: TrainingPlan) -> float | None:
    """Hours from the start of a plan of one part to its end; None where the file does not say."""
    if plan.start and plan.end:
        return _hours(plan.start, plan.end)
    return plan.days * 24 if plan.days else None


def _instances(environment: Environment, name: str, plan: TrainingPlan) -> int:
    server = environment_types(environment.instance_types).ultraservers.get(plan.ultraserver_type or "")
    reserved = server.instances * (plan.ultraserver_count or 1) if server else plan.count
    return reserved or sum(group.count for group in environment.groups.values() if group.plan == name)


def _hours(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds() / 3600
