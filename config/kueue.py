"""Kueue of one's own: settings that only engine kueue has."""

from typing import Final, Literal

from pydantic import Field

from .base import Settings

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


class Kueue(Settings):
    """How engine kueue admits work."""

    queueing: Literal["best_effort", "strict"] = "best_effort"
    """Whether work behind the first that waits may go ahead where there is room for it: always, or never."""
    every_job: bool = True
    """Whether work in a team's namespace that names no queue waits in the team's. When off it runs outside all
    quotas."""
    frameworks: tuple[Framework, ...] = Field(default=FRAMEWORKS, min_length=1)
    """Kinds of work that hold quota, beside HyperPodPyTorchJob, which brings its own part of Kueue."""
    flavor_choice: FlavorChoice = FlavorChoice()
    """Which group a job takes that names none."""
