"""What the next deployment would change: what `podwright diff ENV --json` said, and nothing else."""

from collections.abc import Iterator
from typing import Any, Final

from ...environments import costs as cost
from ..markup import Markup, badge, details, facts, joined, table, tag
from ..scene import Scene

ID: Final = "changes"
TITLE: Final = "Changes"
_HUES: Final = {
    "in_place": "green",
    "later_nodes": "green",
    "adds_nodes": "blue",
    "restarts_pods": "blue",
    "create": "green",
    "update": "blue",
    "refused": "red",
    "replaces": "red",
    "replace": "red",
    "deletes_data": "red",
    "delete": "red",
}
# With more new resources than this in a stack, they are counted.
_MOST_NEW: Final = 12
# And with more properties in a resource, the rest is folded.
_MOST_LINES: Final = 8
_LETTERS: Final = 60


def collect(scene: Scene) -> dict[str, Any]:
    """The document as it is; empty where nobody asked."""
    return scene.changes or {}


def shown(data: dict[str, Any], document: dict[str, Any]) -> Markup:
    """Approval, sums, and changes stack by stack."""
    if "problem" in data:
        return tag("p", "Not known: ", data["problem"])
    stacks = [stack for stack in data["stacks"] if stack["changes"]]
    if not stacks:
        return tag("p", "The deployed stacks are as the file says.")
    count = sum(len(stack["changes"]) for stack in stacks)
    first = " It is the first deployment." if data.get("first_deployment") else ""
    words = f"{count:,} resource{_s(count)} in {len(stacks)} stack{_s(len(stacks))} would change.{first}"
    return joined(
        [
            tag("p", words),
            _approval(data.get("approval") or {}),
            facts(_sums(data)),
            [_stack(stack) for stack in stacks],
            _permissions(data.get("permissions") or []),
        ]
    )


def _approval(approval: dict[str, Any]) -> Markup:
    if not approval.get("needed"):
        return tag("p", badge("needs no approval", "green"))
    word = badge("approved", "green") if approval.get("given") else badge("needs approval", "orange")
    reasons = [
        tag("li", tag("strong", reason["id"]), f" {reason['name']}: {reason['why']} ", _answer(reason))
        for reason in approval.get("reasons", ())
    ]
    entry = approval.get("entry")
    return joined(
        [
            tag("p", word),
            tag("ul", *reasons, class_="plain"),
            details("What to write into the file", tag("pre", tag("code", entry))) if entry else None,
        ]
    )


def _answer(reason: dict[str, Any]) -> Markup:
    return badge("approved", "green") if reason.get("approved") else badge("open", "orange")


def _sums(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    restarted, risky = data.get("nodes_restarted") or [], data.get("data_at_risk") or []
    yield "Nodes that restart or go", "; ".join(f"{row['group']}: {row['nodes']}, {row['what']}" for row in restarted)
    kept = {True: "stays outside the stack", False: "goes"}
    yield "Data at risk", "; ".join(f"{row['name']}: {row['holds']}, which {kept[bool(row['kept'])]}" for row in risky)
    took = data.get("duration") or {}
    if low_high := took.get("minutes"):
        more = f", without {', '.join(took['unknown'])}" if took.get("unknown") else ""
        yield "Takes", f"{low_high[0]:g} to {low_high[1]:g} minutes{more}"
    if money := data.get("cost"):
        change = money["change"]
        sign = "+" if change > 0 else "-" if change < 0 else ""
        missing = f"; no price is known of {', '.join(money['unknown'])}" if money.get("unknown") else ""
        yield "Cost a month", f"{sign}{cost.money(abs(change))}{missing}" if change else f"the same{missing}"
        yield "Upfront", f"at most {cost.money(money['upfront'])}" if money.get("upfront") else ""
    yield "Digest", tag("code", data["digest"]) if data.get("digest") else ""


def _stack(stack: dict[str, Any]) -> Markup:
    new = [change for change in stack["changes"] if change["action"] == "create"]
    rest = [change for change in stack["changes"] if change["action"] != "create"]
    listed = [*rest, *(new if len(new) <= _MOST_NEW else [])]
    return details(
        f"{stack['name']} ({len(stack['changes'])})",
        tag("ul", *map(_change, listed), class_="list") if listed else None,
        tag("p", f"{len(new):,} new resources.", class_="note") if len(new) > _MOST_NEW else None,
        opened=True,
    )


def _change(change: dict[str, Any]) -> Markup:
    """A resource, with a line for each property that differs, the worst first."""
    made = change["action"] == "create"
    effect = "create" if made else change.get("effect") or change["action"]
    head = [_effect(effect), " ", tag("strong", change.get("name") or change["logical_id"]), f" {change['type']} "]
    head += [badge("holds data", "orange")] if change.get("stateful") else []
    lines = [] if made else [_line(row, effect) for row in change.get("rows") or []]
    more = details(f"{len(lines) - _MOST_LINES} more", *lines[_MOST_LINES:]) if len(lines) > _MOST_LINES else None
    what = tag("p", change["what"]) if change.get("what") else None
    return tag("li", tag("div", *head), what, *lines[:_MOST_LINES], more, class_=_HUES.get(effect, "orange"))


def _line(row: dict[str, Any], worst: str) -> Markup:
    sides = [_short(row.get(side)) for side in ("before", "after")]
    change = [": ", sides[0] or "nothing", " → ", sides[1] or "nothing"] if any(sides) else []
    words = [row.get("what") or "", f" (follows from {row['follows']})" if row.get("follows") else ""]
    other = [_effect(row["effect"]), " "] if row["effect"] != worst else []
    return tag("p", *other, tag("code", row["property"]), *change, tag("span", " ", *words, class_="note"))


def _effect(effect: str) -> Markup:
    return badge(effect.replace("_", " "), _HUES.get(effect, "orange"))


def _permissions(grants: list[dict[str, Any]]) -> Markup | None:
    if not grants:
        return None
    sign = {"+": badge("comes", "blue"), "-": badge("goes", "green")}
    rows = [
        (
            grant["resource"],
            sign.get(grant["sign"], grant["sign"]),
            grant["kind"],
            joined([grant["what"], [" ", badge("wide", "red")] if grant.get("wide") else None]),
        )
        for grant in grants
    ]
    return details(f"Permissions ({len(rows)})", table("Permissions", ("of", "change", "kind", "what"), rows))


def _short(value: Any) -> Markup | str:
    """A value in few letters; the whole of it is its title."""
    words = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return words if len(words) <= _LETTERS else tag("span", f"{words[:_LETTERS]}…", title=words)


def _s(count: int) -> str:
    return "" if count == 1 else "s"
