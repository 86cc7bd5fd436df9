"""Environments in which one number is another: what a search over policies tries."""

from typing import Literal

from ....config.errors import InvalidValue
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import Amount

Control = Literal["quota", "borrow", "nodes"]
"""What a search changes: a team's quota of a group in instances, its limit of borrowing in percent, or the nodes of a
group."""


def present(environment: Environment, control: Control, team: str, group: str) -> int:
    """The number as the file has it. Raises InvalidValue for a team or group that the environment does not have."""
    teams, groups = environment.governance.teams, environment.instance_groups
    if team not in teams:
        raise InvalidValue(f"{environment.name} has no team {team}; it has {', '.join(sorted(teams)) or 'none'}")
    if control != "borrow" and group not in groups:
        raise InvalidValue(f"{environment.name} has no group {group or 'without a name'}; it has {', '.join(groups)}")
    if control == "nodes":
        return groups[group].count
    if control == "borrow":
        return teams[team].borrow_limit_percent
    amount = teams[team].quota.get(group, Amount(instances=0))
    if amount.instances is None:
        raise InvalidValue(f"the quota that {team} has of {group} is not in instances")
    return amount.instances


def changed(environment: Environment, control: Control, team: str, group: str, amount: int) -> Environment:
    """The environment with another number; nothing else is checked anew."""
    governance = environment.governance
    if control == "nodes":
        groups = environment.instance_groups
        counted = groups[group].model_copy(update={"count": amount})
        return environment.model_copy(update={"instance_groups": {**groups, group: counted}})
    settings = governance.teams[team]
    quota = {**settings.quota, group: Amount(instances=amount)}
    update = {"borrow_limit_percent": amount} if control == "borrow" else {"quota": quota}
    teams = {**governance.teams, team: settings.model_copy(update=update)}
    return environment.model_copy(update={"governance": governance.model_copy(update={"teams": teams})})
