"""The handler that installs an extension of a Slurm cluster, against a stubbed SageMaker."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.stub import Stubber

from loopback import Call, Reply, serving
from podwright.constructs.hyperpod.cluster_extension.handler import index

CLUSTER = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster-extension/abcdefghijkl/observability"
CLIENT = index.session_with_models().client(
    "sagemaker", region_name="us-west-2", aws_access_key_id="key", aws_secret_access_key="secret"
)
SETTINGS = {"metricsProvider": {"nodeMetrics": {"level": "ADVANCED"}}}
OWNER = {"Key": "podwright:resource", "Value": "0a1b/Extension"}
NOW = datetime(2026, 11, 21, tzinfo=UTC)
ADDRESS = {"ClusterArn": CLUSTER, "ExtensionArn": ARN}


class StubbedSageMaker:
    """SageMaker as a list of answers, and CloudFormation."""

    log_group_name, log_stream_name = "group", "stream"

    def __init__(self, cloudformation: str, answers: list[dict[str, Any]]) -> None:
        self.stub = Stubber(CLIENT)
        self.url, self.answers = cloudformation, answers
        self.left = [900_000]

    def get_remaining_time_in_millis(self) -> int:
        """Of the Lambda context: a minute less with each read."""
        self.left.append(self.left[-1] - 60_000)
        return self.left[-1]

    def listed(self, *versions: str, owner: dict[str, str] = OWNER) -> None:
        actual = [
            {
                "ExtensionArn": ARN,
                "ExtensionName": "sagemaker-observability",
                "ExtensionVersion": version,
                "Status": "Active",
                "CreationTime": NOW,
            }
            for version in versions
        ]
        self.stub.add_response("list_cluster_extensions", {"Extensions": actual}, {"ClusterArn": CLUSTER})
        if actual:
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

    def updated(self, **desired: str) -> None:
        expected = {**ADDRESS, "ClientToken": "request", **desired}
        self.stub.add_response("update_cluster_extension", {"ExtensionArn": ARN}, expected)

    def removed(self) -> None:
        self.stub.add_response("delete_cluster_extension", {"ExtensionArn": ARN}, ADDRESS)
        self.described("Deleting")
        self.stub.add_client_error("describe_cluster_extension", "ResourceNotFound", expected_params=ADDRESS)

    def run(self, request: str, identifier: str = f"{CLUSTER}/sagemaker-observability") -> dict[str, Any]:
        """Carry a request out; returns what CloudFormation got."""
        event = {
            "RequestType": request,
            "ResponseURL": f"{self.url}/answer",
            "StackId": "arn:aws:cloudformation:us-west-2:111122223333:stack/slurm-observability/0a1b",
            "RequestId": "request",
            "LogicalResourceId": "Extension",
            "ResourceType": "Custom::PodwrightClusterExtension",
            **({"PhysicalResourceId": identifier} if request != "Create" else {}),
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
def sagemaker(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubbedSageMaker]:
    answers = list[dict[str, Any]]()

    def cloudformation(call: Call) -> Reply:
        answers.append(json.loads(call.body))
        return Reply()

    monkeypatch.setattr(index.boto3, "Session", lambda **_: type("Session", (), {"client": lambda *_, **__: CLIENT})())
    monkeypatch.setattr(index.time, "sleep", lambda _: None)
    with serving(cloudformation) as server:
        yield StubbedSageMaker(server.url, answers)


def test_it_is_installed_with_the_request_as_token_and_waited_for(sagemaker: StubbedSageMaker) -> None:
    sagemaker.listed()
    sagemaker.created()
    sagemaker.described("Creating", NodeSummary={"TotalCount": 8, "ActiveCount": 3})
    sagemaker.described("Active", NodeSummary={"TotalCount": 8, "ActiveCount": 8})
    answer = sagemaker.run("Create")
    assert (answer["Status"], answer["Data"]) == ("SUCCESS", {"Arn": ARN, "Status": "Active"})
    assert answer["PhysicalResourceId"] == f"{CLUSTER}/sagemaker-observability"


def test_a_request_that_runs_again_finds_what_it_made(sagemaker: StubbedSageMaker) -> None:
    sagemaker.listed("1.2.0")
    sagemaker.described("Active")
    sagemaker.described("Active")
    assert sagemaker.run("Create")["Status"] == "SUCCESS"


def test_one_that_comes_into_being_meanwhile_is_ours_or_refused(sagemaker: StubbedSageMaker) -> None:
    sagemaker.listed()
    sagemaker.stub.add_client_error("create_cluster_extension", "ResourceInUse")
    sagemaker.listed("1.2.0", owner={"Key": "podwright:resource", "Value": "other/Extension"})
    answer = sagemaker.run("Create")
    assert answer["Status"] == "FAILED"
    assert "this stack did not install" in answer["Reason"]


def test_nodes_that_come_late_do_not_hold_up_a_deployment(sagemaker: StubbedSageMaker) -> None:
    sagemaker.listed()
    sagemaker.created()
    for _ in range(14):
        sagemaker.described("Creating")
    assert sagemaker.run("Create")["Data"]["Status"] == "Creating"


def test_a_failed_installation_says_why_and_on_how_many_nodes(sagemaker: StubbedSageMaker) -> None:
    sagemaker.listed()
    sagemaker.created()
    issues = [{"Code": "AccessDenied", "Message": "aps:RemoteWrite", "NodeCount": 8}]
    sagemaker.described("CreateFailed", Health={"Issues": issues})
    answer = sagemaker.run("Create")
    assert answer["Status"] == "FAILED"
    assert "CreateFailed: AccessDenied on 8 nodes: aps:RemoteWrite" in answer["Reason"]


def test_settings_that_are_gone_get_their_defaults_back(sagemaker: StubbedSageMaker) -> None:
    before = {"metricsProvider": {"nodeMetrics": {"level": "BASIC"}, "networkMetrics": {"level": "ADVANCED"}}}
    sagemaker.listed("1.2.0")
    sagemaker.described("Active", before)
    change = {"metricsProvider": {"networkMetrics": None, "nodeMetrics": {"level": "ADVANCED"}}}
    sagemaker.updated(ConfigurationValues=json.dumps(change))
    sagemaker.described("Active")
    assert sagemaker.run("Update")["Status"] == "SUCCESS"


def test_a_later_version_is_an_update_and_an_earlier_one_a_new_installation(sagemaker: StubbedSageMaker) -> None:
    sagemaker.listed("1.1.9")
    sagemaker.described("Active", version="1.1.9")
    sagemaker.updated(ExtensionVersion="1.2.0")
    sagemaker.described("Active")
    assert sagemaker.run("Update")["Status"] == "SUCCESS"
    sagemaker.listed("1.10.0")
    sagemaker.removed()
    sagemaker.created()
    sagemaker.described("Active")
    assert sagemaker.run("Update")["Status"] == "SUCCESS"


def test_where_it_failed_the_same_request_tries_the_nodes_again(sagemaker: StubbedSageMaker) -> None:
    sagemaker.listed("1.2.0")
    sagemaker.described("UpdateFailed")
    sagemaker.updated()
    sagemaker.described("Active")
    assert sagemaker.run("Update")["Status"] == "SUCCESS"


def test_deletion_takes_ours_and_leaves_everything_else(sagemaker: StubbedSageMaker) -> None:
    sagemaker.listed("1.2.0")
    sagemaker.removed()
    assert sagemaker.run("Delete")["Status"] == "SUCCESS"
    sagemaker.listed("1.2.0", owner={"Key": "team", "Value": "ml"})
    assert sagemaker.run("Delete")["Status"] == "SUCCESS"
    sagemaker.stub.add_client_error("list_cluster_extensions", "ResourceNotFound")
    assert sagemaker.run("Delete")["Status"] == "SUCCESS"


def test_what_failed_before_its_creation_is_deleted_without_a_call(sagemaker: StubbedSageMaker) -> None:
    sagemaker.listed("1.2.0", owner={"Key": "team", "Value": "ml"})
    refused = sagemaker.run("Create")
    assert (refused["Status"], refused["PhysicalResourceId"]) == ("FAILED", "Extension-not-created")
    assert sagemaker.run("Delete", refused["PhysicalResourceId"])["Status"] == "SUCCESS"


def test_what_failed_after_its_creation_is_looked_for_and_deleted(sagemaker: StubbedSageMaker) -> None:
    sagemaker.listed()
    sagemaker.created()
    sagemaker.described("CreateFailed")
    failed = sagemaker.run("Create")
    assert (failed["Status"], failed["PhysicalResourceId"]) == ("FAILED", f"{CLUSTER}/sagemaker-observability")
    sagemaker.listed("1.2.0")
    sagemaker.removed()
    assert sagemaker.run("Delete", failed["PhysicalResourceId"])["Status"] == "SUCCESS"
