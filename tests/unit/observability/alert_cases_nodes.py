"""Histories of alerts on nodes and GPUs."""

from alert_histories import GPU, H200, ON, Case, clock, gpu, node, s

NODES = (
    Case(
        "NodeUnhealthy",
        {
            node("hyperpod-i-0a", "UnschedulablePendingReplacement"): "1x20 _x30",
            node("hyperpod-i-0a", "Schedulable"): "_x20 1x30",
        },
        4, 8, 30,
        ON,
        "Node hyperpod-i-0a of h200 takes no work: HyperPod found a fault",
        # Deep health checks take hours, and so does a node that they run on.
        {
            node("hyperpod-i-0a", "Unschedulable", "InProgress"): "1x120",
            node("hyperpod-i-0b", "Schedulable"): "1x120",
        },
        (10, 60, 119),
    ),
    Case(
        "NodeRebootSlow",
        {node("hyperpod-i-0a", "UnschedulablePendingReboot"): "1x25 _x30"},
        9, 12, 40,
        ON,
        "Node hyperpod-i-0a of h200 has waited 10 minutes for its reboot",
        {
            node("hyperpod-i-0a", "UnschedulablePendingReboot"): "1x4 _x30",
            node("hyperpod-i-0b", "Schedulable"): "1x60",
        },
        (5, 10, 20),
    ),
    Case(
        "NodeReplacementSlow",
        {node("hyperpod-i-0a", "UnschedulablePendingReplacement"): "1x60 _x30"},
        44, 50, 80,
        ON,
        "Node hyperpod-i-0a of h200 has waited 45 minutes to be replaced",
        {
            node("hyperpod-i-0a", "UnschedulablePendingReplacement"): "1x35 _x60",
            node("hyperpod-i-0b", "Schedulable"): "1x90",
        },
        (30, 45, 60),
    ),
    Case(
        "NodeReplacementRepeats",
        {
            node("hyperpod-i-0a", "UnschedulablePendingReplacement"): "1x10 _x500",
            node("hyperpod-i-0b", "UnschedulablePendingReplacement"): "_x60 1x10 _x500",
            node("hyperpod-i-0c", "UnschedulablePendingReplacement"): "_x120 1x10 _x500",
        },
        119, 125, 500,
        H200,
        "3 nodes of h200 were marked for replacement within six hours",
        # One node that is marked three times is one replacement.
        {
            node("hyperpod-i-0a", "UnschedulablePendingReplacement"): "1x9 _x20 1x9 _x20 1x9 _x20",
            **{node(f"hyperpod-i-1{letter}", "Schedulable"): "1x90" for letter in "abc"},
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
        H200,
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
        "The cluster has 26 instances, more than the 18 in its file, and pays for them",
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
        {gpu("DCGM_FI_DEV_XID_ERRORS"): "0x5 79x10 0x30"},
        5, 8, 30,
        GPU,
        "GPU 3 of hyperpod-i-0a reported Xid 79, a fault of the hardware",
        # 31 is a page fault of a program, 13 an exception of one.
        {gpu("DCGM_FI_DEV_XID_ERRORS"): "31x20", gpu("DCGM_FI_DEV_XID_ERRORS", 4): "13x20"},
        (5, 19),
    ),
    Case(
        "GpuMissing",
        {
            gpu("DCGM_FI_DEV_GPU_TEMP", 0): "50x60",
            gpu("DCGM_FI_DEV_GPU_TEMP", 1): "50x10 _x20 50x30",
        },
        18, 25, 45,
        {"node": "hyperpod-i-0a"},
        "Node hyperpod-i-0a has lost 1 of its GPUs",
        # All of a node are gone when it is replaced, which other alerts speak of.
        {gpu("DCGM_FI_DEV_GPU_TEMP", 0): "50x10 _x50", gpu("DCGM_FI_DEV_GPU_TEMP", 1): "50x10 _x50"},
        (12, 20, 40),
    ),
    Case(
        "GpuMemoryFailed",
        {gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE"): "0x5 1x10 0x20"},
        4, 8, 25,
        GPU,
        "GPU 3 of hyperpod-i-0a has no spare memory rows left",
        {gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE"): "0x30"},
        (5, 29),
    ),
    Case(
        "GpuMemoryErrors",
        {gpu("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"): "0x10 1x100"},
        9, 15, 90,
        GPU,
        "GPU 3 of hyperpod-i-0a had uncorrectable memory errors within the hour",
        # Rows that were remapped long ago are no news.
        {gpu("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"): "2x60"},
        (10, 59),
    ),
    Case(
        "GpuHot",
        {gpu("DCGM_FI_DEV_GPU_TEMP"): "60x5 90x15 60x20"},
        8, 15, 30,
        GPU,
        "GPU 3 of hyperpod-i-0a has 90 °C",
        {gpu("DCGM_FI_DEV_GPU_TEMP"): "87x30"},
        (10, 29),
    ),
    Case(
        "GpuThrottling",
        {gpu("DCGM_FI_DEV_THERMAL_VIOLATION"): "0x5 0+1000000x25 25000000x40"},
        10, 25, 60,
        GPU,
        "GPU 3 of hyperpod-i-0a has been slowed down by heat for ten minutes",
        # It was once, for less than ten minutes.
        {gpu("DCGM_FI_DEV_THERMAL_VIOLATION"): "0x5 1000000x60"},
        (8, 14, 40),
    ),
    Case(
        "GpuClockLow",
        {
            clock(0): "1980x50",
            clock(1): "1980x50",
            clock(2): "1980x5 990x25 1980x20",
            **{clock(gpu, "DCGM_FI_DEV_GPU_UTIL"): "95x50" for gpu in (0, 1, 2)},
        },
        15,
        25,
        45,
        {"Hostname": "hyperpod-i-0a", "gpu": "2", "namespace": "hyperpod-ns-research", "modelName": "NVIDIA H200"},
        "GPU 2 of hyperpod-i-0a runs 50 % slower than others of hyperpod-ns-research",
        # A GPU that has nothing to do lowers its clock.
        {
            clock(0): "1980x50",
            clock(1): "345x50",
            clock(0, "DCGM_FI_DEV_GPU_UTIL"): "95x50",
            clock(1, "DCGM_FI_DEV_GPU_UTIL"): "0x50",
        },
        (25, 49),
    ),
    Case(
        "GpuNvlinkErrors",
        {gpu("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"): "0x10 4x100"},
        9, 15, 90,
        GPU,
        "GPU 3 of hyperpod-i-0a had errors of its NVLink within the hour: 4",
        {
            gpu("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"): "7x60",
            gpu("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"): "0+1x60",
        },
        (10, 59),
    ),
    Case(
        "GpuPcieReplays",
        {gpu("DCGM_FI_DEV_PCIE_REPLAY_COUNTER"): "0+120x40 4800x40"},
        10, 30, 60,
        GPU,
        "GPU 3 of hyperpod-i-0a repeats 2 transfers a second over PCIe",
        {gpu("DCGM_FI_DEV_PCIE_REPLAY_COUNTER"): "0+30x60"},
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
