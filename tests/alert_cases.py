"""Series that make each alert fire and resolve, and series so close to them that it must stay silent.

Values are in promtool's notation, a sample a minute: `1x20` is 1 at minute 0 to 20, `0+5x20` grows by 5 a minute, `_`
is a missing sample. Minutes that a case names are minutes of that history.
"""

from dataclasses import dataclass

CLUSTER = "training-prod"


@dataclass(frozen=True)
class Case:
    """One alert's two histories."""

    alert: str
    series: dict[str, str]
    """Makes it fire, and then resolve."""
    quiet: int
    """A minute at which it does not fire yet."""
    fires: int
    """A minute at which it fires."""
    resolved: int
    """A minute at which it fires no more."""
    labels: dict[str, str]
    """What the alert is told apart by, besides cluster and severity."""
    summary: str
    """What it says."""
    near: dict[str, str]
    """At no minute of `still` does it fire."""
    still: tuple[int, ...]


def s(metric: str, **labels: str) -> str:
    """A series of the cluster."""
    pairs = {"cluster_name": CLUSTER} | labels
    return metric + "{" + ", ".join(f'{name}="{value}"' for name, value in pairs.items()) + "}"


def _node(name: str, health: str, deep: str = "Passed") -> str:
    return s("podwright_node_health", instance_group="h200", node=name, health=health, deep_health_check=deep)


def _gpu(metric: str, gpu: int = 3, node: str = "hyperpod-i-0a", **labels: str) -> str:
    return s(metric, Hostname=node, gpu=str(gpu), **labels)


def _pod_gpu(metric: str, pod: str = "pretrain-0") -> str:
    return _gpu(metric, namespace="hyperpod-ns-research", pod=pod)


def _clock(gpu: int, metric: str = "DCGM_FI_DEV_SM_CLOCK") -> str:
    return _gpu(metric, gpu, namespace="hyperpod-ns-research", pod="pretrain-0", modelName="NVIDIA H200")


def _queue(metric: str, team: str = "research", **labels: str) -> str:
    return s(metric, cluster_queue=f"hyperpod-ns-{team}-clusterqueue", **labels)


def _gpus(metric: str, team: str = "research") -> str:
    return _queue(metric, team, flavor="ml.p5en.48xlarge", resource="nvidia.com/gpu")


def _lustre(metric: str, instance: str = "10.16.0.4:9100") -> str:
    return s(metric, instance=instance, fstype="lustre", mountpoint="/fsx")


def _benchmarked(metric: str, instance: str, **labels: str) -> str:
    return s(metric, instance_id=instance, **_SORT, **labels)


def _kernel(instance: str, kernel: str, unit: str) -> str:
    return _benchmarked("podwright_benchmark_value", instance, kernel=kernel, unit=unit)


def _waiting(reason: str) -> str:
    metric = "kube_pod_container_status_waiting_reason"
    return s(metric, namespace="hyperpod-ns-research", pod="pretrain-0", container="train", reason=reason)


_SORT = {"instance_group": "h200", "instance_type": "ml.p5en.48xlarge"}
_ON = {"node": "hyperpod-i-0a", "instance_group": "h200"}
_GPU = {"Hostname": "hyperpod-i-0a", "gpu": "3"}
_POD = {"namespace": "hyperpod-ns-research", "pod": "pretrain-0"}
_TEAM = {"team": "research"}
_PLAN = {"plan": "h200-q1"}
_MOUNT = {"mountpoint": "/fsx"}
_H200 = {"instance_group": "h200"}
_DAY = 86400

