"""Kueue of one's own: settings that only engine kueue has."""

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from ..base import InstanceTypeName, Settings
from ..groups import GroupName, InstanceGroup

KUEUE_API: Final = "kueue.x-k8s.io/v1beta2"
"""What Kueue 0.19 stores; from 0.20 on the only version that it serves."""

Framework = Literal[
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/jaxjob",
    "kubeflow.org/mpijob",
    "kubeflow.org/paddlejob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "kubeflow.org/xgboostjob",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "ray.io/raycluster",
    "ray.io/rayjob",
    "ray.io/rayservice",
    "trainer.kubeflow.org/trainjob",
    "pod",
    "deployment",
    "statefulset",
]
"""Kinds of work that Kueue knows by itself. Source: Kueue 0.19, Configuration v1beta2."""

FRAMEWORKS: Final[tuple[Framework, ...]] = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/mpijob",
    "kubeflow.org/pytorchjob",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "ray.io/raycluster",
    "ray.io/rayjob",
    "ray.io/rayservice",
    "trainer.kubeflow.org/trainjob",
    "pod",
    "deployment",
    "statefulset",
)
"""What holds quota unless the file says otherwise. Kueue waits for the kinds that are not installed yet."""


class FlavorChoice(Settings):
    """What happens to a job that several groups could take."""

    when_can_borrow: Literal["may_stop_search", "try_next_flavor"] = "may_stop_search"
    """Where it fits into a group by borrowing: stay there, or look first whether another group has it without."""
    when_can_preempt: Literal["may_stop_search", "try_next_flavor"] = "try_next_flavor"
    """Where it fits into a group by stopping other work: stay there, or look first whether another group has it
    without."""
    preference: Literal["borrowing_over_preemption", "preemption_over_borrowing"] | None = None
    """Which of the two it would rather do; only where both say try_next_flavor. Kueue's default is to borrow."""


# A Kubernetes name with room for nothing else: Kueue's names of clusters, and those of Secrets.
WorkerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
FeatureGate = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=63)]
MultiKueueKind = Literal["job", "ray", "train"]


class WorkerGroup(Settings):
    """Instances of a worker that its manager hands work to."""

    instance_type: InstanceTypeName
    """HyperPod instance type."""
    count: int = Field(ge=0, le=6758)
    """Instances."""


class Worker(Settings):
    """Another cluster with engine kueue, which takes work from this one."""

    secret: WorkerName
    """Secret in kueue-system of this cluster that holds, as `kubeconfig`, the way into the worker."""
    environment: Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=32)] | None = None
    """The worker's environment, where it is one of this project: `podwright check` then holds both sides together."""
    groups: dict[GroupName, WorkerGroup] = Field(min_length=1)
    """The instance groups of its environment that teams use, by name. Workers with a group of one name add up."""


class MultiKueue(Settings):
    """Work that is handed to this cluster is run by whichever worker has room for it first."""

    role: Literal["manager", "worker"]
    """A manager takes work and runs none of it; a worker runs what a manager sends it, and work of its own."""
    workers: dict[WorkerName, Worker] = Field(default={}, max_length=20)
    """A manager's workers by name."""
    jobs: tuple[MultiKueueKind, ...] = Field(default=("job", "ray", "train"), min_length=1)
    """Kinds of work that go from one to the other; the same on both sides."""
    lost_after_seconds: int = Field(default=900, ge=60, le=86400)
    """Seconds without a connection to a worker after which a manager sends its work elsewhere."""

    @property
    def groups(self) -> dict[str, InstanceGroup]:
        """What the workers have together, by group."""
        instance_groups: dict[str, InstanceGroup] = {}
        for worker in self.workers.values():
            for name, group in worker.groups.items():
                before = instance_groups[name].count if name in instance_groups else 0
                instance_groups[name] = InstanceGroup(instance_type=group.instance_type, count=before + group.count)
        return instance_groups


class Kueue(Settings):
    """How engine kueue admits work."""

    queueing: Literal["best_effort", "strict"] = "best_effort"
    """Whether work behind the first that waits may go ahead where there is room for it: always, or never."""
    every_job: bool = True
    """Whether work in a team's namespace that names no queue waits in the team's. When off it runs outside all
    quotas."""
    frameworks: tuple[Framework, ...] = Field(default=FRAMEWORKS, min_length=1)
    """Kinds of work that hold quota, beside HyperPodPyTorchJob, which brings its own part of Kueue."""
    feature_gates: dict[FeatureGate, bool] = {}
    """Feature gates of Kueue's manager to turn on or off; what is left out stays as podwright or Kueue has it."""
    flavor_choice: FlavorChoice = FlavorChoice.model_construct()
    """Which group a job takes that names none."""
    multikueue: MultiKueue | None = None
    """Clusters that share their work."""
