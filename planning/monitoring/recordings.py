"""What is worked out of metrics before anybody asks: recording rules, each a quantity with one definition.

Dashboards, alerts and the accounts of money read these, so that a team's GPU-hours are the same number everywhere.
They are evaluated every minute, and an hour of something is sixty values of it; while nothing is measured nothing is
counted. Names are `level:metric:operation` (Prometheus documentation, "Recording rules", 2026-11).

In an expression `$cluster` stands for the labels of one cluster, so that several can share a workspace, and `$rate` for
the span of a rate, which has to hold some samples.
"""

from collections.abc import Iterator, Mapping
from string import Template
from typing import Any, Final

from ...config.settings.governance.teams import TeamBudget
from .budget_recordings import BUDGETS, budget_values
from .priority_recordings import PRIORITIES
from .recording import Recording
from .work_recordings import WORK

INTERVAL_SECONDS: Final = 60
"""Between two evaluations."""

# Task governance calls a team's queue hyperpod-ns-<team>-clusterqueue, and its namespace hyperpod-ns-<team>; with the
# other engines queues and namespaces carry the team's name alone.
_TEAM = "(?:hyperpod-ns-)?(.+?)(?:-clusterqueue)?"
_ACCELERATORS = 'resource=~"nvidia.com/.*|aws.amazon.com/neuron.*"'
_IDLE_PERCENT = 5


def _of_team(metric: str, *labels: str) -> str:
    """A metric of Kueue with the team instead of its queue."""
    return f"sum by (cluster_name, {', '.join(('team', *labels))}) ({_team(metric, 'cluster_queue')})"


def _team(metric: str, label: str) -> str:
    return f'label_replace({metric}, "team", "$1", "{label}", "{_TEAM}")'


def _hours(recording: str) -> str:
    """Hours within the last day of something that is recorded every minute."""
    return f"sum_over_time({recording}{{$cluster}}[1d]) / {3600 // INTERVAL_SECONDS}"


def _share(part: str, whole: str) -> str:
    return f"{part}{{$cluster}} / {whole}{{$cluster}}"


# Division matches series by their labels, so both sides have to be recorded by the same ones.


_NODES: Final = (
    Recording(
        "instance_group_health:nodes:count",
        "count by (cluster_name, instance_group, health) (podwright_node_health{$cluster})",
        ("instance_group", "health"),
        "nodes",
        "Nodes by instance group and by what HyperPod says of their health.",
    ),
    Recording(
        "cluster:nodes_schedulable:ratio",
        'sum by (cluster_name) (instance_group_health:nodes:count{$cluster, health="Schedulable"}) '
        "/ sum by (cluster_name) (instance_group_health:nodes:count{$cluster})",
        (),
        "fraction",
        "Share of the nodes that take work.",
    ),
    Recording(
        "node:gpus:count",
        # The exporter calls the node Hostname, everything else calls it node.
        "count by (cluster_name, node) (" + 'label_replace(DCGM_FI_DEV_GPU_TEMP{$cluster}, "node", "$1", "Hostname", '
        '"(.+)"))',
        ("node",),
        "GPUs",
        "GPUs that a node's exporter sees.",
    ),
    Recording(
        "cluster:gpus:count", "sum by (cluster_name) (node:gpus:count{$cluster})", (), "GPUs", "GPUs of the cluster."
    ),
    Recording(
        "node:efa_errors:rate",
        "sum by (cluster_name, instance) (rate(node_amazonefa_rdma_read_wr_err{$cluster}[$rate]) "
        "+ rate(node_amazonefa_rdma_write_wr_err{$cluster}[$rate]) + rate(node_amazonefa_rx_drops{$cluster}[$rate]))",
        ("instance",),
        "errors/s",
        "Work requests of EFA that failed and packets that it dropped, by node.",
    ),
    Recording(
        "cluster:efa_bytes:rate",
        "sum by (cluster_name) (rate(node_amazonefa_tx_bytes{$cluster}[$rate]))",
        (),
        "bytes/s",
        "What the cluster sends over EFA.",
    ),
    Recording(
        "filesystem:lustre_used:ratio",
        # Clients see the same file system at different moments; the fullest view is the one to be warned by.
        '1 - min by (cluster_name, mountpoint) (node_filesystem_avail_bytes{$cluster, fstype="lustre"} '
        '/ node_filesystem_size_bytes{$cluster, fstype="lustre"})',
        ("mountpoint",),
        "fraction",
        "How full a Lustre file system is, as the fullest node sees it.",
    ),
)

