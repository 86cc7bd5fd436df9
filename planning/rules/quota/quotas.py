"""Rules on quotas against what there is: groups, types, partitions, plans, and what a team can ever hold."""

from collections.abc import Iterator
from typing import NamedTuple

from ....config.catalog.instance_types import Catalog
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import Amount, Governance
from ...purchase.words import shown
from ...quota.amounts import in_words
from ...quota.guarantees import beyond, leading
from ...quota.overrides import with_overrides
from ...quota.policy import QuotaPolicy, countable_groups, environment_policy, quota_policy
from ...quota.stock import Flavor
from ..cluster.slurm import of_type, on_slurm
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule


class NamedAmount(NamedTuple):
    """An amount of a team."""

    path: Path
    key: str
    """What it is an amount of."""
    amount: Amount


def amounts(environment: Environment) -> Iterator[NamedAmount]:
    """Every amount of every team."""
    for name, team in environment.governance.teams.items():
        for field in ("quota", "borrow_limits"):
            for key, amount in getattr(team, field).items():
                yield NamedAmount(("governance", "teams", name, field, key), key, amount)


def policy(environment: Environment, types: Catalog) -> QuotaPolicy:
    """The environment's policy; an empty one without teams or groups, and while groups, types or keys are wrong."""
    try:
        if environment.governance.teams and environment.instance_groups:
            return environment_policy(environment, types)
    except LookupError:
        pass  # Rules of their own say which group, type or key it is.
    return quota_policy(Governance(), {}, types)


@rule("GOV001", ERROR, on=Environment, source="", final=True)
def quota_groups(environment: Environment) -> Problems:
    """Quota on nodes that run no jobs."""
    groups = of_type(environment, "compute") if on_slurm(environment) else countable_groups(environment)
    types = sorted({group.types[0] for group in groups.values() if len(group.types) == 1})
    known = [*groups, *(() if on_slurm(environment) else types)]
    for path, key, _ in amounts(environment):
        if key not in known:
            what = "holds no compute nodes" if key in environment.instance_groups else "is not under instance_groups"
            if key.startswith("ml."):
                what = "is not counted by Slurm's quotas" if on_slurm(environment) else "is the one type of no group"
            yield Problem(
                path, f"{key} {what}; a quota counts instances of {listed(known)}", "correct the name, or remove it"
            )


@rule("GOV002", WARNING, on=Environment, source="cfn-compute-quota")
def more_than_there_is(environment: Environment, types: Catalog) -> Problems:
    """Quotas exceed the capacity."""
    resolved_policy = policy(environment, types)
    counts = {name: group.count for name, group in countable_groups(environment).items()}
    for name, words in beyond(resolved_policy, counts):
        groups = resolved_policy.flavors[name].groups
        yield Problem(
            ("instance_groups", groups[0], "count") if len(groups) == 1 else ("governance", "teams"),
            words,
            "lower the quotas, raise count, or accept this until more instances are there",
        )


@rule("GOV012", WARNING, on=Environment, source="training-plan-guide")
def more_than_a_window(environment: Environment, types: Catalog) -> Problems:
    """Quotas exceed one part of a training plan."""
    for name, plan in environment.training_plans.items():
        for index, window in enumerate(plan.windows):
            count = plan.count_at(window.start, window.zone)
            held = {
                group: instances
                for group, instances in _guaranteed(with_overrides(environment, window.start), types).items()
                if countable_groups(environment)[group].plan == name
                and window.zone in countable_groups(environment)[group].zone_ids
            }
            if sum(held.values()) > count:
                yield Problem(
                    ("training_plans", name, "windows", index, "count"),
                    f"quotas guarantee {_counted(sum(held.values()))} of {listed(held, 'and')}, and the plan has "
                    f"{count} in {window.zone} from {shown(window.start)} to {shown(window.end)}: not all teams can "
                    "have theirs at once",
                    "lower the quotas for that time by an entry of governance.overrides, or accept this",
                )


