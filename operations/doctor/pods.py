"""The pods of a bundle: which of them stand still, and which job and node they belong to."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from .bundle import moment

STARTING: Final = timedelta(minutes=10)
"""A pod may take so long to start: images of training are large."""
_OVER: Final = timedelta(hours=24)
"""A failed pod that nobody took away for so long belongs to the past."""
_JUST: Final = timedelta(minutes=30)
_JOB_LABELS: Final = (
    "training.kubeflow.org/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "HyperPodPyTorchJob",
    "sagemaker.amazonaws.com/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "leaderworkerset.sigs.k8s.io/name",
    "ray.io/cluster",
)
_SUFFIX: Final = re.compile(r"-[0-9a-f]{6,10}$")
_RANDOM: Final = re.compile(r"(-[0-9a-f]{8,10})?-[0-9a-z]{5}$")
"""What Kubernetes adds to the name of the owner where pods tell none."""
_STUCK: Final = (
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "StartError",
)


class Pod:
    """A pod, and whether it is as it should be."""

    def __init__(self, item: dict[str, Any], now: datetime) -> None:
        metadata, status = item.get("metadata", {}), item.get("status", {})
        self.namespace: str = metadata.get("namespace", "default")
        self.name: str = metadata.get("name", "")
        self.spec: dict[str, Any] = item.get("spec", {})
        self.status: dict[str, Any] = status
        self.phase: str = status.get("phase", "")
        self.created: datetime | None = moment(metadata.get("creationTimestamp"))
        self.owner: str = _owner(metadata)
        self.containers: list[dict[str, Any]] = [
            *(status.get("initContainerStatuses") or ()),
            *(status.get("containerStatuses") or ()),
        ]
        self._now = now

    @property
    def subject(self) -> str:
        """The job, or whatever made the pod: its pods fail together."""
        return f"job {self.namespace}/{self.owner}"

    @property
    def node(self) -> str:
        """Instance id of its node; empty while it has none."""
        return str(self.spec.get("nodeName") or "").removeprefix("hyperpod-")

    @property
    def waiting(self) -> list[dict[str, Any]]:
        """The states of containers that cannot start."""
        states = (container.get("state", {}).get("waiting") or {} for container in self.containers)
        return [state for state in states if state.get("reason") in _STUCK]

    @property
    def ended(self) -> list[dict[str, Any]]:
        """How containers ended badly: now, or just before they were started again."""
        results = []
        for container in self.containers:
            # A container that was started again has its failure in lastState.
            for state in (container.get("state", {}), container.get("lastState", {})):
                end = state.get("terminated") or {}
                if end.get("exitCode") or end.get("reason") in ("OOMKilled", "Error", "StartError"):
                    results.append(end)
        return results

    @property
    def started(self) -> bool:
        """Whether it runs, or has done its work."""
        return self.phase == "Succeeded" or (
            self.phase == "Running" and not self.waiting and all(c.get("ready", True) for c in self.containers)
        )

    @property
    def stands_still(self) -> bool:
        """Whether something is wrong with it now."""
        # A damaged bundle may lack the time; the pod then counts as old, so that it is looked at.
        age = self._now - self.created if self.created else STARTING
        if self.phase == "Succeeded":
            return False
        if self.phase == "Failed":
            return self._finished is None or self._now - self._finished < _OVER
        if self.phase == "Pending":
            return age >= STARTING
        if self.waiting:
            return True
        return not self.started and self._fell_over_just_now

    @property
    def _finished(self) -> datetime | None:
        times = [moment(end.get("finishedAt")) for end in self.ended]
        return max(filter(None, times), default=self.created)

    @property
    def _fell_over_just_now(self) -> bool:
        return self._finished is not None and bool(self.ended) and self._now - self._finished < _JUST

    def texts(self) -> Iterator[tuple[str, str]]:
        """What its status says, and the field that says it."""
        for state in self.waiting:
            yield f"{state.get('reason', '')}: {state.get('message', '')}", "containerStatuses"
        for end in self.ended:
            text = f"container terminated with {end.get('reason', 'Error')}, exit code {end.get('exitCode', '')}"
            yield f"{text} {end.get('message', '')}".strip(), "containerStatuses"
        for condition in self.status.get("conditions") or ():
            if condition.get("status") == "False" and condition.get("message"):
                yield condition["message"], f"conditions {condition.get('type', '')}"
        if self.status.get("reason") or self.status.get("message"):
            yield f"{self.status.get('reason', '')}: {self.status.get('message', '')}", "status"

    def asks_for(self, resource: str) -> bool:
        """Whether a container asks for that resource."""
        for container in self.spec.get("containers") or ():
            resources = container.get("resources") or {}
            if any(resource in (resources.get(part) or {}) for part in ("requests", "limits")):
                return True
        return False


def pods_of(items: list[dict[str, Any]], now: datetime) -> list[Pod]:
    """All pods; those that a younger pod of the same job has replaced are left out, and those without a name."""
    pods = [pod for item in items if (pod := Pod(item, now)).name]
    newest_good: dict[str, datetime] = {}
    for pod in pods:
        if pod.started and pod.created:
            newest_good[pod.subject] = max(pod.created, newest_good.get(pod.subject, pod.created))
    return [
        pod
        for pod in pods
        if pod.started
        or not (
            pod.phase == "Failed" and pod.created and pod.created <= newest_good.get(pod.subject, pod.created - _JUST)
        )
    ]


def _owner(metadata: dict[str, Any]) -> str:
    labels = metadata.get("labels") or {}
    for label in _JOB_LABELS:
        if labels.get(label):
            return labels[label]
    owners = metadata.get("ownerReferences") or ()
    if owners:
        name = str(owners[0].get("name", ""))
        return _SUFFIX.sub("", name) if owners[0].get("kind") == "ReplicaSet" else name
    return _RANDOM.sub("", str(metadata.get("name", "")))