_USE: Final = (
    Recording(
        "namespace:gpus_allocated:sum",
        "sum by (cluster_name, namespace) (kube_pod_container_resource_requests{$cluster, resource="
        # kube-state-metrics replaces the dots and slashes of resource names.
        '"nvidia_com_gpu"} * on (cluster_name, namespace, pod) group_left () '
        # A pod that waits or has ended has requests as well, and holds nothing.
        'max by (cluster_name, namespace, pod) (kube_pod_status_phase{$cluster, phase="Running"}))',
        ("namespace",),
        "GPUs",
        "GPUs that running pods hold.",
    ),
    Recording(
        "cluster:gpus_allocated:sum",
        "sum by (cluster_name) (namespace:gpus_allocated:sum{$cluster})",
        (),
        "GPUs",
        "GPUs that running pods hold, in all namespaces.",
    ),
    Recording(
        "cluster:gpu_allocation:ratio",
        _share("cluster:gpus_allocated:sum", "cluster:gpus:count"),
        (),
        "fraction",
        "Share of the GPUs that running pods hold.",
    ),
    Recording(
        "namespace:gpu_utilization:avg",
        # Without a namespace a GPU is held by nobody, and would make averages of use look low.
        'avg by (cluster_name, namespace) (DCGM_FI_DEV_GPU_UTIL{$cluster, namespace!=""}) / 100',
        ("namespace",),
        "fraction",
        "How much of the time the GPUs that a namespace holds do anything.",
    ),
    Recording(
        "cluster:gpu_utilization:avg",
        'avg by (cluster_name) (DCGM_FI_DEV_GPU_UTIL{$cluster, namespace!=""}) / 100',
        (),
        "fraction",
        "How much of the time GPUs that are held do anything.",
    ),
    Recording(
        "namespace:gpu_tensor_active:avg",
        'avg by (cluster_name, namespace) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{$cluster, namespace!=""})',
        ("namespace",),
        "fraction",
        "How much of the time the tensor cores of the GPUs that a namespace holds work.",
    ),
    Recording(
        "namespace_pod:gpus_idle:count",
        'count by (cluster_name, namespace, pod) (max_over_time(DCGM_FI_DEV_GPU_UTIL{$cluster, namespace!=""}'
        f"[$rate]) < {_IDLE_PERCENT})",
        ("namespace", "pod"),
        "GPUs",
        f"GPUs that a pod holds and that stayed below {_IDLE_PERCENT} % of use.",
    ),
    Recording(
        "namespace:gpus_idle:sum",
        "sum by (cluster_name, namespace) (namespace_pod:gpus_idle:count{$cluster})",
        ("namespace",),
        "GPUs",
        "GPUs that a namespace holds and does not use.",
    ),
    Recording(
        "namespace:gpu_idle_hours:sum1d",
        _hours("namespace:gpus_idle:sum"),
        ("namespace",),
        "GPU-hours",
        "GPU-hours of the last day that a namespace held and did not use.",
    ),
    Recording(
        "namespace:gpu_allocated_hours:sum1d",
        _hours("namespace:gpus_allocated:sum"),
        ("namespace",),
        "GPU-hours",
        "GPU-hours of the last day that a namespace held.",
    ),
)

