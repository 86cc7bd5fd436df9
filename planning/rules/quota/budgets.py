"""Rules on budgets of accelerator-hours."""

from ....config.catalog.instance_types import Catalog
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import Governance
from ....config.settings.groups import InstanceGroup
from ....config.settings.jobs.sbatch import SbatchJob
from ...monitoring.collected import collected
from ...quota.amounts import is_accelerator
from ...quota.budgets import budgets, longest_hours
from ...quota.policy import environment_policy
from ..cluster.slurm import of_type, on_slurm, several_controllers
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule

_INSTEAD = {
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
            words = f"{budget.demote_to} is not a priority" if budget.demote_to else "demote_to says no priority"
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
def engine_keeps_none(environment: Environment, types: Catalog) -> Problems:
    """Quota engine does not support budgets."""
    if on_slurm(environment):
        yield from _not_of_slurm(environment, types)
        return
    engine = environment.governance.engine
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


def _not_of_slurm(environment: Environment, types: Catalog) -> Problems:
    """What of budgets Slurm cannot express as minutes of an account."""
    known = budgets(environment.governance.teams)
    periods = sorted({budget.period for budget in known.values()} - {"week"})
    neuron = sorted(name for name, group in of_type(environment, "compute").items() if _has_neuron(group, types))
    for team, budget in known.items():
        path: Path = ("governance", "teams", team, "budget")
        if budget.when_reached != "hold":
            yield Problem(
                (*path, "when_reached"),
                f"{budget.when_reached}: Slurm only refuses to start jobs that no longer fit, without a message",
                "write `when_reached: hold`",
            )
        if budget.period == "week":
            words = "Slurm's weeks begin on Sunday, those of budgets on Monday"
            yield Problem((*path, "period"), words, "write `period: month` or `period: quarter`")
        elif len(periods) > 1:
            yield Problem(
                (*path, "period"),
                f"Slurm resets the hours of all accounts at the same time, and budgets have {listed(periods, 'and')}",
                "give all budgets the same period",
            )
        if neuron:
            words = f"Slurm counts no Neuron devices, and {listed(neuron, 'and')} of its groups"
            yield Problem(
                path,
                f"{words} {'has' if len(neuron) == 1 else 'have'} them",
                "remove the budget, and limit the team by its quota",
            )


def _has_neuron(group: InstanceGroup, types: Catalog) -> bool:
    known = (types.find(name) for name in group.types)
    return any(row is not None and row.accelerator_vendor == "neuron" for row in known)


@rule("GOV099", WARNING, on=Environment, source="")
def without_time_limit(environment: Environment) -> Problems:
    """Job without a time limit in a team with a budget on Slurm."""
    for name, job in environment.jobs.items():
        team = environment.governance.teams.get(job.team or "")
        if on_slurm(environment) and team and team.budget and isinstance(job, SbatchJob) and not job.time_limit_minutes:
            yield Problem(
                ("jobs", name),
                f"{name} has no time limit, so Slurm starts it only while nothing of {job.team}'s budget is used, and "
                "ends it when it alone would have used all",
                "write time_limit_minutes: the longest that it may take",
            )


@rule("GOV100", WARNING, on=Environment, source="")
def forgotten_hours(environment: Environment) -> Problems:
    """Hours of a budget on a disk that updates renew."""
    known = budgets(environment.governance.teams)
    if on_slurm(environment) and known and not several_controllers(environment):
        yield Problem(
            ("governance", "teams", next(iter(known)), "budget"),
            "slurmctld keeps the used hours on the controller's root volume, which an update of its software replaces: "
            "budgets then restart within a period",
            "use two controllers, which share a folder for them; or update the controller at the end of a period",
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
