"""What follows from a job's group and team: the size of its pods, their nodes, their queue and their environment.

A plan holds everything that a manifest says, in plain values. Rules compare the same numbers with quotas and nodes.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ...config.catalog.instance_type import InstanceType
from ...config.catalog.instance_types import LOGICAL_CORES, Catalog, ranks_per_device
from ...config.catalog.mig import MIG_RESOURCE, partitions_per_gpu
from ...config.settings.environment import Environment
from ...config.settings.governance.teams import Engine
from ...config.settings.groups import InstanceGroup
from ...config.settings.jobs.base import DistributedJob, Job
from ...config.settings.jobs.kinds import GpuShare, RayHead
from ...config.settings.jobs.pods import Toleration
from ...config.settings.jobs.pytorch import Checkpoints, HyperPodPyTorchJob
from ...config.settings.software import job_variables
from ..kubernetes.isolation import SCRATCH, team_gid
from ..node.allocatable import Allocatable
from ..quota.amounts import CPU, EFA, GPU, MEMORY, NEURON, Quantities
from .mlflow import TRACKING_URI
from .pod_size import job_allocatable
from .queue import QueuePlacement, queue_placement
from .rendezvous import Rendezvous, rendezvous
from .topology import Placement, placement

_SHM_PART: Final = 4
# What Amazon's EFA images set aside, and its samples ask for. Source: SageMaker Developer Guide, training operator.
_HUGE_PAGES_MIB: Final = 5120
GROUP_LABEL: Final = "sagemaker.amazonaws.com/instance-group-name"
TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
ARCHITECTURE_LABEL: Final = "kubernetes.io/arch"


class PodPlan(NamedTuple):
    """One pod of a job."""

    resources: Quantities
    """What it asks for and is limited to; units are those of `quota_amounts`."""
    limits: Quantities
    """What it may use where that is more than it asks for."""
    huge_pages_mib: int
    shm_mib: int
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...]
    env: Mapping[str, str]
    placement: Placement | None
    """Where its pods lie to each other."""
    nvlink: bool
    """Whether NVLink joins its pods across instances."""
    scratch: str | None
    """Folder of the node that is its team's own, where the job has scratch."""
    rendezvous: Rendezvous
    """Variables with which its processes find those of the other pods; those of the job win."""

    device: str
    """What one of its group's accelerators, or the partition that it asks for, is called."""
    ranks_per_device: int
    """Processes that one of its accelerators runs: the logical cores of a Neuron device, otherwise one."""

    @property
    def ranks(self) -> int:
        """Processes that its accelerators run; one without any."""
        return max(self.accelerators * self.ranks_per_device, 1)

    @property
    def accelerators(self) -> int:
        """GPUs, partitions or Neuron devices."""
        return sum(count for name, count in self.resources.items() if name not in (CPU, MEMORY, EFA))


class JobPlan(NamedTuple):
    """A job with everything that follows for it."""

    name: str
    job: Any
    """Its template, of one of the kinds of `jobs.AnyJob`."""
    engine: Engine | None
    placement: QueuePlacement
    pod: PodPlan
    instance_types: tuple[str, ...]
    """Types of the group."""
    region: str
    gid: int | None
    """Group id of its team's folders, where it mounts claims of the team."""
    mlflow: bool = False
    """Whether it finds the MLflow app by its team's config map."""

    @property
    def head(self) -> Quantities:
        """What a pod beside the workers asks for that has accelerators of its own, as Ray's head may; else nothing."""
        heads = [each for each in getattr(self.job, "beside", ()) if isinstance(each, RayHead) and each.accelerators]
        return {
            name: amount
            for each in heads
            for name, amount in (
                (self.pod.device, each.accelerators),
                (CPU, int(each.vcpu * 1000)),
                (MEMORY, int(each.memory_gib * 1024)),
            )
        }

    @property
    def gang(self) -> int:
        """Pods that have to be admitted before it starts, spares included.

        Kueue admits an elastic job with the pods that it starts with; KAI and YuniKorn with the fewest.
        """
        whole = isinstance(self.job, DistributedJob) and self.engine in ("hyperpod", "kueue")
        return (self.job.start if whole else fewest(self.job)) + spares(self.job)


