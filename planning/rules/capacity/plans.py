"""Rules on training plans: what a section has to say, and what a plan that comes later or in parts means for groups."""

from collections import defaultdict

from ....config.catalog.limits import limits
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.plans import TrainingPlan
from ...cost.plan_prices import instance_hours
from ...purchase.words import plan_name, shown
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from .zones import sections

# A plan that failed is bought again under the next number.
_SUFFIX = len("-99")
"""Room for the number of a further generation."""


@rule("CAP017", ERROR, on=TrainingPlan, source="", final=True)
def plan_is_there(plan: TrainingPlan) -> Problems:
    """Training plan not purchased."""
    if plan.state == "wanted":
        yield Problem(
            (),
            "the plan has no arn, and the deployment may not buy it: purchase is false",
            "run `podwright capacity reserve`, which writes the arn here; give the arn of a plan that you have; or say "
            "purchase: true with max_upfront_usd",
        )


@rule("CAP018", ERROR, on=TrainingPlan, source="", final=True)
def one_buyer(plan: TrainingPlan) -> Problems:
    """Training plan would be purchased twice."""
    if plan.arn and plan.purchase:
        yield Problem(
            "purchase",
            "purchase is true and arn is set: podwright never buys an existing plan",
            "remove purchase; to buy another plan, add a section with another name",
        )


@rule("CAP019", ERROR, on=TrainingPlan, source="api-plan", final=True)
def purchase_has_limit(plan: TrainingPlan) -> Problems:
    """Purchase without a price limit."""
    if plan.state == "purchase" and plan.max_upfront_usd is None:
        yield Problem(
            "purchase",
            "purchase is true without max_upfront_usd: the whole price is charged at once, and nothing is bought "
            "without a limit",
            "look at prices with `podwright capacity search`, and give max_upfront_usd in US dollars",
        )


@rule("CAP020", ERROR, on=TrainingPlan, source="training-plan-guide", final=True)
def purchase_is_complete(plan: TrainingPlan) -> Problems:
    """Purchase without instance type, count or duration."""
    if plan.state != "purchase":
        return
    what = (plan.ultraserver_type and plan.ultraserver_count) or (plan.instance_type and plan.count)
    missing = [name for name in ("days", "start_after") if getattr(plan, name) is None]
    if not what:
        missing.append("instance_type with count, or ultraserver_type with ultraserver_count")
    if missing:
        yield Problem("purchase", f"purchase is true without {listed(missing, 'and')}", "add what is missing")


@rule("CAP021", ERROR, on=TrainingPlan, source="training-plan-guide")
def plan_name_length(plan: TrainingPlan) -> Problems:
    """Training plan does not fit between its dates."""
    if plan.start_after and plan.end_before and plan.days:
        length = (plan.end_before - plan.start_after).total_seconds() / 86400
        if length < plan.days:
            yield Problem(
                "end_before",
                f"from start_after to end_before there are {length:.4g} days, and the plan lasts {plan.days}",
                "let it end later, or make it shorter",
            )


@rule("CAP022", ERROR, on=Environment, source="training-plan-hyperpod hyperpod-scaling")
def minimum_before_start(environment: Environment) -> Problems:
    """min_count on a training plan that has not started."""
    hours = limits().cluster.min_count_hours
    for path, group in sections(environment):
        # A plan of unknown dates may have begun, of which another rule speaks.
        plan, minimum = environment.training_plans.get(group.plan or ""), getattr(group, "min_count", None)
        if not plan or not minimum or (plan.state == "exists" and not plan.start and not plan.windows):
            continue
        when = f"starts {shown(plan.start)}" if plan.start else "may start weeks after the deployment"
        if len(plan.windows) > 1:
            when = f"comes in {len(plan.windows)} parts, with no capacity between them"
        yield Problem(
            (*path, "min_count"),
            f"min_count is {minimum}, and plan {group.plan} {when}: what has not reached its minimum after "
            f"{hours} hours is rolled back",
            "set min_count to 0; the group grows when the plan becomes active. Once it is, accept this finding",
        )


@rule("CAP023", WARNING, on=Environment, source="training-plan-hyperpod hyperpod-scaling")
def minimum_without_start(environment: Environment) -> Problems:
    """min_count on a training plan without a start date."""
    hours = limits().cluster.min_count_hours
    for path, group in sections(environment):
        plan, minimum = environment.training_plans.get(group.plan or ""), getattr(group, "min_count", None)
        if plan and minimum and plan.state == "exists" and not plan.start and not plan.windows:
            yield Problem(
                (*path, "min_count"),
                f"min_count is {minimum}: unless plan {group.plan} is active already, the deployment is rolled back "
                f"after {hours} hours",
                "set min_count to 0 until the plan is active; `podwright preflight` looks",
            )


