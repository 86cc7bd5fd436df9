"""Alerts on capacity that is paid for: training plans, storage, and the pace of spending."""

from typing import Final

from .alert import Alert

ALERTS: Final = (
    Alert(
        name="PlanEndsSoon",
        severity="warning",
        expression="plan:days_left:min{$cluster} < $threshold and plan:days_left:min{$cluster} > 0",
        summary="Training plan {{ $labels.plan }} ends in {{ $value | humanize }} days, and its instances go then",
        threshold=7,
        unit="days",
    ),
    Alert(
        name="PlanEnding",
        severity="critical",
        expression="plan:days_left:min{$cluster} * 24 < $threshold and plan:days_left:min{$cluster} > 0",
        summary="Training plan {{ $labels.plan }} ends in {{ $value | humanize }} hours, and its instances go then",
        threshold=24,
        unit="hours",
    ),
    Alert(
        name="PlanIdle",
        severity="warning",
        expression="100 * plan:idle:ratio{$cluster} > $threshold",
        summary="{{ $value | humanize }} % of the instances of training plan {{ $labels.plan }} are idle for two hours",
        minutes=120,
        threshold=25,
        unit="percent",
    ),
    Alert(
        name="PlanUnhealthy",
        severity="warning",
        expression='podwright_plan_instances{$cluster, state="unhealthy"} > 0',
        summary="Training plan {{ $labels.plan }} has had unhealthy instances for $threshold minutes: {{ $value }}",
        minutes=None,
        threshold=60,
        unit="minutes",
    ),
    Alert(
        name="LustreFull",
        severity="warning",
        expression="100 * filesystem:lustre_used:ratio{$cluster} >= $threshold",
        summary="Lustre at {{ $labels.mountpoint }} is {{ $value | humanize }} % full",
        minutes=10,
        threshold=85,
        unit="percent",
    ),
    Alert(
        name="LustreFillsSoon",
        severity="critical",
        # A prediction from few samples is worth nothing, so it takes an hour of them.
        expression="predict_linear(filesystem:lustre_used:ratio{$cluster}[3h], 3600 * $threshold) >= 1 "
        "and count_over_time(filesystem:lustre_used:ratio{$cluster}[3h]) >= 60",
        summary="Lustre at {{ $labels.mountpoint }} will be full within $threshold hours at the current rate",
        minutes=30,
        threshold=12,
        unit="hours",
    ),
    Alert(
        name="LustreInodesLow",
        severity="warning",
        expression="max by (cluster_name, mountpoint) (100 - 100 * "
        'node_filesystem_files_free{$cluster, fstype="lustre"} / node_filesystem_files{$cluster, fstype="lustre"}) '
        ">= $threshold",
        summary="Lustre at {{ $labels.mountpoint }} uses {{ $value | humanize }} % of its inodes",
        minutes=10,
        threshold=85,
        unit="percent",
    ),
    Alert(
        name="SpendAboveBudget",
        severity="warning",
        # 730 hours are a month.
        expression="cluster:hourly_cost_usd:sum{$cluster} * 730 > $threshold",
        summary="At the current rate the instances cost {{ $value | humanize }} USD a month; the budget is $threshold",
        minutes=60,
        unit="USD a month",
    ),
)
