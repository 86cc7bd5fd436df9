"""Rules that find a job which hangs by what it does not print (`logMonitoringConfiguration`).

On real nodes AWS's agents read the logs. Pods of simulated nodes print nothing. The operator assumes that each prints
the patterns of its rules until an annotation gives the time since which it hangs. Rules about numbers never match.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from .jobs import Job, Manifest, instant

HANGS: Final = "podwright/hangs-since"


def hanging_at(job: Job, pod: Manifest) -> datetime | None:
    """When a rule finds that a pod hangs; None for one that does not hang, or that no rule would find."""
    since = pod["metadata"].get("annotations", {}).get(HANGS)
    return min(_limits(job, pod, instant(since)), default=None) if since else None


def _limits(job: Job, pod: Manifest, since: datetime) -> Iterator[datetime]:
    """When each rule has waited for too long."""
    started = pod.get("status", {}).get("startTime")
    for rule in job.policy.get("logMonitoringConfiguration") or ():
        if seconds := rule.get("expectedRecurringFrequencyInSeconds"):
            yield since + timedelta(seconds=seconds)
        seconds = rule.get("expectedStartCutOffInSeconds")
        # One that hangs from its start never prints what should come first.
        if seconds and started and since <= instant(started):
            yield instant(started) + timedelta(seconds=seconds)
