"""What the sandbox's metrics are worth at a place and moment. The values are made up, and plausible for a busy cluster.

A signal is a gauge's value, or what a counter grows by each second; None where there is no sample. Metrics without a
signal of their own follow their unit.
"""

from collections.abc import Callable, Mapping
from math import inf, isinf
from typing import Final

from ....config.catalog.metrics import Metric
from .cluster import RESTART_SECONDS, SyntheticCluster
from .series_sources import KERNELS, SeriesSource, price

Signal = Callable[[SyntheticCluster, SeriesSource, float], float | None]

GIB: Final = 2.0**30
_QUEUE_SECONDS: Final = 240.0
"""What half of all workloads wait at most."""
_ADMISSIONS: Final = 1 / 600
"""Workloads that a queue admits each second."""
_REQUESTS: Final = 20.0
"""Requests that a model answers each second."""
_LATENCY_MS: Final = 180.0
_BENCHMARKED_BEFORE: Final = 6 * 3600.0


def activity(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    """How busy a place is, from 0 to 1."""
    return cluster.activity(series.job, timestamp)


def _constant(value: float | None) -> Signal:
    return lambda cluster, series, timestamp: value


def _between(idle: float, busy: float) -> Signal:
    return lambda cluster, series, timestamp: idle + (busy - idle) * activity(cluster, series, timestamp)


def _is(label: str, *values: str) -> Signal:
    return lambda cluster, series, timestamp: float(series.labels[label] in values)


def _memory(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    assert series.node is not None
    held = series.job is not None and series.job.start <= timestamp < series.job.end
    return series.node.gpu_mib * 0.86 if held else 520.0


def _free_memory(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    assert series.node is not None
    return series.node.gpu_mib - _memory(cluster, series, timestamp) - 480.0


def _cpu(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    busy = 0.05 + 0.35 * activity(cluster, series, timestamp)
    # The modes of a processor add up to one.
    return {"user": busy * 0.8, "system": busy * 0.18, "iowait": busy * 0.02}.get(series.labels["mode"], 1 - busy)


def _size(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    return (cluster.file_system_gib if series.labels["fstype"] == "lustre" else 100.0) * GIB


def _disk_bytes(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    used = (
        # Shared file systems fill up slowly, so that a dashboard has something to show.
        0.55 + 0.02 * (timestamp - cluster.start) / max(cluster.end - cluster.start, 1) if series.job is None else 0.3
    )
    return _size(cluster, series, timestamp) * (1 - (used if series.labels["fstype"] == "lustre" else 0.3))


def _resource(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    node = series.node
    assert node is not None
    amounts = {
        "nvidia_com_gpu": float(node.gpus),
        "vpc_amazonaws_com_efa": float(node.efa),
        "cpu": float(node.cpus),
        "memory": node.memory_gib * GIB,
    }
    return amounts[series.labels["resource"]]


def _condition(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    good = "true" if series.labels["condition"] == "Ready" else "false"
    return float(series.labels["status"] == good)


def _quota(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    return float(series.team.gpus.get(series.labels["flavor"], 0)) if series.team else 0.0


def _used(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    return float(cluster.used(series.team.name, timestamp, series.labels["flavor"])) if series.team else 0.0


def _weighted_share(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    assert series.team is not None
    over = max(cluster.used(series.team.name, timestamp) - sum(series.team.gpus.values()), 0)
    # As Kueue counts it: thousandths of what could be lent, divided by the weight.
    return 1000.0 * over / (sum(sum(team.gpus.values()) for team in cluster.teams) or 1) / max(series.team.weight, 1)


def _pending(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    if series.team is None or series.labels["status"] != "active":
        return 0.0
    waiting = sum(job.team == series.team.name and job.waits(timestamp) for job in cluster.jobs)
    return float(series.team.pending + waiting)


def _preempted(side: str, reason: str) -> Signal:
    """Jobs of a queue's team that lost their place to others, or whose place it took; by the growth of a second."""

    def rate(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
        if series.team is None or series.labels["reason"] != reason:
            return 0.0
        moments = [one.at for one in cluster.preemptions if getattr(one, side) == series.team.name]
        return sum(timestamp - cluster.step < at <= timestamp for at in moments) / cluster.step

    return rate


def _running(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    return float(
        sum(job.team == (series.team and series.team.name) and job.start <= timestamp < job.end for job in cluster.jobs)
    )


def _bucket(per_second: float, half: float) -> Signal:
    """A histogram whose median is `half`: below b lie b / (b + half) of all values."""

    def rate(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
        bound = float(series.labels["le"].replace("+Inf", "inf"))
        # The last bucket holds all values.
        return per_second * (1.0 if isinf(bound) else bound / (bound + half))

    return rate


def _lost(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    """Seconds of the last hour that a job lost to restarts."""
    # As the operator counts: over a window of an hour that slides.
    restarts = series.job.restarts if series.job else ()
    return min(sum(RESTART_SECONDS for restart in restarts if 0 <= timestamp - restart < 3600), 3600.0)


def _trained(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    return 3600.0 - _lost(cluster, series, timestamp)


def _faults(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    return _lost(cluster, series, timestamp) / RESTART_SECONDS


def _of_type(signal: Signal) -> Signal:
    """All of it is the fault of hardware."""
    return lambda cluster, series, timestamp: (
        signal(cluster, series, timestamp) if series.labels["fault_type"] == "hardware" else 0.0
    )


def _scaled(signal: Signal, factor: float) -> Signal:
    return lambda cluster, series, timestamp: (signal(cluster, series, timestamp) or 0.0) * factor


def _restarts(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    restarts = series.job.restarts if series.job else ()
    # Prometheus takes the growth by second.
    return sum(timestamp - cluster.step < restart <= timestamp for restart in restarts) / cluster.step


def _instances(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    nodes = [node for node in cluster.nodes if node.group == series.labels["instance_group"]]
    if series.labels.get("state") == "target":
        return float(sum(node.joined == -inf for node in nodes))
    return float(sum(node.joined <= timestamp < node.left for node in nodes))


def _by_status(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    return _instances(cluster, series, timestamp) if series.labels["status"] == "Running" else 0.0


def _joined(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    assert series.node is not None
    return series.node.joined if series.node.joined > -inf else cluster.start - 72 * 3600.0


def _plan_instances(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
    plan = series.plan
    assert plan is not None
    existing = sum(n.instance_type == plan.instance_type and n.joined <= timestamp < n.left for n in cluster.nodes)
    active = plan.start <= timestamp < plan.end
    used = min(existing, plan.count) if active else 0
    amounts = {"total": plan.count, "in_use": used, "available": plan.count - used if active else 0, "unhealthy": 0}
    return float(amounts[series.labels["state"]])


def _slurm(which: str) -> Signal:
    """A number that the Slurm exporter counts over the whole cluster."""

    def count(cluster: SyntheticCluster, series: SeriesSource, timestamp: float) -> float:
        names = {name for job in cluster.jobs if job.start <= timestamp < job.end for name in job.nodes}
        gpus = [node for node in cluster.nodes if node.gpus and node.joined <= timestamp < node.left]
        amounts = {
            "alloc": len(names),
            "idle": len(gpus) - len(names),
            "running": sum(job.start <= timestamp < job.end for job in cluster.jobs),
            "pending": sum(team.pending for team in cluster.teams),
            "gpus_alloc": sum(node.gpus for node in gpus if node.name in names),
            "gpus": sum(node.gpus for node in gpus),
        }
        return float(amounts[which])

    return count


def _kernel(index: int) -> Signal:
    return lambda cluster, series, timestamp: float(KERNELS[series.labels["kernel"]][index])


_SIGNALS: Final[Mapping[str, Signal]] = {
    "DCGM_FI_DEV_SM_CLOCK": _between(345, 1830),
    "DCGM_FI_DEV_MEM_CLOCK": _constant(3201),
    "DCGM_FI_DEV_MEMORY_TEMP": _between(38, 72),
    "DCGM_FI_DEV_GPU_TEMP": _between(31, 61),
    "DCGM_FI_DEV_POWER_USAGE": _between(112, 640),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": _between(112_000, 640_000),
    "DCGM_FI_DEV_GPU_UTIL": _between(0, 100),
    "DCGM_FI_DEV_MEM_COPY_UTIL": _between(0, 55),
    "DCGM_FI_DEV_FB_USED": _memory,
    "DCGM_FI_DEV_FB_FREE": _free_memory,
    "DCGM_FI_DEV_FB_RESERVED": _constant(480),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": _between(0, 260_000),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0": _between(0, 14e9),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": _between(0, 0.97),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": _between(0, 0.46),
    "DCGM_FI_PROF_DRAM_ACTIVE": _between(0, 0.41),
    "DCGM_FI_PROF_SM_ACTIVE": _between(0, 0.86),
    "DCGM_FI_PROF_SM_OCCUPANCY": _between(0, 0.33),
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": _between(0, 0.08),
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE": _between(0, 0.02),
    "DCGM_FI_PROF_PCIE_TX_BYTES": _between(1e5, 4e9),
    "DCGM_FI_PROF_PCIE_RX_BYTES": _between(1e5, 3e9),
    "DCGM_FI_DEV_LOW_UTIL_VIOLATION": _constant(0),
    "node_amazonefa_lifespan": _constant(1e9),
    "node_cpu_seconds_total": _cpu,
    "node_load1": _between(2, 96),
    "node_memory_MemTotal_bytes": lambda cluster, series, timestamp: (
        series.node.memory_gib * GIB if series.node else None
    ),
    "node_memory_MemAvailable_bytes": lambda cluster, series, timestamp: (
        series.node.memory_gib * GIB * 0.7 if series.node else None
    ),
    "node_filesystem_size_bytes": _size,
    "node_filesystem_avail_bytes": _disk_bytes,
    "node_filesystem_files": _constant(5e7),
    "node_filesystem_files_free": _constant(4.6e7),
    "node_boot_time_seconds": _joined,
    "node_time_seconds": lambda cluster, series, timestamp: timestamp,
    "kube_node_created": _joined,
    "kube_node_spec_taint": _constant(None),
    "kube_node_status_condition": _condition,
    "kube_node_status_allocatable": _resource,
    "kube_node_status_capacity": _resource,
    "kube_pod_container_resource_requests": _resource,
    "kube_pod_container_resource_limits": _resource,
    "kube_pod_status_phase": _is("phase", "Running"),
    "kube_pod_created": lambda cluster, series, timestamp: series.job.start - series.job.queued if series.job else None,
    "kube_pod_start_time": lambda cluster, series, timestamp: series.job.start if series.job else None,
    "kube_pod_container_status_restarts_total": _restarts,
    "kube_pod_container_status_waiting_reason": _constant(None),
    "kube_pod_container_status_last_terminated_reason": _constant(None),
    "container_cpu_usage_seconds_total": _between(0.2, 48),
    "container_cpu_cfs_throttled_seconds_total": _constant(0),
    "container_memory_working_set_bytes": _between(20 * GIB, 620 * GIB),
    "apiserver_request_total": lambda cluster, series, timestamp: 40.0 if series.labels["code"] == "200" else 0.0,
    "up": _constant(1),
    "kueue_pending_workloads": _pending,
    "kueue_admitted_active_workloads": _running,
    "kueue_reserving_active_workloads": _running,
    "kueue_admitted_workloads_total": _constant(_ADMISSIONS),
    "kueue_quota_reserved_workloads_total": _constant(_ADMISSIONS),
    "kueue_evicted_workloads_total": _preempted("team", "Preempted"),
    "kueue_preempted_workloads_total": _preempted("by", "InCohortReclamation"),
    "kueue_admission_wait_time_seconds_bucket": _bucket(_ADMISSIONS, _QUEUE_SECONDS),
    "kueue_quota_reserved_wait_time_seconds_bucket": _bucket(_ADMISSIONS, _QUEUE_SECONDS),
    "kueue_admission_wait_time_seconds_sum": _constant(_ADMISSIONS * _QUEUE_SECONDS * 1.3),
    "kueue_quota_reserved_wait_time_seconds_sum": _constant(_ADMISSIONS * _QUEUE_SECONDS * 1.3),
    "kueue_admission_wait_time_seconds_count": _constant(_ADMISSIONS),
    "kueue_quota_reserved_wait_time_seconds_count": _constant(_ADMISSIONS),
    "kueue_cluster_queue_status": _is("status", "active"),
    "kueue_cluster_queue_resource_usage": _used,
    "kueue_cluster_queue_resource_reservation": _used,
    "kueue_cluster_queue_nominal_quota": _quota,
    "kueue_cluster_queue_borrowing_limit": _quota,
    "kueue_cluster_queue_lending_limit": _quota,
    "kueue_cluster_queue_weighted_share": _weighted_share,
    "training_uptime_percentage": _scaled(_trained, 100 / 3600),
    "training_time_ms": _scaled(_trained, 1000),
    "training_auto_recovery_count": _faults,
    "training_auto_recovery_downtime": _scaled(_lost, 1000),
    "training_manual_recovery_count": _constant(0),
    "training_manual_downtime_ms": _constant(0),
    "training_fault_count": _faults,
    "training_fault_type_count": _of_type(_faults),
    "training_fault_recovery_time_ms": _of_type(_scaled(_lost, 1000)),
    "model_invocations_total": _constant(_REQUESTS),
    "model_concurrent_requests": _constant(_REQUESTS * _LATENCY_MS / 1000),
    "model_latency_milliseconds_bucket": _bucket(_REQUESTS, _LATENCY_MS),
    "model_ttfb_milliseconds_bucket": _bucket(_REQUESTS, _LATENCY_MS / 4),
    "slurm_nodes_alloc": _slurm("alloc"),
    "slurm_nodes_idle": _slurm("idle"),
    "slurm_queue_running": _slurm("running"),
    "slurm_queue_pending": _slurm("pending"),
    "slurm_gpus_alloc": _slurm("gpus_alloc"),
    "slurm_gpus_total": _slurm("gpus"),
    "podwright_instances": _instances,
    "podwright_nodes": _by_status,
    "podwright_node_launched_timestamp_seconds": lambda cluster, series, timestamp: (
        _joined(cluster, series, timestamp) - 900
    ),
    "podwright_node_status": _constant(1),
    "podwright_node_health": _constant(1),
    "podwright_node_fault": _constant(None),
    "podwright_instance_price_usd_per_hour": lambda cluster, series, timestamp: price(cluster, series),
    "podwright_plan_instances": _plan_instances,
    "podwright_plan_start_timestamp_seconds": lambda cluster, series, timestamp: (
        series.plan.start if series.plan else None
    ),
    "podwright_plan_end_timestamp_seconds": lambda cluster, series, timestamp: series.plan.end if series.plan else None,
    "podwright_plan_upfront_usd": lambda cluster, series, timestamp: (
        series.plan.count * 20_000.0 if series.plan else None
    ),
    "podwright_budget_usd_per_month": lambda cluster, series, timestamp: cluster.budget_usd,
    "podwright_benchmark_value": _kernel(1),
    "podwright_benchmark_limit": _kernel(2),
    "podwright_benchmark_verdict": lambda cluster, series, timestamp: (
        float(series.labels["verdict"] == "pass") if series.node and series.node.gpus else None
    ),
    "podwright_source_seen": _constant(1),
    "podwright_benchmark_timestamp_seconds": lambda cluster, series, timestamp: (
        cluster.start - _BENCHMARKED_BEFORE if series.node and series.node.gpus else None
    ),
    "podwright_measured_timestamp_seconds": lambda cluster, series, timestamp: timestamp,
}
# What a unit alone says: of gauges the value, of counters the growth a second.
_GAUGES: Final[Mapping[str, Signal]] = {
    "info": _constant(1),
    "ratio": _between(0, 0.5),
    "percent": _between(0, 0),
    "bytes": _between(GIB, 12 * GIB),
}
_COUNTERS: Final[Mapping[str, Signal]] = {
    "bytes": _between(2e4, 2.4e9),
    "packets": _between(20, 3e5),
    "requests": _between(0, 3e4),
    "seconds": _between(0, 0.4),
}
_NEVER: Final = ("err", "drop", "oom", "ECC", "RETIRED", "REMAP", "REPLAY", "VIOLATION", "FAILURE", "throttled")
_STEADY: Final = (
    "info",
    "boolean",
    "state",
    "seconds",
    "inodes",
    "amount",
    "pages",
    "rows",
    "instances",
    "nodes",
    "gpus",
)


def signal_of(metric: Metric) -> Signal:
    """The signal of a metric."""
    own = _SIGNALS.get(metric.name)
    if own:
        return own
    if any(word in metric.name for word in _NEVER):
        return _constant(0)
    return (_COUNTERS if metric.kind == "counter" else _GAUGES).get(metric.unit, _constant(0))


def wavers(metric: Metric) -> bool:
    """Whether its values are never quite the same."""
    return metric.exporter in ("dcgm", "efa", "node", "cadvisor", "inference") and metric.unit not in _STEADY
