"""The workspace of Amazon Managed Service for Prometheus that metrics go to."""

from typing import Protocol

import aws_cdk as cdk
from aws_cdk import aws_aps as aps
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from ...config.settings.observability import Observability, SeriesLimit
from ...config.settings.storage import Storage
from ...planning.rules import check
from ..common.arguments import checked
from ..common.permission import allow
from ..common.protection import Protection, removal_policy
from ..storage.key import EnvironmentKey


class IPrometheusWorkspace(Protocol):
    """A workspace: a `PrometheusWorkspace`, or one that `PrometheusWorkspace.from_workspace_id` names."""

    workspace_id: str
    """Its id."""
    arn: str
    """Its ARN."""
    endpoint: str
    """Where collectors write and Grafana asks."""

    def grant_write(self, role: iam.IRole) -> None:
        """Let a role write metrics."""
        ...

    def grant_query(self, role: iam.IRole) -> None:
        """Let a role ask for metrics."""
        ...


class PrometheusWorkspace(Construct):
    """A workspace with its retention, key, logs and limits; or an existing one, of which nothing is changed.

    Decided for you: metrics are encrypted with the environment's key, and what the service says of rules, alerts and
    refused samples goes to a log group of ours. That group's name begins with `/aws/vendedlogs/`, because CloudWatch
    Logs otherwise adds every group to one resource policy of limited length (CloudWatch Logs User Guide, "Enable
    logging from AWS services", 2026-11); so it goes with its stack, or the name would block the next one. The workspace
    survives its stack with `protection: retain`: 150 days of measurements are not to be had again.

    Example:
        from podwright.config.settings.observability import Observability
        PrometheusWorkspace(stack, "Metrics", settings=Observability(), name="prod", key=key, protection="retain")
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Observability,
        name: str,
        key: kms.IKey | None = None,
        protection: Protection = "retain",
    ) -> None:
        """Defines the workspace.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: Retention, limits and logs, or the workspace that exists.
            name: Name of the environment: the workspace's alias, which need not be unique.
            key: Encrypts metrics and logs, and lets CloudWatch Logs use it. A change replaces the workspace. A new
                key when absent.
            protection: Whether the workspace survives its stack.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)
        stack = cdk.Stack.of(self)

        self.resource: aps.CfnWorkspace | None = None
        """The workspace where it is the environment's own; alert manager definitions are a property of it."""
        self.workspace_id: str
        """Its id."""
        self.arn: str
        """Its ARN."""
        if settings.workspace is None:
            key = key or EnvironmentKey(self, "Key", settings=Storage(), protection=protection).key
            self.resource = self._workspace(settings, name, key, protection)
            self.workspace_id, self.arn = self.resource.attr_workspace_id, self.resource.attr_arn
        else:
            self.workspace_id = settings.workspace
            self.arn = stack.format_arn(service="aps", resource="workspace", resource_name=settings.workspace)
        self.endpoint = f"https://aps-workspaces.{stack.region}.{stack.url_suffix}/workspaces/{self.workspace_id}/"
        """Where collectors write (`api/v1/remote_write`) and Grafana asks (`api/v1/query`)."""

    @staticmethod
    @checked
    def from_workspace_id(scope: Construct, construct_id: str, workspace_id: str) -> IPrometheusWorkspace:
        """A workspace that is made elsewhere."""
        settings = Observability(workspace=workspace_id)
        return PrometheusWorkspace(scope, construct_id, settings=settings, name=workspace_id)

    def metric_undelivered_alerts(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Alerts that the alert manager could not deliver.

        Source: Amazon Managed Service for Prometheus User Guide, "Use CloudWatch metrics", 2026-11.
        """
        return cloudwatch.Metric(
            namespace="AWS/Prometheus",
            metric_name="AlertManagerNotificationsFailed",
            dimensions_map={"Workspace": self.workspace_id},
            statistic="Sum",
            period=period,
        )

    def grant_write(self, role: iam.IRole) -> None:
        """Let a role write metrics."""
        allow(role, ["aps:RemoteWrite"], [self.arn])

    def grant_query(self, role: iam.IRole) -> None:
        """Let a role ask for metrics, their labels and what they mean."""
        actions = ["aps:QueryMetrics", "aps:GetSeries", "aps:GetLabels", "aps:GetMetricMetadata"]
        allow(role, actions, [self.arn])

    def _workspace(self, settings: Observability, name: str, key: kms.IKey, protection: Protection) -> aps.CfnWorkspace:
        """The workspace with its log group, which takes errors and, above the threshold, expensive queries."""
        group = logs.CfnLogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/vendedlogs/prometheus/{name}",
            retention_in_days=settings.log_retention_days,
            kms_key_id=key.key_arn,
        )
        group.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        destination = aps.CfnWorkspace.CloudWatchLogDestinationProperty(log_group_arn=group.attr_arn)
        threshold = settings.log_queries_above_samples
        workspace = aps.CfnWorkspace(
            self,
            "Resource",
            alias=name,
            kms_key_arn=key.key_arn,
            logging_configuration=aps.CfnWorkspace.LoggingConfigurationProperty(log_group_arn=group.attr_arn),
            query_logging_configuration=aps.CfnWorkspace.QueryLoggingConfigurationProperty(
                destinations=[
                    aps.CfnWorkspace.LoggingDestinationProperty(
                        cloud_watch_logs=destination,
                        filters=aps.CfnWorkspace.LoggingFilterProperty(qsp_threshold=threshold),
                    )
                ]
            )
            if threshold is not None
            else None,
            workspace_configuration=aps.CfnWorkspace.WorkspaceConfigurationProperty(
                retention_period_in_days=settings.retention_days,
                limits_per_label_sets=[_limit(limit) for limit in settings.series_limits] or None,
            ),
        )
        workspace.apply_removal_policy(removal_policy(protection))
        return workspace


def _limit(limit: SeriesLimit) -> aps.CfnWorkspace.LimitsPerLabelSetProperty:
    labels = [aps.CfnWorkspace.LabelProperty(name=label, value=value) for label, value in sorted(limit.labels.items())]
    limits = aps.CfnWorkspace.LimitsPerLabelSetEntryProperty(max_series=limit.max_series)
    return aps.CfnWorkspace.LimitsPerLabelSetProperty(label_set=labels, limits=limits)
