"""Rules, alert manager, topics, channels and events of an environment: who may publish, and what reaches people."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Template
from ruamel.yaml import YAML

from podwright.config.settings.governance.teams import TeamBudget
from podwright.config.settings.observability import Alerts, Chat, Observability, SlackChannel, TeamsChannel
from podwright.constructs.observability.alert_topics import AlertTopics
from podwright.constructs.observability.chat_channels import ChatChannels
from podwright.constructs.observability.cluster_events.construct import ClusterEvents
from podwright.constructs.observability.prometheus_rules import PrometheusRules
from podwright.constructs.observability.prometheus_workspace import PrometheusWorkspace
from podwright.constructs.observability.upkeep_alarms import UpkeepAlarms
from podwright.planning.monitoring.alerts import Watched, alerts
from podwright.planning.monitoring.recordings import recordings
from synthesis import environment, synthesis

CLUSTER_ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/a1b2c3d4e5f6"
SLACK = SlackChannel(workspace="T07EA123LEP", channel="C0123456789")
TEAM = "d72a5c9b-4b1b-4a6f-9d6e-6b9c3f1f2a3b"
TEAMS = TeamsChannel(tenant=TEAM, team=TEAM, channel="19%3Aabc%40thread.tacv2")
MAIL = "arn:aws:sns:us-west-2:111122223333:mail"


def resources(stack: cdk.Stack, kind: str) -> list[dict[str, Any]]:
    return [item["Properties"] for item in Template.from_stack(stack).find_resources(kind).values()]


def rules(
    stack: cdk.Stack, settings: Observability, budgets: Mapping[str, TeamBudget] | None = None
) -> list[dict[str, Any]]:
    key = cast(kms.IKey, kms.Key(stack, "Key"))
    home = PrometheusWorkspace(stack, "Metrics", settings=settings, name="prod", key=key, protection="retain")
    watched = Watched("training-prod", "eks", instances=18, budgets=budgets or {})
    PrometheusRules(
        stack, "Rules", settings=settings, workspace=home, name="prod", watched=watched, topics={"mail": MAIL}
    )
    return resources(stack, "AWS::APS::RuleGroupsNamespace")


def test_rules_go_to_the_workspace_as_yaml(stack: cdk.Stack) -> None:
    budgets = {"research": TeamBudget(accelerator_hours=1000)}
    actual = {item["Name"]: item["Data"] for item in rules(stack, Observability(), budgets)}
    names = re.findall(r"^  - alert: (\w+)$", actual["podwright-prod-alerts"], re.MULTILINE)
    assert set(names) < set(alerts())
    assert len(names) > 25
    recorded = re.findall(r"^  - record: (\S+)$", actual["podwright-prod-recordings"], re.MULTILINE)
    assert recorded == [item.name for item in recordings()]
    assert all("$cluster" not in text for text in actual.values())


def test_without_budgets_nothing_is_recorded_of_them(stack: cdk.Stack) -> None:
    text = "".join(item["Data"] for item in rules(stack, Observability()))
    assert "QuotaStarving" in text
    assert "budget" not in text.replace("SpendAboveBudget", "").lower()


def test_the_alert_manager_publishes_to_the_topics(stack: cdk.Stack) -> None:
    rules(stack, Observability())
    (workspace,) = resources(stack, "AWS::APS::Workspace")
    definition = YAML(typ="safe").load(workspace["AlertManagerDefinition"])
    config = YAML(typ="safe").load(definition["alertmanager_config"])
    assert [item["topic_arn"] for item in config["receivers"][0]["sns_configs"]] == [MAIL]
    assert config["templates"] == list(definition["template_files"])


def test_an_existing_workspace_keeps_its_alert_manager(stack: cdk.Stack) -> None:
    settings = Observability(workspace="ws-11111111-2222-3333-4444-555555555555")
    assert len(rules(stack, settings)) == 2
    assert not resources(stack, "AWS::APS::Workspace")


def test_services_of_this_account_alone_may_publish(stack: cdk.Stack) -> None:
    topics = AlertTopics(stack, "Alerts", settings=Alerts(emails=("oncall@example.com",), chat=Chat(slack=SLACK)))
    assert set(topics.arns) == {"mail", "chat"}
    policies = [
        *(item["PolicyDocument"] for item in resources(stack, "AWS::SNS::TopicPolicy")),
        *(item["KeyPolicy"] for item in resources(stack, "AWS::KMS::Key")),
    ]
    assert len(policies) == 3
    for policy in policies:
        (services,) = [item for item in policy["Statement"] if item.get("Sid") == "ServicesOfThisAccount"]
        assert services["Condition"] == {"StringEquals": {"aws:SourceAccount": "111122223333"}}
        assert "aps.amazonaws.com" in services["Principal"]["Service"]
    assert all("KmsMasterKeyId" in item for item in resources(stack, "AWS::SNS::Topic"))
    assert [item["Endpoint"] for item in resources(stack, "AWS::SNS::Subscription")] == ["oncall@example.com"]


def test_without_a_channel_there_is_no_topic_for_chat(stack: cdk.Stack) -> None:
    topics = AlertTopics(stack, "Alerts", settings=Alerts())
    assert list(topics.arns) == ["mail"]


@pytest.mark.parametrize(
    ("chat", "kind", "channel"),
    [
        pytest.param(
            Chat(slack=SLACK),
            "AWS::Chatbot::SlackChannelConfiguration",
            {"SlackWorkspaceId": "T07EA123LEP", "SlackChannelId": "C0123456789"},
            id="slack",
        ),
        pytest.param(
            Chat(teams=TEAMS),
            "AWS::Chatbot::MicrosoftTeamsChannelConfiguration",
            {"TeamsTenantId": TEAM, "TeamId": TEAM, "TeamsChannelId": "19%3Aabc%40thread.tacv2"},
            id="teams",
        ),
    ],
)
def test_a_channel_posts_and_may_do_nothing_else(
    stack: cdk.Stack, chat: Chat, kind: str, channel: dict[str, str]
) -> None:
    ChatChannels(stack, "Chat", settings=chat, name="prod", topic_arn=MAIL)
    (made,) = resources(stack, kind)
    assert made.items() >= channel.items()
    assert made["SnsTopicArns"] == [MAIL]
    assert "AWSDenyAll" in json.dumps(made["GuardrailPolicies"])
    assert not resources(stack, "AWS::IAM::Policy")


def test_events_of_this_cluster_reach_the_function(stack: cdk.Stack) -> None:
    topics = AlertTopics(stack, "Alerts", settings=Alerts())
    key = cast(kms.IKey, kms.Key(stack, "Key"))
    ClusterEvents(stack, "Events", environment="prod", cluster_arn=CLUSTER_ARN, topics=topics, key=key)
    patterns = [item["EventPattern"] for item in resources(stack, "AWS::Events::Rule")]
    assert {pattern["detail-type"][0] for pattern in patterns} == {
        "SageMaker HyperPod Cluster State Change",
        "SageMaker HyperPod Cluster Node Health Event",
        "SageMaker HyperPod Cluster Event",
    }
    assert all(pattern["resources"] == [CLUSTER_ARN] for pattern in patterns)
    assert len(resources(stack, "AWS::Lambda::Permission")) == 3
    (retries,) = resources(stack, "AWS::Lambda::EventInvokeConfig")
    assert retries["DestinationConfig"]["OnFailure"]["Destination"] == stack.resolve(topics.mail)
    (function,) = resources(stack, "AWS::Lambda::Function")
    assert "CHAT_TOPIC" not in function["Environment"]["Variables"]


def test_alarms_reach_the_same_people(stack: cdk.Stack) -> None:
    code = lambda_.Code.from_inline("x = 1")
    function = lambda_.Function(
        stack, "Function", runtime=lambda_.Runtime.PYTHON_3_14, code=code, handler="index.handler"
    )
    alarms = UpkeepAlarms(stack, "Upkeep", topics=[MAIL, f"{MAIL}-chat"])
    alarms.function("Fleet", cast(lambda_.IFunction, function), each_minute=True)
    alarms.alert_manager("ws-1")
    alarms.setups("prod")
    alarms.lustre("data", file_system_id="fs-0123456789abcdef0", capacity_gib=38400)
    actual = {item["MetricName"]: item for item in resources(stack, "AWS::CloudWatch::Alarm")}
    of_services = {"Errors", "Invocations", "AlertManagerNotificationsFailed", "FreeDataStorageCapacity"}
    assert set(actual) == {*of_services, "degraded_steps"}
    assert all(item["AlarmActions"] == item["OKActions"] == [MAIL, f"{MAIL}-chat"] for item in actual.values())
    # A function that does not run at all sends no numbers.
    assert actual["Invocations"]["TreatMissingData"] == "breaching"
    assert actual["FreeDataStorageCapacity"]["Threshold"] == 38400 * 1024**3 // 20
    # Each node counts once, so one period has to be enough.
    degraded = actual["degraded_steps"]
    assert (degraded["Threshold"], degraded["EvaluationPeriods"], degraded["DatapointsToAlarm"]) == (0, 1, 1)
    assert degraded["Dimensions"] == [{"Name": "ClusterName", "Value": "prod"}]


@pytest.mark.parametrize("name", ["prod", "slurm-classic"])
def test_nodes_that_join_degraded_are_told_of(name: str) -> None:
    alarms = [item["Properties"] for item in synthesis(name).resources("AWS::CloudWatch::Alarm").values()]
    own = [alarm for alarm in alarms if alarm["MetricName"] == "degraded_steps"]
    dimensions = [{"Name": "ClusterName", "Value": environment(name).cluster.name}]
    assert [alarm["Dimensions"] for alarm in own] == [dimensions]
    assert all(alarm["AlarmActions"] for alarm in own)
