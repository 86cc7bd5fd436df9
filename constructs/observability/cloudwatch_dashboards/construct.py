"""Dashboards in CloudWatch, for environments without Managed Grafana, and for what only CloudWatch knows."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from ....planning.monitoring.dashboards.panel import Dashboard
from ...common.custom_resource import HandlerFunction
from ...common.permission import allow
from ..prometheus_workspace import PrometheusWorkspace
from .widgets import of_services, panels


class CloudWatchDashboards(Construct):
    """One dashboard of what AWS measures by itself, and one for each of the pages.

    CloudWatch has no metrics of Prometheus: a function of ours asks the workspace for every query that a widget has,
    whenever somebody looks. What can be chosen in Grafana is not chosen here: everything is shown.

    Decided for you: the names are CloudFormation's; CloudWatch of this account alone may call the function, and its
    role may do nothing but ask this workspace. Each dashboard after the third of an account costs 3 US dollars a month
    (Amazon CloudWatch pricing, 2026-11).

    Example:
        from podwright.config.settings.observability import Observability
        metrics = PrometheusWorkspace(stack, "Metrics", settings=Observability(), name="prod", key=key,
                                      protection="retain")
        CloudWatchDashboards(stack, "Dashboards", workspace=metrics, lustre={"datasets": "fs-0123456789abcdef0"})
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        workspace: PrometheusWorkspace | None,
        pages: Sequence[Dashboard] = (),
        lustre: Mapping[str, str] | None = None,
        log_group: str | None = None,
        key: kms.IKey | None = None,
    ) -> None:
        """Defines the dashboards.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            workspace: Where metrics are; without one there are no pages.
            pages: Dashboards whose panels ask it.
            lustre: Ids of Lustre file systems by what people call them.
            log_group: Name of the cluster's log group.
            key: Encrypts the logs of the function.
        """
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)

        identifier = workspace.workspace_id if workspace else None
        widgets = of_services(stack.region, lustre=lustre or {}, workspace=identifier, log_group=log_group)
        if widgets:
            self._dashboard("Services", widgets)
        if pages and workspace:
            function = self._function(workspace, key)
            for page in pages:
                self._dashboard(page.title.replace(" ", ""), panels(page, function.function_name, stack.region))

    def _dashboard(self, construct_id: str, widgets: Sequence[Mapping[str, object]]) -> None:
        body = cdk.Stack.of(self).to_json_string({"widgets": list(widgets)})
        cloudwatch.CfnDashboard(self, construct_id, dashboard_body=body)

    def _function(self, workspace: PrometheusWorkspace, key: kms.IKey | None) -> lambda_.IFunction:
        """The function that CloudWatch, and nobody else, calls for the values of widgets."""
        handler = HandlerFunction(
            self,
            "Handler",
            folder=Path(__file__).parent / "handler",
            description="Answers CloudWatch's dashboards from Prometheus",
            timeout_seconds=30,
            key=key,
            environment={"PROMETHEUS": workspace.endpoint},
        )
        allow(handler.role, ["aps:QueryMetrics"], [workspace.arn])
        lambda_.CfnPermission(
            self,
            "FromCloudWatch",
            action="lambda:InvokeFunction",
            function_name=handler.function.function_name,
            principal="lambda.datasource.cloudwatch.amazonaws.com",
            source_account=cdk.Stack.of(self).account,
        )
        return handler.function
