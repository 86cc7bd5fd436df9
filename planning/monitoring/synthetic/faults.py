"""What can go wrong in a made-up cluster, by name: each fault is the metrics that would show it.

`podwright` and its tests put a fault into a `World` before its metrics are written. What a real fault does beyond these
metrics is left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from .cluster import Change, Node, Plan, SyntheticCluster

_REPLACEMENT_SECONDS: Final = 1500.0
"""From the label until a new node joins; HyperPod needs 20 to 30 minutes."""
_NOTICED_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault on a node, or on what the node stands for: from `start` on, until `end` where it ends by itself."""

    kind: str
    node: str
    start: float
    end: float = inf


def with_faults(cluster: SyntheticCluster, *faults: Fault) -> SyntheticCluster:
    """A copy of a world in which these things go wrong. Raises KeyError for a kind that is not in FAULTS."""
    changed = replace(cluster, nodes=list(cluster.nodes), plans=list(cluster.plans), changes=list(cluster.changes))
    for fault in faults:
        FAULTS[fault.kind](changed, fault, changed.node(fault.node))
    return changed


def _of_gpu(
    metric: str, value: float, how: str = "set", **labels: str
) -> Callable[[SyntheticCluster, Fault, Node], None]:
    """On the first GPU of the node."""
    return _of_series(metric, value, {"Hostname": "", "gpu": "0"}, how, **labels)


def _of_series(
    metric: str, value: float, where: Mapping[str, str], how: str = "set", **labels: str
) -> Callable[[SyntheticCluster, Fault, Node], None]:
    """On series of the node; empty values of `where` stand for its own name, instance or pod."""

    def put(cluster: SyntheticCluster, fault: Fault, node: Node) -> None:
        """Add the change of this metric to the cluster, for the node, its instance or the pod that ran there."""
        jobs = [job for job in cluster.jobs_on(node.name) if job.start <= fault.start < job.end]
        own = {
            "instance_id": node.instance_id,
            "pod": f"{jobs[0].name}-{jobs[0].nodes.index(node.name)}" if jobs else "",
        }
        specified = {name: text or own.get(name, node.name) for name, text in where.items()}
        cluster.changes.append(
            Change(
                metric=metric,
                value=value,
                start=fault.start,
                end=fault.end,
                where=specified,
                how=how,  # pyrefly: ignore[bad-argument-type]
                labels=labels,
            )
        )

    return put


def _all(*parts: Callable[[SyntheticCluster, Fault, Node], None]) -> Callable[[SyntheticCluster, Fault, Node], None]:
    def put(cluster: SyntheticCluster, fault: Fault, node: Node) -> None:
        for part in parts:
            part(cluster, fault, node)

    return put


def _labelled(health: str, fault_type: str) -> Callable[[SyntheticCluster, Fault, Node], None]:
    """What HyperPod puts on the Kubernetes node."""
    return _all(
        _of_series("podwright_node_health", 1, {"node": ""}, health=health),
        _of_series("podwright_node_fault", 1, {"node": ""}, fault=fault_type),
        _of_series("kube_node_spec_taint", 1, {"node": ""}),
    )


def _xid(code: int, message: str) -> Callable[[SyntheticCluster, Fault, Node], None]:
    return _of_gpu("DCGM_FI_DEV_XID_ERRORS", code, err_code=str(code), err_msg=message)


def _restarted(cluster: SyntheticCluster, fault: Fault, node: Node) -> None:
    """Jobs on the node begin again from their last checkpoint."""
    cluster.jobs = [
        replace(job, restarts=(*job.restarts, fault.start))
        if node.name in job.nodes and job.start <= fault.start < job.end
        else job
        for job in cluster.jobs
    ]


def _replaced(cluster: SyntheticCluster, fault: Fault, node: Node) -> None:
    """The node goes, another one comes under its logical id and takes its place in its jobs."""
    leaves, joins = fault.start + _NOTICED_SECONDS, min(fault.end, fault.start + _REPLACEMENT_SECONDS)
    index = sum(other.group == node.group for other in cluster.nodes)
    # Ids are made of the number: one that no node of the group has, nor one that `_surge` adds.
    fresh = Node.numbered(node.group, index + 1000, node.instance_type)
    fresh = replace(
        node, name=fresh.name, instance_id=fresh.instance_id, address=fresh.address, joined=joins, left=node.left
    )
    cluster.nodes[cluster.nodes.index(node)] = replace(node, left=leaves)
    cluster.nodes.append(fresh)
    later = list(cluster.jobs)
    for position, job in enumerate(cluster.jobs):
        if node.name not in job.nodes or job.end <= leaves:
            continue
        moved = replace(job, nodes=tuple(fresh.name if name == node.name else name for name in job.nodes))
        if job.start > leaves:
            later[position] = moved
            continue
        later[position] = replace(job, end=leaves)
        later.append(replace(moved, start=joins, queued=joins - leaves, restarts=(joins,)))
    cluster.jobs = later


