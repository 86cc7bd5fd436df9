"""Windows of training plans: when the instances of groups exist that run on one."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ...config.catalog.limits import limits
from ...config.settings.environment import Environment
from ...config.settings.plans import TrainingPlan


class _Part(NamedTuple):
    """Of a plan."""

    start: datetime
    end: datetime
    count: int
    zone: str


def plan_windows(environment: Environment) -> Iterator[dict[str, Any]]:
    """Each window that the file knows, for each group that its plan gives instances: seconds since 1970.

    Of groups that share a plan the first in the file has its instances first. `gone` is when they go, before the end.
    """
    ahead = timedelta(minutes=limits().training_plan.reclaim_minutes)
    left: dict[tuple[str, _Part], int] = {}
    for group, settings in environment.instance_groups.items():
        plan = environment.training_plans.get(settings.plan or "")
        if plan is None or settings.plan is None:
            continue
        for part in _parts(plan, settings.count):
            if part.zone not in (settings.zone_ids or (part.zone,)):
                continue
            instances = min(left.get((settings.plan, part), part.count), settings.count)
            left[settings.plan, part] = left.get((settings.plan, part), part.count) - instances
            if not instances:
                continue
            yield {
                "plan": settings.plan,
                "group": group,
                "instances": instances,
                "start": part.start.timestamp(),
                "gone": (part.end - ahead).timestamp(),
                "end": part.end.timestamp(),
                "from": f"{part.start:%Y-%m-%d %H:%M}",
                "to": f"{part.end:%Y-%m-%d %H:%M}",
            }


def dated_plans(environment: Environment, start: float, end: float) -> set[str]:
    """Plans that begin before the end of some work, and end after its start; the time of the others is another."""
    spans: dict[str, list[float]] = {}
    for window in plan_windows(environment):
        spans.setdefault(window["plan"], []).extend((window["start"], window["gone"]))
    return {plan for plan, times in spans.items() if min(times) <= end and max(times) > start}


def plan_moments(environment: Environment, plans: Collection[str]) -> set[float]:
    """When nodes of these plans come or go."""
    windows = [window for window in plan_windows(environment) if window["plan"] in plans]
    return {window[key] for window in windows for key in ("start", "gone")}


def present_nodes(environment: Environment, plans: Collection[str], time: float) -> dict[str, int]:
    """How many nodes of each group of these plans are there at a time."""
    present = {name: 0 for name, group in environment.instance_groups.items() if group.plan in plans}
    for window in plan_windows(environment):
        group = window["group"]
        if group in present and window["start"] <= time < window["gone"]:
            most = environment.instance_groups[group].count
            present[group] = min(present[group] + window["instances"], most)
    return present


def _parts(plan: TrainingPlan, count: int) -> list[_Part]:
    """The windows of a plan in the order of time; one for a plan without parts, where it has dates."""
    if plan.windows:
        return sorted(_Part(part.start, part.end, part.count, part.zone) for part in plan.windows)
    return [_Part(plan.start, plan.end, plan.count or count, plan.zone)] if plan.start and plan.end else []
