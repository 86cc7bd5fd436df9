"""Rules on quotas that are others for a time."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime

from ....config.catalog.instance_types import Catalog
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import Governance, Override, TeamOverride
from ...purchase.words import shown
from ...quota.guarantees import beyond
from ...quota.overrides import with_overrides
from ...quota.policy import countable_groups
from ...simulation.plan_windows import plan_windows, present_nodes
from ..cluster.slurm import on_slurm
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule
from .quotas import policy


@rule("GOV089", ERROR, on=Governance, source="", final=True)
def ends_before_it_begins(governance: Governance) -> Problems:
    """Override ends before it begins."""
    for name, override in governance.overrides.items():
        if override.end <= override.begin:
            yield Problem(
                ("overrides", name, "end"),
                f"{name} ends {shown(override.end)} and begins {shown(override.begin)}: it would never be in force",
                "exchange the two, or correct one",
            )


@rule("GOV090", ERROR, on=Environment, source="", final=True)
def override_of_nothing(environment: Environment) -> Problems:
    """Override for an unknown team or group."""
    teams, groups = environment.governance.teams, countable_groups(environment)
    known = [*groups, *sorted({group.types[0] for group in groups.values() if len(group.types) == 1})]
    for name, override in environment.governance.overrides.items():
        for team, changes in override.teams.items():
            path: Path = ("governance", "overrides", name, "teams", team)
            if team not in teams:
                message = f"{name} changes {team}, which is not under teams; known are {listed(teams, 'and') or 'none'}"
                yield Problem(path, message, "correct the name, or add the team")
            for field in ("quota", "borrow_limits"):
                for key in sorted(getattr(changes, field).keys() - set(known)):
                    yield Problem(
                        (*path, field, key),
                        f"{key} is neither a group nor the one type of one; known are {listed(known, 'and')}",
                        "correct the name, or remove it",
                    )


@rule("GOV091", ERROR, on=Governance, source="", final=True)
def two_at_once(governance: Governance) -> Problems:
    """Two overrides of the same setting at the same time."""
    for (first, one), (second, other) in itertools.combinations(governance.overrides.items(), 2):
        if one.begin < other.end and other.begin < one.end:
            for team, what in sorted({*_changes(one)} & {*_changes(other)}):
                yield Problem(
                    ("overrides", second, "teams", team),
                    f"{first} ({shown(one.begin)} to {shown(one.end)}) and {second} ({shown(other.begin)} to "
                    f"{shown(other.end)}) both change {what} of {team}, and nothing says which counts",
                    "let one end before the other begins, or take it out of one",
                )


@rule("GOV092", WARNING, on=Environment, source="cfn-compute-quota")
def more_than_there_is_then(environment: Environment, types: Catalog) -> Problems:
    """Overrides exceed the capacity."""
    groups, plans = countable_groups(environment), {window["plan"] for window in plan_windows(environment)}
    starts = [window[key] for window in plan_windows(environment) for key in ("start", "gone")]
    for name, override in environment.governance.overrides.items():
        begin, end = override.begin.timestamp(), override.end.timestamp()
        for date in sorted({begin, *(start for start in starts if begin < start < end)}):
            at, present = datetime.fromtimestamp(date, UTC), present_nodes(environment, plans, date)
            counts = {group: settings.count for group, settings in groups.items()} | present
            for _, words in beyond(policy(with_overrides(environment, at), types), counts):
                yield Problem(
                    ("governance", "overrides", name),
                    f"from {shown(at)} {words}",
                    "lower the quotas of the override, or those of teams that it does not name",
                )


@rule("GOV093", ERROR, on=Environment, source="", final=True)
def overrides_on_slurm(environment: Environment) -> Problems:
    """Overrides with Slurm."""
    if on_slurm(environment) and environment.governance.overrides:
        yield Problem(
            ("governance", "overrides"),
            "nodes of Slurm get its quotas when they are set up, so none change at a date",
            "remove them, and change the limits with sacctmgr",
        )


def _changes(override: Override) -> Iterator[tuple[str, str]]:
    """What an override changes, by team: fields, and keys of those that have some."""
    for team, settings in override.teams.items():
        for field in sorted(settings.model_fields_set):
            yield from [(team, what) for what in _named(settings, field)]


def _named(settings: TeamOverride, field: str) -> list[str]:
    value = getattr(settings, field)
    return [f"{field} of {key}" for key in sorted(value)] if isinstance(value, dict) else [field]