_TEAMS: Final = (
    Recording(
        "team:quota:sum",
        _of_team(f"kueue_cluster_queue_nominal_quota{{$cluster, {_ACCELERATORS}}}", "flavor", "resource"),
        ("team", "flavor", "resource"),
        "accelerators",
        "Accelerators that a team is guaranteed.",
    ),
    Recording(
        "team:used:sum",
        _of_team(f"kueue_cluster_queue_resource_usage{{$cluster, {_ACCELERATORS}}}", "flavor", "resource"),
        ("team", "flavor", "resource"),
        "accelerators",
        "Accelerators that a team's admitted jobs hold, within its guarantee and borrowed.",
    ),
    Recording(
        "team:borrowed:sum",
        "clamp_min(team:used:sum{$cluster} - on (cluster_name, team, flavor, resource) "
        # A team without a quota has no series of it; zero times what it uses stands for it.
        "(team:quota:sum{$cluster} or team:used:sum{$cluster} * 0), 0)",
        ("team", "flavor", "resource"),
        "accelerators",
        "Accelerators that a team holds beyond its guarantee.",
    ),
    Recording(
        "team:in_quota:sum",
        "team:used:sum{$cluster} - team:borrowed:sum{$cluster}",
        ("team", "flavor", "resource"),
        "accelerators",
        "Accelerators that a team holds of its guarantee.",
    ),
    Recording(
        "team:unused:sum",
        "team:quota:sum{$cluster} - on (cluster_name, team, flavor, resource) "
        "(team:in_quota:sum{$cluster} or team:quota:sum{$cluster} * 0)",
        ("team", "flavor", "resource"),
        "accelerators",
        "Accelerators of a team's guarantee that it does not hold.",
    ),
    Recording(
        # Kueue says who borrows and not from whom, so what is borrowed is shared out over what is unused.
        "team:lent:sum",
        "team:unused:sum{$cluster} * on (cluster_name, flavor, resource) group_left () clamp_max("
        "sum by (cluster_name, flavor, resource) (team:borrowed:sum{$cluster}) "
        "/ (sum by (cluster_name, flavor, resource) (team:unused:sum{$cluster}) > 0), 1)",
        ("team", "flavor", "resource"),
        "accelerators",
        "Accelerators of a team's guarantee that others hold: what is borrowed, shared out over what is unused, since "
        "Kueue does not say whose it is.",
    ),
    Recording(
        "team:in_quota_hours:sum1d",
        _hours("team:in_quota:sum"),
        ("team", "flavor", "resource"),
        "accelerator-hours",
        "Accelerator-hours of the last day within a team's guarantee.",
    ),
    Recording(
        "team:over_quota_hours:sum1d",
        _hours("team:borrowed:sum"),
        ("team", "flavor", "resource"),
        "accelerator-hours",
        "Accelerator-hours of the last day that a team had borrowed.",
    ),
    Recording(
        "team:quota_hours:sum1d",
        _hours("team:quota:sum"),
        ("team", "flavor", "resource"),
        "accelerator-hours",
        "Accelerator-hours of the last day that a team was guaranteed, used or not.",
    ),
    Recording(
        "team:pending:sum",
        _of_team("kueue_pending_workloads{$cluster}"),
        ("team",),
        "workloads",
        "Workloads of a team that wait.",
    ),
    Recording(
        "team:admission_wait_seconds:p90",
        # Buckets have to be summed before the quantile is taken; quantiles cannot be averaged.
        "histogram_quantile(0.9, sum by (cluster_name, team, le) "
        f"({_team('rate(kueue_admission_wait_time_seconds_bucket{$cluster}[1h])', 'cluster_queue')}))",
        ("team",),
        "seconds",
        "How long nine of ten workloads of a team that were admitted within the hour had waited at most.",
    ),
    Recording(
        "team_reason:evictions:increase1h",
        "sum by (cluster_name, team, reason) "
        f"({_team('increase(kueue_evicted_workloads_total{$cluster}[1h])', 'cluster_queue')})",
        ("team", "reason"),
        "workloads",
        "Evicted workloads of a team within the hour, by reason; Preempted is one.",
    ),
)

# The operator counts over a window that slides, so its values are shares and sums of that window already.
_LOST = {"faults": "training_auto_recovery_downtime", "restarts": "training_manual_downtime_ms"}
_WALL = (
    "(training_time_ms{$cluster} + training_auto_recovery_downtime{$cluster} + training_manual_downtime_ms{$cluster})"
)