@rule("GOV013", INFO, on=Environment, source="training-plan-guide")
def ends_with_the_plan(environment: Environment, types: Catalog) -> Problems:
    """Guaranteed quota on a training plan that ends."""
    ending = {name: plan for name, plan in environment.training_plans.items() if plan.end}
    held = _guaranteed(environment, types) if ending else {}
    for name, plan in ending.items():
        groups = [group for group in held if countable_groups(environment)[group].plan == name]
        if groups and plan.end:
            begins = f"from {shown(plan.start)} " if plan.start else ""
            yield Problem(
                ("training_plans", name, "end"),
                f"quotas guarantee {_counted(sum(held[group] for group in groups))} of {listed(groups, 'and')}, there "
                f"{begins}to {shown(plan.end)}, less 30 minutes",
                "extend the plan in time, or tell the teams",
            )


@rule("GOV014", WARNING, on=Environment, source="hyperpod-spot")
def guaranteed_spot(environment: Environment, types: Catalog) -> Problems:
    """Guaranteed quota on Spot capacity."""
    spot = [name for name, group in countable_groups(environment).items() if group.capacity == "spot"]
    for name, instances in (_guaranteed(environment, types) if spot else {}).items():
        if name in spot:
            yield Problem(
                ("instance_groups", name, "capacity"),
                f"quotas guarantee {_counted(instances)} of {name}, which AWS reclaims when it needs them",
                "give teams 0 of it, so that they only borrow it, or accept this",
            )


@rule("GOV024", ERROR, on=Environment, source="kueue-api")
def never_runs(environment: Environment, types: Catalog) -> Problems:
    """Team that can never run a job."""
    resolved_policy = policy(environment, types)
    queued = {name for queue in environment.training_job_queues.values() for name in queue.quota}
    for name, team in resolved_policy.teams.items():
        if name in queued or any(
            resolved_policy.most(name, flavor, resource)
            for flavor, shares in team.shares.items()
            for resource in shares
        ):
            continue
        idle = ", ".join(
            f"{in_words(resource, resolved_policy.pool[flavor].get(resource, 0))} of {flavor}"
            for flavor in team.shares
            for resource in leading(resolved_policy.flavors[flavor])[:1]
        )
        may = "may borrow nothing" if team.share != "lend_and_borrow" else "its limits let it borrow nothing of that"
        yield Problem(
            ("governance", "teams", name),
            f"{name} is guaranteed nothing; others leave {idle or 'nothing'} to borrow, and {may} (share is "
            f"{team.share})",
            "give it a quota, or lend_and_borrow where something is lent",
        )


@rule("GOV025", WARNING, on=Environment, source="kueue-api")
def nobody_may(environment: Environment, types: Catalog) -> Problems:
    """Accelerators that no team may use."""
    resolved_policy = policy(environment, types)
    if not resolved_policy.teams or on_slurm(environment):
        return
    used = {group for flavor in resolved_policy.flavors.values() for group in flavor.groups}
    for name, group in countable_groups(environment).items():
        if name not in used and any(
            row.accelerator_count for instance_type in group.types if (row := types.find(instance_type))
        ):
            yield Problem(
                ("instance_groups", name),
                f"no team has a quota of {name}, not even 0, so no queue admits jobs to its {group.count} instances",
                f"give the teams that may borrow them `{name}: 0` in their quota, or accept this",
            )


def _counted(instances: float) -> str:
    return f"{instances:.4g} instance{'' if instances == 1 else 's'}"


def _guaranteed(environment: Environment, types: Catalog) -> dict[str, float]:
    """Instances that quotas hold, by group; groups without any are left out."""
    by_group = environment.model_copy(update={"governance": environment.governance.model_copy(update={"engine": None})})
    resolved_policy = policy(by_group, types)

    def held(flavor: Flavor) -> float:
        return sum(resolved_policy.instances(team, flavor.name) for team in resolved_policy.teams)

    # Without an engine each group is a flavor of its own.
    return {flavor.groups[0]: count for flavor in resolved_policy.flavors.values() if (count := held(flavor))}
