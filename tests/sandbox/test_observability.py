"""What observability deploys, in the sandbox: the APIs behind the resource types show what the templates asked for."""

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from needs import needs
from podwright.constructs.observability.fleet_metrics.handler.remote_write import Sample, write
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.programs.prometheus import Prometheus, QueryError, installed
from sandbox_stacks import StackUnderTest

Aws = Callable[[str], Any]
ACCOUNT = "123456789012"
RULES = "groups: [{name: g, rules: [{record: 'a:b', expr: 'sum(up)'}]}]"
ALERT_MANAGER = "alertmanager_config: |\n  route: {receiver: all}\n  receivers: [{name: all}]\n"


def workspace(**more: Any) -> dict[str, Any]:
    limits = [{"LabelSet": [{"Name": "team", "Value": "a"}], "Limits": {"MaxSeries": 5}}]
    properties = {
        "Alias": "prod",
        "WorkspaceConfiguration": {"RetentionPeriodInDays": 30, "LimitsPerLabelSets": limits},
        "LoggingConfiguration": {"LogGroupArn": "arn:aws:logs:us-west-2:123456789012:log-group:amp:*"},
        "AlertManagerDefinition": ALERT_MANAGER,
        "Tags": [{"Key": "team", "Value": "platform"}],
    }
    return {"Type": "AWS::APS::Workspace", "Properties": properties | more}


def rules(data: str = RULES) -> dict[str, Any]:
    properties = {"Workspace": {"Fn::GetAtt": ["Metrics", "Arn"]}, "Name": "all", "Data": data}
    return {"Type": "AWS::APS::RuleGroupsNamespace", "Properties": properties}


def test_a_prometheus_workspace_is_what_its_resource_says(aws: Aws, stack: StackUnderTest) -> None:
    output = {"Id": {"Value": {"Fn::GetAtt": ["Metrics", "WorkspaceId"]}}}
    assert stack.create({"Metrics": workspace(), "Rules": rules()}, Outputs=output) == "CREATE_COMPLETE", stack.log()
    amp, actual = aws("amp"), {"workspaceId": stack.outputs()["Id"]}
    shown = amp.describe_workspace(**actual)["workspace"]
    assert (shown["alias"], shown["tags"], shown["status"]) == ("prod", {"team": "platform"}, {"statusCode": "ACTIVE"})
    configuration = amp.describe_workspace_configuration(**actual)["workspaceConfiguration"]
    assert configuration["retentionPeriodInDays"] == 30
    assert configuration["limitsPerLabelSet"] == [{"limits": {"maxSeries": 5}, "labelSet": {"team": "a"}}]
    assert amp.describe_logging_configuration(**actual)["loggingConfiguration"]["logGroupArn"].endswith("amp:*")
    definition = amp.describe_alert_manager_definition(**actual)["alertManagerDefinition"]
    assert definition["data"].decode() == ALERT_MANAGER
    assert amp.describe_rule_groups_namespace(name="all", **actual)["ruleGroupsNamespace"]["data"].decode() == RULES

    changed = workspace(WorkspaceConfiguration={"RetentionPeriodInDays": 60})
    del changed["Properties"]["AlertManagerDefinition"]
    data = RULES.replace("sum", "max")
    assert stack.update({"Metrics": changed, "Rules": rules(data)}, Outputs=output) == "UPDATE_COMPLETE", stack.log()
    configuration = amp.describe_workspace_configuration(**actual)["workspaceConfiguration"]
    assert configuration["retentionPeriodInDays"] == 60
    assert amp.describe_rule_groups_namespace(name="all", **actual)["ruleGroupsNamespace"]["data"].decode() == data
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        amp.describe_alert_manager_definition(**actual)
    assert stack.delete() == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        amp.describe_workspace(**actual)


@needs(installed(), "Prometheus and promtool: Debian's package prometheus")
def test_rules_that_prometheus_does_not_understand_are_refused(stack: StackUnderTest) -> None:
    assert stack.create({"Metrics": workspace(), "Rules": rules(RULES.replace("(up)", "(up"))}) == "ROLLBACK_COMPLETE"
    assert "unclosed left parenthesis" in stack.reasons("Rules")


def test_an_alert_manager_without_its_receiver_is_refused(stack: StackUnderTest) -> None:
    broken = workspace(AlertManagerDefinition=ALERT_MANAGER.replace("name: all", "name: other"))
    assert stack.create({"Metrics": broken}) == "ROLLBACK_COMPLETE"
    assert "route to one of its receivers" in stack.reasons("Metrics")


