"""Quotas that are others for a time: which overrides are in force at a moment, and what they make of an environment."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...config.settings.environment import Environment
from ...config.settings.governance.teams import Override, Team, TeamOverride

_ADDED = ("quota", "borrow_limits")
"""Of these a part is replaced, by key."""


def in_force(overrides: Mapping[str, Override], at: datetime) -> list[str]:
    """Names of the overrides that hold at a moment, in the order in which they began."""
    held = [name for name, override in overrides.items() if override.begin <= at < override.end]
    return sorted(held, key=lambda name: (overrides[name].begin, name))


def override_moments(environment: Environment) -> list[datetime]:
    """When quotas change, in order."""
    overrides = environment.governance.overrides.values()
    return sorted({date for override in overrides for date in (override.begin, override.end)})


def with_overrides(environment: Environment, at: datetime | None) -> Environment:
    """The environment with the quotas that are in force at a moment; as the file has it without one."""
    governance = environment.governance
    names = in_force(governance.overrides, at) if at else []
    if not names:
        return environment
    teams = dict(governance.teams)
    for name in names:
        # A team that is not in the file is what a rule says of the override.
        known = {team: override for team, override in governance.overrides[name].teams.items() if team in teams}
        teams |= {team: _changed(teams[team], override) for team, override in known.items()}
    return environment.model_copy(update={"governance": governance.model_copy(update={"teams": teams})})


def _changed(team: Team, override: TeamOverride) -> Team:
    update: dict[str, Any] = {}
    for field in override.model_fields_set:
        value = getattr(override, field)
        update[field] = {**getattr(team, field), **value} if field in _ADDED else value
    # A field that says nothing stays as it is.
    return team.model_copy(update={field: value for field, value in update.items() if value is not None})
