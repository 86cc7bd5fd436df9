"""Dashboards: in Managed Grafana where it is wanted, else in CloudWatch."""

import aws_cdk as cdk
from aws_cdk import aws_kms as kms

from ...cdk8s_charts.dashboards import data_source_uid, grafana_json, tag
from ...config.catalog.names import cluster_log_group
from ...config.settings.observability import Grafana
from ...constructs.observability.cloudwatch_dashboards.construct import CloudWatchDashboards
from ...constructs.observability.grafana_content.construct import GrafanaContent
from ...constructs.observability.grafana_workspace import GrafanaWorkspace
from ...constructs.observability.prometheus_workspace import PrometheusWorkspace
from ...planning.monitoring.dashboards.panel import uid
from ...planning.monitoring.resolve import ResolvedMonitoring
from ...planning.resolved import ResolvedEnvironment
from ..storage import StorageStack


def show(
    stack: cdk.Stack,
    *,
    resolved: ResolvedEnvironment,
    monitoring: ResolvedMonitoring,
    workspace: PrometheusWorkspace | None,
    key: kms.IKey,
    storage: StorageStack,
    log_group: str,
) -> None:
    """Add the pages. What AWS measures itself is always in CloudWatch.

    Args:
        stack: Where they lie.
        resolved: The environment.
        monitoring: What is measured of it.
        workspace: Where its metrics are, unless they are off.
        key: Encrypts logs.
        storage: Its file systems.
        log_group: Name of the cluster's log group.
    """
    if monitoring.grafana and workspace:
        _grafana(stack, resolved, monitoring, monitoring.grafana, workspace, key)
    CloudWatchDashboards(
        stack,
        "Dashboards",
        workspace=workspace,
        pages=() if monitoring.grafana else monitoring.pages,
        lustre={name: item.file_system_id for name, item in storage.lustre.items()},
        log_group=log_group,
        key=key,
    )


def _grafana(
    stack: cdk.Stack,
    resolved: ResolvedEnvironment,
    monitoring: ResolvedMonitoring,
    settings: Grafana,
    workspace: PrometheusWorkspace,
    key: kms.IKey,
) -> None:
    """A workspace of Managed Grafana, and the function that puts the pages into it."""
    environment = resolved.environment
    name, source = environment.name, data_source_uid(environment.name)
    logs = stack.format_arn(
        service="logs",
        resource="log-group",
        resource_name=cluster_log_group(environment.cluster.name),
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )
    grafana = GrafanaWorkspace(
        stack,
        "Grafana",
        settings=settings,
        name=name,
        protection=environment.protection,
        metrics_arn=workspace.arn,
        log_groups=[logs],
    )
    pages = {uid(name, page.name): grafana_json(page, environment=name, source=source) for page in monitoring.pages}
    GrafanaContent(
        stack,
        "GrafanaContent",
        environment=name,
        workspace_id=grafana.workspace_id,
        endpoint=grafana.endpoint,
        tag=tag(name),
        dashboards=pages,
        prometheus_url=workspace.endpoint,
        scrape_seconds=monitoring.settings.scrape_seconds,
        groups=settings.groups,
        key=key,
    )
