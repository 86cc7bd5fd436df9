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
        name="CapacityMetricsMissing",
        severity="warning",
        expression="absent(podwright_instances{$cluster})",
        summary="Nobody counts the cluster's instances and plans: alerts on them cannot fire",
        minutes=10,
    ),
)
