"""Where a job waits for its turn: namespace, queue and priority of its team in the words of each quota engine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...config.settings.governance.teams import Engine, Governance
from ...config.settings.jobs.base import Job
from ...config.settings.jobs.pytorch import HyperPodPyTorchJob
from ..quota.node_pools import KAI_POOL_LABEL, kai_queue, pool, yunikorn_queue
from ..quota.team_names import local_queue, pod_priority_class, priority_class, team_namespace

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
ELASTIC_ANNOTATION = "kueue.x-k8s.io/elastic-job"
"""What lets a job of Kueue grow and shrink. Source: Kueue 0.19.2, `pkg/workloadslicing`."""
REPLACEMENT = "kueue.x-k8s.io/workload-slice-replacement-for"
"""Of a Workload of such a job: `NAMESPACE/NAME` of the one whose place it takes. Source: as above."""
KAI_QUEUE_LABEL = "kai.scheduler/queue"
# KAI takes pods with a priority of 100 or more as ones that nobody may stop, unless they say otherwise.
# Source: KAI Scheduler documentation, workload priority, 2026-11.
KAI_PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"
# Both as YuniKorn's documentation of labels has them, 2026-11. KubeRay hands them on from its jobs to their pods.
YUNIKORN_QUEUE_LABEL = "yunikorn.apache.org/queue"
YUNIKORN_APPLICATION_LABEL = "yunikorn.apache.org/app-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlacement:
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
    priority_classes: Mapping[str, str] = field(default_factory=dict)
    """PriorityClass of pods by priority, for kinds whose pods differ in it."""


def queue_placement(engine: Engine | None, name: str, job: Job, governance: Governance) -> QueuePlacement:
    """Where a job goes.

    Args:
        engine: Quota engine; None without one.
        name: Name of the job.
        job: Its template.
        governance: Teams, departments and priorities.
    """
    if engine is None or job.team is None:
        # Without a team nobody's quota counts it, and it runs where its file says.
        return QueuePlacement(namespace=job.namespace or "default")
    namespace = team_namespace(engine, job.team)
    classes = {priority: pod_priority_class(priority, weight) for priority, weight in governance.priorities.items()}
    own_class = classes[job.priority] if job.priority else None
    if engine == "kai":
        labels = {
            KAI_QUEUE_LABEL: kai_queue(job.team, job.group),
            KAI_POOL_LABEL: pool(job.group),
            # Otherwise a job with a priority of 100 or more could not be stopped to give borrowed GPUs back.
            KAI_PREEMPTIBILITY_LABEL: "preemptible",
        }
        return QueuePlacement(
            namespace=namespace,
            labels=labels,
            pod_labels=labels,
            scheduler="kai-scheduler",
            priority_class=own_class,
            priority_classes=classes,
        )
    if engine == "yunikorn":
        queue = yunikorn_queue(job.team, governance.teams[job.team].department, governance.departments, job.group)
        labels = {YUNIKORN_APPLICATION_LABEL: name, YUNIKORN_QUEUE_LABEL: queue}
        return QueuePlacement(
            namespace=namespace,
            labels=labels,
            pod_labels=labels,
            scheduler="yunikorn",
            priority_class=own_class,
            priority_classes=classes,
        )
    # Kueue takes a job by its label and needs no scheduler of its own.
    labels = {QUEUE_LABEL: local_queue(engine, job.team)}
    if job.priority:
        labels[PRIORITY_LABEL] = priority_class(job.priority)
    return QueuePlacement(namespace=namespace, labels=labels, pod_labels=labels, priority_classes=classes)


def pod_priorities(governance: Governance, jobs: Iterable[Job]) -> dict[str, int]:
    """Priorities that pods name themselves and no engine makes classes of, with their weights.

    KAI and YuniKorn have a class for each priority. With Kueue only an elastic job names some, whose replicas beyond
    the fewest have a priority of their own.
    """
    if governance.engine not in ("hyperpod", "kueue"):
        return {}
    named = {
        name
        for job in jobs
        if isinstance(job, HyperPodPyTorchJob) and job.team and job.elastic and job.elastic.extra_priority
        for name in (job.priority, job.elastic.extra_priority)
    }
    return {name: weight for name, weight in governance.priorities.items() if name in named}
