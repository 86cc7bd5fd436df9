"""What all kinds of jobs share: whose they are, where they run, how large their pods are, and what runs in them.

A job is a template. `podwright render jobs` makes a manifest of it and `podwright submit` hands it to the cluster; a
deployment never does. What follows from the group and the team is not written here: see `job_plan.plan`.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from ..base import MountPath, Settings
from ..governance.teams import MigProfile, PriorityName, TeamName
from ..groups import GroupName, LabelKey, LabelValue
from ..software import VariableName
from .patch import Patch
from .pods import (
    Affinity,
    Argument,
    ContainerName,
    FromConfigMap,
    FromSecret,
    ImageName,
    InitContainer,
    MountOrClaim,
    ObjectName,
    Requests,
    Security,
    Toleration,
)

# A DNS label as services need it (RFC 1035); what a kind appends to it is a rule's matter.
JobName = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
NamespaceName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Seconds = Annotated[int, Field(ge=0, le=31_536_000)]
TopologyLevel = Literal["ultraserver", "network_layer_1", "network_layer_2", "network_layer_3"]


class Job(Settings):
    """A job template, of whatever kind."""

    distributed: ClassVar[bool] = False
    """Whether it is a DistributedJob, for those that import none of the kinds."""
    team: TeamName | None = None
    """A key of `governance.teams`: the job runs in its namespace and under its quota. None where there are no teams."""
    namespace: NamespaceName | None = None
    """Kubernetes namespace where there is no team. Default: default."""
    group: GroupName
    """The instance group that it runs on."""
    priority: PriorityName | None = None
    """A key of `governance.priorities`; the engine's lowest when absent."""
    image: ImageName
    """Container image, best with a digest."""
    image_gb: float | None = Field(default=None, gt=0, le=1000)
    """Size of the image in GB as its registry counts it, which is compressed: what JOB054 estimates its pull from."""
    command: tuple[Argument, ...] = ()
    """What runs, and its arguments; the image's own when absent. `$(NAME)` stands for an environment variable."""
    env: dict[VariableName, Argument] = {}
    """Environment variables, beside those that follow from the group and the layout."""
    accelerators: int | None = Field(default=None, ge=0, le=128)
    """GPUs or Neuron devices of a pod; partitions with `partition`. Default: all of an instance, and with `partition`
    one."""
    partition: MigProfile | None = None
    """A partition of a GPU in place of whole ones, such as mig-1g.18gb."""
    vcpu: float | None = Field(default=None, gt=0, le=1024, allow_inf_nan=False)
    """vCPUs of a pod. Default: in proportion to its accelerators, of what the node has left for pods."""
    memory_gib: float | None = Field(default=None, gt=0, le=32768, allow_inf_nan=False)
    """GiB of a pod. Default: as with vcpu."""
    requests: Requests = Requests.model_construct()
    """What a pod is scheduled and counted with where that is less than `vcpu` and `memory_gib`, which then only limit
    it. Such a pod is evicted before others when its node runs out of memory."""
    shm_gib: float | None = Field(default=None, ge=0, le=16384, allow_inf_nan=False)
    """GiB of /dev/shm, which count as the pod's memory. Default: a quarter of its memory."""
    mounts: dict[MountPath, MountOrClaim] = {}
    """Persistent volume claims of the namespace, or folders of them, by the path at which pods see them."""
    secrets: dict[ObjectName, FromSecret] = {}
    """Secrets by name, each with the variables or the folder in which pods find it."""
    config_maps: dict[ObjectName, FromConfigMap] = {}
    """Config maps of the namespace by name, each with the variables or the folder in which pods find it."""
    scratch: MountPath | None = None
    """Path at which pods see their team's own folder on the node's local NVMe, else on its further volume. All jobs of
    the team on that node share it, and it goes with the node."""
    service_account: ObjectName | None = None
    """Service account of the pods; the namespace's default when absent."""
    labels: dict[LabelKey, LabelValue] = {}
    """Labels of the job and its pods, for instance for costs."""
    security: Security = Security.model_construct()
    """As whom containers run, and what the kernel lets them do."""
    pull: Literal["always", "if_not_present", "never"] | None = None
    """When nodes pull the image; Kubernetes' own default when absent."""
    pull_secrets: tuple[ObjectName, ...] = ()
    """Secrets of the namespace that registries outside the account's own are asked with."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that pods run in spite of, besides those of their group."""
    affinity: Affinity = Affinity.model_construct()
    """Nodes that pods may run on, besides being those of their group."""
    init: dict[ContainerName, InitContainer] = {}
    """Containers that run to their end before the job's own, one after the other."""
    patch: Patch | None = None
    """Strategic merge patch of the job object, as YAML text: the last word, for what no setting says."""


