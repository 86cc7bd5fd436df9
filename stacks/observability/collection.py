"""What measures: exporters on nodes with what collects them, and what asks SageMaker."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_

from ...config.catalog.names import benchmark_prefix
from ...constructs.hyperpod.cluster_extension.construct import ClusterExtension
from ...constructs.observability.fleet_metrics.construct import Fleet, FleetMetrics
from ...constructs.observability.metric_collector import MetricCollector
from ...constructs.observability.prometheus_workspace import PrometheusWorkspace
from ...planning.monitoring.metric_levels import EXTENSION, extension_configuration
from ...planning.monitoring.resolve import ResolvedMonitoring
from ...planning.resolved import ResolvedEnvironment
from ..capacity import CapacityStack
from ..cluster import ClusterStack
from ..eks import EksStack
from ..storage import StorageStack


def collect(
    stack: cdk.Stack,
    *,
    resolved: ResolvedEnvironment,
    monitoring: ResolvedMonitoring,
    workspace: PrometheusWorkspace,
    key: kms.IKey,
    storage: StorageStack,
    capacity: CapacityStack | None,
    eks: EksStack | None,
    cluster: ClusterStack,
) -> lambda_.IFunction:
    """Add the collectors of a cluster; returns the function that measures it each minute.

    Args:
        stack: Where they lie.
        resolved: The environment.
        monitoring: What is measured of it.
        workspace: Where metrics go.
        key: Encrypts logs.
        storage: Holds results of benchmarks.
        capacity: Its training plans, if it has any.
        eks: Its control plane; None with Slurm.
        cluster: Its HyperPod cluster.
    """
    environment, settings = resolved.environment, monitoring.settings
    if monitoring.nodes_write and cluster.cluster.execution_role:
        # A policy of this stack: the role is there before the workspace is.
        write = iam.PolicyStatement(actions=["aps:RemoteWrite"], resources=[workspace.arn])
        iam.Policy(stack, "NodesWriteMetrics", roles=[cluster.cluster.execution_role], statements=[write])
    if eks:
        MetricCollector(
            stack,
            "Collector",
            settings=settings,
            eks=environment.cluster.eks,
            cluster_name=eks.control_plane.cluster.cluster_name,
            hyperpod_name=environment.cluster.name,
            workspace=workspace,
        )
    else:
        ClusterExtension(
            stack,
            "Collector",
            cluster_arn=cluster.cluster.cluster_arn,
            name=EXTENSION,
            settings=extension_configuration(settings),
            version=settings.slurm_extension_version,
            key=key,
            tags=resolved.tags,
        )
    fleet = Fleet(
        name=environment.cluster.name,
        arn=cluster.cluster.cluster_arn,
        continuous=environment.cluster.provisioning == "continuous",
        prices=monitoring.prices,
        plans=capacity.arns if capacity else {},
        budget=settings.budget_usd_per_month,
    )
    metrics = FleetMetrics(
        stack,
        "Fleet",
        fleet=fleet,
        workspace=workspace,
        key=key,
        api_access=eks.api_access if eks else None,
        results=(storage.lifecycle_bucket, benchmark_prefix(environment.cluster.name)),
    )
    return metrics.function.function
