"""How much teams have used of their budgets, read from what is recorded of each minute."""

import re
from datetime import datetime
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.monitoring.recordings import INTERVAL_SECONDS, filled
from ...planning.quota.budgets import Standing, budgets, period_at
from ..aws.account import Account
from ..aws.unseen import noted
from ..gates.slurm import Slurm
from ..jobs.slurm_jobs import Question, is_slurm
from ..output.tables import Block, new_table
from ..programs.prometheus import Prometheus, QueryError

_DAY: Final = 86400
_GPU_MINUTES: Final = re.compile(r"gres/gpu=(\d+)")
_USED: Final = "sum by (team) (sum_over_time(team:used:sum{$cluster}[$span]))"
_REACHED: Final = {"warn": "nothing changes", "demote": "all work as {}", "hold": "nothing more starts"}


def standings(environment: Environment, server: Prometheus, at: datetime) -> list[Standing]:
    """Each budget with what is used of it since its period began. Raises QueryError."""
    known = budgets(environment.governance.teams)
    periods = {budget.period: period_at(budget, at) for budget in known.values()}
    used = {
        period: _used(server, environment.cluster.name, span.start.timestamp(), at.timestamp())
        for period, span in periods.items()
    }
    return [
        Standing(team, budget, periods[budget.period], at, used[budget.period].get(team, 0.0))
        for team, budget in known.items()
    ]


def _used(server: Prometheus, cluster: str, start: float, end: float) -> dict[str, float]:
    """Accelerator-hours by team: day by day, since a workspace answers for a month at most, and of the rest."""
    days = int((end - start) // _DAY)
    rest, hours = end - start - days * _DAY, dict[str, float]()
    daily, last = list[dict[str, Any]](), list[dict[str, Any]]()
    if days:
        text = filled(_USED, cluster=cluster, rate_seconds=300, span="1d")
        daily = server.range(text, start + _DAY, start + days * _DAY, _DAY)
    if rest >= 1:
        text = filled(_USED, cluster=cluster, rate_seconds=300, span=f"{rest:.0f}s")
        last = server.instant(text, end)
    for series in (*daily, *last):
        team, values = series["metric"]["team"], series.get("values") or [series["value"]]
        hours[team] = hours.get(team, 0.0) + sum(float(value) for _, value in values) * INTERVAL_SECONDS / 3600
    return hours


def standings_of_slurm(environment: Environment, account: Account, at: datetime) -> list[Standing]:
    """Each budget with what Slurm counts of it. Raises CommandError where no node of the cluster answers."""
    command = "sshare --noheader --parsable2 --all --format=Account,User,GrpTRESRaw"
    minutes = dict[str, float]()
    for line in Slurm(Question(account, environment)).run(command).splitlines():
        # Indented, each below the account above it. A row with a user is that person's own.
        name, user, used = line.split("|")
        if not user and (gpus := _GPU_MINUTES.search(used)):
            minutes[name.strip()] = float(gpus[1])
    return [
        Standing(team, budget, period_at(budget, at), at, minutes.get(f"{team}_budget", 0) / 60)
        for team, budget in budgets(environment.governance.teams).items()
    ]


def budget_report(
    environment: Environment, account: Account, server: Prometheus | None, at: datetime, unseen: dict[str, str]
) -> list[dict[str, Any]] | None:
    """Each budget as plain data; None where there are none or they cannot be seen, which `unseen` then says."""
    if not budgets(environment.governance.teams):
        return None
    if is_slurm(environment):
        known = noted("team_budgets", lambda: standings_of_slurm(environment, account, at), unseen, CommandError)
    elif server is None:
        return None
    else:
        # A Prometheus that is not there is a problem of sockets.
        known = noted("team_budgets", lambda: standings(environment, server, at), unseen, QueryError, OSError)
    return None if known is None else [standing.document() for standing in known]


def budget_blocks(rows: list[dict[str, Any]]) -> list[Block]:
    """The report for people: what is used, what is to be expected, and what happens once it is all."""
    cells = [
        (
            row["team"],
            f"{row['accelerator_hours']:,.0f} h",
            f"{row['used']:,.0f} h",
            f"{row['used'] / row['accelerator_hours']:.0%}",
            f"{row['forecast']:,.0f} h",
            row["end"][:10],
            row["state"],
            _REACHED[row["when_reached"]].format(row["demote_to"]),
        )
        for row in rows
    ]
    names = ("team", "budget", "used", "", "expected", "until", "state", "once it is used")
    title = "Budgets of accelerator-hours; expected is at the pace of the period so far"
    return [new_table(title, names, cells, right=(1, 2, 3, 4))]
