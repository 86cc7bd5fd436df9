"""A HyperPodPyTorchJob as podwright reads it: its sizes, its pods, and what it claims of quota.

AWS's operator is closed. Sources: sagemaker-hyperpod 3.12.0 (fields, and what they say of themselves); SageMaker
Developer Guide, using the training operator and elastic training, 2026-11.
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
"""On its pods; `hyp` finds them by it."""
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
_LONGEST: Final = 63


@dataclass(frozen=True, slots=True)
class Slot:
    """One pod that a job may have. The pods of a slot have the same name, one after the other."""

    part: str
    """Its replica spec."""
    name: str
    template: Manifest


@dataclass(frozen=True, slots=True)
class Claim:
    """What one Workload asks of quota: the smallest size, or one step from a size to the next.

    How AWS's operator divides an elastic job is not published. A Workload a step is podwright's reading: Kueue then
    gives and takes whole steps, and each of them has the priority of its own pods.
    """

    name: str
    size: int
    """The pods of the job with this claim and those before it."""
    slots: tuple[Slot, ...]
    spares: Mapping[str, int]
    """Further pods that it asks for, by replica spec."""


@dataclass(frozen=True)
class Job:
    """One job by its manifest."""

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
        """The LocalQueue that it waits in; empty for a job that starts at once."""
        return self.labels.get(QUEUE_LABEL, "")

    @property
    def policy(self) -> Mapping[str, Any]:
        """When it is restarted, given up and cleaned up."""
        return self.manifest["spec"].get("runPolicy") or {}

    @property
    def elastic(self) -> Mapping[str, Any]:
        """How it grows and shrinks; empty for a job of one size."""
        return self.manifest["spec"].get("elasticPolicy") or {}

    @property
    def status(self) -> Mapping[str, Any]:
        """What was last written of it."""
        return self.manifest.get("status") or {}

    @property
    def created(self) -> datetime:
        """When it was made."""
        return instant(self.manifest["metadata"]["creationTimestamp"])

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Every number of pods that it may have, in rising order."""
        if not self.elastic:
            return (self._replicas,)
        least = self.elastic.get("minReplicas") or self._replicas
        most = self.elastic.get("maxReplicas") or least
        values = self.elastic.get("replicaDiscreteValues") or ()
        step = self.elastic.get("replicaIncrementStep") or 1
        return tuple(sorted({least, *values} if values else range(least, most + 1, step)))

    @property
    def start(self) -> int:
        """The size that it has without a queue, where nothing says what is idle."""
        return max((size for size in self.sizes if size <= self._replicas), default=self.sizes[0])

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The pods of its largest size, smaller sizes first: the last replica spec has those beyond the others."""
        slots = [slot for part in self._parts[:-1] for slot in self._slots(part, part.get("replicas", 0))]
        last = self._parts[-1]
        return (*slots, *self._slots(last, self.sizes[-1] - len(slots)))

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What it asks of quota, in the order in which it asks."""
        spares = {part["name"]: part["spares"] for part in self._parts if part.get("spares")}
        # As Kueue names the Workloads of its own kinds: kind, name, and an end that tells jobs of one name apart.
        base = f"{KIND.lower()}-{self.name}"[: _LONGEST - 12] + f"-{self.uid[:5]}"
        claims = [Claim(base, self.sizes[0], self.slots[: self.sizes[0]], spares)]
        for before, size in zip(self.sizes, self.sizes[1:], strict=False):
            claims.append(Claim(f"{base}-to-{size}", size, self.slots[before:size], {}))
        return tuple(claims)

    def condition(self, kind: str) -> Mapping[str, Any] | None:
        """A condition that holds; None where it does not."""
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
    """The condition of this type in a status, if it is true."""
    conditions = status.get("conditions") or ()
    return next((item for item in conditions if (item["type"], item["status"]) == (kind, "True")), None)


def instant(text: str) -> datetime:
    """A time of the Kubernetes API."""
    return datetime.fromisoformat(text)


def written(time: datetime) -> str:
    """A time as the Kubernetes API takes it."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
