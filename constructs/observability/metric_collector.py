"""HyperPod's observability add-on: exporters on every node, and what sends their metrics to the workspace."""

from typing import cast

import aws_cdk as cdk
from constructs import Construct, IDependable

from ...config.catalog.names import cluster_log_group
from ...config.settings.cluster import Eks
from ...config.settings.observability import Observability
from ...planning.kubernetes.addons import OBSERVABILITY_ADDON
from ...planning.monitoring.metric_levels import addon_configuration
from ...planning.rules import check
from ..common.permission import allow
from ..eks.addons import addon
from ..eks.pod_role import PodRole
from .prometheus_workspace import PrometheusWorkspace

NAMESPACE = "hyperpod-observability"
_SERVICE_ACCOUNT = "hyperpod-observability-operator-otel-collector"


class MetricCollector(Construct):
    """The add-on with levels from the settings, and the role with which its collector writes.

    The role may write to this workspace; only with `container_logs` it may also write the log groups of HyperPod
    clusters of this name. AWS documents it with every read of those logs as well, which writing does not need. It
    comes first and by an association of its own, like that of the other operators. Source: SageMaker Developer Guide,
    "Setting up" and "Troubleshooting the SageMaker HyperPod observability add-on", 2026-11.

    Example:
        from podwright.config.settings.cluster import Eks
        from podwright.config.settings.observability import Observability
        from podwright.constructs.observability.prometheus_workspace import PrometheusWorkspace
        metrics = PrometheusWorkspace(stack, "Metrics", settings=Observability(), name="prod", key=key,
                                      protection="retain")
        MetricCollector(stack, "Collector", settings=Observability(), eks=Eks(), cluster_name="prod",
                        hyperpod_name="prod", workspace=metrics)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Observability,
        eks: Eks,
        cluster_name: str,
        hyperpod_name: str,
        workspace: PrometheusWorkspace,
    ) -> None:
        """Defines role and add-on.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: Levels and intervals.
            eks: The control plane's settings; `addons` may hold another version.
            cluster_name: Name of the EKS cluster.
            hyperpod_name: Name of the HyperPod cluster; its log groups carry it.
            workspace: Where metrics go.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)
        check(eks)

        identity = PodRole(
            self,
            "Pods",
            cluster_name=cluster_name,
            namespace=NAMESPACE,
            service_account=_SERVICE_ACCOUNT,
            description="Writes metrics of HyperPod",
        )
        workspace.grant_write(identity.role)
        if settings.container_logs:
            group = cdk.Stack.of(self).format_arn(
                service="logs",
                resource="log-group",
                resource_name=cluster_log_group(hyperpod_name),
                arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
            )
            writes = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
            allow(
                identity.role,
                writes,
                [group],
                because="The group's name ends with the cluster's id, its streams' with pods'.",
            )

        self.addon = addon(
            self,
            OBSERVABILITY_ADDON,
            eks,
            cluster_name,
            addon_configuration(settings, workspace.arn, workspace.endpoint),
        )
        """The add-on."""
        self.addon.node.add_dependency(cast(IDependable, identity.association))
        self.role = identity.role
        """What its collector may."""
