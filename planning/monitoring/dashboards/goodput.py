"""Goodput: the productive share of the time that is paid for, and where the rest goes."""

from ....config.settings.observability import Targets
from .panel import Dashboard, Panel, Row

_JOB = "{{job_name}}"
_GOODPUT = "cluster:goodput:ratio{$cluster}"


def define(targets: Targets) -> Dashboard:
    """The dashboard."""
    target = targets.goodput_percent / 100
    return Dashboard(
        name="goodput",
        title="Goodput",
        says="The productive share of the time that is paid for, and where the rest goes.",
        needs=("cluster:gpus:count",),
        rows=(Row("All jobs", _all(target)), Row("Job by job", _jobs(target)), Row("As GPUs show it", _gpus())),
        hours=24,
    )


def _all(target: float) -> tuple[Panel, ...]:
    """The cluster's goodput against its target, and where the rest of the time went."""
    waiting, scaling = (f"cluster:stalled_{cause}:avg{{$cluster}}" for cause in ("otherwise", "scaling"))
    lost = "Time in which jobs trained, by their operator"
    return (
        Panel(
            "number",
            "Goodput",
            "fraction",
            {"goodput": _GOODPUT},
            "Share of the wall time of all jobs in which they trained, as the training operator counts it.",
            {0: "red", target * 0.9: "orange", target: "green"},
            width=6,
        ),
        Panel(
            "stacked",
            "Where wall time goes",
            "fraction",
            {
                "computing": f"{_GOODPUT} * (1 - {waiting} - {scaling})",
                "checkpoints, data and waiting": f"{_GOODPUT} * {waiting}",
                "scaling": f"{_GOODPUT} * {scaling}",
                "faults": "cluster:lost_to_faults:ratio{$cluster}",
                "restarts": "cluster:lost_to_restarts:ratio{$cluster}",
            },
            f"{lost}, and what it lost. The operator does not tell checkpoints and scaling apart from training: those "
            "two are estimated from GPUs whose tensor cores stand still.",
            width=18,
            most=1,
        ),
    )


def _jobs(target: float) -> tuple[Panel, ...]:
    """Goodput, restarts and stalls of each job."""

    def range_of(recording: str) -> str:
        return f"avg by (job_name) (avg_over_time({recording}{{$cluster}}[$__range]))"

    return (
        Panel(
            "lines",
            "Goodput of jobs",
            "fraction",
            {_JOB: "job:goodput:ratio{$cluster}"},
            "Share of a job's wall time in which it trained; the dashed line is the environment's target.",
            {target: "orange"},
            most=1,
        ),
        Panel(
            "table",
            "Lost by each job",
            "fraction",
            {
                "faults": range_of("job:lost_to_faults:ratio"),
                "restarts": range_of("job:lost_to_restarts:ratio"),
                "checkpoints, data, waiting": range_of("namespace_job:stalled_otherwise:avg"),
                "scaling": range_of("namespace_job:stalled_scaling:avg"),
            },
            "Over all that is shown. The last two are estimated from GPUs.",
        ),
        Panel(
            "bars",
            "Faults",
            "count",
            {"{{job_name}} {{fault_type}}": "training_fault_type_count{$cluster} > 0"},
            "Faults in the operator's window, by type.",
            width=8,
            may_be_empty=True,
        ),
        Panel(
            "bars",
            "Time of recovery",
            "seconds",
            {
                "{{job_name}} {{fault_type}}": "max by (job_name, fault_type) "
                "(training_fault_recovery_time_ms{$cluster}) / 1000 > 0"
            },
            "From a fault until the job trained again.",
            width=8,
            may_be_empty=True,
        ),
        Panel(
            "bars",
            "Restarts",
            "count",
            {
                "{{job_name}} by itself": "training_auto_recovery_count{$cluster} > 0",
                "{{job_name}} by hand": "training_manual_recovery_count{$cluster} > 0",
            },
            "Restarts in the operator's window. Many by hand mean that faults are not recognized.",
            width=8,
            may_be_empty=True,
        ),
    )


def _gpus() -> tuple[Panel, ...]:
    """GPU hours that trained, stood still or were not allocated."""
    waiting, scaling = (f"cluster:stalled_{cause}:avg{{$cluster}}" for cause in ("otherwise", "scaling"))
    held = "cluster:gpus_allocated:sum{$cluster}"
    idle = "(sum(namespace:gpus_idle:sum{$cluster}) or vector(0))"
    return (
        Panel(
            "stacked",
            "GPUs of jobs",
            "fraction",
            {"computing": f"1 - {waiting} - {scaling}", "standing still": waiting, "scaling": scaling},
            "What the GPUs of all jobs do, whatever operator runs them: those whose tensor cores stand still save a "
            "checkpoint, read data, start or wait.",
            width=8,
            most=1,
        ),
        Panel(
            "stacked",
            "GPUs of the cluster",
            "count",
            {
                "held and at work": f"sum({held}) - {idle}",
                "held and idle": idle,
                "free": f"sum(cluster:gpus:count{{$cluster}}) - sum({held})",
            },
            "All GPUs: the wall time of jobs says nothing of those that no job has.",
            width=8,
        ),
        Panel(
            "bars",
            "Held and idle within a day",
            "GPU hours",
            {"{{namespace}}": "namespace:gpu_idle_hours:sum1d{$cluster} > 0"},
            "GPU-hours that namespaces held and did nothing with.",
            width=8,
            may_be_empty=True,
        ),
    )
