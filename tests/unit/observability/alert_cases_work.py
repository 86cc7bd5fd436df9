"""Histories of alerts on jobs and teams."""

from alert_histories import POD, TEAM, Case, gpu, gpus, pod_gpu, queue, s, waiting

JOBS = (
    Case(
        "JobHanging",
        {
            pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "100x60",
            pod_gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"): "0.4x10 0x25 0.4x25",
        },
        20, 30, 50,
        POD,
        "hyperpod-ns-research/pretrain-0 keeps its GPUs busy without computing for 15 minutes: it probably waits for a "
        "peer",
        # A pod that loads data does not compute either, and its GPUs are not busy.
        {
            pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "20x60",
            pod_gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"): "0x60",
            pod_gpu("DCGM_FI_DEV_GPU_UTIL", "tune-0"): "100x60",
            pod_gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tune-0"): "0.3x60",
            # Nobody's: a benchmark of the node itself.
            gpu("DCGM_FI_DEV_GPU_UTIL", 5): "100x60",
            gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 5): "0x60",
        },
        (30, 59),
    ),
    Case(
        "GpuIdle",
        {pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "95x10 0x50 95x30"},
        35, 55, 80,
        POD,
        "hyperpod-ns-research/pretrain-0 has left GPUs idle for 30 minutes: 1",
        # GPUs that nobody holds are no job's fault, and a pause for a checkpoint is short.
        {
            gpu("DCGM_FI_DEV_GPU_UTIL", namespace="", pod=""): "0x90",
            pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "95x20 0x8 95x60",
        },
        (30, 45, 89),
    ),
    Case(
        "GpuUtilizationLow",
        {pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "30x150 80x30"},
        110, 140, 170,
        {"namespace": "hyperpod-ns-research"},
        "GPUs of hyperpod-ns-research are used to 30 %; the target is 40 %",
        {pod_gpu("DCGM_FI_DEV_GPU_UTIL"): "41x180"},
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
        "Job pretrain took 15 minutes to recover from a fault",
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
        {waiting("CrashLoopBackOff"): "_x5 1x25 _x30"},
        15,
        25,
        50,
        {**POD, "reason": "CrashLoopBackOff"},
        "hyperpod-ns-research/pretrain-0 does not start: CrashLoopBackOff",
        # A large image takes its time.
        {waiting("ContainerCreating"): "1x60"},
        (25, 59),
    ),
)  # fmt: skip

TEAMS = (
    Case(
        "QuotaStarving",
        {
            queue("kueue_pending_workloads", status="inadmissible"): "2x80 0x30",
            gpus("kueue_cluster_queue_nominal_quota"): "80x120",
            gpus("kueue_cluster_queue_resource_usage"): "16x120",
        },
        55, 70, 100,
        TEAM,
        "2 workloads of research wait for 60 minutes while its quota has room",
        # A team that holds all of its quota waits for what it would borrow.
        {
            queue("kueue_pending_workloads", status="inadmissible"): "2x120",
            gpus("kueue_cluster_queue_nominal_quota"): "80x120",
            gpus("kueue_cluster_queue_resource_usage"): "96x120",
        },
        (70, 119),
    ),
    Case(
        "QuotaAboveNodes",
        {
            gpus("kueue_cluster_queue_nominal_quota"): "16x200",
            **{s("kube_node_status_allocatable", node=node, resource="nvidia_com_gpu"): "8x200" for node in ("a", "b")},
            s("kube_node_status_condition", node="a", condition="Ready", status="true"): "1x200",
            s("kube_node_status_condition", node="b", condition="Ready", status="true"): "1x10 0x80 1x100",
        },
        65, 80, 100,
        {},
        "Quotas guarantee 8 accelerators more than the ready nodes have",
        # A node that is replaced within the hour.
        {
            gpus("kueue_cluster_queue_nominal_quota"): "16x200",
            **{s("kube_node_status_allocatable", node=node, resource="nvidia_com_gpu"): "8x200" for node in ("a", "b")},
            s("kube_node_status_condition", node="a", condition="Ready", status="true"): "1x200",
            s("kube_node_status_condition", node="b", condition="Ready", status="true"): "1x10 0x40 1x140",
        },
        (45, 100),
    ),
    Case(
        "QueueWaitLong",
        {
            queue("kueue_admission_wait_time_seconds_bucket", le="3600"): "0x150",
            queue("kueue_admission_wait_time_seconds_bucket", le="7200"): "0+1x60 60x90",
            queue("kueue_admission_wait_time_seconds_bucket", le="+Inf"): "0+1x60 60x90",
        },
        10, 40, 140,
        TEAM,
        "Workloads of research wait 114 minutes; the target is 60",
        {
            queue("kueue_admission_wait_time_seconds_bucket", le="1800"): "0+1x100",
            queue("kueue_admission_wait_time_seconds_bucket", le="3600"): "0+1x100",
            queue("kueue_admission_wait_time_seconds_bucket", le="+Inf"): "0+1x100",
        },
        (40, 99),
    ),
    Case(
        "PreemptionsFrequent",
        {queue("kueue_evicted_workloads_total", reason="Preempted"): "0x5 0+1x20 20x100"},
        10, 60, 120,
        TEAM,
        "20 workloads of research were preempted within the last hour",
        # Pods that were not ready in time were not preempted.
        {
            queue("kueue_evicted_workloads_total", reason="PodsReadyTimeout"): "0+1x100",
            queue("kueue_evicted_workloads_total", reason="Preempted"): "0x100",
        },
        (60, 99),
    ),
    Case(
        "QueueInactive",
        {
            queue("kueue_cluster_queue_status", status="active"): "1x5 0x20 1x20",
            queue("kueue_cluster_queue_status", status="pending"): "0x5 1x20 0x20",
        },
        10, 20, 40,
        {"cluster_queue": "hyperpod-ns-research-clusterqueue"},
        "Queue hyperpod-ns-research-clusterqueue admits nothing",
        {
            queue("kueue_cluster_queue_status", status="active"): "1x60",
            queue("kueue_cluster_queue_status", status="pending"): "0x60",
        },
        (20, 59),
    ),
    # The test's budget of research is 40 hours a week.
    Case(
        "BudgetNear",
        {gpus("kueue_cluster_queue_resource_usage"): "8x400"},
        200, 250, 310,
        {**TEAM, "period": "week"},
        "research has used 81.67% of its accelerator-hours of this week",
        {gpus("kueue_cluster_queue_resource_usage"): "8x170 0x100"},
        (170, 269),
    ),
    Case(
        "BudgetReached",
        {gpus("kueue_cluster_queue_resource_usage"): "8x330 0x100"},
        250, 310, 365,
        {**TEAM, "period": "week"},
        "research has used 102% of its accelerator-hours of this week: its budget is reached",
        # Four hours at the end of a week, and three at the beginning of the next.
        {
            gpus("kueue_cluster_queue_resource_usage"): "0x119 8x420 0x100",
            gpus("kueue_cluster_queue_resource_usage", "product"): "8x600",
        },
        (355, 370, 540),
        # Monday begins at minute 5,760 of the clock, and so at minute 360 of these histories.
        begins=5_400,
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
