"""Gates: what a deployed environment has to prove before something continues to the next one.

Every field has a default, so an environment without `gates:` has them all, as far as they apply to it.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from .base import S3Uri, Settings
from .governance.teams import PriorityName, TeamName
from .groups import GroupName
from .jobs.base import ImageName, JobName
from .jobs.kinds import Folder, MessageSize

GateName = Literal["cluster", "verdicts", "quotas", "nccl", "canary", "metrics"]
"""The gates, in the order in which they are run."""

Minutes = Annotated[int, Field(ge=1, le=1440)]
_Reason = Annotated[str, StringConstraints(min_length=10, max_length=500)]
_Nodes = Annotated[int, Field(ge=2, le=6758)]


class VerdictsGate(Settings):
    """Which verdicts of nodes' benchmarks are good enough."""

    accept: Annotated[tuple[Literal["pass", "warn", "skip"], ...], Field(min_length=1)] = ("pass", "warn")
    """Verdicts that a node may have. `skip`, where nothing could be measured, proves nothing and is not among them."""


class NcclGate(Settings):
    """The collective that is measured over several nodes.

    On EKS it needs an image with nccl-tests, Open MPI, an SSH server and aws-ofi-nccl, and the MPI operator; on Slurm
    the programs that nodes measure themselves with.
    """

    image: ImageName | None = None
    """Image of the test; only on EKS. Default: that of the first job of kind `nccl_test`."""
    folder: Folder = "/opt/nccl-tests/build"
    """Where the image has the programs."""
    groups: tuple[GroupName, ...] = ()
    """Instance groups that are measured. Default: all with NVIDIA GPUs, EFA and two nodes or more."""
    nodes: Annotated[tuple[_Nodes, ...], Field(min_length=1)] = (2,)
    """Numbers of nodes, each of which is measured. A group with fewer is measured with all of its nodes."""
    team: TeamName | None = None
    """Team whose quota it takes. Default: the one with the most of the group."""
    max_bytes: MessageSize = "16G"
    """Largest message. Published figures are for 8 GiB and more; smaller ones are slower."""
    minimum_percent: Annotated[int, Field(ge=1, le=200)] | None = None
    """Percent of the expected bandwidth below which the gate fails, also where that is scaled from another number of
    nodes. Default: it fails below lines that a published measurement backs, and reports everything else."""
    minimum_gb_per_second: dict[GroupName, Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)]] = {}
    """A line of your own by group, in GB/s of bus bandwidth, in place of every other."""


class CanaryGate(Settings):
    """The small job that has to complete."""

    job: JobName | None = None
    """A key of `jobs` that runs as it is, under another name. Default: podwright's own, which needs no image of yours:
    each pod counts the accelerators that it sees."""
    group: GroupName | None = None
    """Instance group of podwright's own. Default: the first with accelerators, else the first."""
    team: TeamName | None = None
    """Team of podwright's own. Default: the one with the most of the group."""
    priority: PriorityName | None = None
    """Priority of podwright's own. Default: the engine's lowest."""
    nodes: int = Field(default=2, ge=1, le=6758)
    """Pods of podwright's own, which may share a node, or tasks of Slurm on a node each; as many as the group has nodes
    where those are fewer."""
    elastic: JobName | None = None
    """A key of `jobs` with `elastic:` that has to grow to its most and shrink to its fewest replicas once; it is ended
    after that. It should train for longer than that takes. None is tried when absent."""

    @model_validator(mode="after")
    def _one_job(self) -> Self:
        if self.job and (self.group or self.team or self.priority):
            raise ValueError("group, team and priority are those of `job`; give them only without it")
        return self


class MetricsGate(Settings):
    """How fresh metrics have to be."""

    fresh_minutes: Annotated[int, Field(ge=1, le=120)] = 10
    """Every exporter has sent a sample within so many minutes."""


class Gates(Settings):
    """What `podwright gate` asks of the environment, and where it keeps the evidence."""

    skip: dict[GateName, _Reason] = {}
    """Gates that are not run, each with the reason, which their evidence repeats."""
    timeouts: dict[GateName, Minutes] = {}
    """Minutes that a gate may take, in place of its own number (`podwright gate ENV --list`)."""
    evidence: S3Uri | None = None
    """S3 prefix for evidence. Default: `CLUSTER/evidence` in the environment's lifecycle bucket."""
    verdicts: VerdictsGate = VerdictsGate.model_construct()
    """Verdicts of nodes' benchmarks."""
    nccl: NcclGate = NcclGate.model_construct()
    """Bandwidth over several nodes."""
    canary: CanaryGate = CanaryGate.model_construct()
    """A job that completes."""
    metrics: MetricsGate = MetricsGate.model_construct()
    """Metrics that arrive."""
