"""The constructs of dashboards: who may do what, and what survives."""

import json
from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from podwright.config.catalog.metrics import metrics
from podwright.config.settings.observability import Grafana, Observability
from podwright.constructs.observability.cloudwatch_dashboards.construct import CloudWatchDashboards
from podwright.constructs.observability.grafana_content.construct import GrafanaContent
from podwright.constructs.observability.grafana_workspace import GrafanaWorkspace
from podwright.constructs.observability.prometheus_workspace import PrometheusWorkspace
from podwright.planning.monitoring.dashboards import dashboards

ACCOUNT, REGION = "111122223333", "us-west-2"
GROUP = "11111111-2222-3333-4444-555555555555"
METRICS = f"arn:aws:aps:{REGION}:{ACCOUNT}:workspace/ws-1"


@pytest.fixture
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(), "test", env=cdk.Environment(account=ACCOUNT, region=REGION))


def resources(stack: cdk.Stack, kind: str) -> list[Mapping[str, Any]]:
    return list(Template.from_stack(stack).find_resources(kind).values())


def actions(stack: cdk.Stack) -> set[str]:
    statements = [
        statement
        for policy in resources(stack, "AWS::IAM::Policy")
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    lists = [[item["Action"]] if isinstance(item["Action"], str) else item["Action"] for item in statements]
    return {action for each in lists for action in each}


def workspace(stack: cdk.Stack, settings: Grafana, protection: Any = "retain") -> Mapping[str, Any]:
    GrafanaWorkspace(stack, "Grafana", settings=settings, name="prod", protection=protection, metrics_arn=METRICS)
    return resources(stack, "AWS::Grafana::Workspace")[0]


def test_people_sign_in_by_identity_center_unless_saml_says_otherwise(stack: cdk.Stack) -> None:
    assert workspace(stack, Grafana())["Properties"]["AuthenticationProviders"] == ["AWS_SSO"]


def test_saml_names_the_roles(stack: cdk.Stack) -> None:
    saml = {"metadata_url": "https://idp.example.com/metadata", "admin_roles": ["platform"]}
    properties = workspace(stack, Grafana.model_validate({"saml": saml}))["Properties"]
    assert properties["AuthenticationProviders"] == ["SAML"]
    assert properties["SamlConfiguration"] == {
        "IdpMetadata": {"Url": "https://idp.example.com/metadata"},
        "AssertionAttributes": {"Role": "role"},
        "RoleValues": {"Admin": ["platform"]},
    }


@pytest.mark.parametrize(("protection", "policy"), [("retain", "RetainExceptOnCreate"), ("destroy", "Delete")])
def test_the_workspace_survives_with_what_people_made_in_it(stack: cdk.Stack, protection: str, policy: str) -> None:
    assert workspace(stack, Grafana(), protection)["DeletionPolicy"] == policy


def test_an_existing_workspace_is_used_and_its_role_may_read(stack: cdk.Stack) -> None:
    existing = {"id": "g-0123456789", "role": "arn:aws:iam::111122223333:role/Grafana"}
    made = GrafanaWorkspace(
        stack,
        "Grafana",
        settings=Grafana.model_validate({"existing": existing}),
        name="prod",
        protection="retain",
        metrics_arn=METRICS,
    )
    assert not resources(stack, "AWS::Grafana::Workspace")
    assert not resources(stack, "AWS::IAM::Role")
    (policy,) = resources(stack, "AWS::IAM::Policy")
    assert policy["Properties"]["Roles"] == ["Grafana"]
    assert "aps:QueryMetrics" in actions(stack)
    assert (made.workspace_id, made.endpoint) == (
        "g-0123456789",
        f"g-0123456789.grafana-workspace.{stack.region}.amazonaws.com",
    )


def test_grafana_reads_and_only_for_workspaces_of_this_account(stack: cdk.Stack) -> None:
    workspace(stack, Grafana())
    verbs = ("Query", "Get", "List", "Describe", "Stop")
    assert all(action.partition(":")[2].startswith(verbs) for action in actions(stack))
    [role] = resources(stack, "AWS::IAM::Role")
    [statement] = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Condition"]["StringEquals"] == {"aws:SourceAccount": ACCOUNT}


def content(stack: cdk.Stack, **more: Any) -> Mapping[str, Any]:
    GrafanaContent(
        stack,
        "Content",
        environment="prod",
        workspace_id="g-0123456789",
        endpoint="g.example.com",
        tag="podwright:prod",
        dashboards={"prod-b": "{}", "prod-a": "{}"},
        prometheus_url="https://p.example.com/",
        **more,
    )
    return resources(stack, "Custom::PodwrightGrafanaContent")[0]["Properties"]


def test_content_is_an_asset_whose_name_changes_with_it(stack: cdk.Stack) -> None:
    properties = content(stack)
    assert properties["Dashboards"] == ["prod-a", "prod-b"]
    assert properties["AssetDigest"] in properties["AssetKey"]
    sources = json.loads(properties["Sources"])
    assert [item["uid"] for item in sources] == ["prod-metrics", "prod-cloudwatch"]
    assert sources[0]["jsonData"]["sigV4Auth"] is True


def test_only_who_lets_groups_in_may_read_the_directory(stack: cdk.Stack) -> None:
    content(stack)
    assert not [action for action in actions(stack) if action.startswith("sso")]
    assert "grafana:UpdatePermissions" not in actions(stack)


def test_groups_of_the_directory_are_let_in(stack: cdk.Stack) -> None:
    properties = content(stack, groups=Grafana(viewers=(GROUP,)).groups)
    assert properties["Groups"] == {"VIEWER": [GROUP]}
    assert {"grafana:UpdatePermissions", "sso:ListProfileAssociations"} <= actions(stack)


def test_cloudwatch_asks_by_a_function_that_only_asks(stack: cdk.Stack) -> None:
    key = kms.Key.from_key_arn(stack, "Key", f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555")
    settings = Observability()
    metered = PrometheusWorkspace(stack, "Metrics", settings=settings, name="prod", key=key, protection="retain")
    pages = dashboards(settings, cluster="prod", metrics=metrics())
    CloudWatchDashboards(
        stack, "Dashboards", workspace=metered, pages=pages, lustre={"data": "fs-0123456789abcdef0"}, log_group="/aws/x"
    )
    assert len(resources(stack, "AWS::CloudWatch::Dashboard")) == len(pages) + 1
    assert {action for action in actions(stack) if not action.startswith("logs:")} == {"aps:QueryMetrics"}
    [permission] = resources(stack, "AWS::Lambda::Permission")
    assert permission["Properties"]["Principal"] == "lambda.datasource.cloudwatch.amazonaws.com"
    assert permission["Properties"]["SourceAccount"] == ACCOUNT


def test_without_metrics_cloudwatch_shows_what_aws_measures_itself(stack: cdk.Stack) -> None:
    CloudWatchDashboards(stack, "Dashboards", workspace=None, lustre={"data": "fs-0123456789abcdef0"})
    [dashboard] = resources(stack, "AWS::CloudWatch::Dashboard")
    widgets = json.loads(dashboard["Properties"]["DashboardBody"])["widgets"]
    assert widgets[0]["properties"]["title"] == "data: room that is left"
    assert not resources(stack, "AWS::Lambda::Function")
