"""What a team finds in Kubernetes, and what keeps it from the others: people, pods, storage, network and ceilings.

Only with orchestrator eks. Each team works in a namespace of its own, whatever is written here.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ..base import Cidr, KmsKeyArn, MountPath, PolicyArn, RoleArn, S3Uri, Settings

NamespaceName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
# Shorter than Kubernetes wants, because the names of volumes and roles hold them and the namespace.
ClaimName = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=40)]
ServiceAccountName = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=40)]
LustreName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
# A key of a ResourceQuota, such as requests.nvidia.com/mig-1g.18gb or count/jobs.batch.
QuotaResource = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-zA-Z0-9./]*[a-z0-9])?$", max_length=253)]
_Count = Annotated[int, Field(ge=0, le=10_000_000)]
_Amount = Annotated[float, Field(gt=0, le=10_000_000, allow_inf_nan=False)]


class ServiceAccount(Settings):
    """A service account whose pods hold an IAM role by pod identity: a role that exists, or one that is made for it.

    The role that is made can be taken by pods of this service account, namespace and cluster alone.
    """

    role: RoleArn | None = None
    """An existing role of the account, in place of one that is made; its trust policy has to name
    pods.eks.amazonaws.com."""
    read: tuple[S3Uri, ...] = ()
    """S3 prefixes that it reads."""
    write: tuple[S3Uri, ...] = ()
    """S3 prefixes that it reads, writes and deletes in."""
    checkpoints: bool = False
    """Whether it reads and writes the environment's checkpoint bucket, below the team's name."""
    keys: tuple[KmsKeyArn, ...] = ()
    """KMS keys of what it reads and writes, beside the environment's own."""
    policies: tuple[PolicyArn, ...] = Field(default=(), max_length=10)
    """Managed policies of yours that the role gets besides."""


class Claim(Settings):
    """A claim of a volume that is a folder of a Lustre file system. Pods see that folder and nothing above it.

    Kubernetes lets nobody change a claim once it is there: another folder is a claim of another name.
    """

    file_system: LustreName = "lustre"
    """Name of the file system: `lustre` is the main one, others are keys of `additional_lustre`."""
    path: MountPath
    """Folder of the file system; made when it is missing."""
    read_only: bool = False
    """Whether pods can only read."""


class Caps(Settings):
    """Ceilings of everything in the namespace together (ResourceQuota), beneath what queues admit."""

    accelerators: _Count | None = None
    """GPUs or Neuron devices."""
    efa: _Count | None = None
    """EFA interfaces."""
    vcpu: _Amount | None = None
    """vCPUs. Every pod then has to say how many it asks for, by itself or by `limits`."""
    memory_gib: _Amount | None = None
    """GiB. Every pod then has to say how much it asks for, by itself or by `limits`."""
    pods: _Count | None = None
    """Pods that have not ended."""
    others: dict[QuotaResource, _Count] = {}
    """Further keys of a ResourceQuota, such as requests.nvidia.com/mig-1g.18gb."""


class Size(Settings):
    """Processors and memory of a container."""

    vcpu: _Amount | None = None
    """vCPUs."""
    memory_gib: _Amount | None = None
    """GiB."""


class ContainerLimits(Settings):
    """What each container gets and may have (LimitRange)."""

    request: Size | None = None
    """What a container asks for that says nothing. Default: `limit`."""
    limit: Size | None = None
    """What a container is held to that says nothing."""
    most: Size | None = None
    """What a container may be held to at most."""


class TeamNetwork(Settings):
    """An isolated namespace: its pods talk to each other, to HyperPod's own pods, to DNS, and to HTTPS anywhere.

    Turns on network policies in the VPC CNI. They do not cover pods on the node's network, nor EFA, which passes the
    kernel by.
    """

    from_namespaces: tuple[NamespaceName, ...] = ()
    """Namespaces whose pods may connect to the team's, for instance one that collects metrics."""
    to_namespaces: tuple[NamespaceName, ...] = ()
    """Namespaces to whose pods the team's may connect."""
    to_ranges: tuple[Cidr, ...] = ()
    """Ranges to which the team's pods may connect on any port."""


class TeamAccess(Settings):
    """People, pods, storage, network and ceilings of one team."""

    roles: dict[RoleArn, Literal["edit", "view"]] = {}
    """IAM roles whose holders may work with the team's jobs, or only look at them. A role may be in several teams."""
    service_accounts: dict[ServiceAccountName, ServiceAccount] = {}
    """Service accounts with an IAM role each."""
    storage: dict[ClaimName, Claim] = {}
    """Persistent volume claims by name."""
    gid: int | None = Field(default=None, ge=1000, le=2**31 - 2)
    """Group id that owns the team's folders. Default: a number that follows from the team's name."""
    caps: Caps | None = None
    """Ceilings of the namespace."""
    limits: ContainerLimits | None = None
    """What each container gets and may have."""
    network: TeamNetwork | None = None
    """Keeps the network traffic of other teams out; `{}` isolates without exceptions. Open when absent."""
    mlflow: bool = False
    """Whether its jobs record runs in the environment's MLflow app: they find MLFLOW_TRACKING_URI, and roles that are
    made for its service accounts may call the app."""
    instance_metadata: bool = False
    """Whether pods reach their node's instance metadata, and with it the credentials of the node's role."""
    pod_security: Literal["privileged", "baseline", "restricted"] | None = None
    """Pod Security Standard that pods have to meet; baseline keeps them from the node's network and files. With engine
    hyperpod, whose namespaces are the service's, only `privileged` has an effect: it lifts podwright's own policy."""
