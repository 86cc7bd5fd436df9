"""Counts restarts and applies the limits of a job's restart policy."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from .jobs import Job, Manifest, instant


@dataclass(frozen=True, slots=True)
class Restarts:
    """The result of a loss of pods."""

    total: int
    status: Manifest
    """`restartStatus` of the job: the counts of the current window."""
    is_full: bool = False
    """True if the operator replaces all pods, not only the lost ones."""
    failure: str = ""
    """Reason for which the job fails; empty if it continues."""


def restarts(job: Job, lost: Collection[str], now: datetime) -> Restarts:
    """Count a restart for pods that were lost together.

    A window lasts `evalPeriodSeconds`; the first begins at the job's start. After `numRestartBeforeFullJobRestart`
    restarts of processes the next one restarts the whole job. More than `maxFullJobRestarts` of these fail the job.
    """
    policy = job.policy.get("restartPolicy") or {}
    before = job.status.get("restartStatus") or {}
    total, window = job.status.get("restartCount", 0), _window(job, policy, now)
    current = before.get("currentEvalPeriod", 0) == window
    partial = before.get("restartCount", 0) if current else 0
    full = before.get("fullJobRestartCount", 0) if current else 0
    if not lost:
        return Restarts(total, _counts(window, partial, full))
    total += 1
    most = job.policy.get("jobMaxRetryCount")
    if most is not None and total > most:
        return Restarts(total, _counts(window, partial, full), failure=f"more than {most} restarts")
    least = policy.get("numRestartBeforeFullJobRestart")
    if least is None or partial < least:
        return Restarts(total, _counts(window, partial + 1, full))
    counts, most = _counts(window, 0, full + 1), policy.get("maxFullJobRestarts")
    if most is not None and full + 1 > most:
        period = policy["evalPeriodSeconds"]
        return Restarts(total, counts, failure=f"more than {most} restarts of the whole job in {period} s")
    return Restarts(total, counts, is_full=True)


def _window(job: Job, policy: Manifest, now: datetime) -> int:
    started, period = job.status.get("startTime"), policy.get("evalPeriodSeconds")
    return int((now - instant(started)).total_seconds()) // period if started and period else 0


def _counts(window: int, partial: int, full: int) -> Manifest:
    return {"currentEvalPeriod": window, "restartCount": partial, "fullJobRestartCount": full}
