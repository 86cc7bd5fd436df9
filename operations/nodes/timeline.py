"""The timeline of a recovery, from successive observations of a node."""

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
"""Marks of a recovery in their usual order, by their names in JSON results, with their texts for users."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A duration with its target."""

    name: str
    what: str
    seconds: float | None
    """Duration; None if its start or end was not observed."""
    target: float | None
    """Longest allowed duration in seconds; None without a target."""

    @property
    def missed(self) -> bool:
        """True if it exceeded its target or did not end."""
        return self.target is not None and (self.seconds is None or self.seconds > self.target)


class Timeline:
    """Derives the marks of a recovery from snapshots of a node."""

    def __init__(self, before: Snapshot, instance: str, expected: Action, started: float) -> None:
        """Start at the fault, `started` seconds after the epoch. `before` is a snapshot from before the fault."""
        self._before, self._instance, self._expected = before, instance, expected
        self.begun = started
        self.marks: dict[str, float] = {}
        """Time of the first snapshot with each mark, in seconds since the epoch."""
        self.reasons: dict[str, str] = {}
        """HyperPod's reasons of the fault, by label without its prefix."""
        self.replacement: str | None = None
        """Id of the instance that replaced the node."""
        self._seen = set(before.instances)
        self._gone = self._interrupted = False
        self._tests: dict[str, Callable[[Snapshot], bool]] = {
            "labelled": self._labelled,
            "tainted": lambda now: now.tainted,
            "left": self._pods_left,
            "away": self._away,
            "back": self._back,
            "resumed": self._resumed,
        }

    @property
    def action(self) -> Action:
        """HyperPod's observed action."""
        # HyperPod has terminated the instance, and its replacement does not run yet.
        if self.replacement or ("away" in self.marks and self._gone):
            return "replace"
        return "reboot" if "away" in self.marks else "none"

    @property
    def required(self) -> list[str]:
        """Marks without which the recovery is not complete."""
        # Without jobs on the node nothing can resume.
        jobs = ["resumed"] if self._before.jobs else []
        return jobs if self._expected == "none" else ["back", *jobs]

    @property
    def done(self) -> bool:
        """True if the recovery is complete."""
        return all(mark in self.marks for mark in self.required)

    def take(self, now: Snapshot) -> list[str]:
        """Add a snapshot. Returns the new marks."""
        self.reasons.update(now.reasons)
        # HyperPod still lists an instance for a while after the group has lost it.
        self._gone = now.instances.get(self._instance, "NotFound") in ("NotFound", "ShuttingDown")
        # A node may be marked, cleared and marked again; the first time counts.
        new = [mark for mark, observed in self._tests.items() if mark not in self.marks and observed(now)]
        for mark in new:
            self.marks[mark] = now.at
        return new

    def intervals(self, targets: Targets) -> list[Interval]:
        """Return the durations with the environment's targets."""
        minute, jobs = 60.0, bool(self._before.jobs)
        results: list[Interval] = []
        if self._expected != "none":
            recovery = targets.reboot_minutes if self._expected == "reboot" else targets.replacement_minutes
            sees = self._before.sees_kubernetes
            detection = float(targets.detection_seconds) if sees else None
            # The mark is a label in Kubernetes, so detection has no target without a way to Kubernetes.
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
        # A job may resume on a spare node before its own node is back.
        return None if started is None or ended is None else max(0.0, ended - started)

    def _labelled(self, now: Snapshot) -> bool:
        if now.sees_kubernetes and now.health is not None:
            # A reboot removes the label, and may end before the next read. So another boot id counts as the label.
            return now.health != HEALTHY or self._has_rebooted(now)
        # Without a label, the first observable change is that the node is away.
        return self._away(now)

    def _pods_left(self, now: Snapshot) -> bool:
        earlier = {job: pods.on_node for job, pods in self._before.jobs.items()}
        # A replacement on another node may have the same name, but has another uid.
        return bool(earlier) and not any(uids & now.jobs[job].on_node for job, uids in earlier.items())

    def _away(self, now: Snapshot) -> bool:
        if now.instances.get(self._instance) != "Running":
            return True
        if not now.sees_kubernetes:
            return False
        # A marked node may still wait for its jobs or for HyperPod.
        # If the node was away only between two reads, its boot id shows it.
        return now.health is None or not now.node_is_ready or self._has_rebooted(now)

    def _has_rebooted(self, now: Snapshot) -> bool:
        return bool(self._before.boot and now.boot and now.boot != self._before.boot)

    def _back(self, now: Snapshot) -> bool:
        # Only a node that was away can be back.
        if "away" not in self.marks and not self._away(now):
            return False
        running = {id for id, status in now.instances.items() if status == "Running"}
        whole = running & now.healthy if now.sees_kubernetes else running
        if self._instance not in whole and (new := whole - self._seen):
            # If several are new, all reads choose the same one.
            self.replacement = min(new)
        before = sum(status == "Running" for status in self._before.instances.values())
        # Other nodes of the group may have been added or replaced meanwhile, so their number counts.
        return (self._instance in whole or self.replacement is not None) and len(whole) >= before

    def _resumed(self, now: Snapshot) -> bool:
        earlier = self._before.jobs.items()
        # Replaced pods have other uids. After a reboot the same pods may run again, and their containers may have
        # ended and started between two reads.
        self._interrupted = self._interrupted or any(
            not pods.running <= now.jobs[job].running or now.jobs[job].restarts > pods.restarts for job, pods in earlier
        )
        # Replacements may run on other nodes, so their number counts.
        whole = all(len(now.jobs[job].running) >= len(pods.running) for job, pods in earlier)
        return bool(earlier) and self._interrupted and whole


def shown(seconds: float | None) -> str:
    """Format seconds, from two minutes on as minutes."""
    if seconds is None:
        return "–"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
