"""What the next deployment would change: what `podwright diff ENV --json` said, and nothing else."""

from typing import Any, Final

from ..markup import Markup, badge, details, facts, joined, table, tag
from ..scene import Scene

ID: Final = "changes"
TITLE: Final = "Changes"
_HUES: Final = {"create": "green", "add": "green", "delete": "red", "remove": "red", "replace": "red", "update": "blue"}


def collect(scene: Scene) -> dict[str, Any]:
    """The document as it is; empty where nobody asked."""
    return scene.changes or {}


def shown(data: dict[str, Any], document: dict[str, Any]) -> Markup:
    """Approval, effects, and changes stack by stack."""
    if "problem" in data:
        return tag("p", "Not known: ", data["problem"])
    stacks = [stack for stack in data.get("stacks", ()) if stack.get("changes")]
    if not stacks:
        return tag("p", "The deployed stacks are as the file says.")
    count = sum(len(stack["changes"]) for stack in stacks)
    approval = data.get("approval") or {}
    return joined(
        [
            tag(
                "p",
                f"{count} change{'' if count == 1 else 's'} in {len(stacks)} stack{'' if len(stacks) == 1 else 's'}.",
            ),
            _approval(approval) if approval else None,
            facts((words, _plain(data.get(key))) for key, words in _EFFECTS.items()),
            [_stack(stack) for stack in stacks],
        ]
    )


_EFFECTS: Final = {
    "nodes_restarted": "Nodes restarted",
    "data_at_risk": "Data at risk",
    "duration": "Takes",
    "cost": "Cost",
    "digest": "Digest",
}


def _approval(approval: dict[str, Any]) -> Markup:
    if not approval.get("needed"):
        return tag("p", badge("needs no approval", "green"))
    word = badge("approved", "green") if approval.get("given") else badge("needs approval", "orange")
    reasons = [tag("li", _plain(reason)) for reason in approval.get("reasons", ())]
    return joined([tag("p", word), tag("ul", *reasons, class_="plain") if reasons else None])


def _stack(stack: dict[str, Any]) -> Markup:
    rows = [
        (
            change.get("path") or change.get("logical_id", ""),
            change.get("type", ""),
            badge(change.get("action", ""), _HUES.get(change.get("action", ""), "blue")),
            change.get("property") or "",
            _plain(change.get("effect")),
            badge("holds data", "orange") if change.get("stateful") else "",
        )
        for change in stack["changes"]
    ]
    headers = ("what", "type", "action", "property", "effect", "data")
    return details(f"{stack['name']} ({len(rows)})", table(f"Changes of {stack['name']}", headers, rows), opened=True)


def _plain(value: Any) -> str:
    """A value of the document in words, whatever form it has."""
    if isinstance(value, dict):
        return ", ".join(
            f"{str(key).replace('_', ' ')} {_plain(item)}" for key, item in value.items() if item not in (None, "")
        )
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or "none"
    return (
        "" if value is None else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    )
