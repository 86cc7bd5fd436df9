"""What an alert is: a condition on metrics, how long it has to hold, how bad it is, and what it says."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["critical", "warning"]
"""critical: somebody has to look now. warning: somebody has to look today."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert. Its page, with what to do, is `runbooks/<name>.md`."""

    name: str
    """Stable: people silence alerts and set thresholds by it."""
    severity: Severity
    expression: str
    """PromQL. `$cluster` and `$rate` are those of recordings, `$threshold` is the alert's own."""
    summary: str
    """What happened, as a sentence; Prometheus fills in `{{ $labels.x }}` and `{{ $value }}`."""
    minutes: int | None = 0
    """How long the condition has to hold; None when that is what the threshold says."""
    threshold: float | None = None
    """Where the condition begins; None when a target, or the environment, decides."""
    target: str | None = None
    """The target of the environment that is the threshold."""
    unit: str = ""
    """Unit of the threshold."""
    orchestrator: Literal["any", "eks", "slurm"] = "any"
    """The orchestrator without which there is nothing to read."""
