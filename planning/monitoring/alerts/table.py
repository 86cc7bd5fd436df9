"""The table of alerts in `docs/operator/alerts.md`; a test holds the two together."""

from collections.abc import Iterator
from typing import Final

from . import alerts
from .alert import Alert
from .pages import needs_advanced, threshold_text

BEGIN: Final = "<!-- the table is made of planning/monitoring/alerts -->"
END: Final = "<!-- end of the table -->"


def markdown() -> str:
    """The table, between the lines that mark it."""
    head = ["| alert | severity | begins at | holds for | level |", "|---|---|---|---|---|"]
    return "\n".join([BEGIN, *head, *(_row(alert) for alert in alerts().values()), END])


def _row(alert: Alert) -> str:
    return "| " + " | ".join(_cells(alert)) + " |"


def _cells(alert: Alert) -> Iterator[str]:
    yield f"[{alert.name}](../../planning/monitoring/runbooks/{alert.name}.md)"
    yield alert.severity
    yield threshold_text(alert)
    minutes = f"{alert.minutes} minutes" if alert.minutes else "at once"
    yield "the threshold" if alert.minutes is None else minutes
    only = {"eks": " (EKS)", "slurm": " (Slurm)", "any": ""}[alert.orchestrator]
    yield ("advanced" if needs_advanced(alert) else "basic") + only
