"""What the next deployment would change: what `podwright diff ENV --json` said, and nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...effects.compare import MANIFEST
from ...effects.quota_effect import HEADERS, effect_rows
from ...environments import costs as cost
from ..scene import Scene
from ..views import Badge, Cell, Code, Fact, Table, plural

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
_SIGNS: Final = {"+": Badge("comes", "blue"), "-": Badge("goes", "green")}
_APPROVED: Final = Badge("approved", "green")
# With more new resources than this in a stack, they are counted.
_MOST_NEW: Final = 12
# And with more properties in a resource, the rest is folded.
_MOST_LINES: Final = 8


@dataclass(frozen=True)
class Reason:
    """Why a deployment needs approval."""

    id: str
    words: str
    answer: Badge


@dataclass(frozen=True)
class Approval:
    """Whether somebody has to approve the deployment."""

    answer: Badge
    reasons: Sequence[Reason] = ()
    entry: str = ""
    """What to write into the file."""


@dataclass(frozen=True)
class Line:
    """A property that differs."""

    effect: Badge | None
    """Where it is another than that of the resource."""
    property: str
    sides: Sequence[str]
    """What it is and what it will be; nothing where nobody says."""
    note: str


@dataclass(frozen=True)
class Change:
    """A resource that changes."""

    effect: Badge
    name: str
    type: str
    stateful: bool
    what: str
    lines: Sequence[Line]
    folded: Sequence[Line]


@dataclass(frozen=True)
class Stack:
    """A stack with its changes."""

    name: str
    count: int
    changes: Sequence[Change]
    new: int
    """New resources that are counted and not listed."""


@dataclass(frozen=True)
class View:
    """Approval, sums, and changes stack by stack."""

    intro: str
    approval: Approval | None = None
    facts: Sequence[Fact] = ()
    stacks: Sequence[Stack] = ()
    permissions: Table | None = None
    quotas: Table | None = None
    """What another policy would have done to the same work."""


def collect(scene: Scene) -> dict[str, Any]:
    """The document as it is; empty where nobody asked."""
    return scene.changes or {}


def view(data: dict[str, Any], document: dict[str, Any]) -> View:
    """The document of changes, the worst of each resource first."""
    if "problem" in data:
        return View(f"Not known: {data['problem']}")
    stacks = [stack for stack in data["stacks"] if stack["changes"]]
    if not stacks:
        return View("The deployed stacks are as the file says.")
    count = sum(len(stack["changes"]) for stack in stacks)
    first = " It is the first deployment." if data.get("first_deployment") else ""
    changing = f"{count:,} resource{plural(count)} in {len(stacks)} stack{plural(len(stacks))} would change."
    return View(
        intro=f"{changing}{first}",
        approval=_approval(data.get("approval") or {}),
        facts=list(_sums(data)),
        stacks=[_stack(stack) for stack in stacks],
        permissions=_permissions(data.get("permissions") or []),
        quotas=_quotas(data.get("quota_effect")),
    )


def _quotas(effect: dict[str, Any] | None) -> Table | None:
    """What a change of quotas would have done to the work of the last days."""
    if not effect:
        return None
    caption = (
        f"The same {effect['jobs']:,} jobs ({effect['work']}) under the deployed quotas and under those of the file"
    )
    return Table(caption, HEADERS, list(effect_rows(effect)), right=range(1, len(HEADERS)))


def _approval(approval: dict[str, Any]) -> Approval:
    """Whether the change set needs approval, why, and the entry that would approve it."""
    if not approval.get("needed"):
        return Approval(Badge("needs no approval", "green"))
    return Approval(
        answer=_APPROVED if approval.get("given") else Badge("needs approval", "orange"),
        reasons=[
            Reason(
                id=reason["id"],
                words=f"{reason['name']}: {reason['why']}",
                answer=_APPROVED if reason.get("approved") else Badge("open", "orange"),
            )
            for reason in approval.get("reasons", ())
        ],
        entry=approval.get("entry") or "",
    )


def _sums(data: dict[str, Any]) -> Iterator[Fact]:
    """Nodes, data, minutes and dollars of the change set, as far as its document has them."""
    restarted, risky = data.get("nodes_restarted") or [], data.get("data_at_risk") or []
    nodes = "; ".join(f"{row['group']}: {row['nodes']}, {row['what']}" for row in restarted)
    retained = {True: "stays outside the stack", False: "goes"}
    risk = "; ".join(f"{row['name']}: {row['holds']}, which {retained[bool(row['kept'])]}" for row in risky)
    yield Fact("Nodes that restart or go", nodes)
    yield Fact("Data at risk", risk)
    took = data.get("duration") or {}
    if low_high := took.get("minutes"):
        more = f", without {', '.join(took['unknown'])}" if took.get("unknown") else ""
        yield Fact("Takes", f"{low_high[0]:g} to {low_high[1]:g} minutes{more}")
    if money := data.get("cost"):
        yield Fact("Cost a month", _cost(money))
        yield Fact("Upfront", f"at most {cost.money(money['upfront'])}" if money.get("upfront") else "")
    yield Fact("Digest", Code(data["digest"]) if data.get("digest") else "")


def _cost(money: Mapping[str, Any]) -> str:
    """By how much a month becomes more or less expensive."""
    change = money["change"]
    sign = "+" if change > 0 else "-"
    missing = f"; no price is known of {', '.join(money['unknown'])}" if money.get("unknown") else ""
    return f"{sign}{cost.money(abs(change))}{missing}" if change else f"the same{missing}"


def _stack(stack: dict[str, Any]) -> Stack:
    new = [change for change in stack["changes"] if change["action"] == "create"]
    rest = [change for change in stack["changes"] if change["action"] != "create"]
    many = len(new) > _MOST_NEW
    listed = rest if many else [*rest, *new]
    return Stack(stack["name"], len(stack["changes"]), [_change(change) for change in listed], len(new) if many else 0)


def _change(change: dict[str, Any]) -> Change:
    """A resource, with a line for each property that differs, the worst first."""
    made = change["action"] == "create"
    effect = "create" if made else change.get("effect") or change["action"]
    lines = [] if made else [_line(row, effect) for row in change.get("rows") or []]
    return Change(
        effect=_effect(effect),
        name=change.get("name") or change["logical_id"],
        type=change["type"],
        stateful=bool(change.get("stateful")),
        what=change.get("what") or "",
        lines=lines[:_MOST_LINES],
        folded=lines[_MOST_LINES:],
    )


def _line(row: dict[str, Any], worst: str) -> Line:
    sides = [_side(row.get("before")), _side(row.get("after"))]
    follows = f" (follows from {row['follows']})" if row.get("follows") else ""
    return Line(
        effect=_effect(row["effect"]) if row["effect"] != worst else None,
        property=row["property"].removeprefix(f"{MANIFEST}."),
        sides=sides if any(sides) else (),
        note=f"{row.get('what') or ''}{follows}",
    )


def _side(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _effect(effect: str) -> Badge:
    return Badge(effect.replace("_", " "), _HUES.get(effect, "orange"))


def _permissions(grants: Sequence[dict[str, Any]]) -> Table:
    rows = [(grant["resource"], _SIGNS.get(grant["sign"], ""), grant["kind"], _what(grant)) for grant in grants]
    return Table("Permissions", ("of", "change", "kind", "what"), rows)


def _what(grant: Mapping[str, Any]) -> Cell:
    return (grant["what"], Badge("wide", "red")) if grant.get("wide") else grant["what"]
