"""What a node learns about Slurm: the `slurm` section of `node.json`."""

from collections.abc import Mapping
from typing import Literal

from ...config.catalog.instance_types import Catalog
from ...config.settings.base import Settings
from ...config.settings.governance.teams import Governance, Team, User
from ...config.settings.groups import InstanceGroup
from ...config.settings.slurm import Slurm
from ..quota.budgets import budgets


class AccountingFacts(Settings):
    """Slurm's accounting database outside the controller."""

    host: str
    """Host name."""
    port: int
    """Port."""
    database: str
    """Name of the schema."""
    secret_arn: str
    """ARN of the secret with `username` and `password`, as JSON."""


class UserGroupFacts(Settings):
    """A Unix group."""

    name: str
    """Name."""
    gid: int
    """Group id."""


class UserFacts(Settings):
    """A person's account."""

    name: str
    """Name of the account, and of the group of its own."""
    uid: int
    """User id."""
    gid: int
    """Id of the group of its own."""
    groups: tuple[str, ...]
    """Further groups, sorted: those of `groups`, and ones that the image has."""
    ssh_keys: tuple[str, ...]
    """Lines of authorized_keys."""


class TeamFacts(Settings):
    """A team as Slurm counts it."""

    name: str
    """Name; that of its account."""
    quota: dict[str, int]
    """What it is guaranteed, by TRES: `gres/gpu` when a group of its quota has NVIDIA GPUs, and `cpu`, summed over all
    groups of its quota. Empty without a quota: it only borrows."""
    borrow: dict[str, int] | None
    """What it may borrow besides, by TRES; None when it may not borrow. Empty: whatever is idle."""
    weight: int
    """Shares in fair share; 1 for every team when fair share is off."""
    share: Literal["lend_and_borrow", "lend", "dont_lend"]
    """The strategy that `borrow` was made from."""
    borrow_limit_percent: int
    """The limit that `borrow` was made from."""
    preempt: Literal["lower_priority", "never"]
    """Whether its own work of higher priority may stop its own of lower priority."""
    users: tuple[str, ...]
    """Its people, sorted."""
    budget_minutes: int | None
    """GPU-minutes that all its work may use in a period, borrowed included; null without a budget."""


class SlurmFacts(Settings):
    """The whole section; null on EKS."""

    configuration: Literal["api", "provisioning_parameters"]
    """api: HyperPod sets Slurm up before our scripts run. provisioning_parameters: our scripts start the daemons."""
    strategy: Literal["merge", "managed", "overwrite"]
    """What HyperPod does to changes in slurm.conf that are not its own."""
    controller_group: str
    """Instance group of the controllers."""
    login_groups: tuple[str, ...]
    """Instance groups of login nodes, sorted."""
    partitions: dict[str, tuple[str, ...]]
    """Compute groups by partition."""
    accounting: AccountingFacts | None
    """Accounting database outside the controller; MariaDB on the controller when null."""
    shared_directory: str | None
    """Folder that several controllers share; null with one controller."""
    failover_topic: str | None
    """SNS topic that hears which controller takes charge; null when nobody is to."""
    groups: tuple[UserGroupFacts, ...]
    """Unix groups to make, by name."""
    users: tuple[UserFacts, ...]
    """Accounts to make, by name."""
    teams: tuple[TeamFacts, ...]
    """Teams, by name."""
    priorities: dict[str, int]
    """Priority classes with their weights."""
    fair_share: bool
    """Whether the teams' weights decide who goes first."""
    budget_period: Literal["week", "month", "quarter"] | None
    """How long all budgets last before they begin anew; null where no team has one."""


def slurm_facts(
    *,
    settings: Slurm,
    groups: Mapping[str, InstanceGroup],
    governance: Governance,
    users: Mapping[str, User],
    user_groups: Mapping[str, int],
    accounting: AccountingFacts | None,
    types: Catalog,
) -> SlurmFacts:
    """The facts of a Slurm cluster.

    Args:
        settings: The orchestrator.
        groups: Instance groups by name, each with its part in Slurm.
        governance: Teams and priorities.
        users: People by account name.
        user_groups: Ids of Unix groups by name.
        accounting: The database outside the controller, if there is one; its host may be a value that only a
            deployment knows.
        types: The catalog with the environment's overrides.

    Raises:
        StopIteration: no group is the controller; the rules refuse that.
        UnknownInstanceType: a quota counts instances of a type that the catalog lacks.
    """
    parts = {name: group.slurm for name, group in sorted(groups.items()) if group.slurm}
    partitions: dict[str, tuple[str, ...]] = {}
    for name, part in parts.items():
        if part.partition:
            partitions[part.partition] = (*partitions.get(part.partition, ()), name)
    return SlurmFacts(
        configuration=settings.configuration,
        strategy=settings.strategy,
        controller_group=next(name for name, part in parts.items() if part.node_type == "controller"),
        login_groups=tuple(name for name, part in parts.items() if part.node_type == "login"),
        partitions=dict(sorted(partitions.items())),
        accounting=accounting,
        shared_directory=settings.shared_directory,
        failover_topic=settings.failover_topic,
        groups=tuple(UserGroupFacts(name=name, gid=gid) for name, gid in sorted(user_groups.items())),
        users=tuple(
            # The group of the same number is the person's own.
            UserFacts(name=name, uid=user.uid, gid=user.uid, groups=tuple(sorted(user.groups)), ssh_keys=user.ssh_keys)
            for name, user in sorted(users.items())
        ),
        teams=tuple(
            _team(name, team, groups, governance.fair_share, types) for name, team in sorted(governance.teams.items())
        ),
        priorities=dict(sorted(governance.priorities.items())),
        fair_share=governance.fair_share,
        # The rules see to it that all have the same.
        budget_period=next((budget.period for budget in budgets(governance.teams).values()), None),
    )


def team_limits(
    governance: Governance, groups: Mapping[str, InstanceGroup], types: Catalog
) -> dict[str, dict[str, int]]:
    """What the account of each team is limited to, by TRES: its guarantee; nothing for a team that only borrows."""
    return {name: _tres(team, groups, types) for name, team in sorted(governance.teams.items())}


def _team(name: str, team: Team, groups: Mapping[str, InstanceGroup], fair_share: bool, types: Catalog) -> TeamFacts:
    """A team as Slurm counts it: instances become GPUs and CPUs, hours minutes."""
    quota = _tres(team, groups, types)
    return TeamFacts(
        name=name,
        quota=quota,
        borrow={tres: count * team.borrow_limit_percent // 100 for tres, count in quota.items()}
        if team.share == "lend_and_borrow"
        else None,
        weight=team.weight if fair_share else 1,
        share=team.share,
        borrow_limit_percent=team.borrow_limit_percent,
        preempt=team.preempt,
        users=tuple(sorted(team.users)),
        budget_minutes=round(team.budget.accelerator_hours * 60) if team.budget else None,
    )


def _tres(team: Team, groups: Mapping[str, InstanceGroup], types: Catalog) -> dict[str, int]:
    """Instances as what Slurm counts. A group of several types counts as its smallest: a guarantee has to hold."""
    total = {"cpu": 0, "gres/gpu": 0}
    for name, amount in team.quota.items():
        count = amount.instances or 0
        rows = [types.get(type_name) for type_name in groups[name].types]
        total["cpu"] += count * min(row.cpus(groups[name].threads_per_core) for row in rows)
        total["gres/gpu"] += count * min(row.gpus for row in rows)
    return {tres: count for tres, count in total.items() if count}
