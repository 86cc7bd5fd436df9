"""Dashboards of a cluster in Amazon Managed Grafana: the workspace and what is put into it."""

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ...config.catalog.names import cluster_log_group
from ...config.settings.observability import Grafana
from ...planning.monitoring.dashboards.panel import uid
from ...planning.monitoring.grafana_json import data_source_uid, grafana_json, tag
from ...planning.monitoring.resolve import ResolvedMonitoring
from ..common.arguments import checked
from ..common.protection import Protection
from .grafana_content.construct import GrafanaContent
from .grafana_workspace import GrafanaWorkspace
from .prometheus_workspace import PrometheusWorkspace


@jsii.implements(iam.IGrantable)
class ClusterGrafana(Construct):
    """A workspace of Managed Grafana with the dashboards of a cluster, which ask its workspace of Prometheus.

    Nothing else depends on it: a workspace that cannot be made, as without IAM Identity Center, costs only this.

    Example:
        from podwright.config.catalog.instance_types import catalog
        from podwright.config.settings.observability import Grafana
        from podwright.constructs.observability.prometheus_workspace import PrometheusWorkspace
        from podwright.planning.monitoring.resolve import resolve_monitoring
        monitoring = resolve_monitoring(environment, catalog())
        metrics = PrometheusWorkspace(stack, "Metrics", settings=environment.observability, name="prod", key=key,
                                      protection="retain")
        ClusterGrafana(stack, "Grafana", settings=Grafana(), monitoring=monitoring, name="prod", cluster_name="prod",
                       workspace=metrics, key=key, protection="retain")
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Grafana,
        monitoring: ResolvedMonitoring,
        name: str,
        cluster_name: str,
        workspace: PrometheusWorkspace,
        key: kms.IKey,
        protection: Protection,
    ) -> None:
        """Defines workspace and content.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: Settings of Managed Grafana.
            monitoring: What is measured, and the pages that show it.
            name: Name of the environment, for titles and addresses.
            cluster_name: Name of the HyperPod cluster, whose logs people may search.
            workspace: Where the metrics are.
            key: Encrypts logs.
            protection: Whether the workspace survives its stack.
        """
        super().__init__(scope, construct_id)
        source = data_source_uid(name)
        logs = cdk.Stack.of(self).format_arn(
            service="logs",
            resource="log-group",
            resource_name=cluster_log_group(cluster_name),
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        grafana = GrafanaWorkspace(
            self,
            "Workspace",
            settings=settings,
            name=name,
            protection=protection,
            metrics_arn=workspace.arn,
            log_groups=[logs],
        )
        self.role = grafana.role
        """What Grafana asks AWS with."""
        pages = monitoring.pages
        GrafanaContent(
            self,
            "Content",
            environment=name,
            workspace_id=grafana.workspace_id,
            endpoint=grafana.endpoint,
            tag=tag(name),
            dashboards={uid(name, page.name): grafana_json(page, environment=name, source=source) for page in pages},
            prometheus_url=workspace.endpoint,
            scrape_seconds=monitoring.settings.scrape_seconds,
            groups=settings.groups,
            key=key,
        )

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """Grafana's role: `other_workspace.grant_query(grafana.role)`, `bucket.grant_read(grafana)`."""
        return self.role.grant_principal
