"""A change set as people read it."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from ...planning.delivery.effects import Effect
from ..output.money import money
from ..output.tables import Block, styled
from .approval import entry
from .changes import ResourceChange, Row
from .compare import MANIFEST
from .document import ChangeSet, data_at_risk, duration, nodes_restarted, without_environment
from .permissions import permissions, text

_SIGNS: Final = {"create": "+", "delete": "-", "update": "~", "replace": "!"}
_STYLES: Final = {"create": "green", "delete": "red", "update": "yellow", "replace": "bold red"}
_EFFECTS: Final = {
    **dict.fromkeys((Effect.LATER_NODES, Effect.ADDS_NODES), "green"),
    **dict.fromkeys((Effect.RESTARTS_PODS, Effect.UNKNOWN, Effect.INTERRUPTS), "yellow"),
    **dict.fromkeys((Effect.REMOVES_NODES, Effect.ROLLS_NODES), "bold yellow"),
    **dict.fromkeys((Effect.REFUSED, Effect.REPLACES, Effect.DELETES_DATA), "bold red"),
}
_WHOLE: Final = {"add": "added", "remove": "left out"}
_UNMET: Final = {True: "bold red", False: "yellow"}
_WIDTH: Final = 46
_CONTEXT: Final = 8
_SHOWN: Final = 12


def lines(change_set: ChangeSet, *, whole: bool = False) -> Iterator[Block]:
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
        yield styled((without_environment(change_set, stack), "bold"))
        items = [change for change in change_set.changes if change.stack == stack]
        for change in items:
            if whole or change.action != "create":
                yield from _change(change)
        if made := [change for change in items if change.action == "create" and not whole]:
            yield styled("  ", ("+", _STYLES["create"]), f" {_counted(made)}")
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


def _change(change: ResourceChange) -> Iterator[Block]:
    """A resource, with a line for each property that changes and what that does."""
    sign, style = (_SIGNS[change.action], _STYLES[change.action]), _EFFECTS.get(change.effect, "default")
    yield styled("  ", sign, f" {_words_of(change)}  {change.type}  ", (_effect(change), style))
    if change.known and change.known.what and change.action == "delete" and not change.kept:
        yield f"        {change.known.what}"
    for index, row in enumerate(change.rows):
        spent = f", {_span(row.known.minutes)}" if row.known.minutes else ""
        perhaps = "" if row.certain else "perhaps "
        name, effect = (
            row.property.removeprefix(f"{MANIFEST}."),
            (row.effect.words, _EFFECTS.get(row.effect, "default")),
        )
        yield styled(f"      {name}{_values(row)}  [{perhaps}", effect, f"{spent}]")
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
    # An object of Kubernetes as a whole: its name says enough.
    if row.change in _WHOLE and row.pattern.rpartition("/")[0] == MANIFEST:
        return f": {_WHOLE[row.change]}"
    return f": {_change_of(row)}"


def _change_of(row: Row) -> str:
    before, after = _differing(*(text(value).replace("\n", " ") for value in (row.before, row.after)))
    if row.change == "add":
        return f"+ {after}"
    if row.change == "remove":
        return f"- {before}"
    return f"{before} → {after}"


def _differing(before: str, after: str) -> list[str]:
    """Two values; of long ones the part in which they differ, and a little of what stands around it."""
    if max(len(before), len(after)) <= _WIDTH:
        return [before, after]
    start = _alike(before, after)
    end = _alike(before[start:][::-1], after[start:][::-1])
    return [_part(value, max(0, start - _CONTEXT), len(value) - max(0, end - _CONTEXT)) for value in (before, after)]


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with that are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _part(value: str, start: int, end: int) -> str:
    """A value from `start` to `end`, or as much of that as a line takes."""
    end = min(end, start + _WIDTH)
    return f"{'…' if start else ''}{value[start:end]}{'…' if end < len(value) else ''}"


def _words_of(change: ResourceChange) -> str:
    """A construct by the words of its path, without what every path has."""
    words = [word for word in change.path.split("/")[2:] if word not in ("Resource", "Default")]
    return " ".join(words) or change.logical_id


def _span(minutes: Sequence[int]) -> str:
    low, high = minutes
    return f"{low} min" if low == high else f"{low} to {high} min"


def _permissions(change_set: ChangeSet) -> Iterator[Block]:
    rows = permissions([change for change in change_set.changes if not change_set.first])
    if not rows:
        return
    yield "permissions"
    for row in rows:
        wide = "  ← open to everything" if row["wide"] and row["sign"] == "+" else ""
        sign = (row["sign"], _STYLES["create" if row["sign"] == "+" else "delete"])
        yield styled("  ", sign, f" {row['resource']}  {row['kind']} {row['what']}", (wide, "bold red"))
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
    unpublished = f", and unpublished durations: {', '.join(spent['unknown'])}" if spent["unknown"] else ""
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


def _approvals(change_set: ChangeSet) -> Iterator[Block]:
    if not change_set.approvals:
        return
    yield ""
    yield "approvals"
    for need in change_set.approvals:
        unmet = "refused unless named" if need.refused else "to be approved"
        state = "approved" if need.approved else unmet
        style = "green" if need.approved else _UNMET[need.refused]
        yield styled(f"  {need.id}  {need.name}: {need.why}  [", (state, style), "]")
    if not change_set.given:
        yield "to approve this change set, write into the file:"
        yield from (f"  {line}" for line in entry(change_set.approvals, change_set.digest).splitlines())
