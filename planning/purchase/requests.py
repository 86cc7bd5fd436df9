"""What an environment file asks of a training plan, as a request that offers can be compared with."""

from dataclasses import replace

from ...config.settings.plans import TrainingPlan
from .offers import Request


def plan_request(plan: TrainingPlan, environment: str, name: str) -> Request:
    """What the file asks of the plan called `name`: of one that exists what it holds, else what to buy."""
    held = Request(
        environment,
        name,
        plan.zones,
        plan.instance_type,
        plan.count,
        plan.ultraserver_type,
        plan.ultraserver_count,
        plan.spares_per_ultraserver,
    )
    if plan.state == "exists":
        return held
    return replace(
        held,
        zones=(plan.zone,),
        hours=plan.days * 24 if plan.days else None,
        start_after=plan.start_after,
        end_before=plan.end_before,
        max_upfront_usd=plan.max_upfront_usd,
    )
