"""A check of a live cluster as tables that fit a terminal."""

from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from ..output.tables import coloured, new_table
from .quota_table import quota_cells

_NODES: Final = 12
_SHORT: Final = {"nvidia.com/gpu": "GPU", "aws.amazon.com/neurondevice": "Neuron"}
Report = dict[str, Any]


def draw(report: Report) -> RenderableType:
    """The tables of one read, with what it cost below."""
    if not report["cluster"]:
        reason = report["unseen"].get("cluster")
        return Text(
            f"{report['environment']}: " + (f"not seen: {reason}" if reason else "there is no HyperPod cluster.")
        )
    cluster = report["cluster"]
    title = Text(f"{cluster['name']}  {report['at']}  ", "bold").append_text(coloured(cluster["status"]))
    parts: list[RenderableType] = [title.append(f"  {cluster['message']}".rstrip(), "default"), "", _groups(report)]
    for rows, drawn in (
        (report["unhealthy"], _unhealthy),
        (report["plans"], _plans),
        (report["teams"], _teams),
        (report["events"], _events),
    ):
        if rows:
            parts += ["", drawn(rows)]
    parts += ["", *(Text(f"not seen: {name}: {reason}", "yellow") for name, reason in report["unseen"].items())]
    cost = report["cost"]
    simulated = "  simulated by the sandbox" if report["sandbox"] else ""
    return Group(*parts, Text(f"{cost['calls']} API calls, {cost['seconds']:.2f} s{simulated}", "dim"))


def _groups(report: Report) -> RenderableType:
    drawn = new_table("Groups", ("group", "type", "current", "target", "status", "nodes", "training plan"))
    for group in report["groups"]:
        nodes = ", ".join(f"{count:,} {status}" for status, count in group["statuses"].items())
        counts = (str(group["current"]), str(group["target"]), coloured(group["status"]))
        drawn.add_row(group["name"], ", ".join(group["types"]), *counts, nodes, group["plan"])
    return drawn


def _unhealthy(rows: list[Report]) -> RenderableType:
    cells: list[tuple[RenderableType, ...]] = [
        (
            node["id"],
            node["group"],
            coloured(node["status"]),
            Text(node["health"], "red"),
            node["fault"] or node["message"] or (f"set-up failed: {node['degraded']}" if node["degraded"] else ""),
        )
        for node in rows[:_NODES]
    ]
    if len(rows) > _NODES:
        cells.append((f"and {len(rows) - _NODES:,} more",))
    return new_table(f"Nodes that need a look: {len(rows):,}", ("node", "group", "status", "health", "why"), cells)


def _plans(rows: list[Report]) -> RenderableType:
    columns = ("plan", "status", "instances", "in use", "idle", "unhealthy", "window")
    drawn = new_table("Training plans", columns)
    for plan in rows:
        words = [f"until {plan['until']} ({plan['days_left']} days)"] if plan["until"] else []
        words += [f"next from {plan['from']}"] if plan["from"] else []
        numbers = (str(plan[key]) for key in ("total", "in_use", "available", "unhealthy"))
        drawn.add_row(plan["name"], coloured(plan["status"], good=("Active",)), *numbers, "; ".join(words))
    return drawn


def _teams(rows: list[Report]) -> RenderableType:
    cells = (
        (
            row["team"],
            quota_cells(row["quota"])[1] if row["quota"] else "",
            _amounts(row["used"]),
            _amounts(row["borrowed"]),
            "" if row["running"] is None else str(row["running"]),
            "" if row["waiting"] is None else str(row["waiting"]),
            coloured(row["quota"]["status"]) if row["quota"] else "",
        )
        for row in rows
    )
    return new_table("Teams", ("team", "guaranteed", "holds", "borrowed", "running", "waiting", "quota"), cells)


def _events(rows: list[Report]) -> RenderableType:
    styles = {"Error": "red", "Warn": "yellow"}
    cells = (
        (event["at"][11:19], Text(event["level"], styles.get(event["level"], "default")), event["about"], event["text"])
        for event in rows
    )
    return new_table("Newest events", ("time", "level", "about", "what"), cells)


def _amounts(sums: dict[str, int] | None) -> str:
    if sums is None:
        return ""
    return ", ".join(f"{amount:,} {_SHORT.get(name, name)}" for name, amount in sums.items()) or "0"
