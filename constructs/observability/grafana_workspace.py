"""The workspace of Amazon Managed Grafana in which people look at dashboards."""

from collections.abc import Sequence
from typing import Final, cast

import aws_cdk as cdk
from aws_cdk import aws_grafana as grafana
from aws_cdk import aws_iam as iam
from constructs import Construct

from ...config.settings.observability import ExistingGrafana, Grafana
from ...planning.rules import check
from ..common.permission import allow
from ..common.protection import Protection, removal_policy

# Source: Grafana 10.4 documentation, "AWS CloudWatch data source", IAM policies; calls that know no resource.
_METRICS: Final = (
    "cloudwatch:DescribeAlarmsForMetric",
    "cloudwatch:DescribeAlarmHistory",
    "cloudwatch:DescribeAlarms",
    "cloudwatch:ListMetrics",
    "cloudwatch:GetMetricData",
    "cloudwatch:GetInsightRuleReport",
    "logs:DescribeLogGroups",
    "logs:GetQueryResults",
    "logs:StopQuery",
    "ec2:DescribeTags",
    "ec2:DescribeInstances",
    "ec2:DescribeRegions",
    "tag:GetResources",
)
# Source: Amazon Managed Service for Prometheus User Guide, "IAM permissions and policies", 2026-11.
_RULES: Final = (
    "aps:ListRules",
    "aps:ListAlertManagerSilences",
    "aps:ListAlertManagerAlerts",
    "aps:ListAlertManagerAlertGroups",
    "aps:GetAlertManagerStatus",
)


class GrafanaWorkspace(Construct):
    """A workspace with a role that reads metrics, alerts and logs of this environment.

    Decided for you: people sign in by IAM Identity Center unless `saml` says otherwise; plug-ins are not installed by
    hand; the role is ours and reads only. Grafana takes it for workspaces of this account and region alone. With
    `protection: retain` the workspace survives its stack, since people keep dashboards of their own in it.
    An existing one keeps its settings, and its role gets the same permissions.
    Source: Amazon Managed Grafana User Guide, "Cross-service confused deputy prevention", 2026-11.

    Example:
        from podwright.config.settings.observability import Grafana
        from podwright.constructs.observability.grafana_workspace import GrafanaWorkspace
        GrafanaWorkspace(stack, "Grafana", settings=Grafana(), name="prod", protection="retain",
                         metrics_arn="arn:aws:aps:us-west-2:111122223333:workspace/ws-1")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Grafana,
        name: str,
        protection: Protection,
        metrics_arn: str,
        log_groups: Sequence[str] = (),
    ) -> None:
        """Defines role and workspace.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: How people sign in, and the version of Grafana.
            name: Name of the environment, which is the workspace's too; it need not be unique.
            protection: Whether the workspace survives its stack.
            metrics_arn: ARN of the workspace of Prometheus that it asks.
            log_groups: ARNs of log groups, `*` included, that people may search from Grafana.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)
        stack = cdk.Stack.of(self)
        existing = settings.existing

        self.role = iam.Role.from_role_arn(self, "Role", existing.role) if existing else self._role(name)
        """What Grafana asks AWS with."""
        self._allow(metrics_arn, log_groups)
        resource = None if existing else self._create(settings, name, protection)
        self.resource = resource
        """The workspace; None where it exists."""
        self.workspace_id: str = resource.attr_id if resource else cast(ExistingGrafana, existing).id
        """Its id."""
        # Source: Amazon Managed Grafana API, DescribeWorkspace: the form of `endpoint`.
        address = f"{self.workspace_id}.grafana-workspace.{stack.region}.amazonaws.com"
        self.endpoint: str = resource.attr_endpoint if resource else address
        """Its host name."""

    def _role(self, name: str) -> iam.IRole:
        """A role that Grafana takes for workspaces of this account and region."""
        stack = cdk.Stack.of(self)
        workspaces = stack.format_arn(service="grafana", resource="/workspaces", resource_name="*")
        service = iam.ServicePrincipal(
            "grafana.amazonaws.com",
            conditions={
                "StringEquals": {"aws:SourceAccount": stack.account},
                "StringLike": {"aws:SourceArn": workspaces},
            },
        )
        description = f"Grafana reads metrics and logs of {name}"
        role = iam.Role(self, "Role", assumed_by=cast(iam.IPrincipal, service), description=description)
        return cast(iam.IRole, role)

    def _allow(self, metrics_arn: str, log_groups: Sequence[str]) -> None:
        queries = ("aps:QueryMetrics", "aps:GetSeries", "aps:GetLabels", "aps:GetMetricMetadata")
        allow(self.role, [*queries, *_RULES], [metrics_arn])
        allow(self.role, _METRICS, ["*"], because="These calls know no resource: metrics and alarms are the account's.")
        if log_groups:
            allow(
                self.role,
                ["logs:StartQuery", "logs:GetLogEvents", "logs:GetLogGroupFields"],
                log_groups,
                because="Log streams are named by what writes them.",
            )

    def _create(self, settings: Grafana, name: str, protection: Protection) -> grafana.CfnWorkspace:
        """A workspace of its own, with its name, role and ways to sign in."""
        workspace = grafana.CfnWorkspace(
            self,
            "Resource",
            account_access_type="CURRENT_ACCOUNT",
            authentication_providers=["SAML" if settings.saml else "AWS_SSO"],
            permission_type="CUSTOMER_MANAGED",
            name=name,
            description=f"Dashboards of {name}",
            grafana_version=settings.version,
            role_arn=self.role.role_arn,
            data_sources=["PROMETHEUS", "CLOUDWATCH"],
            plugin_admin_enabled=False,
            saml_configuration=_saml(settings),
        )
        workspace.apply_removal_policy(removal_policy(protection))
        workspace.node.add_dependency(self.role)
        return workspace


def _saml(settings: Grafana) -> grafana.CfnWorkspace.SamlConfigurationProperty | None:
    saml = settings.saml
    if saml is None:
        return None
    return grafana.CfnWorkspace.SamlConfigurationProperty(
        idp_metadata=grafana.CfnWorkspace.IdpMetadataProperty(url=saml.metadata_url),
        assertion_attributes=grafana.CfnWorkspace.AssertionAttributesProperty(role=saml.role_attribute),
        role_values=grafana.CfnWorkspace.RoleValuesProperty(
            admin=list(saml.admin_roles), editor=list(saml.editor_roles) or None
        ),
    )
