"""Print what an environment used and what that cost: by team, idle GPU-hours and budget; with --bill also the bill.

Hours come from the metrics of the environment's workspace. Prices come from the price lists of `podwright cost` and
from the real prices of training plans. The budget and the bill come from AWS and are up to a day late. The command
names everything that it cannot read.
"""

import argparse
import dataclasses
import time
from datetime import UTC, datetime
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.observability import Observability
from ...planning.cost.showback import TeamSpend, rates, spends
from ...planning.quota.team_names import team_namespace
from ..arguments import account_for, add_environment, load
from ..aws.account import Account
from ..aws.unseen import noted
from ..dashboards.sources import workspace
from ..environments.checked import stop_on_errors
from ..output.console import write_answer
from ..output.money import money
from ..output.moving import under_way
from ..output.tables import Block, new_table
from ..programs.prometheus import Prometheus, QueryError
from .bills import REQUEST_USD, bill, budget, day_of
from .measured import Measured, measured
from .team_budgets import budget_blocks, budget_report

_COUNTED: Final = ("hyperpod", "kueue")
_NOT_COUNTED: Final = (
    "hours of teams are measured by Kueue, with engines hyperpod and kueue; on Slurm, "
    "`sreport cluster AccountUtilizationByUser` prints them"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright spend`."""
    add_environment(parser)
    parser.add_argument("--days", type=int, default=30, metavar="N", help="days of history to read (default: 30)")
    parser.add_argument("--bill", action="store_true", help=f"also ask Cost Explorer, at ${REQUEST_USD} per request")
    parser.add_argument(
        "--prometheus", metavar="URL", help="read metrics from this server, not from the environment's workspace"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Print it. Returns 1 when nothing of it can be seen."""
    loaded = load(args)
    environment = loaded.environment
    stop_on_errors(loaded)
    if args.days < 1:
        raise CommandError(f"--days {args.days} is not a span of days", "such as --days 30", 2)
    account = account_for(args, environment)
    end = time.time()
    under_way("reading metrics and bills")
    result = report(environment, account, end, args.days, bill_too=args.bill, url=args.prometheus)
    write_answer(args.json, result, lines(result))
    return 1 if all(result[part] is None for part in ("teams", "budget", "bill")) else 0


def report(
    environment: Environment, account: Account, end: float, days: int, *, bill_too: bool, url: str | None
) -> dict[str, Any]:
    """Everything, in the form that `--json` prints; what cannot be seen is None, and `unseen` says why."""
    unseen: dict[str, str] = {}
    # A Prometheus that is not there is a problem of sockets.
    used = noted("metrics", lambda: _measured(environment, account, end, days, url), unseen, QueryError, OSError)
    # Where nothing can be asked at all, one reason is enough.
    server = None if used is None else _server(environment, account, url)
    if used is not None and environment.governance.engine not in _COUNTED:
        unseen["teams"] = _NOT_COUNTED
    settings = environment.observability
    watched = settings is not None and settings.budget_usd_per_month is not None
    return {
        "environment": environment.name,
        "until": str(day_of(end)),
        "days": days,
        **_metered(environment, used),
        "budget": noted("budget", lambda: budget(account, environment), unseen) if watched else None,
        "team_budgets": budget_report(environment, account, server, datetime.fromtimestamp(end, UTC), unseen),
        "bill": noted("bill", lambda: bill(account, environment, day_of(end), days), unseen) if bill_too else None,
        "unseen": unseen,
    }


def _measured(environment: Environment, account: Account, end: float, days: int, url: str | None) -> Measured:
    return measured(_server(environment, account, url), environment.cluster.name, end, days)


def _server(environment: Environment, account: Account, url: str | None) -> Prometheus:
    if url:
        return Prometheus(url.rstrip("/"))
    return workspace(environment, environment.observability or Observability(), account)


def _metered(environment: Environment, used: Measured | None) -> dict[str, Any]:
    """What was measured, with prices; None and empty where nothing was."""
    if used is None:
        return {"cluster": None, "teams": None, "rates": {}, "days_seen": 0}
    engine = environment.governance.engine
    teams = environment.governance.teams if engine else {}
    # No series of idle GPUs means that none was idle, where GPUs were measured at all.
    looked = used.cluster["gpu_hours"] is not None
    idle = {team: used.idle.get(team_namespace(engine, team), 0.0) for team in teams if engine and looked}
    prices = rates(environment, used.plan_usd) if engine else {}
    return {
        "cluster": dict(used.cluster),
        "teams": [dataclasses.asdict(row) for row in spends(used.hours, prices, idle)],
        "rates": {f"{flavor} {resource}": dataclasses.asdict(rate) for (flavor, resource), rate in prices.items()},
        "days_seen": used.days_seen,
    }


def lines(result: dict[str, Any]) -> list[Block]:
    """The report for people."""
    parts: list[Block] = [f"{result['environment']}, {result['days']} days until {result['until']}"]
    if result["teams"] is not None:
        parts += _cluster(result)
        parts += _teams([TeamSpend(**row) for row in result["teams"]])
        parts += _rates(result["rates"])
    if result["team_budgets"]:
        parts += ["", *budget_blocks(result["team_budgets"])]
    if result["budget"]:
        parts += ["", _budget(result["budget"])]
    if result["bill"] is not None:
        parts += ["", "Bill by service, of resources with the environment's tag:", *_bill(result["bill"])]
    return parts + [f"not seen: {name}: {reason}" for name, reason in result["unseen"].items()]


def _cluster(result: dict[str, Any]) -> list[Block]:
    """GPU-hours of the whole cluster, each part in percent of all."""
    cluster, observed = result["cluster"], result["days_seen"]
    if cluster["gpu_hours"] is None:
        return ["", "No GPUs were measured in that time."]
    hours = cluster["gpu_hours"]
    rows = [("GPU-hours", f"{hours:,.0f}", "")]
    for key, words in (("allocated_hours", "held by jobs"), ("idle_hours", "held, and idle")):
        amount = cluster[key] or 0.0
        rows.append((words, f"{amount:,.0f}", f"{amount / hours:.0%}" if hours else ""))
    free = max(0.0, hours - (cluster["allocated_hours"] or 0.0))
    rows.append(("held by nobody", f"{free:,.0f}", f"{free / hours:.0%}" if hours else ""))
    if cluster["instances_usd"] is not None:
        rows.append(("instances, by the hour", money(cluster["instances_usd"]), ""))
    late = [f"Metrics of {observed} of the {result['days']} days are there."] if observed < result["days"] else []
    return ["", new_table("", (), rows, right=(1, 2)), *late]


def _teams(teams: list[TeamSpend]) -> list[Block]:
    """Hours and dollars of teams; – where nothing says how much."""
    if not teams:
        return []
    rows: list[tuple[str, ...]] = []
    for row in teams:
        hours = (row.guaranteed, row.in_quota, row.borrowed, row.lent, row.unused, row.idle)
        usd = (row.held_usd, row.unused_usd, row.idle_usd)
        rows.append(
            (
                row.team,
                *("–" if value is None else f"{value:,.0f} h" for value in hours),
                *("–" if value is None else money(value) for value in usd),
                f"{row.unpriced:,.0f} h without a price" if row.unpriced else "",
            )
        )
    names = ("team", "guaranteed", "in quota", "over quota", "lent", "unused", "idle", "held", "unused", "idle", "")
    return ["", new_table("", names, rows, right=range(1, 10))]


def _rates(rates: dict[str, dict[str, Any]]) -> list[str]:
    message = [
        f"  {name}: {'unknown' if rate['usd'] is None else money(rate['usd'])} an hour ({rate['basis']})"
        for name, rate in rates.items()
    ]
    return ["", "Prices:", *message] if message else []


def _budget(result: dict[str, Any]) -> str:
    limit = result["limit_usd"]
    actual, forecast = result["actual_usd"], result["forecast_usd"]
    parts = [f"Budget of {money(limit)} a month"]
    parts += [f"{money(actual)} spent ({actual / limit:.0%})"] if actual is not None else ["nothing counted yet"]
    parts += [f"{money(forecast)} expected ({forecast / limit:.0%})"] if forecast is not None else []
    parts += [f"as of {result['updated']}, up to a day late"] if result["updated"] else []
    return ", ".join(parts)


def _bill(sums: dict[str, float]) -> list[Block]:
    if not sums:
        return ["  nothing: the tag is not active, or the day is not billed yet"]
    rows = [(service, money(usd)) for service, usd in sums.items()]
    return [new_table("", (), [*rows, ("together", money(sum(sums.values())))], right=(1,), indent=2)]
