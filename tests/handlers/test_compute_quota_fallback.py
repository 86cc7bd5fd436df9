"""The handler that makes quotas through the API, against a stubbed SageMaker: repeated, interrupted, refused."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from loopback import Call, Reply, serving
from podwright.constructs.governance.compute_quota_fallback.handler import index

CLUSTER = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
ID, NEXT = "quotaquota12", "quotaquota34"
SESSION = boto3.Session("key", "secret", region_name="us-west-2")
CLIENT = SESSION.client("sagemaker")
SETTINGS = {
    "ComputeQuotaConfig": {
        "ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Accelerators": 4, "VCpu": 96.5}],
        "ResourceSharingConfig": {"Strategy": "Lend"},
    },
    "ComputeQuotaTarget": {"TeamName": "llm", "FairShareWeight": 60},
}
OWNER = {"Key": "podwright:resource", "Value": "0a1b/Quota"}
TAGS = [{"Key": "cost-center", "Value": "ai"}, OWNER]


class StubbedSageMaker:
    """SageMaker as a list of answers, and CloudFormation."""

    def __init__(self, cloudformation: str, answers: list[dict[str, Any]]) -> None:
        self.stub = Stubber(CLIENT)
        self.url, self.answers = cloudformation, answers

    def client(self, name: str, **_: Any) -> Any:
        assert name == "sagemaker"
        return CLIENT

    def created(self, identifier: str = ID, **more: Any) -> None:
        expected = {"Name": "llm", "ClusterArn": CLUSTER, "Tags": TAGS, **SETTINGS, **more}
        self.stub.add_response(
            "create_compute_quota", {"ComputeQuotaArn": arn(identifier), "ComputeQuotaId": identifier}, expected
        )

    def refused(self, operation: str, code: str) -> None:
        self.stub.add_client_error(operation, code, "SageMaker says no")

    def described(self, status: str, version: int = 1, identifier: str = ID, **more: Any) -> None:
        self.stub.add_response(
            "describe_compute_quota", quota(status, version, identifier, **more), {"ComputeQuotaId": identifier}
        )

    def gone(self, identifier: str = ID) -> None:
        self.stub.add_client_error(
            "describe_compute_quota", "ResourceNotFound", "gone", expected_params={"ComputeQuotaId": identifier}
        )

    def listed(self, *tags: dict[str, str]) -> None:
        """Two quotas whose names hold ours, of which the second one is called so and has these tags."""
        actual = [quota("Created", 1, NEXT) | {"Name": "llm-2"}, quota("Created")]
        keep = ("ComputeQuotaArn", "ComputeQuotaId", "Name", "Status", "ComputeQuotaTarget", "CreationTime")
        summaries = [{name: item[name] for name in keep} for item in actual]
        self.stub.add_response(
            "list_compute_quotas", {"ComputeQuotaSummaries": summaries}, {"ClusterArn": CLUSTER, "NameContains": "llm"}
        )
        self.stub.add_response("list_tags", {"Tags": list(tags)}, {"ResourceArn": arn(ID)})

    def updated(self, version: int) -> None:
        answer = {"ComputeQuotaArn": arn(ID), "ComputeQuotaVersion": version + 1}
        expected = {"ComputeQuotaId": ID, "TargetVersion": version, **SETTINGS}
        self.stub.add_response("update_compute_quota", answer, expected)

    def tagged(self) -> None:
        self.stub.add_response("add_tags", {"Tags": TAGS}, {"ResourceArn": arn(ID), "Tags": TAGS})

    def deleted(self, identifier: str = ID) -> None:
        self.stub.add_response("delete_compute_quota", {}, {"ComputeQuotaId": identifier})

    def run(self, request: str, physical_id: str = "", settings: dict[str, Any] = SETTINGS) -> dict[str, Any]:
        """Carry a request out; returns what CloudFormation got."""
        event = {
            "RequestType": request,
            "ResponseURL": f"{self.url}/answer",
            "StackId": "arn:aws:cloudformation:us-west-2:111122223333:stack/prod-governance/0a1b",
            "RequestId": "request",
            "LogicalResourceId": "Quota",
            "ResourceType": "Custom::PodwrightComputeQuota",
            "ResourceProperties": {
                "Name": "llm",
                "ClusterArn": CLUSTER,
                "Tags": TAGS[:1],
                "Settings": json.dumps(settings),
            },
            **({"PhysicalResourceId": physical_id} if physical_id else {}),
        }
        with self.stub:
            index.handler(event, self)
        self.stub.assert_no_pending_responses()
        return self.answers[-1]

    # The Lambda context.
    log_group_name, log_stream_name = "group", "stream"


@pytest.fixture
def sagemaker(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubbedSageMaker]:
    answers = list[dict[str, Any]]()

    def take(call: Call) -> Reply:
        answers.append(json.loads(call.body))
        return Reply(200, b"")

    with serving(take) as cloudformation:
        made = StubbedSageMaker(cloudformation.url, answers)
        monkeypatch.setattr(index.time, "sleep", lambda _: None)
        monkeypatch.setattr(index.boto3, "Session", lambda: made)
        yield made


def arn(identifier: str) -> str:
    return f"arn:aws:sagemaker:us-west-2:111122223333:compute-quota/{identifier}"


def quota(status: str, version: int = 1, identifier: str = ID, **more: Any) -> dict[str, Any]:
    return {
        "ComputeQuotaArn": arn(identifier),
        "ComputeQuotaId": identifier,
        "ComputeQuotaVersion": version,
        "Name": "llm",
        "ClusterArn": CLUSTER,
        "Status": status,
        "CreationTime": datetime(2026, 11, 1, tzinfo=UTC),
        **SETTINGS,
        **more,
    }


def test_a_quota_is_there_once_it_holds(sagemaker: StubbedSageMaker) -> None:
    sagemaker.created()
    sagemaker.described("Creating")
    sagemaker.described("Created")
    answer = sagemaker.run("Create")
    assert (answer["Status"], answer["PhysicalResourceId"], answer["Data"]) == ("SUCCESS", ID, {"Arn": arn(ID)})


def test_a_repeated_request_finds_what_the_first_run_made(sagemaker: StubbedSageMaker) -> None:
    sagemaker.refused("create_compute_quota", "ConflictException")
    sagemaker.listed(OWNER)
    sagemaker.described("Creating")
    sagemaker.described("Created")
    assert sagemaker.run("Create")["PhysicalResourceId"] == ID


def test_what_somebody_else_made_is_left_alone(sagemaker: StubbedSageMaker) -> None:
    sagemaker.refused("create_compute_quota", "ConflictException")
    sagemaker.listed({"Key": "podwright:resource", "Value": "ffff/Quota"})
    answer = sagemaker.run("Create")
    assert answer["Status"] == "FAILED"
    assert f"llm exists on {CLUSTER} and this stack did not make it; delete it" in answer["Reason"]


def test_a_failed_quota_says_why_and_goes_with_the_rollback(sagemaker: StubbedSageMaker) -> None:
    sagemaker.created()
    sagemaker.described("CreateFailed", FailureReason="the type is not in the cluster")
    answer = sagemaker.run("Create")
    assert answer["Status"] == "FAILED"
    assert "llm is CreateFailed: the type is not in the cluster" in answer["Reason"]
    sagemaker.listed(OWNER)
    sagemaker.described("CreateFailed")
    sagemaker.deleted()
    sagemaker.gone()
    assert sagemaker.run("Delete", answer["PhysicalResourceId"])["Status"] == "SUCCESS"


def test_an_update_names_the_version_that_it_is_about(sagemaker: StubbedSageMaker) -> None:
    sagemaker.described("Updated", 3, ComputeQuotaTarget={"TeamName": "llm", "FairShareWeight": 10})
    sagemaker.updated(3)
    sagemaker.described("Updating", 4)
    sagemaker.described("Updated", 4)
    sagemaker.tagged()
    assert sagemaker.run("Update", ID)["PhysicalResourceId"] == ID


def test_an_update_that_came_too_late_takes_the_next_version(sagemaker: StubbedSageMaker) -> None:
    other: dict[str, Any] = {"ComputeQuotaTarget": {"TeamName": "llm", "FairShareWeight": 10}}
    sagemaker.described("Updating", 3, **other)
    sagemaker.described("Updated", 3, **other)
    sagemaker.refused("update_compute_quota", "ConflictException")
    sagemaker.described("Updated", 4, **other)
    sagemaker.updated(4)
    sagemaker.described("Updated", 5)
    sagemaker.tagged()
    assert sagemaker.run("Update", ID)["Status"] == "SUCCESS"


def test_a_quarrel_ends(sagemaker: StubbedSageMaker) -> None:
    for version in range(5):
        sagemaker.described("Updated", version, ComputeQuotaTarget={"TeamName": "llm", "FairShareWeight": version})
        sagemaker.refused("update_compute_quota", "ConflictException")
    answer = sagemaker.run("Update", ID)
    assert answer["Status"] == "FAILED"
    assert "SageMaker says no" in answer["Reason"]


def test_an_update_that_a_former_run_made_is_not_made_again(sagemaker: StubbedSageMaker) -> None:
    filled = [{**SETTINGS["ComputeQuotaConfig"]["ComputeQuotaResources"][0], "MemoryInGiB": 1029.3}]
    config = {**SETTINGS["ComputeQuotaConfig"], "ComputeQuotaResources": filled, "PreemptTeamTasks": "LowerPriority"}
    sagemaker.described("Updated", 4, ComputeQuotaConfig=config)
    sagemaker.described("Updated", 4, ComputeQuotaConfig=config)
    sagemaker.tagged()
    assert sagemaker.run("Update", ID)["Status"] == "SUCCESS"


def test_a_quota_whose_update_failed_is_updated_again(sagemaker: StubbedSageMaker) -> None:
    sagemaker.described("UpdateFailed", 4)
    sagemaker.updated(4)
    sagemaker.described("Updated", 5)
    sagemaker.tagged()
    assert sagemaker.run("Update", ID)["Status"] == "SUCCESS"


@pytest.mark.parametrize("before", [None, {"TeamName": "vision"}], ids=["deleted by hand", "of another team"])
def test_another_quota_is_made_in_place_of(sagemaker: StubbedSageMaker, before: dict[str, Any] | None) -> None:
    if before:
        sagemaker.described("Created", ComputeQuotaTarget=before)
    else:
        sagemaker.gone()
    sagemaker.created(NEXT)
    sagemaker.described("Created", identifier=NEXT)
    assert sagemaker.run("Update", ID)["PhysicalResourceId"] == NEXT, "CloudFormation then deletes the old one"


def test_what_is_gone_needs_no_deletion(sagemaker: StubbedSageMaker) -> None:
    sagemaker.gone()
    assert sagemaker.run("Delete", ID)["Status"] == "SUCCESS"


def test_a_deletion_waits_until_it_is_done_and_says_what_went_wrong(sagemaker: StubbedSageMaker) -> None:
    sagemaker.described("Updating")
    sagemaker.described("Updated")
    sagemaker.deleted()
    sagemaker.described("Deleting")
    sagemaker.described("DeleteFailed", FailureReason="workloads run in its queue")
    answer = sagemaker.run("Delete", ID)
    assert answer["Status"] == "FAILED"
    assert "llm is DeleteFailed: workloads run in its queue" in answer["Reason"]


def test_a_scheduler_configuration_goes_the_same_way(sagemaker: StubbedSageMaker) -> None:
    made = f"arn:aws:sagemaker:us-west-2:111122223333:cluster-scheduler-config/{ID}"
    config = {"FairShare": "Enabled", "PriorityClasses": [{"Name": "training", "Weight": 70}]}
    sagemaker.stub.add_response(
        "create_cluster_scheduler_config",
        {"ClusterSchedulerConfigArn": made, "ClusterSchedulerConfigId": ID},
        {"Name": "prod", "ClusterArn": CLUSTER, "SchedulerConfig": config, "Tags": ANY},
    )
    described = {
        "ClusterSchedulerConfigArn": made,
        "ClusterSchedulerConfigId": ID,
        "ClusterSchedulerConfigVersion": 1,
        "Name": "prod",
        "Status": "Created",
        "CreationTime": datetime(2026, 11, 1, tzinfo=UTC),
    }
    sagemaker.stub.add_response("describe_cluster_scheduler_config", described, {"ClusterSchedulerConfigId": ID})
    properties = {"Name": "prod", "ClusterArn": CLUSTER, "Settings": json.dumps({"SchedulerConfig": config})}
    event = {
        "RequestType": "Create",
        "StackId": "stack/0a1b",
        "LogicalResourceId": "Policy",
        "ResourceType": "Custom::PodwrightSchedulerConfig",
        "ResourceProperties": properties,
    }
    with sagemaker.stub:
        answer = index.handle(event, sagemaker)
    assert (answer.physical_id, answer.data) == (ID, {"Arn": made})
