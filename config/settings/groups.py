"""Instance groups: which instances, how many, where, from which capacity."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from .base import CronExpression, InstanceTypeName, KmsKeyArn, RoleArn, S3Uri, Settings, SubnetId, ZoneId
from .slurm import GroupSlurm

# Lengths and bounds in this file are those of SageMaker's CreateCluster, so that a file is refused here, in
# seconds, and not by a deployment once the network stands.
GroupName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$", max_length=63)]
LabelKey = Annotated[
    str,
    StringConstraints(
        # Kubernetes': 253 characters of a DNS name, the slash, 63 of the name itself.
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
        r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        max_length=317,
    ),
]
LabelValue = Annotated[str, StringConstraints(pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$", max_length=63)]
BenchmarkPolicy = Literal["gate", "report", "skip"]
AlarmName = Annotated[str, StringConstraints(pattern=r"\S", max_length=255)]


class PlanCapacity(Settings):
    """Capacity of a training plan that `training_plans` names."""

    training_plan: str
    """A key of `training_plans`."""


Capacity = Annotated[
    Annotated[Literal["on_demand", "spot", "account_team"], Tag("a kind")]
    | Annotated[PlanCapacity, Tag("a training plan")],
    Discriminator(lambda value: "a kind" if isinstance(value, str) else "a training plan"),
]


class Volume(Settings):
    """A further EBS volume of each node, mounted at /opt/sagemaker."""

    size_gib: int = Field(ge=1, le=16384)
    """GiB."""
    kms_key: KmsKeyArn | None = None
    """KMS key; the environment's key when absent."""


class Taint(Settings):
    """A Kubernetes taint of each node."""

    key: LabelKey
    """Key of the taint."""
    value: Annotated[LabelValue, StringConstraints(min_length=1)] | None = None
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What happens to pods that do not tolerate it."""


class Rollout(Settings):
    """How an update moves over the nodes of a group: in batches, with a way back."""

    batch: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,3}%?$")] = "20%"
    """Nodes at a time: a number, or a percentage of the group."""
    rollback_batch: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,3}%?$")] | None = None
    """Nodes at a time on the way back; the same as `batch` when absent."""
    wait_seconds: int = Field(default=300, ge=0, le=3600)
    """Seconds between batches."""
    rollback_alarms: tuple[AlarmName, ...] = Field(default=(), max_length=10)
    """CloudWatch alarms that turn an update back."""


class Patching(Rollout):
    """Automatic patching of the node image."""

    strategy: Literal["when_idle", "when_all_idle"]
    """Patch a node when it is idle, or the group when all its nodes are."""


class ScheduledUpdate(Rollout):
    """Software updates on a schedule."""

    schedule: CronExpression
    """EventBridge cron in UTC, such as cron(0 4 ? * SUN *)."""


class Lifecycle(Settings):
    """Scripts of your own instead of podwright's."""

    source: S3Uri
    """Prefix that holds them; the bucket's name begins with sagemaker-."""
    on_create: str | None = Field(default=None, min_length=1, max_length=128)
    """Script that sets the whole node up."""
    on_init_complete: str | None = Field(default=None, min_length=1, max_length=128)
    """Script that runs after the image's own initialisation."""


class GroupBase(Settings):
    """What ordinary and restricted instance groups share."""

    instance_type: InstanceTypeName | None = None
    """HyperPod instance type, such as ml.p5en.48xlarge."""
    count: int = Field(ge=0, le=6758)
    """Target number of instances."""
    zone: ZoneId | None = None
    """Zone id of all instances. Default: the plan's zone, else the cluster's first zone."""
    threads_per_core: int | None = Field(default=None, ge=1, le=2)
    """1 turns hyper-threading off; the type's default when absent."""
    # SageMaker takes four storage configurations for a group; that of the root volume is one of them.
    volumes: tuple[Volume, ...] = Field(default=(), max_length=3)
    """Further EBS volumes."""
    deep_health_checks: tuple[Literal["stress", "connectivity"], ...] = ()
    """Deep health checks before a node takes work."""
    capacity: Capacity = "on_demand"
    """on_demand; spot, which AWS reclaims, so for jobs that continue after an interruption; account_team, set aside for
    this account in the group's zone and without an id; or {training_plan: NAME}."""
    role: RoleArn | None = None
    """Existing execution role; podwright's least-privilege role when absent."""

    @property
    def plan(self) -> str | None:
        """Name of the training plan, if the capacity comes from one."""
        return self.capacity.training_plan if isinstance(self.capacity, PlanCapacity) else None

    @property
    def stays(self) -> bool:
        """Whether its instances neither end with a plan nor go when AWS reclaims Spot capacity."""
        return self.capacity in ("on_demand", "account_team")

    @property
    def types(self) -> tuple[str, ...]:
        """All instance types that the group may hold."""
        return (self.instance_type,) if self.instance_type else ()

    @property
    def zone_ids(self) -> tuple[str, ...]:
        """The zone ids in which the group may place instances."""
        return (self.zone,) if self.zone else ()