@needs(installed(), "Prometheus and promtool: Debian's package prometheus")
def test_a_workspace_takes_samples_and_answers_queries(aws: Aws, stack: StackUnderTest) -> None:
    outputs = {"Endpoint": {"Value": {"Fn::GetAtt": ["Metrics", "PrometheusEndpoint"]}}}
    assert stack.create({"Metrics": workspace(), "Rules": rules()}, Outputs=outputs) == "CREATE_COMPLETE", stack.log()
    endpoint, timestamp = stack.outputs()["Endpoint"], time.time()
    samples = [
        Sample("podwright_nodes", {"status": status}, count) for status, count in (("Running", 3), ("Failure", 1))
    ]
    assert write(boto3.Session("sandbox", "sandbox", region_name="us-west-2"), endpoint, samples, timestamp) == 2
    server = Prometheus(endpoint.rstrip("/"))
    actual = server.instant("sum(podwright_nodes)", timestamp)
    assert [item["value"][1] for item in actual] == ["4"]
    with pytest.raises(QueryError, match="unclosed left parenthesis"):
        server.instant("sum(podwright_nodes", timestamp)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{endpoint}api/v1/rules") as answer:
        [group] = json.load(answer)["data"]["groups"]
    assert [rule["name"] for rule in group["rules"]] == ["a:b"]


class Grafana:
    """Grafana's HTTP API of a workspace, over HTTPS with the sandbox's own authority."""

    def __init__(self, sandbox: Running, endpoint: str, key: str) -> None:
        self.url, self.key = f"https://{endpoint}/api", key
        self.context = ssl.create_default_context(cafile=Path(sandbox.log).parent / "tls" / "authority.crt")

    def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self.context)
        )
        with opener.open(request) as answer:
            return json.load(answer)

    def refused(self, method: str, path: str, body: Any = None) -> int:
        with pytest.raises(urllib.error.HTTPError) as refusal:
            self.call(method, path, body)
        refusal.value.close()
        return refusal.value.code


def test_dashboards_go_into_a_grafana_workspace(aws: Aws, stack: StackUnderTest, sandbox: Running) -> None:
    properties = {
        "AccountAccessType": "CURRENT_ACCOUNT",
        "AuthenticationProviders": ["SAML"],
        "PermissionType": "CUSTOMER_MANAGED",
        "Name": "prod",
        "GrafanaVersion": "10.4",
        "SamlConfiguration": {
            "IdpMetadata": {"Url": "https://idp.example.com/metadata"},
            "RoleValues": {"Admin": ["ops"]},
        },
    }
    outputs = {name: {"Value": {"Fn::GetAtt": ["Grafana", name]}} for name in ("Id", "Endpoint")}
    resources = {"Grafana": {"Type": "AWS::Grafana::Workspace", "Properties": properties}}
    assert stack.create(resources, Outputs=outputs) == "CREATE_COMPLETE", stack.log()
    client, actual = aws("grafana"), {"workspaceId": stack.outputs()["Id"]}
    shown = client.describe_workspace(**actual)["workspace"]
    assert shown["authentication"] == {"providers": ["SAML"], "samlConfigurationStatus": "CONFIGURED"}

    account = client.create_workspace_service_account(name="robot", grafanaRole="ADMIN", **actual)
    token = client.create_workspace_service_account_token(
        name="now", secondsToLive=60, serviceAccountId=account["id"], **actual
    )["serviceAccountToken"]
    grafana = Grafana(sandbox, stack.outputs()["Endpoint"], token["key"])
    source = {"uid": "amp", "name": "Metrics", "type": "prometheus", "access": "proxy", "url": "https://x"}
    assert grafana.call("POST", "/datasources", source)["datasource"]["uid"] == "amp"
    assert grafana.refused("POST", "/datasources", source) == 409
    grafana.call("POST", "/folders", {"uid": "podwright", "title": "podwright"})
    board = {"dashboard": {"uid": "cluster", "title": "The cluster"}, "folderUid": "podwright"}
    assert grafana.call("POST", "/dashboards/db", board)["version"] == 1
    assert grafana.refused("POST", "/dashboards/db", board) == 412
    assert grafana.call("POST", "/dashboards/db", board | {"overwrite": True})["version"] == 2
    assert grafana.call("GET", "/dashboards/uid/cluster")["meta"]["folderUid"] == "podwright"
    assert [item["uid"] for item in grafana.call("GET", "/search")] == ["podwright", "cluster"]
    assert grafana.refused("GET", "/dashboards/uid/none") == 404

    client.delete_workspace_service_account_token(tokenId=token["id"], serviceAccountId=account["id"], **actual)
    assert grafana.refused("GET", "/search") == 401


