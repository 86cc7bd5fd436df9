"""Logs that HyperPod and EKS write by themselves."""

import aws_cdk as cdk
from aws_cdk import aws_kms as kms

from ...config.catalog.names import cluster_log_group
from ...constructs.observability.service_logs.construct import ServiceLogs
from ...planning.monitoring.resolve import ResolvedMonitoring
from ..cluster import ClusterStack
from ..eks import EksStack


def keep_logs(
    stack: cdk.Stack, *, monitoring: ResolvedMonitoring, key: kms.IKey, eks: EksStack | None, cluster: ClusterStack
) -> str:
    """Keep and encrypt these logs as the environment says; returns the name of the cluster's log group."""
    name = cluster.cluster.cluster_name
    identity = cdk.Fn.select(1, cdk.Fn.split("/", cluster.cluster.cluster_arn))
    groups, patterns = {"HyperPod": cluster_log_group(name, identity)}, [cluster_log_group(name)]
    if eks and monitoring.control_plane_logs:
        groups["ControlPlane"] = f"/aws/eks/{eks.control_plane.cluster.cluster_name}/cluster"
        patterns.append(groups["ControlPlane"])
    days = monitoring.settings.log_retention_days
    ServiceLogs(stack, "ServiceLogs", groups=groups, patterns=patterns, days=days, key=key)
    return groups["HyperPod"]
