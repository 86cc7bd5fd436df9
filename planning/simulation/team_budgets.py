"""Budgets of teams in simulated time: what the engine counts, and what is assumed of them, in words."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from ...config.settings.environment import Environment
from ...config.settings.governance.teams import TeamBudget
from ..quota.budgets import BEFORE_BUDGET, begins_anew, budgets, noted, period_at
from ..quota.team_names import cluster_queue
from .kueue.budgets import Budget, Use
from .snapshot import Snapshot
from .summary.outcome import BudgetUse

_UNDATED_DAYS: Final = {"week": 7, "month": 30, "quarter": 91}
"""Of a period where work has no real clock."""
_REACHED: Final = {
    "warn": "changes nothing",
    "demote": "demotes all its work to {}",
    "hold": "holds all its work that does not run yet",
}


def team_budgets(
    environment: Environment, start: float, *, is_dated: bool, used: Mapping[str, float] | None = None
) -> list[Budget]:
    """What the engine counts.

    Args:
        environment: Whose teams have budgets.
        start: From when on.
        is_dated: Whether times are those of a real clock; else the first period begins with the work.
        used: Accelerator-hours of the first period that are used by then, by team.
    """
    governance = environment.governance
    return [
        Budget(
            cluster_queue(governance.engine or "hyperpod", team),
            budget.accelerator_hours,
            _ends(budget, start, is_dated),
            # Rules refuse more of an engine whose objects are AWS's.
            budget.when_reached if governance.engine == "kueue" else "warn",
            governance.priorities.get(budget.demote_to or "", 0),
            start,
            (used or {}).get(team, 0.0),
        )
        for team, budget in budgets(governance.teams).items()
    ]


def budget_uses(environment: Environment, uses: list[Use]) -> list[BudgetUse]:
    """What was used of the budgets of teams, in the order of their periods."""
    engine, teams = environment.governance.engine or "hyperpod", environment.governance.teams
    known = {cluster_queue(engine, team): (team, budget) for team, budget in budgets(teams).items()}
    return [
        BudgetUse(
            team, use.end, use.hours, budget.accelerator_hours, use.reached, budget.when_reached, budget.demote_to
        )
        for use in uses
        for team, budget in [known[use.queue]]
    ]


def budget_sentences(environment: Environment, *, is_dated: bool) -> Iterator[str]:
    """What is assumed of each budget."""
    for team, budget in budgets(environment.governance.teams).items():
        when = begins_anew(budget) if is_dated else f"every {_UNDATED_DAYS[budget.period]} days from the first job on"
        done = _REACHED[budget.when_reached].format(budget.demote_to)
        yield (
            f"{team} has a budget of {budget.accelerator_hours:,g} accelerator-hours a {budget.period}, which begins "
            f"anew {when}; once it is used, `podwright budgets --apply` {done} at once"
        )


def before_budgets(snapshot: Snapshot, environment: Environment) -> Snapshot:
    """A cluster without what budgets do in it at the time: a simulation does it, and undoes it when a period begins."""
    known = budgets(environment.governance.teams)
    objects = [_unheld(item) if noted(item).get("team") in known else item for item in snapshot.objects]
    return snapshot._replace(objects=tuple(objects), workloads=tuple(map(_undemoted, snapshot.workloads)))


def following_budgets(snapshot: Snapshot, environment: Environment) -> list[Budget]:
    """What the engine counts after a snapshot."""
    used = {team: note["used"] for team, note in _notes(snapshot, environment).items()}
    return team_budgets(environment, snapshot.taken, is_dated=True, used=used)


def following_budget_sentences(snapshot: Snapshot, environment: Environment) -> Iterator[str]:
    """What is assumed of budgets after a snapshot."""
    yield from budget_sentences(environment, is_dated=True)
    notes = _notes(snapshot, environment)
    for team in budgets(environment.governance.teams):
        if note := notes.get(team):
            yield f"of the budget of {team} {note['used']:,g} accelerator-hours are used, as was noted {note['at']}"
        else:
            yield f"nothing of the budget of {team} is used: no queue of the cluster says otherwise for this period"


def _notes(snapshot: Snapshot, environment: Environment) -> dict[str, dict[str, Any]]:
    """What LocalQueues say of budgets in the period of a snapshot, by team."""
    known, at = budgets(environment.governance.teams), datetime.fromtimestamp(snapshot.taken, UTC)
    notes = {note["team"]: note for item in snapshot.objects if (note := noted(item))}
    return {
        team: note
        for team, note in notes.items()
        if team in known and datetime.fromisoformat(note["begin"]) == period_at(known[team], at).start
    }


def _unheld(queue: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**queue, "spec": {name: value for name, value in queue["spec"].items() if name != "stopPolicy"}}


def _undemoted(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    before = (workload["metadata"].get("annotations") or {}).get(BEFORE_BUDGET)
    return {**workload, "spec": {**workload["spec"], "priority": int(before)}} if before else workload


def _ends(budget: TeamBudget, start: float, is_dated: bool) -> Callable[[float], float]:
    if is_dated:
        return lambda time: period_at(budget, datetime.fromtimestamp(time, UTC)).end.timestamp()
    seconds = _UNDATED_DAYS[budget.period] * 86400
    return lambda time: start + seconds * (1 + (time - start) // seconds)
