"""Alerts on what makes alerts: metrics that no longer come, and measured performance that got worse."""

from typing import Final

from .alert import Alert

ALERTS: Final = (
    Alert(
        name="NodeMetricsMissing",
        severity="critical",
        expression="absent(node_uname_info{$cluster})",
        summary="No node sends metrics: alerts on nodes, GPUs and jobs cannot fire",
        minutes=10,
    ),
    Alert(
        name="GpuMetricsMissing",
        severity="warning",
        expression="cluster:gpus:count{$cluster} offset 1h unless cluster:gpus:count{$cluster}",
        summary="GPUs have sent no metrics for ten minutes",
        minutes=10,
    ),
    Alert(
        name="FleetMetricsMissing",
        severity="warning",
        expression="absent(podwright_measured_timestamp_seconds{$cluster})",
        summary="Nobody counts the cluster's instances and plans: alerts on them cannot fire",
        minutes=10,
    ),
    Alert(
        name="ExporterDown",
        severity="warning",
        expression="count by (cluster_name, job) (up{$cluster} == 0) > 0",
        summary="{{ $value }} exporters of {{ $labels.job }} do not answer",
        minutes=15,
    ),
    Alert(
        name="BenchmarkFailed",
        severity="warning",
        expression="max by (cluster_name, instance_group, instance_id) "
        '(podwright_benchmark_verdict{$cluster, verdict="fail"}) == 1',
        summary="Instance {{ $labels.instance_id }} of {{ $labels.instance_group }} failed its benchmarks",
    ),
    Alert(
        name="BenchmarkRegression",
        severity="warning",
        # Of rates more is better. Times and errors have limits of their own, which BenchmarkFailed speaks of.
        expression='100 - 100 * podwright_benchmark_value{$cluster, unit=~".*(/s|FLOPS)"} '
        '/ max_over_time(podwright_benchmark_value{$cluster, unit=~".*(/s|FLOPS)"}[14d]) > $threshold',
        summary="{{ $labels.kernel }} on {{ $labels.instance_id }} is {{ $value | humanize }} % slower than it was",
        threshold=10,
        unit="percent",
    ),
    Alert(
        name="BenchmarkOutlier",
        severity="warning",
        expression='100 - 100 * podwright_benchmark_value{$cluster, unit=~".*(/s|FLOPS)"} '
        "/ on (cluster_name, instance_type, kernel, unit) group_left () quantile by "
        "(cluster_name, instance_type, kernel, unit) "
        "(0.5, podwright_benchmark_value{$cluster}) > $threshold",
        summary="{{ $labels.kernel }} is {{ $value | humanize }} % slower on {{ $labels.instance_id }} than on others",
        threshold=10,
        unit="percent",
    ),
)
