"""Sizes of an elastic job: the pods that it has, its growth, and its shrinking after a fault.

A job grows after more quota has been available for `scalingTimeoutInSeconds`. It continues with fewer pods if a lost
pod has not recovered after `faultyScaleDownTimeoutInSeconds`. Source: SageMaker Developer Guide, elastic training,
2026-11. Our assumption, which no page of AWS states: each failed growth doubles the wait.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

from .jobs import Claim, Job, Manifest, instant
from .pods import is_ready
from .workloads import admitted_at

_APART: Final = timedelta(seconds=1)
"""Time between two claims of a job. Kueue preempts the latest admission first, and its times have whole seconds."""


@dataclass(frozen=True)
class Observed:
    """A job with its pods and Workloads by name, and the time of the read."""

    job: Job
    pods: Mapping[str, Manifest]
    workloads: Mapping[str, Manifest]
    now: datetime
    pace: float = 1.0
    """Factor for the operator's own waits."""

    @property
    def scaling(self) -> Manifest:
        """The status of the last change of its size."""
        return self.job.status.get("elasticScalingStatus") or {}

    def wait(self, field: str) -> timedelta:
        """Return a wait of the elastic policy by its field."""
        return timedelta(seconds=self.job.elastic.get(field, 0) * self.pace)

    def has_pods(self, claim: Claim) -> bool:
        """True if a pod of the claim exists."""
        return any(slot.name in self.pods for slot in claim.slots)


@dataclass(frozen=True, slots=True)
class Size:
    """The number of pods of a job, and the time at which it may grow."""

    pods: int
    grows_at: datetime | None = None


def granted(observed: Observed) -> list[Claim]:
    """Return the admitted claims of a job in the order of their use; none if the job waits."""
    job = observed.job
    if job.policy.get("suspend"):
        return []
    if not job.queue:
        return [claim for claim in job.claims if claim.size <= job.start]
    times = {claim.name: _admitted_at(observed, claim) for claim in job.claims}
    base, *steps = job.claims
    if times[base.name] is None:
        return []
    # Steps with pods come first: a growing job keeps its running pods, in whatever order Kueue admitted the steps.
    admitted = [(not observed.has_pods(step), time, step.size, step) for step in steps if (time := times[step.name])]
    return [base, *(step for *_, step in sorted(admitted, key=lambda entry: entry[:3]))]


def size_of(observed: Observed, claims: Sequence[Claim]) -> Size:
    """Return the size of a job with these claims. It shrinks at once, and grows after a wait."""
    job = observed.job
    quota = sum(len(claim.slots) for claim in claims)
    usable = max(size for size in job.sizes if size <= quota)
    # A job starts with its smallest size.
    before = sum((observed.scaling.get("targetReplicas") or {}).values()) or job.sizes[0]
    starts = accumulate((len(claim.slots) for claim in claims), initial=0)
    # By their number of pods: lost pods do not make an older claim a new one.
    beyond = [claim for claim, start in zip(claims, starts, strict=False) if start >= before]
    new = [time for claim in beyond if (time := _admitted_at(observed, claim))]
    if usable <= before or not new:
        return Size(usable)
    due = max(min(new) + observed.wait("scalingTimeoutInSeconds"), _growth_after_restart(observed))
    return Size(usable) if observed.now >= due else Size(before, due)


def next_claim(observed: Observed, *, is_running: bool) -> Claim | datetime | None:
    """Return the step to request now, or the time of the next request; None if all are admitted or one still waits."""
    missing = [claim for claim in observed.job.claims if claim.name not in observed.workloads]
    waiting = [claim for claim in observed.job.claims if claim not in missing and not _admitted_at(observed, claim)]
    if not missing or waiting:
        return None
    times = [time for claim in observed.job.claims if (time := _admitted_at(observed, claim))]
    growth = _growth_after_restart(observed), _growth_after_dropped_step(observed)
    due = max([*growth, *(time + _APART for time in times)])
    if not is_running:
        return None
    return missing[0] if observed.now >= due else due


def dropped_step(observed: Observed, claims: Sequence[Claim], size: int) -> Claim | datetime | None:
    """Return the step to drop for a lost pod, or the time at which to drop it; None without a lost pod."""
    faulted, steps = observed.job.condition("Faulted"), claims[1:]
    if faulted is None or not steps or size <= observed.job.sizes[0]:
        return None
    due = instant(faulted["lastTransitionTime"]) + observed.wait("faultyScaleDownTimeoutInSeconds")
    if observed.now < due:
        return due
    used = [claim for claim in steps if observed.has_pods(claim)]
    lacking = [claim for claim in used if not _is_whole(observed, claim)]
    # The last step that lacks a pod; otherwise the last with pods; otherwise the last of all.
    return [*steps, *used, *lacking][-1]


def _is_whole(observed: Observed, claim: Claim) -> bool:
    return all(slot.name in observed.pods and is_ready(observed.pods[slot.name]) for slot in claim.slots)


def _admitted_at(observed: Observed, claim: Claim) -> datetime | None:
    item = observed.workloads.get(claim.name)
    return admitted_at(item) if item else None


def _growth_after_restart(observed: Observed) -> datetime:
    """Return the earliest time of growth after the last restart."""
    policy = observed.job.policy.get("restartPolicy") or {}
    pause = timedelta(seconds=policy.get("scaleUpSnoozeTimeInSeconds", 0) * observed.pace)
    restarted = observed.scaling.get("lastRestartTime")
    return instant(restarted) + pause if restarted else observed.job.created


def _growth_after_dropped_step(observed: Observed) -> datetime:
    """Return the earliest time of growth after the last dropped step."""
    failures, last = observed.scaling.get("consecutiveScalingFailures", 0), observed.scaling.get("lastScalingTime")
    if not failures or not last:
        return observed.job.created
    return instant(last) + observed.wait("scalingTimeoutInSeconds") * 2**failures
