"""Budgets of teams: when their periods begin and end, how much is used, and what is to be expected of the rest."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from ...config.errors import CommandError
from ...config.settings.governance.teams import Team, TeamBudget

BUDGET_ANNOTATION: Final = "podwright/budget"
"""Of a LocalQueue: how much of its team's budget was used when somebody last looked, as `Standing.document`."""
BEFORE_BUDGET: Final = "podwright/priority-before-budget"
"""Of a Workload that was demoted: its priority before that."""
_MONTHS: Final = {"month": 1, "quarter": 3}


class Period(NamedTuple):
    """A span of time in which a budget is used up."""

    start: datetime
    end: datetime


class Standing(NamedTuple):
    """A budget in its period."""

    team: str
    budget: TeamBudget
    period: Period
    at: datetime
    used: float
    """Accelerator-hours since the period began."""

    @property
    def forecast(self) -> float:
        """Accelerator-hours at the end of the period, at its pace so far."""
        return self.used * (
            (self.period.end - self.period.start) / max(self.at - self.period.start, timedelta(hours=1))
        )

    @property
    def is_reached(self) -> bool:
        """Whether nothing of it is left."""
        return self.used >= self.budget.accelerator_hours

    @property
    def state(self) -> str:
        """`within`, `near` or `reached`."""
        if self.is_reached:
            return "reached"
        return "near" if 100 * self.used >= self.budget.warn_at_percent * self.budget.accelerator_hours else "within"

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "team": self.team,
            "accelerator_hours": self.budget.accelerator_hours,
            "used": round(self.used, 1),
            "forecast": round(self.forecast, 1),
            "state": self.state,
            "when_reached": self.budget.when_reached,
            "demote_to": self.budget.demote_to,
            "begin": self.period.start.isoformat(timespec="minutes"),
            "end": self.period.end.isoformat(timespec="minutes"),
            "at": self.at.isoformat(timespec="minutes"),
        }


def budgets(teams: Mapping[str, Team]) -> dict[str, TeamBudget]:
    """The budgets of teams that have one."""
    return {name: team.budget for name, team in sorted(teams.items()) if team.budget}


def period_at(budget: TeamBudget, at: datetime) -> Period:
    """The period in which a moment lies."""
    day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if budget.period == "week":
        start = day - timedelta(days=day.weekday())
        return Period(start, start + timedelta(weeks=1))
    months = _MONTHS[budget.period]
    first = day.month - (day.month - 1) % months
    start, after = day.replace(month=first, day=1), first + months
    return Period(start, start.replace(year=start.year + (after > 12), month=(after - 1) % 12 + 1))


def longest_hours(budget: TeamBudget) -> float:
    """Hours of the longest period of a budget."""
    return 24.0 * {"week": 7, "month": 31, "quarter": 92}[budget.period]


def noted(queue: Mapping[str, Any]) -> dict[str, Any]:
    """What a LocalQueue says of its team's budget; empty where it says nothing of one.

    Raises CommandError for what `podwright budgets` cannot have written.
    """
    metadata, note = queue["metadata"], dict[str, Any]()
    text = (metadata.get("annotations") or {}).get(BUDGET_ANNOTATION)
    if not text:
        return {}
    try:
        note = json.loads(text)
        is_ours = isinstance(note["team"], str) and float(note["used"]) >= 0 and datetime.fromisoformat(note["begin"])
    except (ValueError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        raise CommandError(
            f"annotation {BUDGET_ANNOTATION} of LocalQueue {metadata.get('namespace', '')}/{metadata['name']} "
            f"is {text[:80]!r}, which `podwright budgets` did not write",
            "remove it; a queue that is held stays so until somebody sets its stopPolicy to None",
        )
    return note


def begins_anew(budget: TeamBudget) -> str:
    """When its periods begin, in words."""
    return {"week": "on Monday", "month": "on the first of the month", "quarter": "on the first of the quarter"}[
        budget.period
    ]
