"""Ray, MPI and plain jobs, sets of them, groups with a leader, and NVIDIA's NCCL tests."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from ..base import Settings
from .base import Argument, DistributedJob, ObjectName, Seconds

_Version = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")]
_Vcpu = Annotated[float, Field(gt=0, le=1024, allow_inf_nan=False)]
_Gib = Annotated[float, Field(gt=0, le=32768, allow_inf_nan=False)]
MessageSize = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*[KMG]?$")]
Folder = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._/-]+$", max_length=1024)]


class SmallPod(Settings):
    """A pod without accelerators beside the ones that work, on a node of the same group, which keep room for it."""

    vcpu: _Vcpu = 2
    """vCPUs."""
    memory_gib: _Gib = 8
    """GiB."""


class RayHead(SmallPod):
    """Ray's head, on a node of the same group."""

    accelerators: int = Field(default=0, ge=0, le=128)
    """GPUs or Neuron devices of its own, besides those of the workers. Ray then gives it tasks, too."""


class _Ray(DistributedJob):
    """What a Ray cluster is, whether it lasts for one job or for many."""

    ray_version: _Version
    """Version of Ray in the image."""
    head: RayHead = RayHead.model_construct(vcpu=4.0, memory_gib=16.0)
    """Ray's head, which schedules; it runs tasks where it has accelerators."""
    max_nodes: int | None = Field(default=None, ge=1, le=6758)
    """Workers at most, when Ray itself asks for more and gives them back; as many as at the start when absent."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max_nodes is not None and self.max_nodes < (self.nodes or 1):
            raise ValueError(f"max_nodes of at least nodes, and {self.max_nodes} < {self.nodes or 1}")
        return self

    @property
    def sizes(self) -> tuple[int, ...]:
        """Every number of workers that it may have, in rising order."""
        return tuple(range(self.nodes or 1, (self.max_nodes or self.nodes or 1) + 1))

    @property
    def beside(self) -> tuple[SmallPod, ...]:
        """Pods beside the workers: the head."""
        return (self.head,)


class RayJob(_Ray):
    """A Ray cluster by KubeRay that runs `command` once and goes: `nodes` workers, and a head beside them.

    Queues count all of it as long as it lasts, and stopping it stops the head too.
    """

    kind: Literal["ray"]
    """Kind of job."""
    retries: int = Field(default=0, ge=0, le=100)
    """Times that the cluster is made anew and the job run again."""
    active_deadline_seconds: Seconds | None = None
    """The job ends after this, finished or not."""
    keep_seconds: Seconds = 600
    """How long the cluster stays after the job, to be looked at. Its pods keep their nodes; their quota is free."""

    @property
    def beside(self) -> tuple[SmallPod, ...]:
        """Pods beside the workers: the head, and what submits the command, in the same pod."""
        return self.head, SmallPod(vcpu=0.5, memory_gib=1)


class RayCluster(_Ray):
    """A Ray cluster by KubeRay that stays until somebody stops it: people send their jobs to its head.

    Queues count all of it as long as it is there, whether anybody uses it or not.
    """

    kind: Literal["ray_cluster"]
    """Kind of job."""


class JobSet(DistributedJob):
    """A set of Kubernetes' Jobs by JobSet's controller: `nodes` pods that find each other by name and fail together.

    The pods of a slice have the variables of torchrun: their number, how many they are, and the address of the first.
    """

    kind: Literal["jobset"]
    """Kind of job."""
    slices: int = Field(default=1, ge=1, le=1000)
    """Jobs that the pods are divided into, each with ranks and a first pod of its own; SLICE_INDEX numbers them."""
    retries: int = Field(default=0, ge=0, le=1000)
    """Times that all pods are made anew before the job fails."""
    active_deadline_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    """The job ends after this, finished or not."""
    keep_seconds: Seconds = 604_800
    """How long the finished job stays to be looked at."""

    @model_validator(mode="after")
    def _whole_slices(self) -> Self:
        if self.start % self.slices:
            raise ValueError(f"slices that divide nodes, and {self.slices} does not divide {self.start}")
        return self

    @property
    def parts(self) -> int:
        """Parts in which pods are numbered anew."""
        return self.slices


class LeaderWorkerSet(DistributedJob):
    """Groups of pods by LeaderWorkerSet's controller, each with a leader, that serve until somebody stops them.

    A model that is too large for one node runs on a group. Pods find their leader in LWS_LEADER_ADDRESS, the size of
    the group in LWS_GROUP_SIZE and their number in LWS_WORKER_INDEX. Queues admit one group after the other.
    """

    kind: Literal["leader_worker_set"]
    """Kind of job."""
    nodes: int | None = Field(default=None, ge=1, le=6758)
    """Pods of a group, its leader among them. 1 when absent."""
    replicas: int = Field(default=1, ge=1, le=1000)
    """Groups."""
    leader_command: tuple[Argument, ...] = ()
    """What runs in leaders in place of `command`."""
    restart: Literal["group", "pod"] = "group"
    """What is made anew when a pod fails: all of its group, or itself."""
    wait_for_leader: bool = False
    """Make the other pods of a group when its leader is ready."""

    @property
    def parts(self) -> int:
        """Parts in which pods are numbered anew."""
        return self.replicas


class _Mpi(DistributedJob):
    """What jobs of the MPI operator share."""

    launcher: SmallPod = SmallPod.model_construct()
    """The pod that starts mpirun."""
    retries: int = Field(default=0, ge=0, le=100)
    """Restarts of the launcher before the job fails."""
    active_deadline_seconds: Seconds | None = None
    """The job ends after this, finished or not."""
    clean_pods: Literal["all", "running", "none"] = "running"
    """Pods that go when the job ends."""
    keep_seconds: Seconds = 604_800
    """How long the finished job stays to be looked at."""

    @property
    def beside(self) -> tuple[SmallPod, ...]:
        """Pods beside the workers."""
        return (self.launcher,)


class MpiJob(_Mpi):
    """`command`, mpirun and what it starts, in a launcher that reaches all workers by SSH."""

    kind: Literal["mpi"]
    """Kind of job."""


class NcclTest(_Mpi):
    """A collective of NVIDIA's nccl-tests over all accelerators of `nodes`, by the MPI operator.

    The image needs nccl-tests, Open MPI, an SSH server, and aws-ofi-nccl; without the last NCCL falls back to TCP.
    """

    kind: Literal["nccl_test"]
    """Kind of job."""
    test: Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv"] = "all_reduce"
    """The collective."""
    min_bytes: MessageSize = "8"
    """Smallest message: a number with K, M or G for powers of 1,024."""
    max_bytes: MessageSize = "16G"
    """Largest message; sizes double from the smallest."""
    iterations: int = Field(default=20, ge=1, le=100_000)
    """Measured repetitions of each size."""
    warmup: int = Field(default=5, ge=0, le=100_000)
    """Repetitions of each size before them."""
    folder: Folder = "/opt/nccl-tests/build"
    """Where the image has the programs."""
    expect_gb_per_second: float | None = Field(default=None, gt=0, le=100_000, allow_inf_nan=False)
    """Bus bandwidth of the largest message below which the job fails; it only prints when absent."""


class TrainJob(DistributedJob):
    """TrainJob of Kubeflow Trainer: `command` on `nodes` pods of a runtime that its chart brings, or of your own."""

    pods_take_claims: ClassVar[bool] = False
    kind: Literal["train"]
    """Kind of job."""
    runtime: ObjectName = "torch-distributed"
    """ClusterTrainingRuntime, which says how pods find each other. Its pods have to be of a job called `node`."""
    active_deadline_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    """The job ends after this, finished or not."""


class GpuShare(Settings):
    """A part of GPUs that other pods have the rest of. Nothing keeps a pod from taking more memory than its part."""

    fraction: float | None = Field(default=None, gt=0, lt=1, allow_inf_nan=False)
    """Part of each GPU. Give this or `memory_mib`."""
    memory_mib: int | None = Field(default=None, ge=1, le=1_048_576)
    """Memory of each GPU."""
    devices: int = Field(default=1, ge=1, le=64)
    """GPUs that it has such a part of."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.fraction is None) == (self.memory_mib is None):
            raise ValueError("one of `fraction` and `memory_mib`, not both and not neither")
        return self


class BatchJob(DistributedJob):
    """Kubernetes' own Job: `nodes` pods, each of which runs `command` to its end by itself.

    A pod finds its number in JOB_COMPLETION_INDEX, and no address of another pod.
    """

    kind: Literal["job"]
    """Kind of job."""
    retries: int = Field(default=3, ge=0, le=1000)
    """Pods that may fail before the job does."""
    active_deadline_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    """The job ends after this, finished or not."""
    keep_seconds: Seconds = 604_800
    """How long the finished job stays to be looked at."""
    gpu_share: GpuShare | None = None
    """Parts of GPUs in place of whole ones; only with engine kai."""
