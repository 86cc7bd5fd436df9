"""Print how much of its budget of accelerator-hours each team has used. With --apply, enforce the budgets.

Hours come from the metrics of the environment's workspace. On Slurm, which enforces budgets itself, they come from its
accounting. With --apply, the command holds the queues of teams that used up a budget with `hold`, and lowers the
priority of Workloads to `demote_to` for a budget with `demote`. When a period begins or a budget is raised, the same
command reverts this. Run it every few minutes, for example as a cron job.
"""

import argparse
from datetime import UTC, datetime
from typing import Any

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.observability import Observability
from ...planning.quota.budgets import Standing, budgets
from ..arguments import account_for, load
from ..dashboards.sources import workspace
from ..environments.checked import stop_on_errors
from ..jobs.reach import add_way, kubectl_for
from ..jobs.slurm_jobs import is_slurm
from ..kubernetes.kubectl import REAL_KUBERNETES, Refused
from ..output.console import write_answer
from ..programs.prometheus import Prometheus, QueryError
from .kept_budgets import keep_budgets
from .team_budgets import budget_blocks, standings, standings_of_slurm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright budgets`."""
    parser.add_argument("environment", metavar="ENV", help="name of an environment, or path of its file")
    parser.add_argument(
        "--apply", action="store_true", help="hold and demote work of used-up budgets, and revert this for new ones"
    )
    parser.add_argument(
        "--prometheus", metavar="URL", help="read metrics from this server, not from the environment's workspace"
    )
    add_way(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Print it. Raises CommandError where hours cannot be read or, with --apply, the cluster be reached."""
    loaded = load(args)
    environment = loaded.environment
    stop_on_errors(loaded)
    if not budgets(environment.governance.teams):
        raise CommandError(f"no team of {environment.name} has a budget", "see docs/user/quotas.md", 2)
    if args.apply and is_slurm(environment):
        raise CommandError("Slurm keeps budgets itself, as limits of accounts", "leave --apply out", 2)
    if args.apply and environment.governance.engine != "kueue":
        raise CommandError(
            f"with engine {environment.governance.engine} budgets warn, and nothing is applied", "leave --apply out", 2
        )
    known = _standings(args, environment)
    done = _kept(args, environment, known) if args.apply else None
    rows = [standing.document() for standing in known]
    result: dict[str, Any] = {"environment": environment.name, "team_budgets": rows}
    blocks = budget_blocks(rows)
    if done is not None:
        result["changed"] = done
        blocks += ["", *(done or ["Nothing to change."])]
    write_answer(args.json, result, blocks)
    return 0


def _standings(args: argparse.Namespace, environment: Environment) -> list[Standing]:
    if is_slurm(environment):
        return standings_of_slurm(environment, account_for(args, environment), datetime.now(UTC))
    try:
        if args.prometheus:
            server = Prometheus(args.prometheus.rstrip("/"))
        else:
            settings = environment.observability or Observability()
            server = workspace(environment, settings, account_for(args, environment))
        return standings(environment, server, datetime.now(UTC))
    except (QueryError, OSError) as error:
        raise CommandError(f"hours of teams cannot be read: {error}", "--prometheus names another source") from None


def _kept(args: argparse.Namespace, environment: Environment, known: list[Standing]) -> list[str]:
    kubectl = kubectl_for(args, environment)
    if not kubectl.is_real:
        raise CommandError("this sandbox's Kubernetes is a store, in which nothing waits", REAL_KUBERNETES)
    try:
        return keep_budgets(kubectl, environment, known)
    except Refused as refused:
        hint = "you need to list and patch LocalQueues and Workloads of all teams"
        raise CommandError(f"budgets could not be kept: {refused}", hint) from None