class InstanceGroup(GroupBase):
    """Instances of one kind with one purpose. Give `instance_type`, or `instance_types` for a mixed group."""

    instance_types: tuple[InstanceTypeName, ...] = Field(default=(), max_length=20)
    """Types in order of preference, for a mixed group."""
    min_count: int | None = Field(default=None, ge=0, le=6758)
    """Instances that must be there within three hours, or HyperPod rolls the request back."""
    zones: tuple[ZoneId, ...] = ()
    """Several zone ids, for groups without EFA."""
    subnet_ids: tuple[SubnetId, ...] = Field(default=(), max_length=16)
    """Existing subnets for this group only."""
    network_interface: Literal["efa", "efa-only"] | None = None
    """efa-only gives EFA devices without addresses: far fewer addresses a node. HyperPod's default when absent."""
    labels: dict[LabelKey, LabelValue] = {}
    """Kubernetes labels of each node."""
    taints: tuple[Taint, ...] = ()
    """Kubernetes taints of each node."""
    root_kms_key: KmsKeyArn | None = None
    """KMS key of the root volume; HyperPod's own when absent."""
    mount_lustre: bool = False
    """Let HyperPod mount the Lustre file systems on the host at boot. Pods mount them through the CSI driver anyway."""
    mount_home: bool = False
    """Let HyperPod mount the home file system on the host at boot."""
    image_id: Annotated[str, StringConstraints(pattern=r"^ami-[0-9a-f]{8,17}$")] | None = None
    """A custom AMI built on HyperPod's; the current HyperPod image when absent."""
    image_release: Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")] | None = None
    """Release of HyperPod's image. A change rolls the nodes."""
    patching: Patching | None = None
    """Automatic patching."""
    scheduled_update: ScheduledUpdate | None = None
    """Updates on a schedule."""
    lifecycle: Lifecycle | None = None
    """Scripts of your own; podwright publishes its own when absent."""
    slurm: GroupSlurm | None = None
    """What its nodes are to Slurm. Default with orchestrator slurm: see its settings."""
    pull_images: tuple[Annotated[str, StringConstraints(pattern=r"^[^\s]+$", max_length=512)], ...] = ()
    """Images that each node pulls once it has joined, so that the first job on it does not wait for them; only with
    EKS. Each needs a shell."""
    benchmarks: BenchmarkPolicy | None = None
    """Benchmark kernels when a node boots. report: publish the verdict. gate: have a node that fails replaced as well.
    skip: run none. Default: report with accelerators, skip without."""

    @property
    def types(self) -> tuple[str, ...]:
        """All instance types that the group may hold."""
        return (self.instance_type,) if self.instance_type else self.instance_types

    @property
    def zone_ids(self) -> tuple[str, ...]:
        """The zone ids in which the group may place instances."""
        return self.zones or ((self.zone,) if self.zone else ())


class RestrictedLustre(Settings):
    """Lustre scratch that HyperPod manages for restricted groups."""

    capacity_gib: int = Field(ge=1200, le=100800)
    """GiB."""
    throughput: int = Field(ge=125, le=1000)
    """MB/s per TiB."""


class RestrictedInstanceGroup(GroupBase):
    """Instances that run AWS's own training stack (Nova customisation) in an environment that HyperPod manages."""

    lustre: RestrictedLustre | None = None
    """Scratch file system of this group."""
    input: S3Uri | None = None
    """S3 prefix of what its jobs read: data and models."""
    output: S3Uri | None = None
    """S3 prefix of what its jobs write: checkpoints and results."""


AnyGroup = InstanceGroup | RestrictedInstanceGroup
