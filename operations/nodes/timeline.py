"""What happened after a fault, and when: from one read to the next."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from ...config.catalog.drills import HEALTHY
from ...config.settings.observability import Targets
from .snapshot import Snapshot

Action = Literal["reboot", "replace", "none"]
MARKS: Final = {
    "labelled": "HyperPod marks the node",
    "tainted": "nothing new is placed on it",
    "left": "the jobs' pods are gone from it",
    "away": "the node is away",
    "back": "the group has all its nodes again",
    "resumed": "the jobs run again with as many pods as before",
}
"""What can be seen, in the usual order."""


@dataclass(frozen=True, slots=True)
class Interval:
    """How long something took, against what it may take."""

    name: str
    what: str
    seconds: float | None
    """None where one of its ends was never seen."""
    target: float | None
    """None where the environment sets none."""

    @property
    def missed(self) -> bool:
        """Whether it took longer than it may, or never came to an end."""
        return self.target is not None and (self.seconds is None or self.seconds > self.target)


class Timeline:
    """Reads the course of a recovery out of looks at a node."""

    def __init__(self, before: Snapshot, instance: str, expected: Action, started: float) -> None:
        """Begins at `started` (seconds since the epoch), when the fault was made; `before` is a look from before it."""
        self._before, self._instance, self._expected = before, instance, expected
        self.begun = started
        self.marks: dict[str, float] = {}
        """When each thing was first seen."""
        self.reasons: dict[str, str] = {}
        """What HyperPod said of the fault, by its labels."""
        self.replacement: str | None = None
        """Instance that came for the node."""
        self._seen = set(before.instances)
        self._gone = self._interrupted = False
        self._tests: dict[str, Callable[[Snapshot], bool]] = {
            "labelled": self._labelled,
            "tainted": lambda now: now.tainted,
            "left": self._left,
            "away": self._away,
            "back": self._back,
            "resumed": self._resumed,
        }

    @property
    def action(self) -> Action:
        """What HyperPod did, as far as it is seen."""
        # Away and gone from the list: HyperPod gave the instance back before its successor came.
        if self.replacement or ("away" in self.marks and self._gone):
            return "replace"
        return "reboot" if "away" in self.marks else "none"

    @property
    # Without jobs on the node there is nothing that could resume.
    def wanted(self) -> list[str]:
        """What has to be seen before the recovery is over."""
        jobs = ["resumed"] if self._before.jobs else []
        return jobs if self._expected == "none" else ["back", *jobs]

    @property
    def done(self) -> bool:
        """Whether all of it was seen."""
        return all(mark in self.marks for mark in self.wanted)

    def take(self, now: Snapshot) -> list[str]:
        """Take in a look, and return what is new."""
        self.reasons.update(now.reasons)
        # HyperPod lists an instance that is ending for a while; for the group it is gone.
        self._gone = now.instances.get(self._instance, "NotFound") in ("NotFound", "ShuttingDown")
        # Only the first time counts: a node may be marked, cleared and marked again.
        new = [mark for mark, observed in self._tests.items() if mark not in self.marks and observed(now)]
        for mark in new:
            self.marks[mark] = now.at
        return new

    def intervals(self, targets: Targets) -> list[Interval]:
        """What took how long, against the environment's targets."""
        minute, jobs = 60.0, bool(self._before.jobs)
        # HyperPod replaces where nothing else is expected, so that is the limit.
        recovery = targets.reboot_minutes if self._expected == "reboot" else targets.replacement_minutes
        results: list[Interval] = []
        if self._expected != "none":
            sees = self._before.sees_kubernetes
            detection = float(targets.detection_seconds) if sees else None
            # Without Kubernetes nobody sees the mark, so there is no detection to be measured.
            results.append(Interval("detection", "from the fault to the mark", self._span(None, "labelled"), detection))
            start = "labelled" if "labelled" in self.marks or sees else None
            results.append(
                Interval(self._expected, "from the mark to a whole group", self._span(start, "back"), recovery * minute)
            )
        if jobs:
            start = "back" if self._expected != "none" else None
            resume = targets.resume_minutes * minute
            results.append(
                Interval("resume", "from a whole group to running jobs", self._span(start, "resumed"), resume)
            )
            results.append(Interval("standstill", "from the fault to running jobs", self._span(None, "resumed"), None))
        return results

    def _span(self, start: str | None, end: str) -> float | None:
        started = self.begun if start is None else self.marks.get(start)
        ended = self.marks.get(end)
        # A job may run again on a spare node before its own is back.
        return None if started is None or ended is None else max(0.0, ended - started)

    def _labelled(self, now: Snapshot) -> bool:
        if now.sees_kubernetes and now.health is not None:
            return now.health != HEALTHY
        # Without a label the first that shows is that the node is away.
        return self._away(now)

    def _left(self, now: Snapshot) -> bool:
        earlier = {job: pods.on_node for job, pods in self._before.jobs.items()}
        # By uid: a pod of the same name may have come anew elsewhere.
        return bool(earlier) and not any(uids & now.jobs[job].on_node for job, uids in earlier.items())

    def _away(self, now: Snapshot) -> bool:
        if now.instances.get(self._instance) != "Running":
            return True
        if not now.sees_kubernetes:
            return False
        # A node that is only marked is not away yet: it waits for its jobs, or for HyperPod.
        # A node that was away between two looks shows it by the id of its boot alone.
        anew = bool(self._before.boot and now.boot and now.boot != self._before.boot)
        return now.health is None or not now.up or anew

    def _back(self, now: Snapshot) -> bool:
        # A node that never went has not come back.
        if "away" not in self.marks and not self._away(now):
            return False
        running = {id for id, status in now.instances.items() if status == "Running"}
        whole = running & now.ready if now.sees_kubernetes else running
        if self._instance not in whole and (new := whole - self._seen):
            # The smallest id, so that two reads name the same one of several.
            self.replacement = min(new)
        before = sum(status == "Running" for status in self._before.instances.values())
        # As many as before: other nodes of the group may have come and gone meanwhile.
        return (self._instance in whole or self.replacement is not None) and len(whole) >= before

    def _resumed(self, now: Snapshot) -> bool:
        earlier = self._before.jobs.items()
        # Pods that came anew have other uids; after a reboot the same pods may run again.
        # Their containers may have ended and started between two reads.
        self._interrupted = self._interrupted or any(
            not pods.running <= now.jobs[job].running or now.jobs[job].restarts > pods.restarts for job, pods in earlier
        )
        # Pods may have come anew on other nodes, so their number counts and not which they are.
        whole = all(len(now.jobs[job].running) >= len(pods.running) for job, pods in earlier)
        return bool(earlier) and self._interrupted and whole


def shown(seconds: float | None) -> str:
    """Seconds, or minutes where they are many."""
    if seconds is None:
        return "–"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
