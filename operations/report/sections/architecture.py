"""The drawing, and the same as tables."""

from datetime import date
from typing import Any, Final

from ..architecture import architecture
from ..drawing import counted, drawing, hue
from ..markup import Markup, badge, details, joined, table, tag
from ..scene import Scene
from ..time_line import said, unknown

ID: Final = "architecture"
TITLE: Final = "Architecture"


def collect(scene: Scene) -> dict[str, Any]:
    """What the templates hold."""
    return architecture(scene.environment, scene.assembly, scene.windows) | {"name": scene.environment.name}


def shown(data: dict[str, Any], document: dict[str, Any]) -> Markup:
    """The drawing with its tables."""
    picture = tag(
        "div",
        drawing(data, data["name"], day=date.fromisoformat(document["day"])),
        class_="scroll drawing",
        role="region",
        tabindex="0",
        aria_label="Architecture drawing",
    )
    return joined(
        [
            tag("p", "Drawn from the synthesized templates. Addresses are those at the full count of every group."),
            tag("figure", picture, tag("figcaption", "The tables below say the same in words.")),
            details(f"Subnets ({sum(len(zone['subnets']) for zone in data['zones'])})", _subnets(data)),
            details(f"Instance groups ({len(data['groups'])})", _groups(data)) if data["groups"] else None,
            details(f"File systems ({len(data['file_systems'])})", _systems(data)) if data["file_systems"] else None,
            details(f"Training plans ({len(data['plans'])})", _plans(data)) if data["plans"] else None,
        ]
    )


def _subnets(data: dict[str, Any]) -> Markup:
    rows = [
        (
            zone["id"],
            subnet["role"],
            tag("code", subnet["range"]),
            f"{subnet['usable']:,}",
            "" if subnet["taken"] is None else f"{subnet['taken']:,}",
            "" if subnet["replacing"] is None else f"{subnet['replacing']:,}",
            subnet["sums"],
        )
        for zone in data["zones"]
        for subnet in zone["subnets"]
    ]
    headers = ("zone", "subnet", "range", "usable", "taken", "while replacing", "sum")
    return table("Subnets and their addresses", headers, rows, right=(3, 4, 5))


def _groups(data: dict[str, Any]) -> Markup:
    rows = [
        (
            group["name"],
            counted(group),
            " or ".join(group["types"]),
            ", ".join(group["zones"]),
            badge(group["capacity"], hue(group)),
            f"{group['accelerators'] * group['count']:,} × {group['accelerator']}" if group["accelerators"] else "",
            (f"{group['efa']} a node" + (", efa-only" if group["efa_only"] else "")) if group["efa"] else "",
            ", ".join([*group["checks"], *filter(None, [group["slurm"]])]),
        )
        for group in data["groups"]
    ]
    headers = ("group", "nodes", "type", "zones", "capacity", "accelerators", "EFA", "checks and role")
    return table("Instance groups at their full count", headers, rows, right=(1,))


def _systems(data: dict[str, Any]) -> Markup:
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
    return table("What holds data", ("name", "kind", "zones", "what", "linked to S3"), rows)


def _plans(data: dict[str, Any]) -> Markup:
    rows = [
        (plan["name"], plan["zone"], ", ".join(plan["needs"]), "; ".join(map(said, plan["windows"])) or unknown(plan))
        for plan in data["plans"]
    ]
    return table("Training plans and their windows", ("plan", "zone", "for", "when"), rows)
