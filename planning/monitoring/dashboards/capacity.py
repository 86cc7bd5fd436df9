"""Capacity: what was bought, whether anybody uses it, and when it ends."""

from ....config.settings.observability import Targets
from .panel import Dashboard, Panel, Row

_PLAN = "{{plan}}"


def define(_: Targets) -> Dashboard:
    """The dashboard."""
    return Dashboard(
        name="capacity",
        title="Capacity",
        says="What was bought, whether anybody uses it, and when it ends.",
        needs=("podwright_instances",),
        rows=(Row("Training plans", _plans()), Row("Instance groups", _groups()), Row("Pace of spending", _money())),
        hours=168,
    )


def _state(state: str) -> str:
    return f'sum by (plan) (podwright_plan_instances{{$cluster, state="{state}"}})'


def _plans() -> tuple[Panel, ...]:
    """Training plans: days left, use, and what is paid for nothing."""
    return (
        Panel(
            "bars",
            "Days left",
            "days",
            {_PLAN: "plan:days_left:min{$cluster} > 0"},
            "Days until a plan ends; its instances go 30 minutes before. Extensions are offered while there are any.",
            {0: "red", 3: "orange", 7: "green"},
            width=8,
        ),
        Panel(
            "bars",
            "Idle now",
            "fraction",
            {_PLAN: "plan:idle:ratio{$cluster}"},
            "Share of a plan's instances that nobody took up. They are paid for.",
            {0: "green", 0.1: "orange", 0.25: "red"},
            width=8,
            most=1,
        ),
        Panel(
            "table",
            "Plans",
            "count",
            {
                "total": _state("total"),
                "in use": _state("in_use"),
                "available": _state("available"),
                "unhealthy": _state("unhealthy"),
            },
            "Instances of each plan as SageMaker counts them.",
            width=8,
        ),
        Panel(
            "stacked",
            "Allocated and idle",
            "count",
            {"{{plan}} in use": _state("in_use"), "{{plan}} idle": _state("available")},
            "Instances of plans that run in a cluster, and those that wait for one.",
        ),
        Panel(
            "lines",
            "What a day of a plan costs",
            "USD",
            {
                _PLAN: "max by (plan) (podwright_plan_upfront_usd{$cluster}) "
                "/ (max by (plan) (podwright_plan_end_timestamp_seconds{$cluster}) "
                "- max by (plan) (podwright_plan_start_timestamp_seconds{$cluster})) * 86400"
            },
            "The upfront price over all of its days, used or not.",
            may_be_empty=True,
        ),
    )


def _groups() -> tuple[Panel, ...]:
    """Instance groups: how many instances are there and how many should be."""
    return (
        Panel(
            "lines",
            "Wanted and there",
            "count",
            {
                "{{instance_group}} wanted": 'podwright_instances{$cluster, state="target"}',
                "{{instance_group}} there": 'podwright_instances{$cluster, state="current"}',
            },
            "Instances that a group wants and has. A gap that stays is capacity that is not there, or creation that "
            "fails.",
        ),
        Panel(
            "stacked",
            "Nodes by status",
            "count",
            {"{{status}}": "sum by (status) (podwright_nodes{$cluster}) > 0"},
            "What SageMaker says of nodes: Running, Pending, Failure, DeepHealthCheckInProgress and the like.",
        ),
    )


def _money() -> tuple[Panel, ...]:
    """What instances cost by the hour, and against the budget."""
    return (
        Panel(
            "lines",
            "Instances cost",
            "USD",
            {
                "a month, at this pace": "cluster:hourly_cost_usd:sum{$cluster} * 730",
                "budget": "max(podwright_budget_usd_per_month{$cluster})",
            },
            "At list prices, or those of the environment file; what plans prepaid is in it at the hourly price. AWS's "
            "own bill is hours behind, this is not.",
            may_be_empty=True,
        ),
        Panel(
            "stacked",
            "Instances cost, by group",
            "USD",
            {
                "{{instance_group}}": 'podwright_instances{$cluster, state="current"} '
                "* on (cluster_name, instance_group) group_left () "
                "max by (cluster_name, instance_group) (podwright_instance_price_usd_per_hour{$cluster})"
            },
            "US dollars an hour.",
            may_be_empty=True,
        ),
    )
