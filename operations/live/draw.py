"""A check of a live cluster as tables that fit a terminal."""

from typing import Any, Final

from ...planning.quota.amounts import EFA
from ..output.tables import Block, Table, coloured, new_table, styled
from .quota_table import quota_cells

_NODES: Final = 12
_SHORT: Final = {"cpu": "vCPU", "nvidia.com/gpu": "GPU", "aws.amazon.com/neurondevice": "Neuron"}
Report = dict[str, Any]


def draw(report: Report) -> list[Block]:
    """The tables of one read, with what it cost below."""
    if not report["cluster"]:
        reason = report["unseen"].get("cluster")
        state = f"not seen: {reason}" if reason else "there is no HyperPod cluster."
        return [f"{report['environment']}: {state}"]
    cluster = report["cluster"]
    name, message = (f"{cluster['name']}  {report['at']}  ", "bold"), f"  {cluster['message']}".rstrip()
    parts: list[Block] = [styled(name, coloured(cluster["status"]), message), "", _groups(report)]
    for rows, drawn in (
        (report["unhealthy"], _unhealthy),
        (report["plans"], _plans),
        (report["teams"], _teams),
        (report["events"], _events),
    ):
        if rows:
            parts += ["", drawn(rows)]
    warned = [f"quotas above what takes work now: {quota['words']}" for quota in report["quotas_beyond"]]
    parts += ["", *(styled((words, "yellow")) for words in warned)] if warned else []
    parts += ["", *(styled((f"not seen: {name}: {reason}", "yellow")) for name, reason in report["unseen"].items())]
    cost = report["cost"]
    simulated = "  simulated by the sandbox" if report["sandbox"] else ""
    return [*parts, styled((f"{cost['calls']} API calls, {cost['seconds']:.2f} s{simulated}", "dim"))]


def _groups(report: Report) -> Table:
    drawn = new_table(
        "Groups", ("group", "type", "current", "target", "status", "nodes", "training plan"), optional=("type",)
    )
    for group in report["groups"]:
        nodes = ", ".join(f"{count:,} {status}" for status, count in group["statuses"].items())
        counts = (str(group["current"]), str(group["target"]), coloured(group["status"]))
        drawn.add_row(group["name"], ", ".join(group["types"]), *counts, nodes, group["plan"])
    return drawn


def _unhealthy(rows: list[Report]) -> Table:
    """The first nodes that somebody has to look at, with why."""
    cells: list[tuple[Any, ...]] = [
        (
            node["id"],
            node["group"],
            coloured(node["status"]),
            styled((node["health"], "red")),
            node["fault"]
            or node["message"]
            or node["quarantine"]
            or (f"set-up failed: {node['degraded']}" if node["degraded"] else ""),
        )
        for node in rows[:_NODES]
    ]
    if len(rows) > _NODES:
        cells.append((f"and {len(rows) - _NODES:,} more",))
    return new_table(
        f"Nodes that need a look: {len(rows):,}",
        ("node", "group", "status", "health", "why"),
        cells,
        optional=("group",),
    )


def _plans(rows: list[Report]) -> Table:
    columns = ("plan", "status", "instances", "in use", "idle", "unhealthy", "window")
    drawn = new_table("Training plans", columns)
    for plan in rows:
        words = [f"until {plan['until']} ({plan['days_left']} days)"] if plan["until"] else []
        words += [f"next from {plan['from']}"] if plan["from"] else []
        numbers = (str(plan[key]) for key in ("total", "in_use", "available", "unhealthy"))
        drawn.add_row(plan["name"], coloured(plan["status"], good=("Active",)), *numbers, "; ".join(words))
    return drawn


def _teams(rows: list[Report]) -> Table:
    """What teams are guaranteed, hold and borrow."""
    cells = (
        (
            row["team"],
            _guaranteed(row),
            _amounts(row["used"]),
            _amounts(row["borrowed"]),
            "" if row["running"] is None else str(row["running"]),
            "" if row["waiting"] is None else str(row["waiting"]),
            coloured(row["quota"]["status"]) if row["quota"] else "",
        )
        for row in rows
    )
    return new_table(
        "Teams", ("team", "guaranteed", "holds", "borrowed", "running", "waiting", "quota"), cells, optional=("quota",)
    )


def _guaranteed(row: Report) -> str:
    """A team's quota in the units of the columns beside it, or as SageMaker has it where Kueue's is not readable."""
    if row.get("guaranteed") is not None:
        return _amounts(row["guaranteed"])
    return quota_cells(row["quota"])[1] if row["quota"] else ""


def _events(rows: list[Report]) -> Table:
    styles = {"Error": "red", "Warn": "yellow"}
    cells = (
        (
            event["at"][11:19],
            styled((event["level"], styles.get(event["level"], "default"))),
            event["about"],
            event["text"],
        )
        for event in rows
    )
    return new_table("Newest events", ("time", "level", "about", "what"), cells)


def _amounts(sums: dict[str, float] | None) -> str:
    if sums is None:
        return ""
    # Network interfaces follow the accelerators.
    shown = {name: amount for name, amount in sums.items() if name != EFA}
    return "\n".join(f"{amount:,.9g} {_SHORT.get(name, name)}" for name, amount in shown.items()) or "0"
