"""Histories of alerts on capacity, and on what makes alerts."""

from alert_histories import DAY, MOUNT, PLAN, SORT, Case, benchmarked, gpu, kernel, lustre, s

CAPACITY = (
    Case(
        "PlanEndsSoon",
        # Somebody extends it by ten days.
        {s("podwright_plan_end_timestamp_seconds", plan="h200-q1"): f"{7 * DAY + 600}x30 {17 * DAY}x20"},
        5, 20, 40,
        PLAN,
        "Training plan h200-q1 ends in 6.993 days, and its instances go then",
        {
            s("podwright_plan_end_timestamp_seconds", plan="h200-q1"): f"{8 * DAY}x30",
            # The last plan is over.
            s("podwright_plan_end_timestamp_seconds", plan="h200-q4"): "0x30",
        },
        (10, 29),
    ),
    Case(
        "PlanEnding",
        {s("podwright_plan_end_timestamp_seconds", plan="h200-q1"): f"{DAY + 600}x30 {10 * DAY}x20"},
        5, 20, 40,
        PLAN,
        "Training plan h200-q1 ends in 23.83 hours, and its instances go then",
        {s("podwright_plan_end_timestamp_seconds", plan="h200-q1"): f"{2 * DAY}x30"},
        (10, 29),
    ),
    Case(
        "PlanIdle",
        {
            s("podwright_plan_instances", plan="h200-q1", state="total"): "16x200",
            s("podwright_plan_instances", plan="h200-q1", state="available"): "8x150 0x50",
        },
        110, 140, 180,
        PLAN,
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
        {**PLAN, "state": "unhealthy"},
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
            lustre("node_filesystem_avail_bytes"): "40x5 12x20 40x20",
            lustre("node_filesystem_size_bytes"): "100x60",
            # A node that has not looked for a while sees more room.
            lustre("node_filesystem_avail_bytes", "10.16.0.5:9100"): "40x60",
            lustre("node_filesystem_size_bytes", "10.16.0.5:9100"): "100x60",
        },
        10, 20, 40,
        MOUNT,
        "Lustre at /fsx is 88 % full",
        {lustre("node_filesystem_avail_bytes"): "16x60", lustre("node_filesystem_size_bytes"): "100x60"},
        (20, 59),
    ),
    Case(
        "LustreFillsSoon",
        # 0.1 % a minute are 72 % in twelve hours.
        {
            lustre("node_filesystem_avail_bytes"): "600-1x150 450x300",
            lustre("node_filesystem_size_bytes"): "1000x500",
        },
        75, 120, 440,
        MOUNT,
        "Lustre at /fsx will be full within 12 hours at the current rate",
        {lustre("node_filesystem_avail_bytes"): "9000-1x200", lustre("node_filesystem_size_bytes"): "10000x200"},
        (60, 199),
    ),
    Case(
        "LustreInodesLow",
        {lustre("node_filesystem_files_free"): "40x5 10x20 40x20", lustre("node_filesystem_files"): "100x60"},
        10, 20, 40,
        MOUNT,
        "Lustre at /fsx uses 90 % of its inodes",
        {
            lustre("node_filesystem_files_free"): "16x60",
            lustre("node_filesystem_files"): "100x60",
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
        "At the current rate the instances cost 700.8k USD a month; the budget is 400000",
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
        {gpu("DCGM_FI_DEV_GPU_TEMP"): "50x70 _x40 50x40"},
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
            benchmarked("podwright_benchmark_verdict", "i-0a", verdict="fail"): "0x5 1x10 0x20",
            benchmarked("podwright_benchmark_verdict", "i-0a", verdict="pass"): "1x5 0x10 1x20",
        },
        4, 10, 30,
        {"instance_group": "h200", "instance_id": "i-0a"},
        "Instance i-0a of h200 failed its benchmarks",
        {benchmarked("podwright_benchmark_verdict", "i-0a", verdict="warn"): "1x30"},
        (10, 29),
    ),
    Case(
        "BenchmarkRegression",
        {kernel("i-0a", "all_reduce", "GB/s"): "480x10 360x20 470x20"},
        9, 20, 45,
        {"instance_id": "i-0a", "kernel": "all_reduce", "unit": "GB/s", **SORT},
        "all_reduce on i-0a is 25 % slower than it was",
        # Less of a time is better, and a few percent are noise.
        {kernel("i-0a", "latency", "us"): "20x10 10x20", kernel("i-0a", "gemm_bf16", "TFLOPS"): "700x10 650x20"},
        (15, 29),
    ),
    Case(
        "BenchmarkOutlier",
        {
            kernel("i-0a", "gemm_bf16", "TFLOPS"): "700x10 500x20 700x20",
            kernel("i-0b", "gemm_bf16", "TFLOPS"): "700x50",
            kernel("i-0c", "gemm_bf16", "TFLOPS"): "700x50",
        },
        9, 20, 45,
        {"instance_id": "i-0a", "kernel": "gemm_bf16", "unit": "TFLOPS", **SORT},
        "gemm_bf16 is 28.57 % slower on i-0a than on others",
        # All of them are as slow.
        {
            kernel("i-0a", "gemm_bf16", "TFLOPS"): "500x20",
            kernel("i-0b", "gemm_bf16", "TFLOPS"): "510x20",
            kernel("i-0a", "latency", "us"): "10x20",
            kernel("i-0b", "latency", "us"): "20x20",
        },
        (10, 19),
    ),
)  # fmt: skip
