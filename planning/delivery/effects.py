"""What a change of a property does: the effect table, and which changes replace a resource.

Replacement comes from CloudFormation's provider schemas (`data/create_only.json`; a test compares it with the schemas
that cfn-lint ships). What no schema says - what renews nodes, interrupts or deletes - is a table of our own, with a
source for every row. What neither says is unknown, and is shown as unknown.
"""

import json
import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from typing import Literal, NamedTuple

from ...config.catalog.facts import DATA, Citation, cited, table
from ...config.findings import Level

Change = Literal["create", "delete", "add", "remove", "raise", "lower", "modify"]
"""What happens to a resource (create, delete), to an item of a list or a property (add, remove), or to a value."""


class Effect(StrEnum):
    """What a change does to what runs, from nothing to the worst."""

    IN_PLACE = "in_place"
    LATER_NODES = "later_nodes"
    ADDS_NODES = "adds_nodes"
    RESTARTS_PODS = "restarts_pods"
    UNKNOWN = "unknown"
    INTERRUPTS = "interrupts"
    REMOVES_NODES = "removes_nodes"
    ROLLS_NODES = "rolls_nodes"
    REFUSED = "refused"
    REPLACES = "replaces"
    DELETES_DATA = "deletes_data"

    @property
    def words(self) -> str:
        """As people read it."""
        return _WORDS[self]


_WORDS = {
    Effect.IN_PLACE: "in place",
    Effect.LATER_NODES: "new nodes only",
    Effect.ADDS_NODES: "adds nodes",
    Effect.RESTARTS_PODS: "restarts pods",
    Effect.UNKNOWN: "UNKNOWN",
    Effect.INTERRUPTS: "interrupts",
    Effect.REMOVES_NODES: "removes nodes",
    Effect.ROLLS_NODES: "rolls nodes",
    Effect.REFUSED: "will be refused",
    Effect.REPLACES: "REPLACES",
    Effect.DELETES_DATA: "deletes data",
}
_ORDER = {effect: rank for rank, effect in enumerate(Effect)}


def worst(effects: Iterable[Effect]) -> Effect:
    """The worst of some effects; in place when there are none."""
    return max(effects, key=_ORDER.__getitem__, default=Effect.IN_PLACE)


class ChangeFacts(NamedTuple):
    """What is known of one kind of change."""

    effect: Effect
    minutes: tuple[int, int] | None = None
    """How long it takes, from and to; None where nobody says."""
    what: str = ""
    """In words."""
    sources: tuple[Citation, ...] = ()


class Stateful(NamedTuple):
    """A type of resource that holds what no deployment brings back."""

    holds: str
    refused: frozenset[str]
    """Which of `replace` and `delete` is refused unless somebody names the resource."""


class Reason(NamedTuple):
    """A reason for which a change set needs somebody's approval."""

    id: str
    level: Level
    """error: a deployment refuses the change unless it is named. warning: only `diff --require-approval` does."""
    title: str
    sources: tuple[Citation, ...]


@cache
def reasons() -> dict[str, Reason]:
    """Every reason by its id."""
    return {
        row["id"]: Reason(row["id"], Level(row["level"]), row["title"], cited(row["source"]))
        for row in table("approvals")
    }


@cache
def stateful() -> dict[str, Stateful]:
    """The types that hold data, nodes or addresses."""
    return {row["type"]: Stateful(row["holds"], frozenset(row["refused"].split())) for row in table("stateful")}


def change_facts(resource_type: str, path: str, change: Change) -> ChangeFacts:
    """What a change of the property at `path` does; `path` is empty for the resource itself.

    Items of lists stand as `*`: `InstanceGroups/*/InstanceCount`. The first row of the table that fits counts, so rows
    go from the particular to the general. A row of `any` change fits all but the making and deleting of resources.
    Deleting what holds nothing is harmless unless a row says what is lost with it.
    """
    for row in _table().get(resource_type, ()):
        fits = row.change == change or (row.change == "any" and change not in ("create", "delete"))
        if fits and row.pattern.fullmatch(path):
            return row.facts
    if change == "create" or (change == "delete" and resource_type in _table()):
        return ChangeFacts(
            Effect.DELETES_DATA if change == "delete" and resource_type in stateful() else Effect.IN_PLACE
        )
    # A guess would be believed. Whoever finds a source adds a row to the table.
    return ChangeFacts(Effect.UNKNOWN, what="no source that podwright knows says what this does")


def replacing(resource_type: str, path: str) -> Literal["always", "sometimes"] | None:
    """Whether a change at `path` replaces a resource of that type by CloudFormation's schema.

    `sometimes` is what schemas call conditional, without saying on which condition.
    """
    lists = _create_only().get(resource_type, {})
    for word in ("always", "sometimes"):
        # A property is meant with everything below it.
        if any(path == listed or path.startswith(f"{listed}/") for listed in lists.get(word, ())):
            return word
    return None


def lasting_name(resource_type: str) -> str | None:
    """The property that names a resource which CloudFormation makes anew before it deletes the old one.

    It refuses to replace such a resource while that name stays: the name would be needed twice.
    """
    return next(iter(_create_only().get(resource_type, {}).get("name", ())), None)


@cache
def _create_only() -> dict[str, dict[str, list[str]]]:
    return json.loads((DATA / "create_only.json").read_text(encoding="utf-8"))


class _Row(NamedTuple):
    pattern: re.Pattern[str]
    """Of the property's path."""
    change: str
    facts: ChangeFacts


@cache
def _table() -> dict[str, list[_Row]]:
    results: dict[str, list[_Row]] = {}
    for row in table("effects"):
        low, _, high = row["minutes"].partition("-")
        entry = ChangeFacts(
            Effect(row["effect"]), (int(low), int(high)) if low else None, row["what"], cited(row["source"])
        )
        results.setdefault(row["type"], []).append(_Row(_pattern(row["path"]), row["change"], entry))
    return results


def _pattern(path: str) -> re.Pattern[str]:
    """`*` is one part of a path, `/**` a place and all below it, `**` anything but the resource itself."""
    # The most particular first, as * is part of **.
    escaped = re.escape(path).replace(r"/\*\*", "(/.*)?").replace(r"\*\*", ".+").replace(r"\*", "[^/]+")
    return re.compile(escaped)