NODES = (
    Case(
        "NodeUnhealthy",
        {
            _node("hyperpod-i-0a", "UnschedulablePendingReplacement"): "1x20 _x30",
            _node("hyperpod-i-0a", "Schedulable"): "_x20 1x30",
        },
        4, 8, 30,
        _ON,
        "Node hyperpod-i-0a of h200 takes no work: HyperPod found a fault",
        # Deep health checks take hours, and so does a node that they run on.
        {
            _node("hyperpod-i-0a", "Unschedulable", "InProgress"): "1x120",
            _node("hyperpod-i-0b", "Schedulable"): "1x120",
        },
        (10, 60, 119),
    ),
    Case(
        "NodeRebootSlow",
        {_node("hyperpod-i-0a", "UnschedulablePendingReboot"): "1x25 _x30"},
        9, 12, 40,
        _ON,
        "Node hyperpod-i-0a of h200 has waited 10 minutes for its reboot",
        {
            _node("hyperpod-i-0a", "UnschedulablePendingReboot"): "1x4 _x30",
            _node("hyperpod-i-0b", "Schedulable"): "1x60",
        },
        (5, 10, 20),
    ),
    Case(
        "NodeReplacementSlow",
        {_node("hyperpod-i-0a", "UnschedulablePendingReplacement"): "1x60 _x30"},
        44, 50, 80,
        _ON,
        "Node hyperpod-i-0a of h200 has waited 45 minutes to be replaced",
        {
            _node("hyperpod-i-0a", "UnschedulablePendingReplacement"): "1x35 _x60",
            _node("hyperpod-i-0b", "Schedulable"): "1x90",
        },
        (30, 45, 60),
    ),
    Case(
        "NodeReplacementRepeats",
        {
            _node("hyperpod-i-0a", "UnschedulablePendingReplacement"): "1x10 _x500",
            _node("hyperpod-i-0b", "UnschedulablePendingReplacement"): "_x60 1x10 _x500",
            _node("hyperpod-i-0c", "UnschedulablePendingReplacement"): "_x120 1x10 _x500",
        },
        119, 125, 500,
        _H200,
        "3 nodes of h200 were marked for replacement within six hours",
        # One node that is marked three times is one replacement.
        {
            _node("hyperpod-i-0a", "UnschedulablePendingReplacement"): "1x9 _x20 1x9 _x20 1x9 _x20",
            **{_node(f"hyperpod-i-1{letter}", "Schedulable"): "1x90" for letter in "abc"},
        },
        (10, 40, 70),
    ),
    Case(
        "NodeNotReady",
        {
            s("kube_node_status_condition", node="hyperpod-i-0a", condition="Ready", status="true"): "1x5 0x20 1x30",
            s("kube_node_status_condition", node="hyperpod-i-0a", condition="Ready", status="unknown"): "0x5 1x20 0x30",
            s("kube_node_status_condition", node="hyperpod-i-0a", condition="DiskPressure", status="true"): "1x60",
        },
        12, 20, 40,
        {"node": "hyperpod-i-0a"},
        "Node hyperpod-i-0a has not been ready for ten minutes",
        {
            s("kube_node_status_condition", node="hyperpod-i-0a", condition="Ready", status="true"): "1x60",
            s("kube_node_status_condition", node="hyperpod-i-0a", condition="Ready", status="false"): "0x60",
        },
        (15, 30, 59),
    ),
    Case(
        "SlurmNodesDown",
        {s("slurm_nodes_down"): "0x5 1x30 0x20", s("slurm_nodes_fail"): "0x60"},
        15, 30, 50,
        {},
        "1 nodes are down in Slurm",
        # A node that is drained for maintenance is not down.
        {s("slurm_nodes_down"): "0x60", s("slurm_nodes_fail"): "0x60", s("slurm_nodes_drain"): "2x60"},
        (30, 59),
    ),
    Case(
        "InstanceGroupShort",
        {
            s("podwright_instances", instance_group="h200", state="target"): "16x120",
            s("podwright_instances", instance_group="h200", state="current"): "14x80 16x40",
        },
        59, 70, 100,
        _H200,
        "Instance group h200 has lacked 2 instances for 60 minutes",
        # A cluster that grows lacks instances for a while.
        {
            s("podwright_instances", instance_group="h200", state="target"): "16x120",
            s("podwright_instances", instance_group="h200", state="current"): "0x40 16x80",
        },
        (39, 60, 119),
    ),
    Case(
        "InstanceCountSurge",
        {
            s("podwright_instances", instance_group="h200", state="current"): "16x10 24x10 16x20",
            s("podwright_instances", instance_group="system", state="current"): "2x40",
        },
        9, 13, 30,
        {},
        "The cluster has 26 instances, more than the 18 of its file: they cost money now",
        {
            s("podwright_instances", instance_group="h200", state="current"): "16x40",
            s("podwright_instances", instance_group="system", state="current"): "2x40",
        },
        (10, 39),
    ),
    Case(
        "RootVolumeFull",
        {
            s("node_filesystem_avail_bytes", instance="10.16.0.4:9100", mountpoint="/"): "50x5 5x20 50x30",
            s("node_filesystem_size_bytes", instance="10.16.0.4:9100", mountpoint="/"): "100x60",
        },
        12, 20, 40,
        {"instance": "10.16.0.4:9100", "mountpoint": "/"},
        "/ of 10.16.0.4:9100 is 95 % full",
        {
            s("node_filesystem_avail_bytes", instance="10.16.0.4:9100", mountpoint="/"): "11x60",
            s("node_filesystem_size_bytes", instance="10.16.0.4:9100", mountpoint="/"): "100x60",
            s("node_filesystem_avail_bytes", instance="10.16.0.4:9100", mountpoint="/boot"): "1x60",
            s("node_filesystem_size_bytes", instance="10.16.0.4:9100", mountpoint="/boot"): "100x60",
        },
        (30, 59),
    ),
    Case(
        "FileSystemReadOnly",
        {s("node_filesystem_readonly", instance="10.16.0.4:9100", fstype="lustre", mountpoint="/fsx"): "0x5 1x20 0x20"},
        8, 20, 40,
        {"instance": "10.16.0.4:9100", "mountpoint": "/fsx"},
        "/fsx of 10.16.0.4:9100 cannot be written to",
        # Images of containers and snaps are read-only by nature.
        {s("node_filesystem_readonly", instance="10.16.0.4:9100", fstype="squashfs", mountpoint="/snap"): "1x60"},
        (20, 59),
    ),
    Case(
        "NodeMemoryErrors",
        {s("node_edac_uncorrectable_errors_total", instance="10.16.0.4:9100", controller="0"): "0x10 2x100"},
        9, 20, 90,
        {"instance": "10.16.0.4:9100"},
        "Memory of 10.16.0.4:9100 had uncorrectable errors within the hour",
        {s("node_edac_uncorrectable_errors_total", instance="10.16.0.4:9100", controller="0"): "2x60"},
        (20, 59),
    ),
    Case(
        "NodeOutOfMemory",
        {s("node_vmstat_oom_kill", instance="10.16.0.4:9100"): "3x10 4x60"},
        9, 15, 40,
        {"instance": "10.16.0.4:9100"},
        "10.16.0.4:9100 ran out of memory and has killed processes",
        {s("node_vmstat_oom_kill", instance="10.16.0.4:9100"): "3x60"},
        (20, 59),
    ),
)  # fmt: skip

