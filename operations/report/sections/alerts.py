"""What wakes somebody: the alerts of the file's levels of metrics, and who is told."""

from typing import Any, Final

from ....config.catalog.instance_types import environment_types
from ....planning.monitoring.alerts import unmeasured, watched
from ...environments.alerts import alert_rows, begins, lasts, told
from ..scene import Scene
from ..views import Badge, Table, Tables

ID: Final = "alerts"
TITLE: Final = "Alerts"
_HUES: Final = {"critical": "red", "warning": "orange"}


def collect(scene: Scene) -> dict[str, Any] | None:
    """What `podwright alerts --json` says, who is told, and what is not measured; None where nothing is observed."""
    environment = scene.environment
    settings = environment.observability
    if settings is None:
        return None
    types = environment_types(environment.instance_types)
    return {
        "alerts": alert_rows(settings, watched(environment, types)),
        "told": told(settings),
        "left_out": unmeasured(environment, types),
    }


def view(data: dict[str, Any], document: dict[str, Any]) -> Tables:
    """The critical ones, all of them folded, and who is told."""
    headers = ("alert", "severity", "begins at", "for")
    rows = [
        (row["name"], Badge(row["severity"], _HUES[row["severity"]]), begins(row), lasts(row)) for row in data["alerts"]
    ]
    critical = sum(row["severity"] == "critical" for row in data["alerts"])
    whom = f"told: {', '.join(data['told'])}" if data["told"] else "nobody is told"
    left_out = f"Not measured at these levels: {', '.join(data['left_out'])}."
    return Tables(
        intro=f"{len(rows)} alerts, {critical} of them critical; {whom}.",
        folded=[Table("What each means: podwright explain NAME", headers, rows, name="All alerts")],
        notes=[left_out] if data["left_out"] else [],
    )
