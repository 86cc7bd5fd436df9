"""Slurm: its nodes, its queue and its GPUs."""

from ....config.settings.observability import Targets
from .panel import Dashboard, Panel, Row

_NODES = ("alloc", "mix", "idle", "maint", "resv", "drain", "down", "fail")


def define(targets: Targets) -> Dashboard:
    """The dashboard."""
    good = targets.gpu_utilization_percent / 100
    return Dashboard(
        name="slurm",
        title="Slurm",
        says="Slurm's nodes, its queue and its GPUs.",
        needs=("slurm_nodes_alloc",),
        rows=(Row("Nodes", _nodes()), Row("Jobs", _jobs(good))),
    )


def _nodes() -> tuple[Panel, ...]:
    """Nodes by Slurm's state, and those that are down, drained or failing."""
    sick = " + ".join(f"sum(slurm_nodes_{state}{{$cluster}})" for state in ("down", "drain", "fail"))
    return (
        Panel(
            "stacked",
            "Nodes by state",
            "count",
            {state: f"sum(slurm_nodes_{state}{{$cluster}})" for state in _NODES},
            "What slurmctld says of its nodes. HyperPod sets a node to fail when it reboots or replaces it; during "
            "deep health checks a node is reserved.",
            width=18,
        ),
        Panel(
            "number",
            "Nodes that take no work",
            "count",
            {"down, draining or failed": sick},
            "`sinfo -R` says why.",
            {0: "green", 1: "orange"},
            width=6,
        ),
    )


def _jobs(good: float) -> tuple[Panel, ...]:
    """Jobs that run and wait, and for how long."""
    return (
        Panel(
            "lines",
            "Jobs",
            "count",
            {"running": "sum(slurm_queue_running{$cluster})", "waiting": "sum(slurm_queue_pending{$cluster})"},
            "Jobs in the queue.",
        ),
        Panel(
            "stacked",
            "GPUs",
            "count",
            {
                "held": "sum(slurm_gpus_alloc{$cluster})",
                "free": "sum(slurm_gpus_total{$cluster}) - sum(slurm_gpus_alloc{$cluster})",
            },
            "GPUs that jobs hold, and those that nobody does.",
        ),
        Panel(
            "lines",
            "Held against used",
            "fraction",
            {
                "held": "sum(slurm_gpus_alloc{$cluster}) / sum(slurm_gpus_total{$cluster})",
                "used": "avg(DCGM_FI_DEV_GPU_UTIL{$cluster}) / 100",
            },
            "A cluster that is full and idle does not need more GPUs; the dashed line is the environment's target of "
            "use.",
            {good: "orange"},
            most=1,
        ),
    )