_JOBS: Final = (
    Recording(
        "job:goodput:ratio",
        f"sum by (cluster_name, job_name) (training_time_ms{{$cluster}}) / sum by (cluster_name, job_name) ({_WALL})",
        ("job_name",),
        "fraction",
        "Share of a job's wall time that it trained.",
    ),
    Recording(
        "cluster:goodput:ratio",
        f"sum by (cluster_name) (training_time_ms{{$cluster}}) / sum by (cluster_name) ({_WALL})",
        (),
        "fraction",
        "Share of the wall time of all jobs that they trained.",
    ),
    *(
        Recording(
            f"job:lost_to_{cause}:ratio",
            f"sum by (cluster_name, job_name) ({metric}{{$cluster}}) / sum by (cluster_name, job_name) ({_WALL})",
            ("job_name",),
            "fraction",
            f"Share of a job's wall time that it lost to {cause}.",
        )
        for cause, metric in _LOST.items()
    ),
    *(
        Recording(
            f"cluster:lost_to_{cause}:ratio",
            f"sum by (cluster_name) ({metric}{{$cluster}}) / sum by (cluster_name) ({_WALL})",
            (),
            "fraction",
            f"Share of the wall time of all jobs that they lost to {cause}.",
        )
        for cause, metric in _LOST.items()
    ),
)

_CAPACITY: Final = (
    Recording(
        "plan:days_left:min",
        "min by (cluster_name, plan) (podwright_plan_end_timestamp_seconds{$cluster} - time()) / 86400",
        ("plan",),
        "days",
        "Days until a training plan ends.",
    ),
    Recording(
        "plan:idle:ratio",
        'sum by (cluster_name, plan) (podwright_plan_instances{$cluster, state="available"}) '
        '/ sum by (cluster_name, plan) (podwright_plan_instances{$cluster, state="total"} > 0)',
        ("plan",),
        "fraction",
        "Share of a training plan's instances that nobody took up.",
    ),
    Recording(
        "cluster:instances:sum",
        'sum by (cluster_name) (podwright_instances{$cluster, state="current"})',
        (),
        "instances",
        "Instances that the cluster has.",
    ),
    Recording(
        "cluster:hourly_cost_usd:sum",
        'sum by (cluster_name) (podwright_instances{$cluster, state="current"} * on (cluster_name, instance_group) '
        # One price for each group: a join needs a single series on its right side.
        "group_left () max by (cluster_name, instance_group) (podwright_instance_price_usd_per_hour{$cluster}))",
        (),
        "USD/hour",
        "What the instances cost an hour at list prices, or at those of the environment file.",
    ),
)

GROUPS: Final = {
    "nodes": _NODES,
    "use": _USE,
    "teams": _TEAMS,
    "priorities": PRIORITIES,
    "jobs": _JOBS,
    "work": WORK,
    "capacity": _CAPACITY,
}
"""All recording rules. Within a group they are evaluated in order, so that a later one reads an earlier one's value."""


def recordings() -> Iterator[Recording]:
    """All recording rules."""
    for group in GROUPS.values():
        yield from group
    yield from BUDGETS


def filled(expression: str, *, cluster: str, rate_seconds: int, **values: str) -> str:
    """An expression about one cluster."""
    rate = f"{rate_seconds}s"
    selector = f'cluster_name="{cluster}"'
    # safe_substitute leaves what it does not know.
    # Prometheus's own $1 of label_replace stays.
    return Template(expression).safe_substitute(cluster=selector, rate=rate, **values)


def rate_seconds(scrape_seconds: int) -> int:
    """Span of a rate: it holds at least four samples, and never less than five minutes."""
    # A rate needs two samples, and one scrape may fail.
    return max(300, 4 * scrape_seconds)


def recording_groups(
    cluster: str, scrape_seconds: int, budgets: Mapping[str, TeamBudget] | None = None
) -> list[dict[str, Any]]:
    """The groups of a rules file that record, for one cluster; one is of budgets, where its teams have some."""
    span = rate_seconds(scrape_seconds)
    values = budget_values(cluster, budgets or {})
    groups = GROUPS | ({"budgets": BUDGETS} if budgets else {})

    def rule(item: Recording) -> dict[str, str]:
        return {"record": item.name, "expr": filled(item.expression, cluster=cluster, rate_seconds=span, **values)}

    return [
        {"name": f"podwright-{name}", "interval": f"{INTERVAL_SECONDS}s", "rules": list(map(rule, group))}
        for name, group in groups.items()
    ]