def test_alarms_dashboards_rules_and_budgets_reach_their_services(aws: Aws, stack: StackUnderTest) -> None:
    def resources(limit: int, threshold: int) -> dict[str, Any]:
        messages = {
            "Notification": {
                "NotificationType": "FORECASTED",
                "ComparisonOperator": "GREATER_THAN",
                "Threshold": threshold,
            },
            "Subscribers": [{"SubscriptionType": "EMAIL", "Address": "oncall@example.com"}],
        }
        budget = {"BudgetType": "COST", "TimeUnit": "MONTHLY", "BudgetLimit": {"Amount": limit, "Unit": "USD"}}
        metric = {"Namespace": "AWS/FSx", "MetricName": "FreeDataStorageCapacity", "Statistic": "Sum", "Period": 60}
        alarm = metric | {"ComparisonOperator": "LessThanThreshold", "EvaluationPeriods": 1, "Threshold": threshold}
        target = {"Arn": {"Ref": "Topic"}, "Id": "topic"}
        pattern = {"source": ["aws.sagemaker"]}
        body = json.dumps({"widgets": [{"type": "text", "properties": {"markdown": str(threshold)}}]})
        return {
            "Topic": {"Type": "AWS::SNS::Topic"},
            "Budget": {
                "Type": "AWS::Budgets::Budget",
                "Properties": {"Budget": budget, "NotificationsWithSubscribers": [messages]},
            },
            "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": alarm},
            "Board": {"Type": "AWS::CloudWatch::Dashboard", "Properties": {"DashboardBody": body}},
            "Rule": {"Type": "AWS::Events::Rule", "Properties": {"EventPattern": pattern, "Targets": [target]}},
            "Group": {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": 30}},
            "Filter": {
                "Type": "AWS::Logs::MetricFilter",
                "Properties": {
                    "LogGroupName": {"Ref": "Group"},
                    "FilterPattern": "ERROR",
                    "MetricTransformations": [
                        {"MetricName": "Errors", "MetricNamespace": "podwright", "MetricValue": "1"}
                    ],
                },
            },
        }

    for status, limit, threshold in (("CREATE_COMPLETE", 400000, 80), ("UPDATE_COMPLETE", 500000, 90)):
        act = stack.create if status == "CREATE_COMPLETE" else stack.update
        assert act(resources(limit, threshold)) == status, stack.log()
        name = stack.physical_id("Budget")
        budget = aws("budgets").describe_budget(AccountId=ACCOUNT, BudgetName=name)["Budget"]
        assert budget["BudgetLimit"] == {"Amount": str(limit), "Unit": "USD"}
        reported = aws("budgets").describe_notifications_for_budget(AccountId=ACCOUNT, BudgetName=name)["Notifications"]
        assert [item["Threshold"] for item in reported] == [threshold]
        cloudwatch = aws("cloudwatch")
        [alarm] = cloudwatch.describe_alarms(AlarmNames=[stack.physical_id("Alarm")])["MetricAlarms"]
        assert alarm["Threshold"] == threshold
        board = cloudwatch.get_dashboard(DashboardName=stack.physical_id("Board"))["DashboardBody"]
        assert str(threshold) in board
        [target] = aws("events").list_targets_by_rule(Rule=stack.physical_id("Rule"))["Targets"]
        assert target["Arn"] == stack.physical_id("Topic")
        [metric] = aws("logs").describe_metric_filters(logGroupName=stack.physical_id("Group"))["metricFilters"]
        assert metric["filterPattern"] == "ERROR"
    group = stack.physical_id("Group")
    aws("logs").associate_kms_key(logGroupName=group, kmsKeyId="arn:aws:kms:us-west-2:123456789012:key/a")
    assert aws("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"][0]["kmsKeyId"].endswith("key/a")
    assert stack.delete() == "DELETE_COMPLETE", stack.log()
    assert aws("budgets").describe_budgets(AccountId=ACCOUNT)["Budgets"] == []