class Parallelism(Settings):
    """How the model is divided over ranks; the rest of them is data parallelism."""

    tensor: int = Field(default=1, ge=1, le=1024)
    """Tensor parallelism."""
    pipeline: int = Field(default=1, ge=1, le=1024)
    """Pipeline stages."""
    context: int = Field(default=1, ge=1, le=1024)
    """Context parallelism."""
    expert: int = Field(default=1, ge=1, le=1024)
    """Expert parallelism, which takes its ranks from those of tensor, context and data parallelism together."""
    expert_tensor: int | None = Field(default=None, ge=1, le=1024)
    """Tensor parallelism of the experts; EXPERT_TENSOR_PARALLEL_SIZE holds it. Whole experts when absent."""

    @property
    def model_ranks(self) -> int:
        """Ranks that hold one copy of the model: what every number of ranks has to be a multiple of."""
        return self.tensor * self.pipeline * self.context

    @property
    def expert_ranks(self) -> int:
        """Ranks that hold one copy of all experts of a pipeline stage."""
        return self.expert * (self.expert_tensor or 1)

    def divides(self, ranks: int) -> bool:
        """Whether so many ranks are whole copies of the model and, in each pipeline stage, of its experts.

        Source: Megatron Core documentation, parallelism guide: the layout of experts is one of its own, over the ranks
        of a stage, 2026-11.
        """
        return ranks % self.model_ranks == 0 and ranks // self.pipeline % self.expert_ranks == 0


class DistributedJob(Job):
    """A job of several pods that talk to each other."""

    distributed: ClassVar[bool] = True
    pods_take_claims: ClassVar[bool] = True
    """Whether its kind has a place for the claims of pods."""
    nodes: int | None = Field(default=None, ge=1, le=6758)
    """Pods, or with elastic training those that it starts with. Each has an instance for itself unless `accelerators`
    says otherwise. 1 when absent, or the fewest; the most of kind pytorch."""
    parallelism: Parallelism = Parallelism.model_construct()
    """Layout of the model, handed to the pods as environment variables and checked against their number."""
    efa: int | None = Field(default=None, ge=0, le=128)
    """EFA interfaces of a pod. Default: its share of the instance's where several pods talk, else none."""
    huge_pages_mib: int | None = Field(default=None, ge=0, le=1_048_576, multiple_of=2)
    """MiB of 2 MiB huge pages of a pod. Default: 5120 with EFA where FI_EFA_USE_HUGE_PAGE is not 0, else none."""
    host_network: bool = False
    """Use the node's network, which no network policy covers."""
    topology: TopologyLevel | Literal["none"] | None = None
    """The part of the network that its pods share. Default: an UltraServer where the group has them; else layer 3, the
    nearest, of types with EFA; none for a single pod."""
    topology_required: bool | None = None
    """Wait until all pods fit into one such part, rather than only prefer it. Default: only in an UltraServer that is
    large enough."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Every number of pods that it may have, in rising order."""
        return (self.nodes or 1,)

    @property
    def start(self) -> int:
        """Pods that it starts with."""
        return self.nodes or self.sizes[0]

    @property
    def uses_host_network(self) -> bool:
        """Whether its pods use the node's network."""
        return self.host_network
