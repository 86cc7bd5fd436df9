"""Rules on budgets of accelerator-hours."""

from ....config.catalog.instance_types import Catalog
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import Governance
from ...monitoring.collected import collected
from ...quota.amounts import is_accelerator
from ...quota.budgets import budgets, longest_hours
from ...quota.policy import environment_policy
from ..cluster.slurm import on_slurm
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule

_INSTEAD = {
    "slurm": "Slurm counts by itself: `sacctmgr modify account TEAM set GrpTRESMins=gres/gpu=MINUTES`, with "
    "PriorityDecayHalfLife=0 and PriorityUsageResetPeriod in slurm.conf",
    "kai": "KAI's queues have quotas and no hours: watch `namespace:gpu_allocated_hours:sum1d`, and lower the quota",
    "yunikorn": "YuniKorn's queues have quotas and no hours: watch `namespace:gpu_allocated_hours:sum1d`, and lower "
    "the quota",
}


@rule("GOV095", ERROR, on=Governance, source="", final=True)
def demotes_to_nothing(governance: Governance) -> Problems:
    """Budget without a lower priority to demote to."""
    known = governance.priorities
    for team, budget in budgets(governance.teams).items():
        path: Path = ("teams", team, "budget", "demote_to")
        if budget.when_reached != "demote":
            if budget.demote_to:
                words = f"when_reached is {budget.when_reached}, so nothing is demoted to {budget.demote_to}"
                yield Problem(path, words, "write `when_reached: demote`, or remove demote_to")
        elif budget.demote_to not in known:
            words = f"{budget.demote_to} is no priority" if budget.demote_to else "demote_to says no priority"
            yield Problem(
                path, f"{words}; known are {listed(sorted(known), 'and') or 'none'}", "name one of priorities"
            )
        elif known[budget.demote_to] == max(known.values()):
            words = f"{budget.demote_to} is the highest priority, so nothing would be demoted"
            yield Problem(path, words, "name a lower one")


@rule("GOV096", WARNING, on=Environment, source="")
def never_reached(environment: Environment, types: Catalog) -> Problems:
    """Budget above what the team can use."""
    if on_slurm(environment) or not budgets(environment.governance.teams):
        return
    policy = environment_policy(environment, types)
    for team, budget in budgets(environment.governance.teams).items():
        shares = policy.teams[team].shares if team in policy.teams else {}
        most = sum(
            policy.most(team, flavor, name) for flavor, held in shares.items() for name in held if is_accelerator(name)
        )
        hours = most * longest_hours(budget)
        if budget.accelerator_hours > hours:
            yield Problem(
                ("governance", "teams", team, "budget", "accelerator_hours"),
                f"{team} holds {most:,} accelerators at most, {hours:,.0f} accelerator-hours a {budget.period}: a "
                f"budget of {budget.accelerator_hours:,g} is never reached",
                "lower it, or remove the budget",
            )


@rule("GOV097", ERROR, on=Environment, source="", final=True)
def engine_keeps_none(environment: Environment) -> Problems:
    """Quota engine does not support budgets."""
    engine = "slurm" if on_slurm(environment) else environment.governance.engine
    for team, budget in budgets(environment.governance.teams).items():
        path: Path = ("governance", "teams", team, "budget")
        if engine in _INSTEAD:
            yield Problem(path, f"nothing counts the hours of teams with {engine}", _INSTEAD[engine])
        elif engine == "hyperpod" and budget.when_reached != "warn":
            yield Problem(
                (*path, "when_reached"),
                f"{budget.when_reached} changes queues and Workloads, which are AWS's with task governance",
                "write `when_reached: warn`, and lower the quota of the team when the alert comes; or use engine kueue",
            )


@rule("GOV098", WARNING, on=Environment, source="")
def nobody_counts(environment: Environment, types: Catalog) -> Problems:
    """Budget without metrics that count its hours."""
    counted = environment.governance.engine in ("hyperpod", "kueue") and not on_slurm(environment)
    named = budgets(environment.governance.teams)
    if named and counted and "team:used:sum" not in collected(environment, types):
        yield Problem(
            ("governance", "teams", next(iter(named)), "budget"),
            "no metric says what teams hold, so a budget is never reached",
            "write `observability: {}` with metrics of task_governance, or remove the budget",
        )
