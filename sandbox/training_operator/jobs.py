"""A HyperPodPyTorchJob: its sizes, its pods and its claims on quota.

AWS's operator is closed. Sources: sagemaker-hyperpod 3.12.0 (fields and their descriptions); SageMaker Developer
Guide, using the training operator and elastic training, 2026-11.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

Manifest = dict[str, Any]

GROUP: Final = "sagemaker.amazonaws.com"
VERSION: Final = "v1"
KIND: Final = "HyperPodPyTorchJob"
PLURAL: Final = "hyperpodpytorchjobs"
JOB_LABEL: Final = "HPJob"
"""Label of a job's pods, by which `hyp` finds them."""
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
_LONGEST: Final = 63


@dataclass(frozen=True, slots=True)
class Slot:
    """One pod of a job at its largest size. A replacement pod has the same name."""

    part: str
    """Name of its replica spec."""
    name: str
    template: Manifest


@dataclass(frozen=True, slots=True)
class Claim:
    """The quota that one Workload requests: for the smallest size, or for one step to the next size.

    AWS does not publish how its operator divides an elastic job. We assume one Workload for each step: Kueue then
    admits and preempts whole steps, each with the priority of its pods.
    """

    name: str
    size: int
    """Pods of the job with this claim and all earlier ones."""
    slots: tuple[Slot, ...]
    spares: Mapping[str, int]
    """Spare pods that it requests, by replica spec."""


@dataclass(frozen=True)
class Job:
    """One job, by its manifest."""

    manifest: Manifest

    @property
    def name(self) -> str:
        """Its name in its namespace."""
        return self.manifest["metadata"]["name"]

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.manifest["metadata"]["namespace"]

    @property
    def uid(self) -> str:
        """Its uid."""
        return self.manifest["metadata"]["uid"]

    @property
    def labels(self) -> Mapping[str, str]:
        """Its own labels."""
        return self.manifest["metadata"].get("labels") or {}

    @property
    def queue(self) -> str:
        """Its LocalQueue; empty for a job that starts at once."""
        return self.labels.get(QUEUE_LABEL, "")

    @property
    def policy(self) -> Mapping[str, Any]:
        """Its policy for restarts, deadlines and clean-up."""
        return self.manifest["spec"].get("runPolicy") or {}

    @property
    def elastic(self) -> Mapping[str, Any]:
        """Its elastic policy; empty for a job of one size."""
        return self.manifest["spec"].get("elasticPolicy") or {}

    @property
    def status(self) -> Mapping[str, Any]:
        """Its last written status."""
        return self.manifest.get("status") or {}

    @property
    def created(self) -> datetime:
        """Time of its creation."""
        return instant(self.manifest["metadata"]["creationTimestamp"])

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """All allowed numbers of pods, in rising order."""
        if not self.elastic:
            return (self._replicas,)
        least = self.elastic.get("minReplicas") or self._replicas
        most = self.elastic.get("maxReplicas") or least
        values = self.elastic.get("replicaDiscreteValues") or ()
        step = self.elastic.get("replicaIncrementStep") or 1
        return tuple(sorted({least, *values} if values else range(least, most + 1, step)))

    @property
    def start(self) -> int:
        """Its size without a queue, which alone would report idle quota."""
        return max((size for size in self.sizes if size <= self._replicas), default=self.sizes[0])

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The pods of its largest size, smaller sizes first. Growth adds pods of the last replica spec."""
        slots = [slot for part in self._parts[:-1] for slot in self._slots(part, part.get("replicas", 0))]
        last = self._parts[-1]
        return (*slots, *self._slots(last, self.sizes[-1] - len(slots)))

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """Its claims on quota, in the order of their requests."""
        spares = {part["name"]: part["spares"] for part in self._parts if part.get("spares")}
        # Like Kueue's own names: kind, name, and a suffix that distinguishes jobs of the same name.
        base = f"{KIND.lower()}-{self.name}"[: _LONGEST - 12] + f"-{self.uid[:5]}"
        claims = [Claim(base, self.sizes[0], self.slots[: self.sizes[0]], spares)]
        for before, size in zip(self.sizes, self.sizes[1:], strict=False):
            claims.append(Claim(f"{base}-to-{size}", size, self.slots[before:size], {}))
        return tuple(claims)

    def condition(self, kind: str) -> Mapping[str, Any] | None:
        """Return a condition of this type that is true; None otherwise."""
        return holding(self.status, kind)

    @property
    def _parts(self) -> list[Manifest]:
        return self.manifest["spec"]["replicaSpecs"]

    @property
    def _replicas(self) -> int:
        return sum(part.get("replicas", 0) for part in self._parts)

    def _slots(self, part: Manifest, count: int) -> list[Slot]:
        names = (f"{self.name}-{part['name']}-{index}" for index in range(count))
        return [Slot(part["name"], name, part["template"]) for name in names]


def holding(status: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """Return the condition of this type in a status, if it is true."""
    conditions = status.get("conditions") or ()
    return next((item for item in conditions if (item["type"], item["status"]) == (kind, "True")), None)


def instant(text: str) -> datetime:
    """Parse a time of the Kubernetes API."""
    return datetime.fromisoformat(text)


def written(time: datetime) -> str:
    """Format a time for the Kubernetes API."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
