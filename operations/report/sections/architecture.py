"""The drawing, and the same as tables."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from ..architecture import architecture
from ..drawing import EFA_ONLY, Drawing, Seen, counted, drawing, hue
from ..scene import Scene
from ..time_line import said, unknown
from ..views import Badge, Code, Table

ID: Final = "architecture"
TITLE: Final = "Architecture"


@dataclass(frozen=True)
class View:
    """The drawing and its tables."""

    drawing: Drawing
    tables: Sequence[Table]


def collect(scene: Scene) -> dict[str, Any]:
    """What the templates hold."""
    return architecture(scene.environment, scene.assembly, scene.windows) | {"name": scene.environment.name}


def view(data: dict[str, Any], document: dict[str, Any]) -> View:
    """The drawing, with a table for each kind of what there is."""
    drawn = drawing(data, data["name"], date.fromisoformat(document["day"]), _seen(document["status"]))
    return View(drawn, [_subnets(data), _groups(data), _systems(data), _plans(data)])


def _seen(status: dict[str, Any]) -> dict[str, Seen] | None:
    """Nodes of groups as they were seen; None where nobody looked, or the nodes were not seen."""
    if not status or status["cluster"] is None or "nodes" in status["unseen"]:
        return None
    bad = Counter(node["group"] for node in status["unhealthy"])
    return {
        group["name"]: Seen(max(group["current"] - bad[group["name"]], 0), bad[group["name"]])
        for group in status["groups"]
    }


def _subnets(data: dict[str, Any]) -> Table:
    """Addresses of subnets; blank where nodes take none."""
    rows = [
        (
            zone["id"],
            subnet["role"],
            Code(subnet["range"]),
            f"{subnet['usable']:,}",
            "" if subnet["taken"] is None else f"{subnet['taken']:,}",
            "" if subnet["replacing"] is None else f"{subnet['replacing']:,}",
            subnet["sums"],
        )
        for zone in data["zones"]
        for subnet in zone["subnets"]
    ]
    headers = ("zone", "subnet", "range", "usable", "taken", "while replacing", "sum")
    return Table("Subnets and their addresses", headers, rows, right=(3, 4, 5), name="Subnets")


def _groups(data: dict[str, Any]) -> Table:
    """Groups with the accelerators of all their nodes, and the EFA interfaces of one."""
    rows = [
        (
            group["name"],
            counted(group),
            " or ".join(group["types"]),
            ", ".join(group["zones"]),
            Badge(group["capacity"], hue(group)),
            f"{group['accelerators'] * group['count']:,} × {group['accelerator']}" if group["accelerators"] else "",
            f"{group['efa']} a node{EFA_ONLY[group['efa_only']]}" if group["efa"] else "",
            ", ".join([*group["checks"], *filter(None, [group["slurm"]])]),
        )
        for group in data["groups"]
    ]
    headers = ("group", "nodes", "type", "zones", "capacity", "accelerators", "EFA", "checks and role")
    return Table("Instance groups at their full count", headers, rows, right=(1,), name="Instance groups")


def _systems(data: dict[str, Any]) -> Table:
    rows = [
        (
            system["name"],
            system["kind"],
            ", ".join(system["zones"]) or "all",
            ", ".join(system["facts"]),
            ", ".join(system["repositories"]),
        )
        for system in data["file_systems"]
    ]
    headers = ("name", "kind", "zones", "what", "linked to S3")
    return Table("What holds data", headers, rows, name="File systems")


def _plans(data: dict[str, Any]) -> Table:
    rows = [
        (plan["name"], plan["zone"], ", ".join(plan["needs"]), "; ".join(map(said, plan["windows"])) or unknown(plan))
        for plan in data["plans"]
    ]
    headers = ("plan", "zone", "for", "when")
    return Table("Training plans and their windows", headers, rows, name="Training plans")
