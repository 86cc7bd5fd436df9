"""Jobs that grow and shrink: how large they were, what made them change, and what a change costs."""

from ....config.settings.observability import Targets
from .panel import Choice, Dashboard, Panel, Row

_JOB = '{$cluster, namespace=~"$namespace", job_name=~"$job"}'
_NAME = "{{namespace}}/{{job_name}}"


def define(targets: Targets) -> Dashboard:
    """The dashboard."""
    return Dashboard(
        name="elastic",
        title="Elastic training",
        says="Jobs that grow and shrink: how large they were, what made them change, and what a change costs.",
        needs=("namespace_job:pods_running:sum",),
        rows=(Row("Size", _size()), Row("What made it change", _causes()), Row("What it costs", _costs(targets))),
        choices=(
            Choice("namespace", "namespace", "namespace_job:pods_running:sum"),
            Choice("job", "job_name", "namespace_job:pods_running:sum"),
        ),
    )


def _size() -> tuple[Panel, ...]:
    """How many pods a job has, against its smallest and largest size."""
    pods = f"namespace_job:pods_running:sum{_JOB}"
    return (
        Panel(
            "lines",
            "Pods",
            "count",
            {_NAME: pods},
            "Pods of each job that run: a step down is a revoked place or a fault, a step up is capacity that is back.",
        ),
        Panel("lines", "GPUs", "count", {_NAME: f"namespace_job:gpus:sum{_JOB}"}, "GPUs that each job computes on."),
        Panel(
            "bars",
            "Share of its largest size",
            "fraction",
            {_NAME: f"{pods} / max_over_time({pods}[$__range])"},
            "What a job has now of the most that it had in the time that is shown.",
            {0: "orange", 0.999: "green"},
            width=8,
            most=1,
        ),
        Panel(
            "bars",
            "Changes of size",
            "count",
            {_NAME: f"changes({pods}[$__range])"},
            "How often the number of its pods changed in the time that is shown. Each change costs a restart from a "
            "checkpoint.",
            width=8,
        ),
        Panel(
            "bars",
            "Mean size",
            "count",
            {_NAME: f"avg_over_time({pods}[$__range])"},
            "Pods that it had on average: what to plan its end by.",
            width=8,
        ),
    )


def _causes() -> tuple[Panel, ...]:
    """Why a job changed its size: pods that wait, faults, preemption."""
    return (
        Panel(
            "lines",
            "Pods that wait",
            "count",
            {_NAME: f"namespace_job:pods_waiting:sum{_JOB} > 0"},
            "Pods that want a place: the job would grow if there was one.",
            width=8,
            may_be_empty=True,
        ),
        Panel(
            "lines",
            "Places lost within the hour",
            "count",
            {"{{team}} {{reason}}": "team_reason:evictions:increase1h{$cluster} > 0"},
            "Evicted workloads, by team and reason. Preempted takes the extra replicas first.",
            width=8,
            may_be_empty=True,
        ),
        Panel(
            "lines",
            "Borrowed by teams",
            "count",
            {"{{team}}": "sum by (team) (team:borrowed:sum{$cluster})"},
            "Accelerators beyond guarantees: what elastic jobs grow into, and lose again.",
            width=8,
        ),
    )


def _costs(targets: Targets) -> tuple[Panel, ...]:
    """What scaling cost in time that stood still."""
    return (
        Panel(
            "lines",
            "Standing still while scaling",
            "fraction",
            {_NAME: f"namespace_job:stalled_scaling:avg{_JOB}"},
            "Share of a job's pods that computed nothing just after its size changed; an estimate from tensor cores.",
            most=1,
        ),
        Panel(
            "bars",
            "Time of recovery",
            "seconds",
            {
                "{{job_name}} {{fault_type}}": "max by (job_name, fault_type) "
                "(training_fault_recovery_time_ms{$cluster}) / 1000 > 0"
            },
            "From a fault until the job trained again; coloured by the environment's target.",
            {0: "green", targets.resume_minutes * 60: "red"},
            may_be_empty=True,
        ),
    )
