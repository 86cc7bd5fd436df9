"""A change set as people read it."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...planning.delivery.effects import Effect
from ..output.money import money
from .approval import entry
from .changes import ResourceChange, Row
from .document import ChangeSet, data_at_risk, duration, nodes_restarted, without_environment
from .permissions import permissions, text

_SIGNS: Final = {"create": "+", "delete": "-", "update": "~", "replace": "!"}
_WIDTH: Final = 46
_SHOWN: Final = 12


def lines(change_set: ChangeSet, *, whole: bool = False) -> Iterator[str]:
    """The report: stacks and their changes, then what that means for nodes, data, time and money.

    `whole` shows every resource that is made; otherwise they are counted by type.
    """
    if not change_set.changes:
        yield f"{change_set.environment}: no changes"
        yield from _strays(change_set)
        return
    yield f"{change_set.environment}: change set {change_set.digest}"
    for stack in dict.fromkeys(change.stack for change in change_set.changes):
        yield ""
        yield without_environment(change_set, stack)
        items = [change for change in change_set.changes if change.stack == stack]
        for change in items:
            if whole or change.action != "create":
                yield from _change(change)
        if made := [change for change in items if change.action == "create" and not whole]:
            yield f"  + {_counted(made)}"
    yield ""
    yield from _permissions(change_set)
    yield from _summary(change_set)
    yield from _strays(change_set)
    yield from _approvals(change_set)


def _counted(made: Sequence[ResourceChange]) -> str:
    kinds = [change.type.rpartition("::")[2] for change in made]
    counts = sorted(((kinds.count(kind), kind) for kind in set(kinds)), key=lambda pair: (-pair[0], pair[1]))
    shown = ", ".join(f"{count} {kind}" if count > 1 else kind for count, kind in counts[:_SHOWN])
    rest = f" and {len(counts) - _SHOWN} more kinds" if len(counts) > _SHOWN else ""
    return f"{len(made)} new resource{'s' if len(made) > 1 else ''}: {shown}{rest}"


def _change(change: ResourceChange) -> Iterator[str]:
    yield f"  {_SIGNS[change.action]} {change.logical_id}  {change.type}  {_effect(change)}".rstrip()
    if change.known and change.known.what and change.action == "delete" and not change.kept:
        yield f"        {change.known.what}"
    for index, row in enumerate(change.rows):
        spent = f", {_span(row.known.minutes)}" if row.known.minutes else ""
        perhaps = "" if row.certain else "perhaps "
        yield f"      {row.property}{_values(row)}  [{perhaps}{row.effect.words}{spent}]"
        # What several rows have in common stands below the last of them.
        words = _words(row)
        if words and words not in map(_words, change.rows[index + 1 : index + 2]):
            yield f"        {words}"


def _words(row: Row) -> str:
    return "; ".join(filter(None, (f"follows from {row.follows}" if row.follows else "", row.known.what)))


def _effect(change: ResourceChange) -> str:
    if change.action == "create":
        return ""
    if change.action == "delete":
        return "leaves the stack and stays" if change.kept else "deleted"
    return f"{change.effect.words}{' (the old one stays)' if change.action == 'replace' and change.kept else ''}"


def _values(row: Row) -> str:
    if row.effect is Effect.REFUSED and row.after is None:
        return ""
    return f": {_change_of(row)}"


def _change_of(row: Row) -> str:
    before, after = (_short(value) for value in (row.before, row.after))
    if row.change == "add":
        return f"+ {after}"
    if row.change == "remove":
        return f"- {before}"
    return f"{before} → {after}"


def _short(value: Any) -> str:
    shown = text(value).replace("\n", " ")
    return shown if len(shown) <= _WIDTH else f"{shown[: _WIDTH - 1]}…"


def _span(minutes: Sequence[int]) -> str:
    low, high = minutes
    return f"{low} min" if low == high else f"{low} to {high} min"


def _permissions(change_set: ChangeSet) -> Iterator[str]:
    rows = permissions([change for change in change_set.changes if not change_set.first])
    if not rows:
        return
    yield "permissions"
    for row in rows:
        wide = "  ← open to everything" if row["wide"] and row["sign"] == "+" else ""
        yield f"  {row['sign']} {row['resource']}  {row['kind']} {row['what']}{wide}"
    yield ""


def _summary(change_set: ChangeSet) -> Iterator[str]:
    nodes = [f"{row['group']}: {row['nodes']} ({row['what']})" for row in nodes_restarted(change_set)]
    yield f"nodes     {'; '.join(nodes) or 'none restarts or goes'}"
    risks = [
        f"{row['name']}: {row['holds']}{' (stays, but nothing uses it)' if row['kept'] else ''}"
        for row in data_at_risk(change_set)
    ]
    yield f"data      {'; '.join(risks) or 'nothing is at risk'}"
    spent = duration(change_set)
    known = _span(spent["minutes"]) if any(spent["minutes"]) else "minutes"
    unpublished = f", and what nobody has published: {', '.join(spent['unknown'])}" if spent["unknown"] else ""
    yield f"time      {known}{unpublished}"
    yield f"cost      {_cost(change_set)}"


def _cost(change_set: ChangeSet) -> str:
    change = change_set.costs.after - change_set.costs.before
    bound = "at least " if change_set.costs.at_least else ""
    sign = "+" if change > 0 else "-"
    moved = f"{sign}{money(abs(change))}" if change else "unchanged"
    parts = [f"{bound}{money(change_set.costs.after)} a month ({moved})"]
    if change_set.costs.upfront:
        parts.append(f"training plans up to {money(change_set.costs.upfront)} at once")
    if change_set.costs.unknown:
        parts.append(f"without a price: {', '.join(change_set.costs.unknown)}")
    return "; ".join(parts)


def _strays(change_set: ChangeSet) -> Iterator[str]:
    for stack in change_set.strays:
        yield f"left alone: {stack}, which the file no longer has; `podwright destroy` deletes it with the others"


def _approvals(change_set: ChangeSet) -> Iterator[str]:
    if not change_set.approvals:
        return
    yield ""
    yield "approvals"
    for need in change_set.approvals:
        unmet = "refused unless named" if need.refused else "to be approved"
        state = "approved" if need.approved else unmet
        yield f"  {need.id}  {need.name}: {need.why}  [{state}]"
    if not change_set.given:
        yield "to approve this change set, write into the file:"
        yield from (f"  {line}" for line in entry(change_set.approvals, change_set.digest).splitlines())
