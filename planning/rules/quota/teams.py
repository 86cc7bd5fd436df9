"""Rules on teams, their quotas, and the people in them."""

from collections import Counter

from ....config.catalog.limits import limits
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import Governance, Team
from ..cluster.slurm import on_slurm
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule

# Accounts and groups that Ubuntu's HyperPod image, its agents and Slurm have already.
_OF_THE_IMAGE = ("docker", "sudo")
# The QOS with which a team borrows is called after it; podwright_node/slurm/associations.py knows the same word.
_BORROW = "borrow"
_TAKEN = ("munge", "mysql", "nobody", "root", "slurm", "ssm-user", "ubuntu", *_OF_THE_IMAGE)


@rule("GOV003", ERROR, on=Environment, source="", final=True)
def members(environment: Environment) -> Problems:
    """Team member without a user account."""
    for name, team in environment.governance.teams.items():
        for index, user in enumerate(team.users):
            if on_slurm(environment) and user not in environment.users:
                yield Problem(
                    ("governance", "teams", name, "users", index),
                    f"{user} is not under users; known are {listed(environment.users, 'and')}",
                    "correct the name, or add the user with a uid",
                )


@rule("GOV004", WARNING, on=Team, source="")
def borrows_nothing(team: Team) -> Problems:
    """Borrowing limits of a team that does not borrow."""
    if team.share == "lend_and_borrow":
        return
    for field in sorted(team.model_fields_set & {"borrow_limit_percent", "borrow_limits", "weight"}):
        yield Problem(
            field,
            f"{field} has no effect: share is {team.share}, so the team borrows nothing",
            "remove it, or use lend_and_borrow",
        )


@rule("GOV005", WARNING, on=Governance, source="kueue-fair slurm-fairshare")
def weight_of_nothing(governance: Governance) -> Problems:
    """Team with weight 0."""
    for name, team in governance.teams.items():
        if governance.fair_share and team.share == "lend_and_borrow" and team.weight == 0:
            yield Problem(
                ("teams", name, "weight"),
                f"weight of {name} is 0: whenever another team wants to borrow too, {name} gets nothing",
                "give it 1 or more, or accept this",
            )
    for name, department in governance.departments.items():
        if governance.fair_share and department.weight == 0:
            yield Problem(
                ("departments", name, "weight"),
                f"weight of {name} is 0: whenever another department wants to borrow too, its teams get nothing",
                "give it 1 or more, or accept this",
            )


@rule("GOV006", ERROR, on=Environment, source="slurm-limits")
def lends_always(environment: Environment) -> Problems:
    """Slurm lends idle nodes of a team that does not lend."""
    for name, team in environment.governance.teams.items():
        if on_slurm(environment) and team.share == "dont_lend" and team.quota:
            yield Problem(
                ("governance", "teams", name, "share"),
                f"share of {name} is dont_lend: Slurm limits what a team takes, and cannot keep others from nodes "
                "that are idle",
                "use lend, where the team's jobs take nodes back at once; or keep a partition for the team by hand",
            )


@rule("GOV007", INFO, on=Environment, source="slurm-fairshare")
def weights_over_time(environment: Environment) -> Problems:
    """Slurm weights depend on past usage."""
    governance = environment.governance
    weights = {team.weight for team in governance.teams.values() if team.share == "lend_and_borrow"}
    if on_slurm(environment) and governance.fair_share and len(weights) > 1:
        yield Problem(
            ("governance", "teams"),
            "the teams' weights become fair-share factors: Slurm orders waiting jobs by what a team used of late, and "
            "does not part what is idle now by weight",
            "accept this, or move to orchestrator eks, where quota engines divide idle capacity by weight",
        )


@rule("GOV008", WARNING, on=Environment, source="slurm-limits")
def one_sum(environment: Environment) -> Problems:
    """Quota across several Slurm partitions."""
    for name, team in environment.governance.teams.items():
        parts = {
            group.slurm.partition
            for key, group in environment.instance_groups.items()
            if key in team.quota and team.quota[key].instances and group.slurm and group.slurm.partition
        }
        if on_slurm(environment) and len(parts) > 1:
            yield Problem(
                ("governance", "teams", name, "quota"),
                f"{name} has a quota in {listed(sorted(parts), 'and')}; Slurm counts GPUs and CPUs of a team over all "
                "partitions, so it may use the whole sum in one of them",
                "make a team for each partition, or accept this",
            )


