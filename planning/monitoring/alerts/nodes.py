"""Alerts on nodes: their health, their replacement, and how many there are."""

from typing import Final

from .alert import Alert


def _nodes(labels: str, over: str = "") -> str:
    """Nodes whose labels fit, with their instance group."""
    result = f"podwright_node_health{{$cluster, {labels}}}"
    result = f"max_over_time({result}[{over}])" if over else result
    return f"max by (cluster_name, instance_group, node) ({result})"


ALERTS: Final = (
    Alert(
        name="NodeUnhealthy",
        severity="warning",
        # A node is Unschedulable while deep health checks run on it, too.
        expression=_nodes('health=~"Unschedulable.*", deep_health_check!="InProgress"') + " > 0",
        summary="Node {{ $labels.node }} of {{ $labels.instance_group }} takes no work: HyperPod found a fault",
        minutes=5,
        orchestrator="eks",
    ),
    Alert(
        name="NodeRebootSlow",
        severity="warning",
        expression=_nodes('health="UnschedulablePendingReboot"') + " > 0",
        summary="Node {{ $labels.node }} of {{ $labels.instance_group }} has waited $threshold minutes for its reboot",
        minutes=None,
        target="reboot_minutes",
        unit="minutes",
        orchestrator="eks",
    ),
    Alert(
        name="NodeReplacementSlow",
        severity="critical",
        expression=_nodes('health="UnschedulablePendingReplacement"') + " > 0",
        summary="Node {{ $labels.node }} of {{ $labels.instance_group }} has waited $threshold minutes to be replaced",
        minutes=None,
        target="replacement_minutes",
        unit="minutes",
        orchestrator="eks",
    ),
    Alert(
        name="NodeReplacementRepeats",
        severity="critical",
        expression="count by (cluster_name, instance_group) ("
        + _nodes('health="UnschedulablePendingReplacement"', "6h")
        + ") >= $threshold",
        summary="{{ $value }} nodes of {{ $labels.instance_group }} were marked for replacement within six hours",
        threshold=3,
        unit="nodes",
        orchestrator="eks",
    ),
    Alert(
        name="NodeNotReady",
        severity="warning",
        expression="max by (cluster_name, node) "
        '(kube_node_status_condition{$cluster, condition="Ready", status="true"}) == 0',
        summary="Node {{ $labels.node }} has not been ready for ten minutes",
        minutes=10,
        orchestrator="eks",
    ),
    Alert(
        name="SlurmNodesDown",
        severity="warning",
        expression="max by (cluster_name) (slurm_nodes_down{$cluster} + slurm_nodes_fail{$cluster}) > 0",
        summary="{{ $value }} nodes are down in Slurm",
        minutes=15,
        orchestrator="slurm",
    ),
    Alert(
        name="InstanceGroupShort",
        severity="warning",
        expression='podwright_instances{$cluster, state="target"} - ignoring (state) '
        'podwright_instances{$cluster, state="current"} > 0',
        summary="Instance group {{ $labels.instance_group }} has lacked {{ $value }} instances for $threshold minutes",
        minutes=None,
        threshold=60,
        unit="minutes",
    ),
    Alert(
        name="InstanceCountSurge",
        severity="critical",
        expression="cluster:instances:sum{$cluster} > $threshold",
        summary="The cluster has {{ $value }} instances, more than the $threshold in its file, and pays for them",
        unit="instances",
    ),
    Alert(
        name="RootVolumeFull",
        severity="warning",
        expression="max by (cluster_name, instance, mountpoint) (100 - 100 * "
        'node_filesystem_avail_bytes{$cluster, mountpoint=~"/|/opt/sagemaker|/opt/dlami/nvme"} '
        '/ node_filesystem_size_bytes{$cluster, mountpoint=~"/|/opt/sagemaker|/opt/dlami/nvme"}) >= $threshold',
        summary="{{ $labels.mountpoint }} of {{ $labels.instance }} is {{ $value | humanize }} % full",
        minutes=10,
        threshold=90,
        unit="percent",
    ),
    Alert(
        name="FileSystemReadOnly",
        severity="critical",
        expression="max by (cluster_name, instance, mountpoint) "
        '(node_filesystem_readonly{$cluster, fstype=~"ext4|xfs|lustre"}) == 1',
        summary="{{ $labels.mountpoint }} of {{ $labels.instance }} cannot be written to",
        minutes=5,
    ),
    Alert(
        name="NodeMemoryErrors",
        severity="critical",
        expression="sum by (cluster_name, instance) (increase(node_edac_uncorrectable_errors_total{$cluster}[1h])) > 0",
        summary="Memory of {{ $labels.instance }} had uncorrectable errors within the hour",
    ),
    Alert(
        name="NodeOutOfMemory",
        severity="warning",
        expression="sum by (cluster_name, instance) (increase(node_vmstat_oom_kill{$cluster}[15m])) > 0",
        summary="{{ $labels.instance }} ran out of memory and has killed processes",
    ),
)
