"""The alerts of an environment: where each begins, how long that has to hold, and who is told."""

from typing import Any

from ...config.settings.observability import Observability
from ...planning.monitoring.alerts import Watched, threshold, wanted
from ...planning.monitoring.alerts.alert import Alert


def alert_rows(settings: Observability, cluster: Watched) -> list[dict[str, Any]]:
    """A row for each, in the form that `podwright alerts --json` prints."""
    return [_row(alert, settings, cluster) for alert in wanted(settings, cluster)]


def _row(alert: Alert, settings: Observability, cluster: Watched) -> dict[str, Any]:
    value = threshold(alert, settings, cluster)
    minutes = value if alert.minutes is None else alert.minutes
    beginning = None if alert.minutes is None or "$threshold" not in alert.expression else value
    return {
        "name": alert.name,
        "severity": alert.severity,
        "threshold": beginning,
        "unit": alert.unit if beginning is not None else "",
        "minutes": minutes,
    }


def begins(row: dict[str, Any]) -> str:
    """Where an alert begins, in words; empty where it has no threshold."""
    return "" if row["threshold"] is None else f"{row['threshold']:g} {row['unit']}"


def lasts(row: dict[str, Any]) -> str:
    """How long that has to hold."""
    return f"{row['minutes']:g} min" if row["minutes"] else "at once"


def told(settings: Observability) -> list[str]:
    """Addresses, and kinds of channels."""
    chat = settings.alerts.chat
    return [*settings.alerts.emails, *(name for name in ("slack", "teams") if getattr(chat, name))]
