"""Dashboards and their data sources in a workspace of Amazon Managed Grafana, delivered without a click."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from ....planning.monitoring.dashboards.panel import uid
from ...common.assets import folder_asset
from ...common.custom_resource import HandlerFunction
from ...common.permission import allow

RESOURCE_TYPE: Final = "Custom::PodwrightGrafanaContent"
# Source: AWS Managed Policy Reference, "AWSGrafanaWorkspacePermissionManagementV2", version 1, 2024-01-05.
_IDENTITY_CENTER: Final = (
    "sso:DescribeRegisteredRegions",
    "sso:GetSharedSsoConfiguration",
    "sso:ListDirectoryAssociations",
    "sso:GetManagedApplicationInstance",
    "sso:ListProfiles",
    "sso:GetProfile",
    "sso:ListProfileAssociations",
    "sso-directory:DescribeUser",
    "sso-directory:DescribeGroup",
)
_WORKSPACE: Final = (
    "CreateWorkspaceServiceAccount",
    "CreateWorkspaceServiceAccountToken",
    "DeleteWorkspaceServiceAccountToken",
    "ListWorkspaceServiceAccounts",
    "ListWorkspaceServiceAccountTokens",
)


class GrafanaContent(Construct):
    """Puts a folder of dashboards and their data sources into a workspace of Amazon Managed Grafana.

    Decided for you: people cannot edit what is delivered, since the next deployment would overwrite it; they save a
    copy, which nobody touches. Dashboards that a later version of the package does not have are deleted. The function
    runs outside the VPC, as Grafana's address is public and a token guards it.

    Example:
        from podwright.constructs.observability.grafana_content.construct import GrafanaContent
        GrafanaContent(stack, "Content", environment="prod", workspace_id="g-0123456789", endpoint="g.example.com",
                       tag="podwright:prod", dashboards={"prod-cluster": '{"uid": "prod-cluster"}'},
                       prometheus_url="https://prometheus.example.com/workspaces/ws-1/")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        workspace_id: str,
        endpoint: str,
        tag: str,
        dashboards: Mapping[str, str],
        prometheus_url: str,
        scrape_seconds: int = 30,
        groups: Mapping[str, Sequence[str]] | None = None,
        key: kms.IKey | None = None,
    ) -> None:
        """Defines the content.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            environment: Name of the environment, for uids and titles.
            workspace_id: The Grafana workspace.
            endpoint: Its host name.
            tag: What all of the dashboards carry; one without it is somebody else's.
            dashboards: JSON by uid.
            prometheus_url: Where queries go, without `api/v1/`.
            scrape_seconds: Seconds between two samples, below which no query should look.
            groups: Ids of groups of IAM Identity Center, by role: ADMIN, EDITOR or VIEWER.
            key: Encrypts the logs.
        """
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)

        with tempfile.TemporaryDirectory(prefix="podwright-dashboards-") as name:
            files = {f"{identifier}.json": Path(name, f"{identifier}.json") for identifier in dashboards}
            for identifier, text in dashboards.items():
                files[f"{identifier}.json"].write_text(text, encoding="utf-8")
            asset = folder_asset(self, "Dashboards", files)
        function = HandlerFunction(
            self,
            "Handler",
            folder=Path(__file__).parent / "handler",
            description=f"Delivers dashboards of {environment} to Grafana",
            key=key,
        )
        workspace = stack.format_arn(service="grafana", resource="/workspaces", resource_name=workspace_id)
        allow(function.role, [f"grafana:{action}" for action in _WORKSPACE], [workspace])
        allow(function.role, ["s3:GetObject"], [asset.bucket.arn_for_objects(asset.s3_object_key)])
        if groups and any(groups.values()):
            allow(function.role, ["grafana:UpdatePermissions"], [workspace])
            allow(
                function.role,
                _IDENTITY_CENTER,
                ["*"],
                because="AWS's own policy for it names no resource: the directory belongs to the organization.",
            )
        self.resource = function.resource(
            self,
            "Resource",
            resource_type=RESOURCE_TYPE,
            properties={
                "WorkspaceId": workspace_id,
                "Endpoint": endpoint,
                "AssetBucket": asset.s3_bucket_name,
                "AssetKey": asset.s3_object_key,
                "AssetDigest": asset.asset_hash,
                "Tag": tag,
                "Dashboards": sorted(dashboards),
                "Folder": {"uid": uid(environment, "folder"), "title": f"podwright {environment}"},
                # As text, because CloudFormation turns every boolean of a custom resource's property into a string.
                "Sources": stack.to_json_string(_sources(environment, prometheus_url, stack.region, scrape_seconds)),
                "Groups": {role: sorted(ids) for role, ids in (groups or {}).items() if ids},
            },
        )
        """The custom resource."""


def _sources(environment: str, prometheus_url: str, region: str, scrape_seconds: int) -> list[dict[str, Any]]:
    """Data sources as Grafana's API takes them; the workspace's role signs what they ask.

    Source: Amazon Managed Grafana User Guide, "Connect to Amazon Managed Service for Prometheus and open-source
    Prometheus data sources" and "Connect to an Amazon CloudWatch data source", 2026-11.
    """
    prometheus = {
        "sigV4Auth": True,
        "sigV4AuthType": "ec2_iam_role",
        "sigV4Region": region,
        # Long queries do not fit into an address.
        "httpMethod": "POST",
        "timeInterval": f"{scrape_seconds}s",
    }
    return [
        {
            "uid": uid(environment, "metrics"),
            "name": f"podwright {environment}",
            "type": "prometheus",
            "access": "proxy",
            "url": prometheus_url,
            "jsonData": prometheus,
        },
        {
            "uid": uid(environment, "cloudwatch"),
            "name": f"podwright {environment} CloudWatch",
            "type": "cloudwatch",
            "access": "proxy",
            "jsonData": {"authType": "ec2_iam_role", "defaultRegion": region},
        },
    ]