GPUS = (
    Case(
        "GpuXid",
        {_gpu("DCGM_FI_DEV_XID_ERRORS"): "0x5 79x10 0x30"},
        5, 8, 30,
        _GPU,
        "GPU 3 of hyperpod-i-0a reported Xid 79, a fault of the hardware",
        # 31 is a page fault of a program, 13 an exception of one.
        {_gpu("DCGM_FI_DEV_XID_ERRORS"): "31x20", _gpu("DCGM_FI_DEV_XID_ERRORS", 4): "13x20"},
        (5, 19),
    ),
    Case(
        "GpuMissing",
        {
            _gpu("DCGM_FI_DEV_GPU_TEMP", 0): "50x60",
            _gpu("DCGM_FI_DEV_GPU_TEMP", 1): "50x10 _x20 50x30",
        },
        18, 25, 45,
        {"node": "hyperpod-i-0a"},
        "Node hyperpod-i-0a has lost 1 of its GPUs",
        # All of a node are gone when it is replaced, which other alerts speak of.
        {_gpu("DCGM_FI_DEV_GPU_TEMP", 0): "50x10 _x50", _gpu("DCGM_FI_DEV_GPU_TEMP", 1): "50x10 _x50"},
        (12, 20, 40),
    ),
    Case(
        "GpuMemoryFailed",
        {_gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE"): "0x5 1x10 0x20"},
        4, 8, 25,
        _GPU,
        "GPU 3 of hyperpod-i-0a has no spare memory rows left",
        {_gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE"): "0x30"},
        (5, 29),
    ),
    Case(
        "GpuMemoryErrors",
        {_gpu("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"): "0x10 1x100"},
        9, 15, 90,
        _GPU,
        "GPU 3 of hyperpod-i-0a had uncorrectable memory errors within the hour",
        # Rows that were remapped long ago are no news.
        {_gpu("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"): "2x60"},
        (10, 59),
    ),
    Case(
        "GpuHot",
        {_gpu("DCGM_FI_DEV_GPU_TEMP"): "60x5 90x15 60x20"},
        8, 15, 30,
        _GPU,
        "GPU 3 of hyperpod-i-0a has 90 °C",
        {_gpu("DCGM_FI_DEV_GPU_TEMP"): "87x30"},
        (10, 29),
    ),
    Case(
        "GpuThrottling",
        {_gpu("DCGM_FI_DEV_THERMAL_VIOLATION"): "0x5 0+1000000x25 25000000x40"},
        10, 25, 60,
        _GPU,
        "GPU 3 of hyperpod-i-0a has been slowed down by heat for ten minutes",
        # It was once, for less than ten minutes.
        {_gpu("DCGM_FI_DEV_THERMAL_VIOLATION"): "0x5 1000000x60"},
        (8, 14, 40),
    ),
    Case(
        "GpuClockLow",
        {
            _clock(0): "1980x50",
            _clock(1): "1980x50",
            _clock(2): "1980x5 990x25 1980x20",
            **{_clock(gpu, "DCGM_FI_DEV_GPU_UTIL"): "95x50" for gpu in (0, 1, 2)},
        },
        15,
        25,
        45,
        {"Hostname": "hyperpod-i-0a", "gpu": "2", "namespace": "hyperpod-ns-research", "modelName": "NVIDIA H200"},
        "GPU 2 of hyperpod-i-0a runs 50 % slower than others of hyperpod-ns-research",
        # A GPU that has nothing to do lowers its clock.
        {
            _clock(0): "1980x50",
            _clock(1): "345x50",
            _clock(0, "DCGM_FI_DEV_GPU_UTIL"): "95x50",
            _clock(1, "DCGM_FI_DEV_GPU_UTIL"): "0x50",
        },
        (25, 49),
    ),
    Case(
        "GpuNvlinkErrors",
        {_gpu("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"): "0x10 4x100"},
        9, 15, 90,
        _GPU,
        "GPU 3 of hyperpod-i-0a had errors of its NVLink within the hour: 4",
        {
            _gpu("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"): "7x60",
            _gpu("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"): "0+1x60",
        },
        (10, 59),
    ),
    Case(
        "GpuPcieReplays",
        {_gpu("DCGM_FI_DEV_PCIE_REPLAY_COUNTER"): "0+120x40 4800x40"},
        10, 30, 60,
        _GPU,
        "GPU 3 of hyperpod-i-0a repeats 2 transfers a second over PCIe",
        {_gpu("DCGM_FI_DEV_PCIE_REPLAY_COUNTER"): "0+30x60"},
        (30, 59),
    ),
    Case(
        "EfaErrors",
        {
            s("node_amazonefa_rdma_read_wr_err", instance="10.16.0.4:9109", device="rdmap16s0"): "0x80",
            s("node_amazonefa_rdma_write_wr_err", instance="10.16.0.4:9109", device="rdmap16s0"): "0+180x40 7200x40",
            s("node_amazonefa_rx_drops", instance="10.16.0.4:9109", device="rdmap16s0"): "0x80",
        },
        5, 25, 60,
        {"instance": "10.16.0.4:9109"},
        "EFA of 10.16.0.4:9109 has 3 errors a second",
        {
            s("node_amazonefa_rdma_read_wr_err", instance="10.16.0.4:9109", device="rdmap16s0"): "0+6x60",
            s("node_amazonefa_rdma_write_wr_err", instance="10.16.0.4:9109", device="rdmap16s0"): "0x60",
            s("node_amazonefa_rx_drops", instance="10.16.0.4:9109", device="rdmap16s0"): "0+6x60",
        },
        (30, 59),
    ),
)  # fmt: skip

JOBS = (
    Case(
        "JobHanging",
        {
            _pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "100x60",
            _pod_gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"): "0.4x10 0x25 0.4x25",
        },
        20, 30, 50,
        _POD,
        "hyperpod-ns-research/pretrain-0 keeps its GPUs busy without computing for 15 minutes: it probably waits for a "
        "peer",
        # A pod that loads data does not compute either, and its GPUs are not busy.
        {
            _pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "20x60",
            _pod_gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"): "0x60",
            _pod_gpu("DCGM_FI_DEV_GPU_UTIL", "tune-0"): "100x60",
            _pod_gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tune-0"): "0.3x60",
            # Nobody's: a benchmark of the node itself.
            _gpu("DCGM_FI_DEV_GPU_UTIL", 5): "100x60",
            _gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 5): "0x60",
        },
        (30, 59),
    ),
    Case(
        "GpuIdle",
        {_pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "95x10 0x50 95x30"},
        35, 55, 80,
        _POD,
        "hyperpod-ns-research/pretrain-0 has left GPUs idle for 30 minutes: 1",
        # GPUs that nobody holds are no job's fault, and a pause for a checkpoint is short.
        {
            _gpu("DCGM_FI_DEV_GPU_UTIL", namespace="", pod=""): "0x90",
            _pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "95x20 0x8 95x60",
        },
        (30, 45, 89),
    ),
    Case(
        "GpuUtilizationLow",
        {_pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "30x150 80x30"},
        110, 140, 170,
        {"namespace": "hyperpod-ns-research"},
        "GPUs of hyperpod-ns-research are used to 30 %; the target is 40 %",
        {_pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "41x180"},
        (150, 179),
    ),
    Case(
        "GoodputLow",
        {
            s("training_time_ms", job_name="pretrain"): "80x80 95x40",
            s("training_auto_recovery_downtime", job_name="pretrain"): "15x80 3x40",
            s("training_manual_downtime_ms", job_name="pretrain"): "5x80 2x40",
        },
        50, 70, 110,
        {},
        "Jobs train 80 % of their time; the target is 90 %",
        {
            s("training_time_ms", job_name="pretrain"): "91x120",
            s("training_auto_recovery_downtime", job_name="pretrain"): "9x120",
            s("training_manual_downtime_ms", job_name="pretrain"): "0x120",
        },
        (70, 119),
    ),
    Case(
        "JobRestartsOften",
        {s("hyperpod_training_operator_jobs_restarted_total", jobName="pretrain"): "0x10 1x5 2x5 4x100"},
        18, 30, 110,
        {"jobName": "pretrain"},
        "Job pretrain was restarted 4 times within the hour",
        {s("hyperpod_training_operator_jobs_restarted_total", jobName="pretrain"): "0x10 1x20 2x60"},
        (40, 80),
    ),
    Case(
        "JobRecoverySlow",
        {s("training_fault_recovery_time_ms", job_name="pretrain", fault_type="gpu"): "0x5 900000x10 0x20"},
        4, 10, 25,
        {"job_name": "pretrain"},
        "Job pretrain needed 15 minutes to get over a fault",
        {s("training_fault_recovery_time_ms", job_name="pretrain", fault_type="gpu"): "540000x30"},
        (10, 29),
    ),
    Case(
        "JobFailed",
        # The counter of a job begins with its first failure.
        {s("hyperpod_training_operator_jobs_failed_total", jobName="tune"): "_x5 1x60"},
        4, 10, 40,
        {"jobName": "tune"},
        "Job tune has failed",
        # It failed yesterday.
        {s("hyperpod_training_operator_jobs_failed_total", jobName="tune"): "2x60"},
        (20, 59),
    ),
    Case(
        "PodNotStarting",
        {_waiting("CrashLoopBackOff"): "_x5 1x25 _x30"},
        15,
        25,
        50,
        {**_POD, "reason": "CrashLoopBackOff"},
        "hyperpod-ns-research/pretrain-0 does not start: CrashLoopBackOff",
        # A large image takes its time.
        {_waiting("ContainerCreating"): "1x60"},
        (25, 59),
    ),
)  # fmt: skip

TEAMS = (
    Case(
        "QuotaStarving",
        {
            _queue("kueue_pending_workloads", status="inadmissible"): "2x80 0x30",
            _gpus("kueue_cluster_queue_nominal_quota"): "80x120",
            _gpus("kueue_cluster_queue_resource_usage"): "16x120",
        },
        55, 70, 100,
        _TEAM,
        "2 workloads of research wait for 60 minutes while its quota has room",
        # A team that holds all of its quota waits for what it would borrow.
        {
            _queue("kueue_pending_workloads", status="inadmissible"): "2x120",
            _gpus("kueue_cluster_queue_nominal_quota"): "80x120",
            _gpus("kueue_cluster_queue_resource_usage"): "96x120",
        },
        (70, 119),
    ),
    Case(
        "QueueWaitLong",
        {
            _queue("kueue_admission_wait_time_seconds_bucket", le="3600"): "0x150",
            _queue("kueue_admission_wait_time_seconds_bucket", le="7200"): "0+1x60 60x90",
            _queue("kueue_admission_wait_time_seconds_bucket", le="+Inf"): "0+1x60 60x90",
        },
        10, 40, 140,
        _TEAM,
        "Workloads of research wait 114 minutes; the target is 60",
        {
            _queue("kueue_admission_wait_time_seconds_bucket", le="1800"): "0+1x100",
            _queue("kueue_admission_wait_time_seconds_bucket", le="3600"): "0+1x100",
            _queue("kueue_admission_wait_time_seconds_bucket", le="+Inf"): "0+1x100",
        },
        (40, 99),
    ),
    Case(
        "PreemptionsFrequent",
        {_queue("kueue_evicted_workloads_total", reason="Preempted"): "0x5 0+1x20 20x100"},
        10, 60, 120,
        _TEAM,
        "20 workloads of research lost their place to others within the hour",
        # Pods that were not ready in time were not preempted.
        {
            _queue("kueue_evicted_workloads_total", reason="PodsReadyTimeout"): "0+1x100",
            _queue("kueue_evicted_workloads_total", reason="Preempted"): "0x100",
        },
        (60, 99),
    ),
    Case(
        "QueueInactive",
        {
            _queue("kueue_cluster_queue_status", status="active"): "1x5 0x20 1x20",
            _queue("kueue_cluster_queue_status", status="pending"): "0x5 1x20 0x20",
        },
        10, 20, 40,
        {"cluster_queue": "hyperpod-ns-research-clusterqueue"},
        "Queue hyperpod-ns-research-clusterqueue admits nothing",
        {
            _queue("kueue_cluster_queue_status", status="active"): "1x60",
            _queue("kueue_cluster_queue_status", status="pending"): "0x60",
        },
        (20, 59),
    ),
    Case(
        "SlurmQueueWaiting",
        {s("slurm_queue_pending"): "3x80 0x30", s("slurm_gpus_total"): "128x120", s("slurm_gpus_alloc"): "64x120"},
        55, 70, 100,
        {},
        "3 jobs wait for 60 minutes while GPUs are free",
        {s("slurm_queue_pending"): "3x120", s("slurm_gpus_total"): "128x120", s("slurm_gpus_alloc"): "128x120"},
        (70, 119),
    ),
)  # fmt: skip

CAPACITY = (
    Case(
        "PlanEndsSoon",
        # Somebody extends it by ten days.
        {s("podwright_plan_end_timestamp_seconds", plan="h200-q1"): f"{7 * _DAY + 600}x30 {17 * _DAY}x20"},
        5, 20, 40,
        _PLAN,
        "Training plan h200-q1 ends in 6.993 days, and its instances go then",
        {
            s("podwright_plan_end_timestamp_seconds", plan="h200-q1"): f"{8 * _DAY}x30",
            # The last plan is over.
            s("podwright_plan_end_timestamp_seconds", plan="h200-q4"): "0x30",
        },
        (10, 29),
    ),
    Case(
        "PlanEnding",
        {s("podwright_plan_end_timestamp_seconds", plan="h200-q1"): f"{_DAY + 600}x30 {10 * _DAY}x20"},
        5, 20, 40,
        _PLAN,
        "Training plan h200-q1 ends in 23.83 hours, and its instances go then",
        {s("podwright_plan_end_timestamp_seconds", plan="h200-q1"): f"{2 * _DAY}x30"},
        (10, 29),
    ),
    Case(
        "PlanIdle",
        {
            s("podwright_plan_instances", plan="h200-q1", state="total"): "16x200",
            s("podwright_plan_instances", plan="h200-q1", state="available"): "8x150 0x50",
        },
        110, 140, 180,
        _PLAN,
        "50 % of the instances of training plan h200-q1 are idle for two hours",
        {
            s("podwright_plan_instances", plan="h200-q1", state="total"): "16x200",
            s("podwright_plan_instances", plan="h200-q1", state="available"): "4x200",
        },
        (150, 199),
    ),
    Case(
        "PlanUnhealthy",
        {s("podwright_plan_instances", plan="h200-q1", state="unhealthy"): "1x80 0x30"},
        55, 70, 100,
        {**_PLAN, "state": "unhealthy"},
        "Training plan h200-q1 has had unhealthy instances for 60 minutes: 1",
        {
            s("podwright_plan_instances", plan="h200-q1", state="unhealthy"): "0x100",
            s("podwright_plan_instances", plan="h200-q1", state="in_use"): "16x100",
        },
        (70, 99),
    ),
    Case(
        "LustreFull",
        {
            _lustre("node_filesystem_avail_bytes"): "40x5 12x20 40x20",
            _lustre("node_filesystem_size_bytes"): "100x60",
            # A node that has not looked for a while sees more room.
            _lustre("node_filesystem_avail_bytes", "10.16.0.5:9100"): "40x60",
            _lustre("node_filesystem_size_bytes", "10.16.0.5:9100"): "100x60",
        },
        10, 20, 40,
        _MOUNT,
        "Lustre at /fsx is 88 % full",
        {_lustre("node_filesystem_avail_bytes"): "16x60", _lustre("node_filesystem_size_bytes"): "100x60"},
        (20, 59),
    ),
    Case(
        "LustreFillsSoon",
        # 0.1 % a minute are 72 % in twelve hours.
        {
            _lustre("node_filesystem_avail_bytes"): "600-1x150 450x300",
            _lustre("node_filesystem_size_bytes"): "1000x500",
        },
        75, 120, 440,
        _MOUNT,
        "Lustre at /fsx is full within 12 hours if it goes on like this",
        {_lustre("node_filesystem_avail_bytes"): "9000-1x200", _lustre("node_filesystem_size_bytes"): "10000x200"},
        (60, 199),
    ),
    Case(
        "LustreInodesLow",
        {_lustre("node_filesystem_files_free"): "40x5 10x20 40x20", _lustre("node_filesystem_files"): "100x60"},
        10, 20, 40,
        _MOUNT,
        "90 % of the files that Lustre at /fsx can hold are there",
        {
            _lustre("node_filesystem_files_free"): "16x60",
            _lustre("node_filesystem_files"): "100x60",
            # Nodes have file systems of their own.
            s("node_filesystem_files_free", instance="10.16.0.4:9100", fstype="xfs", mountpoint="/"): "1x60",
            s("node_filesystem_files", instance="10.16.0.4:9100", fstype="xfs", mountpoint="/"): "100x60",
        },
        (20, 59),
    ),
    Case(
        "SpendAboveBudget",
        {
            s("podwright_instances", instance_group="h200", state="current"): "16x80 2x40",
            s("podwright_instance_price_usd_per_hour", instance_group="h200"): "60x120",
        },
        55, 70, 110,
        {},
        "At the pace of now the instances cost 700.8k USD a month; the budget has 400000",
        {
            s("podwright_instances", instance_group="h200", state="current"): "9x120",
            s("podwright_instance_price_usd_per_hour", instance_group="h200"): "60x120",
        },
        (70, 119),
    ),
)  # fmt: skip

UPKEEP = (
    Case(
        "NodeMetricsMissing",
        {s("node_uname_info", instance="10.16.0.4:9100"): "1x5 _x30 1x20"},
        12, 25, 45,
        {},
        "No node sends metrics: alerts on nodes, GPUs and jobs cannot fire",
        {s("node_uname_info", instance="10.16.0.4:9100"): "1x60"},
        (20, 59),
    ),
    Case(
        "GpuMetricsMissing",
        {_gpu("DCGM_FI_DEV_GPU_TEMP"): "50x70 _x40 50x40"},
        80, 100, 140,
        {},
        "GPUs have sent no metrics for ten minutes",
        # A cluster without GPUs.
        {s("node_uname_info", instance="10.16.0.4:9100"): "1x120"},
        (80, 119),
    ),
    Case(
        "FleetMetricsMissing",
        {s("podwright_measured_timestamp_seconds"): "0+60x5 _x30 0+60x20"},
        12, 25, 45,
        {},
        "Nobody counts the cluster's instances and plans: alerts on them cannot fire",
        {s("podwright_measured_timestamp_seconds"): "0+60x60"},
        (20, 59),
    ),
    Case(
        "ExporterDown",
        {
            s("up", job="dcgm-exporter", instance="10.16.0.4:9400"): "1x5 0x30 1x20",
            s("up", job="dcgm-exporter", instance="10.16.0.5:9400"): "1x60",
        },
        15, 30, 50,
        {"job": "dcgm-exporter"},
        "1 exporters of dcgm-exporter do not answer",
        {s("up", job="dcgm-exporter", instance="10.16.0.4:9400"): "1x60"},
        (20, 59),
    ),
    Case(
        "BenchmarkFailed",
        {
            _benchmarked("podwright_benchmark_verdict", "i-0a", verdict="fail"): "0x5 1x10 0x20",
            _benchmarked("podwright_benchmark_verdict", "i-0a", verdict="pass"): "1x5 0x10 1x20",
        },
        4, 10, 30,
        {"instance_group": "h200", "instance_id": "i-0a"},
        "Instance i-0a of h200 failed its benchmarks",
        {_benchmarked("podwright_benchmark_verdict", "i-0a", verdict="warn"): "1x30"},
        (10, 29),
    ),
    Case(
        "BenchmarkRegression",
        {_kernel("i-0a", "all_reduce", "GB/s"): "480x10 360x20 470x20"},
        9, 20, 45,
        {"instance_id": "i-0a", "kernel": "all_reduce", "unit": "GB/s", **_SORT},
        "all_reduce on i-0a is 25 % slower than it was",
        # Less of a time is better, and a few percent are noise.
        {_kernel("i-0a", "latency", "us"): "20x10 10x20", _kernel("i-0a", "gemm_bf16", "TFLOPS"): "700x10 650x20"},
        (15, 29),
    ),
    Case(
        "BenchmarkOutlier",
        {
            _kernel("i-0a", "gemm_bf16", "TFLOPS"): "700x10 500x20 700x20",
            _kernel("i-0b", "gemm_bf16", "TFLOPS"): "700x50",
            _kernel("i-0c", "gemm_bf16", "TFLOPS"): "700x50",
        },
        9, 20, 45,
        {"instance_id": "i-0a", "kernel": "gemm_bf16", "unit": "TFLOPS", **_SORT},
        "gemm_bf16 is 28.57 % slower on i-0a than on others",
        # All of them are as slow.
        {
            _kernel("i-0a", "gemm_bf16", "TFLOPS"): "500x20",
            _kernel("i-0b", "gemm_bf16", "TFLOPS"): "510x20",
            _kernel("i-0a", "latency", "us"): "10x20",
            _kernel("i-0b", "latency", "us"): "20x20",
        },
        (10, 19),
    ),
)  # fmt: skip

CASES = (*NODES, *GPUS, *JOBS, *TEAMS, *CAPACITY, *UPKEEP)
