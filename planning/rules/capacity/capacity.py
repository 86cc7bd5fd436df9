"""Rules on where instances come from: training plans, Spot, regions and UltraServers."""

from collections import defaultdict

from ....config.catalog.instance_type import UltraServer
from ....config.catalog.instance_types import Catalog
from ....config.catalog.regions import offered, offering_regions
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.groups import GroupBase, InstanceGroup, RestrictedInstanceGroup
from ....config.settings.plans import TrainingPlan
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from .ultraservers import spares
from .zones import sections


@rule("CAP001", ERROR, on=Environment, source="training-plan-hyperpod", final=True)
def plan_exists(environment: Environment) -> Problems:
    """Unknown training plan."""
    for path, group in sections(environment):
        if group.plan is not None and group.plan not in environment.training_plans:
            yield Problem(
                (*path, "capacity", "training_plan"),
                f"{group.plan} is not under training_plans; known: {listed(environment.training_plans, 'and')}",
                "correct the name, or add the plan with arn and zone",
            )


@rule("CAP002", ERROR, on=Environment, source="training-plan-hyperpod hyperpod-field-notes")
def plan_zone(environment: Environment) -> Problems:
    """Instance group outside the zone of its training plan."""
    for path, group in sections(environment):
        plan = environment.training_plans.get(group.plan or "")
        if plan and (away := [zone for zone in group.zone_ids if zone not in plan.zones]):
            field = "zones" if isinstance(group, InstanceGroup) and group.zones else "zone"
            yield Problem(
                (*path, field),
                f"{field} is {listed(away, 'and')}, and plan {group.plan} has its capacity in "
                f"{listed(plan.zones, 'and')}: SageMaker would report insufficient capacity",
                f"use {listed(plan.zones)}, or a plan in {listed(away)} (`podwright capacity search` shows offers)",
            )


@rule("CAP003", ERROR, on=Environment, source="training-plan-hyperpod")
def plan_type(environment: Environment) -> Problems:
    """Training plan for another instance type."""
    for path, group in sections(environment):
        plan = environment.training_plans.get(group.plan or "")
        if plan and plan.instance_type and (other := [name for name in group.types if name != plan.instance_type]):
            field = "instance_type" if group.instance_type else "instance_types"
            yield Problem(
                (*path, field),
                f"{field} is {listed(other, 'and')}, and plan {group.plan} reserves {plan.instance_type}",
                f"use {plan.instance_type}, or another plan",
            )


@rule("CAP004", ERROR, on=Environment, source="api-plan")
def plan_count(environment: Environment, types: Catalog) -> Problems:
    """More instances than the training plan has."""
    users: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for path, group in sections(environment):
        users[group.plan or ""].append((str(path[-1]), group.count))
    for name, plan in environment.training_plans.items():
        total = sum(count for _, count in users[name])
        unit = types.ultraservers.get(plan.ultraserver_type or "")
        whole = unit.instances * plan.ultraserver_count if unit and plan.ultraserver_count else None
        has = plan.count if plan.count is not None else whole
        if has is not None and total > has:
            sums = " + ".join(f"{count} in {group}" for group, count in users[name])
            yield Problem(
                ("training_plans", name, "ultraserver_count" if plan.count is None else "count"),
                f"the groups ask for {sums} = {total} instances, and the plan has {has}",
                f"lower the counts by {total - has}, or use a larger plan",
            )


@rule("CAP005", WARNING, on=Environment, source="training-plan-hyperpod")
def plan_used(environment: Environment) -> Problems:
    """Unused training plan."""
    used = {group.plan for _, group in sections(environment)}
    for name in environment.training_plans.keys() - used:
        yield Problem(
            ("training_plans", name),
            f"no group draws on {name}, and a plan is paid for in advance",
            f"add `capacity: {{training_plan: {name}}}` to a group, or remove the plan",
        )


@rule("CAP006", ERROR, on=Environment, source="training-plan-hyperpod", final=True)
def plan_once(environment: Environment) -> Problems:
    """Same training plan under two names."""
    observed: dict[str, str] = {}
    for name, plan in environment.training_plans.items():
        if plan.arn and (first := observed.setdefault(plan.arn, name)) != name:
            yield Problem(
                ("training_plans", name, "arn"),
                f"{name} has the ARN of {first}, so its instances would be counted twice",
                f"remove it and let its groups use {first}",
            )


@rule("CAP007", ERROR, on=TrainingPlan, source="api-plan")
def plan_sells(plan: TrainingPlan, types: Catalog) -> Problems:
    """Instance type without training plans."""
    row = types.find(plan.instance_type or "")
    if plan.instance_type and not (row and row.training_plan):
        sold = [each.name for each in types if each.training_plan]
        yield Problem(
            "instance_type",
            f"instance_type is {plan.instance_type}; training plans reserve {listed(sold)}",
            "write the type that DescribeTrainingPlan prints",
        )


@rule("CAP008", ERROR, on=InstanceGroup, source="training-plan-hyperpod")
def plan_needs_one_type(group: InstanceGroup) -> Problems:
    """Mixed instance group on a training plan."""
    if group.plan and len(group.types) > 1:
        yield Problem(
            "instance_types",
            f"plan {group.plan} reserves one type, and the group may ask for {len(group.types)}",
            "give instance_type alone, and put the other types into a group on demand or on Spot",
        )


