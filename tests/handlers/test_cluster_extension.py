"""The handler that installs an extension of a Slurm cluster, against a stubbed SageMaker."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from loopback import Call, Reply, serving
from podwright.constructs.hyperpod.cluster_extension.handler import index

CLUSTER = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster-extension/abcdefghijkl/observability"
CLIENT = boto3.Session("key", "secret", region_name="us-west-2").client("sagemaker")
SETTINGS = {"metricsProvider": {"nodeMetrics": {"level": "ADVANCED"}}}
OWNER = {"Key": "podwright:resource", "Value": "0a1b/Extension"}
NOW = datetime(2026, 11, 21, tzinfo=UTC)
ADDRESS = {"ClusterArn": CLUSTER, "ExtensionArn": ARN}


class World:
    """SageMaker as a list of answers, and CloudFormation."""

    log_group_name, log_stream_name = "group", "stream"

    def __init__(self, cloudformation: str, answers: list[dict[str, Any]]) -> None:
        self.stub = Stubber(CLIENT)
        self.url, self.answers = cloudformation, answers
        self.left = [900_000]

    def get_remaining_time_in_millis(self) -> int:
        """Of the Lambda context: a minute less with each look."""
        self.left.append(self.left[-1] - 60_000)
        return self.left[-1]

    def listed(self, *versions: str, owner: dict[str, str] = OWNER) -> None:
        found = [
            {
                "ExtensionArn": ARN,
                "ExtensionName": "sagemaker-observability",
                "ExtensionVersion": version,
                "Status": "Active",
                "CreationTime": NOW,
            }
            for version in versions
        ]
        self.stub.add_response("list_cluster_extensions", {"Extensions": found}, {"ClusterArn": CLUSTER})
        if found:
            self.stub.add_response("list_tags", {"Tags": [owner]}, {"ResourceArn": ARN})

    def created(self) -> None:
        expected = {
            "ClusterArn": CLUSTER,
            "ExtensionName": "sagemaker-observability",
            "ExtensionVersion": "1.2.0",
            "ConfigurationValues": json.dumps(SETTINGS),
            "Tags": [{"Key": "team", "Value": "ml"}, OWNER],
            "ClientToken": "request",
        }
        self.stub.add_response("create_cluster_extension", {"ExtensionArn": ARN}, expected)

    def described(self, status: str, settings: Any = SETTINGS, version: str = "1.2.0", **more: Any) -> None:
        details = {
            **ADDRESS,
            "ExtensionName": "sagemaker-observability",
            "ExtensionVersion": version,
            "Status": status,
            "ConfigurationValues": json.dumps(settings),
        }
        self.stub.add_response("describe_cluster_extension", {"ExtensionDetails": details, **more}, ADDRESS)

    def updated(self, **wanted: str) -> None:
        expected = {**ADDRESS, "ClientToken": "request", **wanted}
        self.stub.add_response("update_cluster_extension", {"ExtensionArn": ARN}, expected)

    def removed(self) -> None:
        self.stub.add_response("delete_cluster_extension", {"ExtensionArn": ARN}, ADDRESS)
        self.described("Deleting")
        self.stub.add_client_error("describe_cluster_extension", "ResourceNotFound", expected_params=ADDRESS)

    def run(self, request: str) -> dict[str, Any]:
        """Carry a request out; returns what CloudFormation got."""
        event = {
            "RequestType": request,
            "ResponseURL": f"{self.url}/answer",
            "StackId": "arn:aws:cloudformation:us-west-2:111122223333:stack/slurm-observability/0a1b",
            "RequestId": "request",
            "LogicalResourceId": "Extension",
            "ResourceType": "Custom::PodwrightClusterExtension",
            "PhysicalResourceId": f"{CLUSTER}/sagemaker-observability",
            "ResourceProperties": {
                "ClusterArn": CLUSTER,
                "Name": "sagemaker-observability",
                "Version": "1.2.0",
                "Settings": json.dumps(SETTINGS),
                "Tags": [{"Key": "team", "Value": "ml"}],
            },
        }
        with self.stub:
            index.handler(event, self)
        self.stub.assert_no_pending_responses()
        return self.answers[-1]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    answers = list[dict[str, Any]]()

    def cloudformation(call: Call) -> Reply:
        answers.append(json.loads(call.body))
        return Reply()

    monkeypatch.setattr(index.boto3, "Session", lambda: type("Session", (), {"client": lambda *_, **__: CLIENT})())
    monkeypatch.setattr(index.time, "sleep", lambda _: None)
    with serving(cloudformation) as server:
        yield World(server.url, answers)


def test_it_is_installed_with_the_request_as_token_and_waited_for(world: World) -> None:
    world.listed()
    world.created()
    world.described("Creating", NodeSummary={"TotalCount": 8, "ActiveCount": 3})
    world.described("Active", NodeSummary={"TotalCount": 8, "ActiveCount": 8})
    answer = world.run("Create")
    assert (answer["Status"], answer["Data"]) == ("SUCCESS", {"Arn": ARN, "Status": "Active"})
    assert answer["PhysicalResourceId"] == f"{CLUSTER}/sagemaker-observability"


def test_a_request_that_runs_again_finds_what_it_made(world: World) -> None:
    world.listed("1.2.0")
    world.described("Active")
    world.described("Active")
    assert world.run("Create")["Status"] == "SUCCESS"


def test_one_that_comes_into_being_meanwhile_is_ours_or_refused(world: World) -> None:
    world.listed()
    world.stub.add_client_error("create_cluster_extension", "ResourceInUse")
    world.listed("1.2.0", owner={"Key": "podwright:resource", "Value": "other/Extension"})
    answer = world.run("Create")
    assert answer["Status"] == "FAILED"
    assert "this stack did not install" in answer["Reason"]


def test_nodes_that_come_late_do_not_hold_up_a_deployment(world: World) -> None:
    world.listed()
    world.created()
    for _ in range(14):
        world.described("Creating")
    assert world.run("Create")["Data"]["Status"] == "Creating"


def test_a_failed_installation_says_why_and_on_how_many_nodes(world: World) -> None:
    world.listed()
    world.created()
    issues = [{"Code": "AccessDenied", "Message": "aps:RemoteWrite", "NodeCount": 8}]
    world.described("CreateFailed", Health={"Issues": issues})
    answer = world.run("Create")
    assert answer["Status"] == "FAILED"
    assert "CreateFailed: AccessDenied on 8 nodes: aps:RemoteWrite" in answer["Reason"]


def test_settings_that_are_gone_get_their_defaults_back(world: World) -> None:
    before = {"metricsProvider": {"nodeMetrics": {"level": "BASIC"}, "networkMetrics": {"level": "ADVANCED"}}}
    world.listed("1.2.0")
    world.described("Active", before)
    change = {"metricsProvider": {"networkMetrics": None, "nodeMetrics": {"level": "ADVANCED"}}}
    world.updated(ConfigurationValues=json.dumps(change))
    world.described("Active")
    assert world.run("Update")["Status"] == "SUCCESS"


def test_a_later_version_is_an_update_and_an_earlier_one_a_new_installation(world: World) -> None:
    world.listed("1.1.9")
    world.described("Active", version="1.1.9")
    world.updated(ExtensionVersion="1.2.0")
    world.described("Active")
    assert world.run("Update")["Status"] == "SUCCESS"
    world.listed("1.10.0")
    world.removed()
    world.created()
    world.described("Active")
    assert world.run("Update")["Status"] == "SUCCESS"


def test_where_it_failed_the_same_request_tries_the_nodes_again(world: World) -> None:
    world.listed("1.2.0")
    world.described("UpdateFailed")
    world.updated()
    world.described("Active")
    assert world.run("Update")["Status"] == "SUCCESS"


def test_deletion_takes_ours_and_leaves_everything_else(world: World) -> None:
    world.listed("1.2.0")
    world.removed()
    assert world.run("Delete")["Status"] == "SUCCESS"
    world.listed("1.2.0", owner={"Key": "team", "Value": "ml"})
    assert world.run("Delete")["Status"] == "SUCCESS"
    world.stub.add_client_error("list_cluster_extensions", "ResourceNotFound")
    assert world.run("Delete")["Status"] == "SUCCESS"
