"""Alerts on teams: whether they get what they are guaranteed."""

from typing import Final

from .alert import Alert

ALERTS: Final = (
    Alert(
        name="QuotaStarving",
        severity="warning",
        expression="team:pending:sum{$cluster} > 0 and on (cluster_name, team) "
        "sum by (cluster_name, team) (team:unused:sum{$cluster}) > 0",
        summary="{{ $value }} workloads of {{ $labels.team }} wait for $threshold minutes while its quota has room",
        minutes=None,
        target="queue_wait_minutes",
        unit="minutes",
        orchestrator="eks",
    ),
    Alert(
        name="QuotaAboveNodes",
        severity="warning",
        # Kueue and kube-state-metrics write the names of resources in two ways, so sums over all are compared.
        expression="sum by (cluster_name) (team:quota:sum{$cluster}) - sum by (cluster_name) ("
        'kube_node_status_allocatable{$cluster, resource=~"nvidia_com_.+|aws_amazon_com_neuron.+"} '
        "* on (cluster_name, node) group_left () max by (cluster_name, node) "
        '(kube_node_status_condition{$cluster, condition="Ready", status="true"})) > 0',
        summary="Quotas guarantee {{ $value }} accelerators more than the ready nodes have",
        # Twice as long as the replacement of a node takes.
        minutes=60,
        orchestrator="eks",
    ),
    Alert(
        name="QueueWaitLong",
        severity="warning",
        expression="team:admission_wait_seconds:p90{$cluster} / 60 > $threshold",
        summary="Workloads of {{ $labels.team }} wait {{ $value | humanize }} minutes; the target is $threshold",
        minutes=15,
        target="queue_wait_minutes",
        unit="minutes",
        orchestrator="eks",
    ),
    Alert(
        name="PreemptionsFrequent",
        severity="warning",
        expression='sum by (cluster_name, team) (team_reason:evictions:increase1h{$cluster, reason="Preempted"}) '
        "> $threshold",
        summary="{{ $value | humanize }} workloads of {{ $labels.team }} were preempted within the last hour",
        threshold=10,
        unit="workloads",
        orchestrator="eks",
    ),
    Alert(
        name="QueueInactive",
        severity="critical",
        expression='max by (cluster_name, cluster_queue) (kueue_cluster_queue_status{$cluster, status="active"}) == 0',
        summary="Queue {{ $labels.cluster_queue }} admits nothing",
        minutes=10,
        orchestrator="eks",
    ),
    Alert(
        name="BudgetNear",
        severity="warning",
        expression="team:budget_used:ratio{$cluster} < 1 and on (cluster_name, team, period) "
        "team:budget_used:ratio{$cluster} >= on (cluster_name, team, period) team:budget_warning:ratio{$cluster}",
        summary="{{ $labels.team }} has used {{ $value | humanizePercentage }} of its accelerator-hours of this "
        "{{ $labels.period }}",
        orchestrator="eks",
    ),
    Alert(
        name="BudgetReached",
        severity="warning",
        expression="team:budget_used:ratio{$cluster} >= 1",
        summary="{{ $labels.team }} has used {{ $value | humanizePercentage }} of its accelerator-hours of this "
        "{{ $labels.period }}: its budget is reached",
        orchestrator="eks",
    ),
    Alert(
        name="SlurmQueueWaiting",
        severity="warning",
        expression="max by (cluster_name) (slurm_queue_pending{$cluster}) > 0 and on (cluster_name) "
        "max by (cluster_name) (slurm_gpus_total{$cluster} - slurm_gpus_alloc{$cluster}) > 0",
        summary="{{ $value }} jobs wait for $threshold minutes while GPUs are free",
        minutes=None,
        target="queue_wait_minutes",
        unit="minutes",
        orchestrator="slurm",
    ),
)
