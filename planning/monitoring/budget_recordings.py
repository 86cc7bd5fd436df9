"""What is recorded of budgets: hours that teams held since a period began, beside what they may.

PromQL has no range that begins with a calendar's period. So hours are summed over a span as long as the longest period,
and of these only those of a period that has the same number as the current one: months count modulo three, weeks modulo
two, so that no two periods within the span have the same.
"""

from collections.abc import Mapping
from string import Template
from typing import Final

from ...config.settings.governance.teams import TeamBudget
from .recording import Recording

# An hour that ends when a period does is of that period.
_MONTH: Final = "month(vector(time() - 1))"
_NUMBERS: Final = {
    # The first of January 1970 was a Thursday, three days after a Monday.
    "week": ("7d", "floor(vector(time() - 1 + 259200) / 604800) % 2", 2),
    "month": ("31d", f"{_MONTH} % 3", 3),
    "quarter": ("92d", f"floor(({_MONTH} - 1) / 3)", 4),
}


def _since(period: str) -> str:
    """Hours of teams since a period began; whole hours alone."""
    span, number, count = _NUMBERS[period]
    parts = (
        f"(sum_over_time((team:used_hours:sum1h{{$cluster}} and on () ({number} == {index}))[{span}:1h]) "
        f"and on () ({number} == {index}))"
        for index in range(count)
    )
    return f'label_replace({" or ".join(parts)}, "period", "{period}", "", "")'


BUDGETS: Final = (
    Recording(
        "team:used_hours:sum1h",
        "sum by (cluster_name, team) (sum_over_time(team:used:sum{$cluster}[1h])) / 60",
        ("team",),
        "accelerator-hours",
        "Accelerator-hours of the last hour that a team held; only where a team has a budget, as all of these.",
    ),
    Recording(
        "team:period_hours:sum",
        # Of the periods that budgets have: the longer one is, the more of the past it reads.
        "$periods",
        ("team", "period"),
        "accelerator-hours",
        "Accelerator-hours that a team has held since the week, month or quarter began, up to the last full hour.",
    ),
    Recording(
        "team:budget_hours:sum",
        "$budgets",
        ("team", "period"),
        "accelerator-hours",
        "The budget of a team in a period.",
    ),
    Recording(
        "team:budget_warning:ratio",
        "$warnings",
        ("team", "period"),
        "fraction",
        "The part of its budget at which a team is warned.",
    ),
    Recording(
        "team:budget_used:ratio",
        "team:period_hours:sum{$cluster} / on (cluster_name, team, period) team:budget_hours:sum{$cluster}",
        ("team", "period"),
        "fraction",
        "The part of its budget that a team has held in the period so far.",
    ),
)
"""Evaluated in this order."""


def budget_values(cluster: str, budgets: Mapping[str, TeamBudget]) -> dict[str, str]:
    """What stands in these expressions for the budgets of a cluster's teams."""

    def constants(values: Mapping[str, float]) -> str:
        return " or ".join(_constant(cluster, team, budgets[team].period, value) for team, value in values.items())

    periods = sorted({budget.period for budget in budgets.values()})
    return {
        "periods": Template(" or ".join(map(_since, periods))).safe_substitute(cluster=f'cluster_name="{cluster}"'),
        "budgets": constants({team: budget.accelerator_hours for team, budget in budgets.items()}),
        "warnings": constants({team: budget.warn_at_percent / 100 for team, budget in budgets.items()}),
    }


def _constant(cluster: str, team: str, period: str, value: float) -> str:
    """A number with labels."""
    result = f"vector({value:.10g})"
    for label, text in (("cluster_name", cluster), ("team", team), ("period", period)):
        result = f'label_replace({result}, "{label}", "{text}", "", "")'
    return result
