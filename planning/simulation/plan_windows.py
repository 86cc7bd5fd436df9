"""Windows of training plans: when the instances of groups exist that run on one."""

from collections.abc import Iterator
from typing import Any

from ...config.settings.environment import Environment


def plan_windows(environment: Environment) -> Iterator[dict[str, Any]]:
    """Each window that the file knows, for each group that its plan gives instances: seconds since 1970."""
    for group, settings in environment.instance_groups.items():
        plan = environment.training_plans.get(settings.plan or "")
        if plan is None:
            continue
        spans = [(part.start, part.end, part.count) for part in plan.windows]
        if not spans and plan.start and plan.end:
            spans = [(plan.start, plan.end, plan.count or settings.count)]
        for start, end, count in sorted(spans):
            yield {
                "plan": settings.plan,
                "group": group,
                "instances": min(count, settings.count),
                "start": start.timestamp(),
                "end": end.timestamp(),
                "from": f"{start:%Y-%m-%d %H:%M}",
                "to": f"{end:%Y-%m-%d %H:%M}",
            }
