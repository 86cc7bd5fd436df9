"""How many pods a job has now: what it was granted, when it grows, and what it gives up after a fault.

`scalingTimeoutInSeconds` is how long more capacity has to stay before a job grows, `faultyScaleDownTimeoutInSeconds`
how long a lost pod may take to come back before the job continues with fewer. Source: SageMaker Developer Guide,
elastic training, 2026-11. What it does not say is podwright's reading: a growth that failed doubles the wait.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from .jobs import Claim, Job, Manifest, instant
from .pods import is_ready
from .workloads import admitted_at

_APART: Final = timedelta(seconds=1)
"""Between two claims of a job: Kueue takes back first what it granted last, and counts in seconds."""


@dataclass(frozen=True)
class Observed:
    """A job with its pods and Workloads by name, and when it was read."""

    job: Job
    pods: Mapping[str, Manifest]
    workloads: Mapping[str, Manifest]
    now: datetime
    pace: float = 1.0
    """What the operator's own waits are multiplied by."""

    @property
    def scaling(self) -> Manifest:
        """What was written of the last change of its size."""
        return self.job.status.get("elasticScalingStatus") or {}

    def wait(self, field: str) -> timedelta:
        """One of the waits of an elastic job."""
        return timedelta(seconds=self.job.elastic.get(field, 0) * self.pace)

    def has_pods(self, claim: Claim) -> bool:
        """Whether a pod of a claim is there."""
        return any(slot.name in self.pods for slot in claim.slots)


@dataclass(frozen=True, slots=True)
class Size:
    """How many pods a job has, and when it may grow."""

    pods: int
    grows_at: datetime | None = None


def granted(observed: Observed) -> list[Claim]:
    """The claims by which a job runs, in the order in which they are used; none for a job that has to wait."""
    job = observed.job
    if job.policy.get("suspend"):
        return []
    if not job.queue:
        return [claim for claim in job.claims if claim.size <= job.start]
    times = {claim.name: _admitted_at(observed, claim) for claim in job.claims}
    base, *steps = job.claims
    if times[base.name] is None:
        return []
    # Steps with pods first: whoever grows keeps what runs, whichever step Kueue admitted before.
    admitted = [(not observed.has_pods(step), time, step.size, step) for step in steps if (time := times[step.name])]
    return [base, *(step for *_, step in sorted(admitted, key=lambda entry: entry[:3]))]


def size_of(observed: Observed, claims: Sequence[Claim]) -> Size:
    """The pods of a job that was granted some claims: less at once, more only after a while."""
    job = observed.job
    quota = sum(len(claim.slots) for claim in claims)
    usable = max(size for size in job.sizes if size <= quota)
    # A job that has not run yet has its smallest size, and grows from there.
    before = sum((observed.scaling.get("targetReplicas") or {}).values()) or job.sizes[0]
    new = [time for claim in claims if not observed.has_pods(claim) and (time := _admitted_at(observed, claim))]
    if usable <= before or not new:
        return Size(usable)
    due = max(min(new) + observed.wait("scalingTimeoutInSeconds"), _calm_at(observed))
    return Size(usable) if observed.now >= due else Size(before, due)


def next_claim(observed: Observed, *, is_running: bool) -> Claim | datetime | None:
    """The step that a job asks for now, or when it may ask for the next one; None where it has all, or has to wait."""
    missing = [claim for claim in observed.job.claims if claim.name not in observed.workloads]
    waiting = [claim for claim in observed.job.claims if claim not in missing and not _admitted_at(observed, claim)]
    if not missing or waiting:
        return None
    times = [time for claim in observed.job.claims if (time := _admitted_at(observed, claim))]
    due = max([_calm_at(observed), _retried_at(observed), *(time + _APART for time in times)])
    if not is_running:
        return None
    return missing[0] if observed.now >= due else due


def dropped_step(observed: Observed, claims: Sequence[Claim], size: int) -> Claim | datetime | None:
    """The step that a job gives up because a pod did not come back, or when it will; None where nothing is lost."""
    faulted, steps = observed.job.condition("Faulted"), claims[1:]
    if faulted is None or not steps or size <= observed.job.sizes[0]:
        return None
    due = instant(faulted["lastTransitionTime"]) + observed.wait("faultyScaleDownTimeoutInSeconds")
    if observed.now < due:
        return due
    used = [claim for claim in steps if observed.has_pods(claim)]
    lacking = [claim for claim in used if not _is_whole(observed, claim)]
    # The last that lacks a pod; without one the last that has pods, else the last of all.
    return [*steps, *used, *lacking][-1]


def _is_whole(observed: Observed, claim: Claim) -> bool:
    return all(slot.name in observed.pods and is_ready(observed.pods[slot.name]) for slot in claim.slots)


def _admitted_at(observed: Observed, claim: Claim) -> datetime | None:
    item = observed.workloads.get(claim.name)
    return admitted_at(item) if item else None


def _calm_at(observed: Observed) -> datetime:
    """When a job may grow again after a restart."""
    policy = observed.job.policy.get("restartPolicy") or {}
    pause = timedelta(seconds=policy.get("scaleUpSnoozeTimeInSeconds", 0) * observed.pace)
    restarted = observed.scaling.get("lastRestartTime")
    return instant(restarted) + pause if restarted else observed.job.created


def _retried_at(observed: Observed) -> datetime:
    """When a job may try to grow again after it gave up a step."""
    failures, last = observed.scaling.get("consecutiveScalingFailures", 0), observed.scaling.get("lastScalingTime")
    if not failures or not last:
        return observed.job.created
    return instant(last) + observed.wait("scalingTimeoutInSeconds") * 2**failures
