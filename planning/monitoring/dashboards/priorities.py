"""Priorities: what waits, runs and is preempted by priority class."""

from ....config.settings.observability import Targets
from .panel import Choice, Dashboard, Panel, Row

_CLASS = '{$cluster, priority_class=~"$class"}'
_NAME = "{{priority_class}}"


def define(targets: Targets) -> Dashboard:
    """The dashboard."""
    return Dashboard(
        name="priorities",
        title="Priorities",
        says="What waits, runs and is preempted, by priority class.",
        needs=("priority_class:pods_running:sum", "priority_class:admissions:increase1h"),
        rows=(
            Row("Pods", _pods(targets)),
            Row("Jobs that Kueue decides about", _jobs(targets)),
            Row("Queues, whatever the class", _queues()),
        ),
        choices=(
            Choice("class", "priority_class", "priority_class:pods_running:sum"),
            Choice("class", "priority_class", "priority_class:admissions:increase1h"),
        ),
        hours=24,
    )


def _pods(targets: Targets) -> tuple[Panel, ...]:
    """Pods that wait and run, with KAI and YuniKorn, whose pods name their class."""
    return (
        Panel(
            "stacked",
            "Pods that run",
            "count",
            {_NAME: f"priority_class:pods_running:sum{_CLASS}"},
            "Pods of each class that run.",
            width=8,
        ),
        Panel(
            "stacked",
            "Pods that wait",
            "count",
            {_NAME: f"priority_class:pods_waiting:sum{_CLASS} > 0"},
            "Pods of each class that wait for a place, or for their image.",
            width=8,
            may_be_empty=True,
        ),
        Panel(
            "stacked",
            "GPUs",
            "count",
            {_NAME: f"priority_class:gpus_held:sum{_CLASS}"},
            "GPUs that running pods of each class hold.",
            width=8,
        ),
        Panel(
            "lines",
            "Longest wait",
            "seconds",
            {_NAME: f"priority_class:waiting_seconds:max{_CLASS} > 0"},
            "How long the pod of each class has waited that waits longest; the dashed line is the environment's "
            "target. A low class that only ever waits starves.",
            {targets.queue_wait_minutes * 60: "orange"},
            may_be_empty=True,
        ),
        Panel(
            "lines",
            "Age of the oldest",
            "seconds",
            {_NAME: f"priority_class:running_seconds:max{_CLASS}"},
            "How long the pod of each class has run that runs longest. It falls where work ends or is preempted.",
        ),
    )


def _jobs(targets: Targets) -> tuple[Panel, ...]:
    """What Kueue counts by class."""
    return (
        Panel(
            "bars",
            "Admitted within the hour",
            "count",
            {_NAME: f"priority_class:admissions:increase1h{_CLASS}"},
            "Jobs of each class that got their place. A Kueue that does not tell classes apart shows all as one.",
            width=8,
        ),
        Panel(
            "bars",
            "Preempted within the hour",
            "count",
            {_NAME: f"priority_class:preemptions:increase1h{_CLASS} > 0"},
            "Jobs of each class that a higher class, or the owner of what was borrowed, put back into the queue.",
            width=8,
            may_be_empty=True,
        ),
        Panel(
            "lines",
            "Time until a job of the class starts",
            "seconds",
            {_NAME: f"priority_class:admission_wait_seconds:p90{_CLASS}"},
            "How long nine of ten jobs that were admitted within the hour had waited at most; the dashed line is the "
            "environment's target.",
            {targets.queue_wait_minutes * 60: "orange"},
            width=8,
            may_be_empty=True,
        ),
    )


def _queues() -> tuple[Panel, ...]:
    """What Kueue counts by queue alone."""
    by_queue = "sum by (cluster_queue)"
    return (
        Panel(
            "stacked",
            "Jobs that wait",
            "count",
            {"{{cluster_queue}}": f"{by_queue} (kueue_pending_workloads{{$cluster}})"},
            "Jobs of each queue that wait. Kueue does not count them by class: `podwright jobs ENV --by-priority` "
            "does.",
        ),
        Panel(
            "stacked",
            "Jobs that run",
            "count",
            {"{{cluster_queue}}": f"{by_queue} (kueue_admitted_active_workloads{{$cluster}})"},
            "Jobs of each queue that run; by class with `podwright jobs ENV --by-priority`.",
        ),
    )
