"""The cluster as it was when somebody looked."""

from collections.abc import Sequence
from typing import Any, Final

from ....planning.quota.amounts import CPU
from ..scene import Scene
from ..views import Badge, Cell, Fact, Table, Tables, words_of

ID: Final = "status"
TITLE: Final = "Status"
_GOOD: Final = ("InService", "Running", "Active", "Created", "Updated", "Scheduled")


def collect(scene: Scene) -> dict[str, Any]:
    """What `podwright status --watch --json` says of one read; empty where nobody asked."""
    return scene.live or {}


def view(data: dict[str, Any], document: dict[str, Any]) -> Tables:
    """Groups, and what there is of nodes that need a look, quotas in use, plans, events and things not seen."""
    cluster = data["cluster"]
    if cluster is None:
        return Tables(f"There was no cluster at {words_of(data['at'])}.")
    where = " in the sandbox: no instance runs there" if data["sandbox"] else ""
    events = [(words_of(event["at"]), event["level"], event["about"], event["text"]) for event in data["events"]]
    return Tables(
        intro=f"As seen at {words_of(data['at'])}{where}.",
        facts=[
            Fact("Cluster", cluster["name"]),
            Fact("Status", _status(cluster["status"])),
            Fact("Message", cluster["message"]),
        ],
        tables=[
            _groups(data["groups"]),
            _nodes(data["unhealthy"]),
            _teams(data["teams"]),
            _plans(data["plans"]),
            Table("Newest events", ("at", "level", "about", "what"), events),
            Table("Not seen", ("what", "why"), list(data["unseen"].items())),
        ],
    )


def _groups(groups: Sequence[dict[str, Any]]) -> Table:
    rows = [
        (group["name"], " or ".join(group["types"]), group["current"], group["target"], _status(group["status"]))
        for group in groups
    ]
    return Table("Instance groups", ("group", "type", "now", "wanted", "status"), rows, right=(2, 3))


def _nodes(nodes: Sequence[dict[str, Any]]) -> Table:
    rows = [
        (
            node["id"],
            node["group"],
            _status(node["status"]),
            " ".join(filter(None, (node["health"], node["fault"], node["message"], node["quarantine"]))),
        )
        for node in nodes
    ]
    return Table("Nodes that need a look", ("node", "group", "status", "details"), rows)


def _teams(teams: Sequence[dict[str, Any]]) -> Table:
    rows = [
        (
            team["team"],
            _amounts(team["used"]),
            _amounts(team["borrowed"]),
            _number(team["running"]),
            _number(team["waiting"]),
        )
        for team in teams
    ]
    return Table("Quotas in use", ("team", "used", "borrowed", "running", "waiting"), rows, right=(3, 4))


def _plans(plans: Sequence[dict[str, Any]]) -> Table:
    """Plans with both ends of their window: when instances come next, and until when those that are there stay."""
    rows = [
        (
            plan["name"],
            _status(plan["status"]),
            words_of(plan["from"]),
            words_of(plan["until"]),
            plan["total"],
            plan["in_use"],
            plan["unhealthy"],
        )
        for plan in plans
    ]
    headers = ("plan", "status", "next from", "until", "instances", "in use", "unhealthy")
    return Table("Training plans", headers, rows, right=(4, 5, 6))


def _status(status: str) -> Cell:
    if not status:
        return ""
    bad = "red" if "ail" in status else "orange"
    return Badge(status, "green" if status in _GOOD else bad)


def _amounts(result: dict[str, float] | None) -> str:
    if result is None:
        return "not seen"
    names = {name: "vCPU" if name == CPU else name.rpartition("/")[2] for name in result}
    return ", ".join(f"{count:,.9g} {names[name]}" for name, count in result.items()) or "nothing"


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"
