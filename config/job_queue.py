"""Where a job waits for its turn: namespace, queue and priority of its team in the words of each quota engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .job_base import Job
from .pools import KAI_POOL_LABEL, kai_queue, pool, yunikorn_queue
from .team_names import local_queue, priority_class, team_namespace
from .teams import Department, Engine

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
KAI_QUEUE_LABEL = "kai.scheduler/queue"
# Both as YuniKorn's documentation of labels has them, 2026-11.
YUNIKORN_QUEUE_LABEL = "queue"
YUNIKORN_APPLICATION_LABEL = "applicationId"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a job and its pods carry so that the quota engine finds them."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the job."""
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    """Of its pods."""
    scheduler: str | None = None
    """Scheduler of its pods; Kubernetes' own when None."""
    priority_class: str | None = None
    """PriorityClass of its pods; the cluster's default when None."""


def place(
    engine: Engine | None, name: str, job: Job, department: str | None, departments: Mapping[str, Department]
) -> Place:
    """Where a job goes.

    Args:
        engine: Quota engine; None without one.
        name: Name of the job.
        job: Its template.
        department: Of its team.
        departments: All of them.
    """
    if engine is None or job.team is None:
        return Place(namespace=job.namespace or "default")
    namespace = team_namespace(engine, job.team)
    priority = priority_class(job.priority) if job.priority else None
    if engine == "kai":
        labels = {KAI_QUEUE_LABEL: kai_queue(job.team, job.group), KAI_POOL_LABEL: pool(job.group)}
        return Place(
            namespace=namespace, labels=labels, pod_labels=labels, scheduler="kai-scheduler", priority_class=priority
        )
    if engine == "yunikorn":
        queue = yunikorn_queue(job.team, department, departments, job.group)
        return Place(
            namespace=namespace,
            pod_labels={YUNIKORN_APPLICATION_LABEL: name, YUNIKORN_QUEUE_LABEL: queue},
            scheduler="yunikorn",
            priority_class=priority,
        )
    labels = {QUEUE_LABEL: local_queue(engine, job.team)} | ({PRIORITY_LABEL: priority} if priority else {})
    return Place(namespace=namespace, labels=labels, pod_labels=labels)