def _hung(cluster: SyntheticCluster, fault: Fault, node: Node) -> None:
    """All GPUs of the node's jobs wait for one that does not answer: NCCL's kernels turn, and compute nothing."""
    shown = {"DCGM_FI_DEV_GPU_UTIL": 100, "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0}
    for job in cluster.jobs_on(node.name):
        for name in job.nodes:
            for metric, value in shown.items():
                where = {"Hostname": name, "namespace": job.namespace}
                cluster.changes.append(
                    Change(metric=metric, value=value, start=fault.start, end=fault.end, where=where)
                )


def _ending(cluster: SyntheticCluster, fault: Fault, node: Node) -> None:
    """Plans end a day after the fault begins. A world without plans gets one."""
    known = cluster.plans or [
        Plan(name="plan", instance_type=node.instance_type, count=1, start=cluster.start - 86400, end=inf)
    ]
    cluster.plans = [replace(plan, end=fault.start + 86400) for plan in known]


def _idle_plan(cluster: SyntheticCluster, fault: Fault, node: Node) -> None:
    """Of a plan, as many instances as there are stay unused."""
    plan = Plan(name="unused", instance_type="ml.p5.48xlarge", count=8, start=fault.start, end=fault.start + 14 * 86400)
    cluster.plans.append(plan)


def _starved(cluster: SyntheticCluster, fault: Fault, node: Node) -> None:
    """The last team waits for its own quota, which others hold."""
    name = cluster.teams[-1].name
    where = {"cluster_queue": f"hyperpod-ns-{name}-clusterqueue", "status": "active"}
    pending = Change(metric="kueue_pending_workloads", value=3, start=fault.start, end=fault.end, where=where)
    cluster.changes.append(pending)
    cluster.jobs = [replace(job, end=min(job.end, fault.start)) if job.team == name else job for job in cluster.jobs]


def _surge(cluster: SyntheticCluster, fault: Fault, node: Node) -> None:
    """The node's group has twice as many instances as before."""
    members = [other for other in cluster.nodes if other.group == node.group]
    for index, _ in enumerate(members):
        cluster.nodes.append(
            replace(
                Node.numbered(node.group, index + 2000, node.instance_type),
                zone_id=node.zone_id,
                joined=fault.start,
                left=fault.end,
            )
        )


_HEATED = _all(
    _of_gpu("DCGM_FI_DEV_GPU_TEMP", 91),
    _of_gpu("DCGM_FI_DEV_MEMORY_TEMP", 98),
    _of_gpu("DCGM_FI_DEV_THERMAL_VIOLATION", 2e8),
    _of_gpu("DCGM_FI_DEV_SM_CLOCK", 1200),
)

FAULTS: Final[Mapping[str, Callable[[SyntheticCluster, Fault, Node], None]]] = {
    "xid-reboot": _all(_xid(73, "NVENC3 error"), _labelled("UnschedulablePendingReboot", "NvidiaXidError"), _restarted),
    "xid-replace": _all(
        _xid(74, "NVLINK error"), _labelled("UnschedulablePendingReplacement", "NvidiaXidError"), _replaced
    ),
    "gpu-lost": _all(
        _xid(79, "GPU has fallen off the bus"), _labelled("UnschedulablePendingReplacement", "NvidiaGPULost"), _replaced
    ),
    "unschedulable": _labelled("Unschedulable", ""),
    "gpu-hot": _HEATED,
    "gpu-power": _of_gpu("DCGM_FI_DEV_POWER_VIOLATION", 5e8),
    "ecc": _all(
        _of_gpu("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 0.02), _of_gpu("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 0.01)
    ),
    "row-remap": _of_gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE", 1),
    "nvlink": _of_gpu("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 3),
    "pcie": _of_gpu("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 2),
    "efa": _all(
        _of_series("node_amazonefa_rx_drops", 40, {"instance": ""}),
        _of_series("node_amazonefa_rdma_read_wr_err", 4, {"instance": ""}),
        _of_series("node_amazonefa_rdma_write_wr_err", 4, {"instance": ""}),
    ),
    "lustre-full": _of_series("node_filesystem_avail_bytes", 0.2, {"fstype": "lustre"}, "times"),
    "disk-full": _of_series("node_filesystem_avail_bytes", 0.02, {"instance": "", "fstype": "xfs"}, "times"),
    "out-of-memory": _all(
        _of_series("node_memory_MemAvailable_bytes", 0.02, {"instance": ""}, "times"),
        _of_series("node_vmstat_oom_kill", 0.01, {"instance": ""}),
    ),
    "straggler": _all(_of_gpu("DCGM_FI_DEV_SM_CLOCK", 990), _of_gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.5, "times")),
    "hang": _hung,
    "restart": _restarted,
    "exporter-down": _of_series("up", 0, {"instance": "", "job": "dcgm-exporter"}),
    "not-ready": _all(
        _of_series("kube_node_status_condition", 0, {"node": "", "condition": "Ready", "status": "true"}),
        _of_series("kube_node_status_condition", 1, {"node": "", "condition": "Ready", "status": "unknown"}),
    ),
    "crash-loop": _all(
        _of_series("kube_pod_container_status_restarts_total", 0.01, {"pod": ""}),
        _of_series("kube_pod_container_status_waiting_reason", 1, {"pod": "", "reason": "CrashLoopBackOff"}),
    ),
    "benchmark": _all(
        _of_series("podwright_benchmark_value", 0.8, {"instance_id": "", "kernel": "all_reduce"}, "times"),
        _of_series("podwright_benchmark_verdict", 0, {"instance_id": "", "verdict": "pass"}),
        _of_series("podwright_benchmark_verdict", 1, {"instance_id": "", "verdict": "fail"}),
    ),
    "plan-ending": _ending,
    "plan-idle": _idle_plan,
    "starved": _starved,
    "surge": _surge,
    "blind": _of_series("podwright_measured_timestamp_seconds", 0, {}, "gone"),
}
"""The kinds of faults."""
