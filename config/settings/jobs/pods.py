"""What pods of jobs take from their namespace and their node, and how their containers run."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from ..base import MountPath, Settings
from ..groups import LabelKey, LabelValue
from ..software import VariableName

# Claims, secrets and service accounts are DNS subdomains.
ObjectName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
ImageName = Annotated[str, StringConstraints(pattern=r"^[^\s]+$", max_length=512)]
Argument = Annotated[str, StringConstraints(max_length=16384)]
# Keys of secrets and config maps, which are names of files too.
ObjectKey = Annotated[str, StringConstraints(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)]
# Below the volume, and nowhere out of it.
SubPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$")]
# A name or an ARN. Source: Secrets Manager API, GetSecretValue and CreateSecret, 2026-11.
ManagedSecret = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9/_+=.@:-]+$", max_length=2048)]
Capability = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z_]+$", max_length=63)]
ContainerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
_UnixId = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Mount(Settings):
    """A persistent volume claim of the namespace, or a folder of it."""

    claim: ObjectName
    """The claim."""
    sub_path: SubPath | None = None
    """Folder of the volume that pods see; made when it is missing. All of it when absent."""
    read_only: bool = False
    """Whether pods can only read."""

    @model_serializer(mode="wrap")
    def _as_written(self, fields: SerializerFunctionWrapHandler) -> Any:
        return self.claim if self == Mount(claim=self.claim) else fields(self)


def _mount(value: Any) -> Any:
    return {"claim": value} if isinstance(value, str) else value


MountOrClaim = Annotated[Mount, BeforeValidator(_mount, json_schema_input_type=ObjectName | Mount)]
"""A mount; a claim's name alone mounts all of it."""


class FromConfigMap(Settings):
    """What pods get from a config map of the namespace: variables, or a folder with a file for each key."""

    env: dict[VariableName, ObjectKey] = {}
    """Environment variables, each with the key that has its value."""
    path: MountPath | None = None
    """Folder with a file for each key, which pods can only read."""

    @model_validator(mode="after")
    def _is_used(self) -> Self:
        if not self.env and self.path is None:
            raise ValueError("`env`, `path` or both; otherwise pods get nothing of it")
        return self


class FromSecret(FromConfigMap):
    """What pods get from a Secret of the namespace, or from one of AWS Secrets Manager. No value stands in a file."""

    secrets_manager: ManagedSecret | None = None
    """Name or ARN of a secret of AWS Secrets Manager, which the Secrets Store CSI driver brings into the pods; keys are
    those of its JSON. A Secret of Kubernetes when absent."""


class Security(Settings):
    """As whom containers run, and what the kernel lets them do.

    Pods of teams may have what the standard `baseline` has, and IPC_LOCK; a job that says more frees its team.
    """

    run_as_user: _UnixId | None = None
    """User id; the image's own when absent."""
    run_as_group: _UnixId | None = None
    """Group id, only with run_as_user. Default: that of the team's folders if the kind takes no further groups."""
    fs_group: _UnixId | None = None
    """Group id that owns volumes which can change their owner, and that containers have besides."""
    capabilities: tuple[Capability, ...] = ()
    """Capabilities besides the runtime's own, such as IPC_LOCK, with which RDMA pins memory."""
    drop: tuple[Capability, ...] = ()
    """Capabilities that are taken away; ALL for each of them."""
    privileged: bool = False
    """All capabilities and devices of the node."""

    @model_validator(mode="after")
    def _has_user(self) -> Self:
        if self.run_as_group is not None and self.run_as_user is None:
            raise ValueError("run_as_user with run_as_group; containerd starts no container with a group alone")
        return self


class Toleration(Settings):
    """A taint of nodes that pods run in spite of, besides those of their group."""

    key: LabelKey
    """Key of the taint."""
    value: LabelValue | None = None
    """Its value; any when absent."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Its effect; any when absent."""
    seconds: Annotated[int, Field(ge=0, le=31_536_000)] | None = None
    """How long pods stay after such a taint came; forever when absent. Only with NoExecute."""

    @model_validator(mode="after")
    def _of_no_execute(self) -> Self:
        if self.seconds is not None and self.effect != "NoExecute":
            raise ValueError("seconds only with effect NoExecute")
        return self


class NodeCondition(Settings):
    """What a label of nodes has to be."""

    label: LabelKey
    """The label, such as topology.k8s.aws/zone-id."""
    values: tuple[LabelValue, ...] = ()
    """Its values, one of which fits; any when absent."""
    negated: bool = False
    """Whether it must have none of them instead; with no values, must not be there."""


class PodsAffinity(Settings):
    """Pods, by their labels, and the part of the cluster in which they are looked for."""

    labels: Annotated[dict[LabelKey, LabelValue], Field(min_length=1)]
    """Labels that these pods have."""
    topology: LabelKey = "kubernetes.io/hostname"
    """Label of nodes whose value names the part: a node, a zone."""


class Affinity(Settings):
    """Nodes that pods may run on, besides being those of their group."""

    nodes: tuple[NodeCondition, ...] = ()
    """Conditions that nodes have to meet, all of them."""
    prefer: tuple[NodeCondition, ...] = ()
    """Conditions that nodes had better meet."""
    near: tuple[PodsAffinity, ...] = ()
    """Pods in whose part of the cluster these have to run."""
    apart: tuple[PodsAffinity, ...] = ()
    """Pods in whose part of the cluster these must not run."""


class Requests(Settings):
    """What a pod is scheduled and counted with, below what it may use."""

    vcpu: float | None = Field(default=None, gt=0, le=1024, allow_inf_nan=False)
    """vCPUs; as many as it may use when absent."""
    memory_gib: float | None = Field(default=None, gt=0, le=32768, allow_inf_nan=False)
    """GiB; as much as it may use when absent."""


class InitContainer(Settings):
    """A container that runs to its end before the job's own starts, and has all of its pod but the accelerators."""

    image: ImageName | None = None
    """Container image; the job's when absent."""
    command: Annotated[tuple[Argument, ...], Field(min_length=1)]
    """What runs, and its arguments."""
    env: dict[VariableName, Argument] = {}
    """Environment variables besides the job's."""
