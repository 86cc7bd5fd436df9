"""Rules on the budget of an environment."""

from datetime import date

from ....config.settings.environment import Environment
from ....config.settings.observability import Observability
from ...cost.budget import MAX_ADDRESSES
from ...cost.costs import costs, total
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule


@rule("OBS050", WARNING, on=Environment, source="")
def budget_below_what_stands(environment: Environment) -> Problems:
    """Budget below the cost of all instances."""
    budget = environment.observability.budget_usd_per_month if environment.observability else None
    if budget is None:
        return
    # The cheaper of what a Kubernetes version can cost: a rule knows no date.
    sums = total(costs(environment, date.min))
    # What was paid with a training plan comes on no bill of a later month.
    billed = sums.monthly - sums.prepaid
    if billed > budget:
        least = "" if sums.exact else "at least "
        yield Problem(
            ("observability", "budget_usd_per_month"),
            f"the budget is ${budget:,}, and the environment with the full count of all groups costs {least}"
            f"${billed:,.0f} a month",
            f"raise it, or accept this if groups are rarely full; see `podwright cost {environment.name}`",
        )


@rule("OBS051", ERROR, on=Observability, source="budgets-api", final=True)
def too_many_addresses(settings: Observability) -> Problems:
    """Too many mail addresses for a budget."""
    alerts = settings.alerts
    chat = alerts.chat.slack or alerts.chat.teams
    if settings.budget_usd_per_month and chat and len(alerts.emails) > MAX_ADDRESSES:
        yield Problem(
            ("alerts", "emails"),
            f"emails are {len(alerts.emails)}; with a chat channel, a budget has at most {MAX_ADDRESSES} addresses",
            "use a mailing list",
        )


@rule("OBS052", ERROR, on=Environment, source="", final=True)
def drills_of_nothing(environment: Environment) -> Problems:
    """Drills without a cluster."""
    settings = environment.observability
    if settings and settings.drills and not environment.has_cluster:
        yield Problem(
            ("observability", "drills"), "drills is true, and the environment has no cluster", "remove drills"
        )