@rule("CAP024", ERROR, on=TrainingPlan, source="api-plan")
def windows_in_order(plan: TrainingPlan) -> Problems:
    """Training plan dates contradict each other."""
    if plan.start and plan.end and plan.end <= plan.start:
        yield Problem("end", f"the plan ends {shown(plan.end)}, and starts {shown(plan.start)}", "correct the dates")
    for index, window in enumerate(plan.windows):
        if window.end <= window.start:
            yield Problem(
                ("windows", index, "end"),
                f"the part ends {shown(window.end)}, and starts {shown(window.start)}",
                "correct the dates",
            )
        for field, outside in (
            ("start", plan.start is not None and window.start < plan.start),
            ("end", plan.end is not None and window.end > plan.end),
        ):
            if outside:
                yield Problem(
                    ("windows", index, field),
                    f"{field} is {shown(getattr(window, field))}, and {field} of the whole plan is "
                    f"{shown(getattr(plan, field))}",
                    "copy both from DescribeTrainingPlan",
                )


@rule("CAP025", ERROR, on=Environment, source="training-plan-hyperpod")
def windows_hold_groups(environment: Environment) -> Problems:
    """More instances than the training plan has in this zone."""
    users: defaultdict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for path, group in sections(environment):
        for zone in group.zone_ids if group.plan else ():
            users[group.plan or "", zone].append((str(path[-1]), group.count))
    for (name, zone), groups in users.items():
        plan = environment.training_plans.get(name)
        if plan is None or not plan.windows or zone not in plan.zones:
            continue
        # A group has its nodes for as long as the plan lasts, so its largest part is what it can come to.
        most = max(plan.count_at(window.start, zone) for window in plan.windows)
        total = sum(count for _, count in groups)
        if total > most:
            asked = " + ".join(f"{count} in {group}" for group, count in groups)
            yield Problem(
                ("training_plans", name, "windows"),
                f"in {zone} the groups ask for {asked} = {total} instances, and no moment of the plan has more "
                f"than {most} there",
                "lower the counts, or create a group for each zone of the plan",
            )


@rule("CAP026", ERROR, on=Environment, source="api-plan", final=True)
def name_in_aws(environment: Environment) -> Problems:
    """Training plan name too long."""
    # Room for the number of a later generation.
    most = limits().training_plan.name_length - _SUFFIX
    for name, plan in environment.training_plans.items():
        called = plan_name(environment.name, name)
        if plan.state != "exists" and len(called) > most:
            yield Problem(
                ("training_plans", name),
                f"it would be called {called}, which has {len(called)} characters; at most {most} leave room for "
                "the number of a second try",
                f"shorten its name by {len(called) - most}",
            )


@rule("CAP027", WARNING, on=TrainingPlan, source="training-plan-guide")
def count_is_sold(plan: TrainingPlan) -> Problems:
    """Instance count that training plans may not offer."""
    sold = limits().training_plan.instance_counts
    if plan.state != "exists" and plan.count and not plan.ultraserver_type and plan.count not in sold:
        yield Problem(
            "count", f"count is {plan.count}; plans are sold for {listed(sold)} instances", "use one of those"
        )


@rule("CAP028", WARNING, on=Environment, source="training-plan-hyperpod")
def plan_outlives_stack(environment: Environment) -> Problems:
    """Purchase in an environment with protection: destroy."""
    for name, plan in environment.training_plans.items():
        if plan.state == "purchase" and environment.protection == "destroy":
            yield Problem(
                ("training_plans", name, "purchase"),
                "protection is destroy, and a plan cannot be cancelled: it stays, paid in full, when its stack goes",
                "buy it with `podwright capacity reserve`, so that it belongs to no stack",
            )


@rule("CAP039", INFO, on=Environment, source="training-plan-hyperpod")
def reminders_have_recipients(environment: Environment) -> Problems:
    """Plan reminders without a recipient."""
    if environment.training_plans and not environment.plan_reminders.emails:
        yield Problem(
            ("plan_reminders", "emails"),
            "no address gets a mail before a training plan ends; its instances are terminated 30 minutes before",
            "add addresses under plan_reminders.emails, or accept this and subscribe to the topic that the capacity "
            "stack prints",
        )


@rule("CAP040", ERROR, on=Environment, source="api-plan")
def price_can_be_spread(environment: Environment) -> Problems:
    """Training plan price without a duration or count."""
    for name, plan in environment.training_plans.items():
        path = ("training_plans", name, "paid_usd")
        if plan.paid_usd is None:
            continue
        if plan.state != "exists":
            yield Problem(
                path,
                f"paid_usd is {plan.paid_usd:,}, and the plan has no arn: what does not exist was not paid",
                "give the plan's arn; the limit to the price of a plan to buy is max_upfront_usd",
            )
        elif not instance_hours(environment, name):
            yield Problem(
                path,
                f"paid_usd is {plan.paid_usd:,}, and the file does not say for how many instance-hours",
                "give start and end (or days) and count as DescribeTrainingPlan has them",
            )