@rule("CAP009", ERROR, on=RestrictedInstanceGroup, source="api-restricted", final=True)
def restricted_spot(group: RestrictedInstanceGroup) -> Problems:
    """Spot capacity for a restricted group."""
    if group.capacity == "spot":
        yield Problem(
            "capacity",
            "capacity is spot; restricted groups have no capacity requirements: allowed are on_demand, "
            "account_team and {training_plan: NAME}",
            "use one of those",
        )


@rule("CAP010", WARNING, on=InstanceGroup, source="hyperpod-spot hyperpod-scaling")
def spot_minimum(group: InstanceGroup) -> Problems:
    """min_count on Spot capacity."""
    if group.capacity == "spot" and group.min_count:
        yield Problem(
            "min_count",
            f"min_count is {group.min_count} on Spot: if that many are not there within 3 hours, the "
            "group is rolled back and starts again from nothing",
            "set min_count to 0, or use on-demand capacity",
        )


@rule("CAP011", WARNING, on=Environment, source="cfn-lint-prices")
def region_offers(environment: Environment) -> Problems:
    """Region not known to offer the instance type."""
    for path, group in sections(environment):
        for name in group.types:
            asked = group.plan is None and group.capacity != "account_team"
            if asked and offered(name, environment.region) is False:
                where = listed(offering_regions(name), "and")
                yield Problem(
                    (*path, "instance_type" if group.instance_type else "instance_types"),
                    f"the price lists do not show {name} in {environment.region}; they show it in {where}",
                    "ask AWS, or check your service quota; price lists are late, so the region may have the type",
                )


@rule("CAP012", ERROR, on=TrainingPlan, source="api-plan")
def ultraserver_pair(plan: TrainingPlan) -> Problems:
    """UltraServer type and count not set together."""
    if (plan.ultraserver_type is None) != (plan.ultraserver_count is None):
        specified, missing = (
            ("ultraserver_count", "ultraserver_type")
            if plan.ultraserver_type is None
            else ("ultraserver_type", "ultraserver_count")
        )
        yield Problem(
            specified, f"{specified} is given without {missing}", f"add {missing}, as DescribeTrainingPlan prints it"
        )


@rule("CAP013", ERROR, on=TrainingPlan, source="api-plan")
def ultraserver_size(plan: TrainingPlan, types: Catalog) -> Problems:
    """Instance and UltraServer counts of a plan disagree."""
    if plan.ultraserver_type is None:
        return
    unit = types.ultraservers.get(plan.ultraserver_type)
    if unit is None or not unit.hyperpod:
        known_units = listed(name for name, each in types.ultraservers.items() if each.hyperpod)
        yield Problem(
            "ultraserver_type",
            f"ultraserver_type is {plan.ultraserver_type}; HyperPod takes {known_units}",
            "correct the name",
        )
        return
    if plan.instance_type not in (None, unit.instance_type):
        yield Problem(
            "instance_type",
            f"{unit.name} is made of {unit.instance_type}, not of {plan.instance_type}",
            f"set {unit.instance_type}",
        )
    if plan.ultraserver_count and plan.count and plan.count > plan.ultraserver_count * unit.instances:
        total = plan.ultraserver_count * unit.instances
        yield Problem(
            "count",
            f"count is {plan.count}, and {plan.ultraserver_count} × {unit.instances} instances of "
            f"{unit.name} = {total}",
            f"set at most {total}",
        )


@rule("CAP014", WARNING, on=Environment, source="api-plan")
def whole_ultraservers(environment: Environment, types: Catalog) -> Problems:
    """Fewer instances than a whole UltraServer."""
    for path, group in sections(environment):
        units = _ultraservers(group, types)
        plan = environment.training_plans.get(group.plan or "")
        size = next(
            (unit.instances for unit in units if plan and unit.name == plan.ultraserver_type),
            min((unit.instances for unit in units), default=0),
        )
        working = size - min(spares(plan), size - 1) if size and plan else size
        if size and group.count % size and group.count % working:
            aside = f", or of {working} where the spares are left aside" if working != size else ""
            yield Problem(
                (*path, "count"),
                f"count is {group.count}; an UltraServer has {size} instances, so an NVLink domain "
                "would be split between this group and others",
                f"use a multiple of {size}{aside}",
            )


@rule("CAP015", WARNING, on=Environment, source="training-plan-hyperpod")
def ultraserver_capacity(environment: Environment, types: Catalog) -> Problems:
    """UltraServer instances without a training plan."""
    for path, group in sections(environment):
        set_aside = group.plan is not None or group.capacity == "account_team"
        if not set_aside and group.count and _ultraservers(group, types):
            yield Problem(
                (*path, "capacity"),
                f"capacity is {group.capacity}; UltraServers are reserved as a whole",
                "draw on a training plan, or write `capacity: account_team` where your account team set them aside",
            )


@rule("CAP016", INFO, on=InstanceGroup, source="hyperpod-spot hyperpod-checks")
def spot_checks(group: InstanceGroup) -> Problems:
    """Deep health checks on Spot nodes."""
    if group.capacity == "spot" and group.deep_health_checks:
        yield Problem(
            "deep_health_checks",
            "each new Spot node is stressed before it takes work, and may be reclaimed before that ends",
            "leave the checks to groups that stay",
        )


def _ultraservers(group: GroupBase, types: Catalog) -> list[UltraServer]:
    return [unit for unit in types.ultraservers.values() if unit.hyperpod and unit.instance_type in group.types]
