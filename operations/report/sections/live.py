"""The cluster as it was when somebody looked."""

from typing import Any, Final

from ..markup import Markup, badge, facts, joined, table, tag
from ..scene import Scene

ID: Final = "status"
TITLE: Final = "Status"
_GOOD: Final = ("InService", "Running", "Active", "Created", "Updated", "Scheduled")


def collect(scene: Scene) -> dict[str, Any]:
    """What `podwright status --watch --json` says of one look; empty where nobody asked."""
    return scene.live or {}


def shown(data: dict[str, Any], document: dict[str, Any]) -> Markup:
    """Groups, nodes that need a look, quotas in use, plans and events."""
    cluster = data["cluster"]
    if cluster is None:
        return tag("p", f"There was no cluster at {data['at']}.")
    groups = [
        (group["name"], " or ".join(group["types"]), group["current"], group["target"], _status(group["status"]))
        for group in data["groups"]
    ]
    nodes = [
        (
            node["id"],
            node["group"],
            _status(node["status"]),
            " ".join(filter(None, (node["health"], node["fault"], node["message"]))),
        )
        for node in data["unwell"]
    ]
    plans = [
        (
            plan["name"],
            _status(plan["status"]),
            plan["until"] or plan["from"],
            plan["total"],
            plan["in_use"],
            plan["unhealthy"],
        )
        for plan in data["plans"]
    ]
    events = [(event["at"], event["level"], event["about"], event["text"]) for event in data["events"]]
    teams = [
        (
            team["team"],
            _amounts(team["used"]),
            _amounts(team["borrowed"]),
            _number(team["running"]),
            _number(team["waiting"]),
        )
        for team in data["teams"]
    ]
    unseen = [(name, why) for name, why in data["unseen"].items()]
    return joined(
        [
            tag(
                "p",
                f"As seen at {data['at']}",
                " in the sandbox: no instance runs there" if data["sandbox"] else "",
                ".",
            ),
            facts(
                [("Cluster", cluster["name"]), ("Status", _status(cluster["status"])), ("Message", cluster["message"])]
            ),
            table("Instance groups", ("group", "type", "now", "wanted", "status"), groups, right=(2, 3)),
            table("Nodes that need a look", ("node", "group", "status", "what is said of it"), nodes)
            if nodes
            else None,
            table("Quotas in use", ("team", "used", "borrowed", "running", "waiting"), teams, right=(3, 4))
            if teams
            else None,
            table(
                "Training plans",
                ("plan", "status", "until", "instances", "in use", "unhealthy"),
                plans,
                right=(3, 4, 5),
            )
            if plans
            else None,
            table("Newest events", ("at", "level", "about", "what"), events) if events else None,
            table("Not seen", ("what", "why"), unseen) if unseen else None,
        ]
    )


def _status(status: str) -> Any:
    if not status:
        return ""
    return badge(status, "green" if status in _GOOD else "red" if "ail" in status else "orange")


def _amounts(found: dict[str, int] | None) -> str:
    if found is None:
        return "not seen"
    return ", ".join(f"{count:,} {name.rpartition('/')[2]}" for name, count in found.items()) or "nothing"


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"
