"""Settings of the quota engines that schedule pods themselves, KAI and YuniKorn."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ..base import Settings

# A Kubernetes namespace.
_Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
# Source: YuniKorn 1.9, check of queue configurations.
_QueueName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
_ResourceName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9./-]*[a-z0-9])?$", max_length=317)]
# Source: YuniKorn documentation, partition and queue configuration; thousandths only of vcore.
_Quantity = Annotated[str, StringConstraints(pattern=r"^[0-9]+(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$")]


class KaiSettings(Settings):
    """KAI, NVIDIA's scheduler, as quota engine."""

    gpu_sharing: bool = False
    """Let pods share a GPU by a fraction of it or of its memory. Nothing keeps a pod from taking more."""
    placement: Literal["binpack", "spread"] = "binpack"
    """Fill nodes one after the other, which leaves whole ones for large jobs, or spread pods over them."""


class OtherQueue(Settings):
    """A queue of YuniKorn that belongs to others, kept beside those of the teams."""

    guaranteed: dict[_ResourceName, _Quantity] = {}
    """What it is guaranteed, in YuniKorn's words: vcore, memory, nvidia.com/gpu and so on."""
    max: dict[_ResourceName, _Quantity] = {}
    """What it may hold at most. Without a limit where a resource is not named."""
    namespaces: tuple[_Namespace, ...] = ()
    """Kubernetes namespaces whose pods wait in it, each in a queue of its own below."""


class YuniKornSettings(Settings):
    """Apache YuniKorn as quota engine."""

    existing: _Namespace | None = None
    """Namespace in which the cluster runs YuniKorn already: podwright installs none, and writes its queues only."""
    preemption_delay_seconds: int = Field(default=30, ge=1, le=3600)
    """Seconds that a team waits below its guarantee before it takes back what others borrow."""
    other_queues: dict[_QueueName, OtherQueue] = {}
    """Queues of others on the same cluster. What is not here does not stay: YuniKorn has one configuration."""