class Planner:
    """Plans the jobs of one environment. The rules have found its groups, types, teams and priorities."""

    def __init__(self, environment: Environment, types: Catalog) -> None:
        self._environment, self._types = environment, types
        self._allocatable: dict[str, Allocatable] = {}
        self.engine: Engine | None = engine_of(environment)

    def plan(self, name: str) -> JobPlan:
        """The plan of a job.

        Raises:
            KeyError: no such job, group, team or instance type.
        """
        job: Job = self._environment.jobs[name]
        return JobPlan(
            name=name,
            job=job,
            engine=self.engine,
            placement=queue_placement(self.engine, name, job, self._environment.governance),
            pod=self._pod(name, job),
            instance_types=self._environment.instance_groups[job.group].types,
            region=self._environment.region,
            gid=self._gid(job),
            mlflow=self._records_runs(job),
        )

    def variables(self, name: str) -> dict[str, str]:
        """What a job's containers find in their environment, whoever starts them. Raises KeyError as `plan` does."""
        job: Job = self._environment.jobs[name]
        return self._variables(name, job, self._rows(self._environment.instance_groups[job.group]))

    def _records_runs(self, job: Job) -> bool:
        team = self._environment.governance.teams.get(job.team) if job.team else None
        # What the job says itself wins.
        return bool(team and team.access and team.access.mlflow and TRACKING_URI not in job.env)

    def _gid(self, job: Job) -> int | None:
        teams = self._environment.governance.teams
        return team_gid(job.team, teams[job.team].access) if job.team in teams and job.mounts else None

    def allocatable(self, group: str) -> Allocatable:
        # Many jobs ask for the same few groups.
        """What a node of a group has left for pods: the least of its types."""
        if group not in self._allocatable:
            settings = self._environment.instance_groups[group]
            self._allocatable[group] = job_allocatable(self._environment, settings, self._rows(settings))
        return self._allocatable[group]

    def devices(self, job: Job) -> Quantities:
        """Accelerators, partitions and EFA interfaces of a node of the job's group, as the job names them."""
        row = self._row(job.group)
        devices: Quantities = {EFA: row.efa_interfaces}
        if job.partition:
            each = partitions_per_gpu(job.partition.removeprefix("mig-"), row.mig_profiles)
            return devices | {MIG_RESOURCE + job.partition.removeprefix("mig-"): each * row.accelerator_count}
        return devices | {NEURON if row.accelerator_vendor == "neuron" else GPU: row.accelerator_count}

    def _row(self, group: str) -> InstanceType:
        # A job that fits the smallest type of a group fits every one of its nodes.
        """Of the types of a group the one with the fewest accelerators."""
        return min(self._rows(self._environment.instance_groups[group]), key=lambda row: row.accelerator_count)

    def _rows(self, group: InstanceGroup) -> tuple[InstanceType, ...]:
        return tuple(self._types.get(name) for name in group.types)

    def _pod(self, name: str, job: Job) -> PodPlan:
        """One kind of pod of a job: where it runs, what it requests, and what its container finds."""
        group = self._environment.instance_groups[job.group]
        rows = self._rows(group)
        limits = self._resources(job)
        resources = dict(limits)
        if job.requests.vcpu:
            resources[CPU] = int(job.requests.vcpu * 1000)
        if job.requests.memory_gib:
            resources[MEMORY] = int(job.requests.memory_gib * 1024)
        variables = self._variables(name, job, rows)
        # libfabric takes huge pages unless it is told not to, as podwright recommends: forks run out of them.
        uses_huge_pages = EFA in resources and variables.get("FI_EFA_USE_HUGE_PAGE") != "0"
        huge_pages = _HUGE_PAGES_MIB if uses_huge_pages else 0
        if isinstance(job, DistributedJob) and job.huge_pages_mib is not None:
            huge_pages = job.huge_pages_mib
        # PyTorch's loaders hand batches over in shared memory, of which a container has 64 MB by itself.
        shm = limits[MEMORY] // _SHM_PART if job.shm_gib is None else int(job.shm_gib * 1024)
        selector = {GROUP_LABEL: job.group}
        if len(rows) == 1:
            selector[TYPE_LABEL] = rows[0].name
        # Images are built for one architecture, and nodes of the other would only fail to start them.
        if rows[0].architecture != "x86_64":
            selector[ARCHITECTURE_LABEL] = rows[0].kubernetes_architecture
        pod = PodPlan(
            resources=resources,
            limits={name: amount for name, amount in limits.items() if amount != resources[name]},
            huge_pages_mib=huge_pages,
            shm_mib=shm,
            node_selector=selector,
            tolerations=tuple(
                {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
                if taint.value
                else {"key": taint.key, "operator": "Exists", "effect": taint.effect}
                for taint in group.taints
                # A preference needs no toleration.
                if taint.effect != "PreferNoSchedule"
            )
            + tuple(map(_toleration, job.tolerations)),
            env=variables,
            nvlink=_joins_nvlink(job) and all(row.imex for row in rows),
            placement=placement(job, rows, self._types) if isinstance(job, DistributedJob) else None,
            scratch=self._scratch(job, rows),
            device=next(name for name in self.devices(job) if name != EFA),
            ranks_per_device=min(ranks_per_device(row, variables.get(LOGICAL_CORES)) for row in rows),
            rendezvous=Rendezvous({}, {}),
        )
        return pod._replace(rendezvous=rendezvous(name, job, pod.ranks))

    def _scratch(self, job: Job, rows: tuple[InstanceType, ...]) -> str | None:
        """The folder of the node that a job's pods have as scratch: the one that a team's pods may mount."""
        if job.scratch is None:
            return None
        folder = SCRATCH[0] if all(row.nvme_gb for row in rows) else SCRATCH[1]
        # Without a team nobody guards the namespace; its jobs keep off the folders of teams all the same.
        others = f"{folder.removesuffix('teams')}namespaces/{job.namespace or 'default'}"
        return f"{folder}/{job.team}" if job.team else others

    def _resources(self, job: Job) -> Quantities:
        """What a pod requests: its devices, and of CPU and memory the share that belongs to them."""
        free, row = self.allocatable(job.group), self._row(job.group)
        has = self.devices(job)
        efa = has.pop(EFA)
        ((device, existing),) = has.items()
        default = 1 if job.partition else existing
        count = default if job.accelerators is None else job.accelerators
        gpu_share: GpuShare | None = getattr(job, "gpu_share", None)
        if gpu_share:
            return self._shared(job, gpu_share, free, existing)
        # A pod that wants none of the accelerators leaves what belongs to the others to them.
        part = (count, existing) if count and existing else (1, max(existing, 1))
        resources: Quantities = {device: count} if count else {}
        for pod in getattr(job, "beside", ()):
            # What runs beside it in the same pod has its part of the node first.
            free = free.plus(Allocatable(1, int(pod.vcpu * 1000), int(pod.memory_gib * 1024)), -1)
        cpu = _whole(max(free.cpu_millis, 0) * part[0] // part[1], 1000)
        memory = _whole(max(free.memory_mib, 0) * part[0] // part[1], 1024)
        resources[CPU] = cpu if job.vcpu is None else int(job.vcpu * 1000)
        resources[MEMORY] = memory if job.memory_gib is None else int(job.memory_gib * 1024)
        if isinstance(job, DistributedJob):
            # A job of one pod talks to nobody over the network.
            share = efa * part[0] // part[1] if job.sizes[-1] > 1 and row.accelerator_count and not job.partition else 0
            if desired := share if job.efa is None else job.efa:
                resources[EFA] = desired
        return resources

    def _shared(self, job: Job, share: GpuShare, free: Allocatable, existing: int) -> Quantities:
        """A pod with parts of GPUs, which annotations ask for: processors and memory in proportion."""
        each = share.fraction or (share.memory_mib or 0) / max(self._row(job.group).accelerator_memory_mib, 1)
        part = min(each * share.devices / max(existing, 1), 1)
        cpu, memory = int(free.cpu_millis * part), int(free.memory_mib * part)
        return {
            CPU: _whole(cpu, 1000) if job.vcpu is None else int(job.vcpu * 1000),
            MEMORY: _whole(memory, 1024) if job.memory_gib is None else int(job.memory_gib * 1024),
        }

    def _variables(self, name: str, job: Job, rows: tuple[InstanceType, ...]) -> dict[str, str]:
        """The environment of a job's containers: what the node's software recommends, then the job's own."""
        variables = dict(job_variables(self._environment.cluster.node_software, rows))
        # The interface of EKS Pod Identity is no way to another node. Source: Amazon EKS User Guide, pod identity.
        if (excluded := variables.get("NCCL_SOCKET_IFNAME", "")).startswith("^"):
            variables["NCCL_SOCKET_IFNAME"] = f"{excluded},pod-id-link"
        # Python holds back what it prints to a pipe, and a log that comes late helps nobody.
        variables["PYTHONUNBUFFERED"] = "1"
        if isinstance(job, DistributedJob) and job.parallelism.model_ranks * job.parallelism.expert_ranks > 1:
            variables |= {
                "TENSOR_MODEL_PARALLEL_SIZE": str(job.parallelism.tensor),
                "PIPELINE_MODEL_PARALLEL_SIZE": str(job.parallelism.pipeline),
                "CONTEXT_PARALLEL_SIZE": str(job.parallelism.context),
                "EXPERT_MODEL_PARALLEL_SIZE": str(job.parallelism.expert),
            }
            if job.parallelism.expert_tensor:
                variables["EXPERT_TENSOR_PARALLEL_SIZE"] = str(job.parallelism.expert_tensor)
        checkpoints: Checkpoints | None = getattr(job, "checkpoints", None)
        if checkpoints:
            specified = {"CHECKPOINT_DIR": checkpoints.path, "CHECKPOINT_S3_URI": checkpoints.s3}
            variables |= {key: value for key, value in specified.items() if value}
            if checkpoints.tiered:
                variables["CHECKPOINT_NAMESPACE"] = name
            if checkpoints.checkpointless:
                variables |= {"HPCT_USE_ROOTLESS": "1", "INPROCESS_RESTART": "1"}
        if isinstance(job, HyperPodPyTorchJob) and job.elastic:
            # Lets all ranks see a scaling event at the same step. Source: sagemaker-hyperpod-recipes 2.0.0, launcher.
            variables["HYPERPOD_SIGNAL_COORDINATION"] = "distributed"
        # What the job says itself wins.
        return variables | job.env


def engine_of(environment: Environment) -> Engine | None:
    """Who keeps the quotas of an environment; None where nobody does."""
    return environment.governance.engine if environment.cluster.orchestrator == "eks" else None


def fewest(job: Job) -> int:
    """Pods without which it does not run."""
    return getattr(job, "sizes", (1,))[0]


def spares(job: Job) -> int:
    """Pods that are set aside besides."""
    return getattr(job, "spares", 0)


def _toleration(toleration: Toleration) -> dict[str, Any]:
    """A toleration as Kubernetes takes it."""
    matched = {"operator": "Exists"} if toleration.value is None else {"operator": "Equal", "value": toleration.value}
    further = {"effect": toleration.effect, "tolerationSeconds": toleration.seconds}
    return {"key": toleration.key} | matched | {name: value for name, value in further.items() if value is not None}


def _joins_nvlink(job: Job) -> bool:
    """Whether pods of the job can share an NVLink domain."""
    return isinstance(job, DistributedJob) and job.pods_take_claims and job.sizes[-1] > 1


def _whole(amount: int, unit: int) -> int:
    """`amount` rounded down to whole units, where there is at least one."""
    # Less than one unit stays as it is: rounded down it would be nothing.
    return amount // unit * unit or amount