@rule("GOV009", ERROR, on=Governance, source="cfn-scheduler")
def priority_twice(governance: Governance) -> Problems:
    """Two priority classes with the same weight."""
    observed: dict[int, str] = {}
    for name, weight in governance.priorities.items():
        if (first := observed.setdefault(weight, name)) != name:
            yield Problem(
                ("priorities", name),
                f"{name} and {first} both have weight {weight}, so neither has precedence",
                "give each class a different weight, or accept this",
            )


@rule("GOV010", ERROR, on=Environment, source="", final=True)
def reserved_class(environment: Environment) -> Problems:
    """Priority class with a reserved name."""
    if on_slurm(environment) and _BORROW in environment.governance.priorities:
        yield Problem(
            ("governance", "priorities", _BORROW),
            f"a team's QOS are called after its classes, and TEAM_{_BORROW} is the one that it borrows with",
            "call the class otherwise",
        )


@rule("GOV011", INFO, on=Environment, source="slurm-limits")
def waits_within_a_quota(environment: Environment) -> Problems:
    """No preemption within a quota that is used up."""
    governance = environment.governance
    teams = [name for name, team in governance.teams.items() if team.quota and team.preempt == "lower_priority"]
    if on_slurm(environment) and len(governance.priorities) > 1 and teams:
        yield Problem(
            ("governance", "priorities"),
            f"higher classes of {listed(teams, 'and')} stop lower ones where nodes are short; where the quota is used "
            "up, Slurm stops nothing and the higher class goes first when a job ends",
            "accept this; or set `preempt: never`, so that no class ever stops another",
        )


@rule("USR001", ERROR, on=Environment, source="", final=True)
def ids_once(environment: Environment) -> Problems:
    """Duplicate user or group id."""
    ids = Counter([*(user.uid for user in environment.users.values()), *environment.user_groups.values()])
    owners: dict[int, str] = {}
    for section, entries in (
        ("users", {name: user.uid for name, user in environment.users.items()}),
        ("user_groups", environment.user_groups),
    ):
        for name, number in entries.items():
            first = owners.setdefault(number, name)
            if ids[number] > 1 and first != name:
                yield Problem(
                    (section, name, "uid") if section == "users" else (section, name),
                    f"{number} is the id of {first} already; a user's id is that of a group of the user's own too",
                    "give each a different id",
                )


@rule("USR002", ERROR, on=Environment, source="", final=True)
def known_groups(environment: Environment) -> Problems:
    """Unknown Unix group."""
    for name, user in environment.users.items():
        for index, group in enumerate(user.groups):
            if group not in environment.user_groups and group not in _OF_THE_IMAGE:
                yield Problem(
                    ("users", name, "groups", index),
                    f"{group} is not under user_groups; the image has {listed(_OF_THE_IMAGE, 'and')}",
                    "correct the name, or add it to user_groups with an id",
                )


@rule("USR003", ERROR, on=Environment, source="hyperpod-field-notes", final=True)
def own_names(environment: Environment) -> Problems:
    """Reserved user or group name."""
    for section in ("users", "user_groups"):
        for name in getattr(environment, section):
            if name in _TAKEN:
                yield Problem((section, name), f"{name} is an account or group of the image", "use another name")
    for name in environment.users.keys() & environment.user_groups.keys():
        yield Problem(
            ("user_groups", name),
            f"{name} is a user, and has a group of that name already",
            "use another name for one of the two",
        )


@rule("USR004", WARNING, on=Environment, source="debian-ids")
def reserved_ids(environment: Environment) -> Problems:
    """User or group id from a reserved range."""
    first, last = limits().unix.reserved_ids
    specified = [(("users", name, "uid"), user.uid) for name, user in environment.users.items()]
    specified += [(("user_groups", name), number) for name, number in environment.user_groups.items()]
    for path, number in specified:
        if first <= number <= last:
            yield Problem(
                path,
                f"{number} is in {first} to {last}, from which packages and systemd take ids",
                f"use 1001 to {first - 1}, or an id above {last}",
            )
