import io
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.exceptions import ClientError

from loopback import Call, Reply, serving
from podwright.config.catalog.sandbox_account import CONTROL_PLANE
from podwright.config.settings.environment import Environment
from podwright.operations.aws.account import Account
from podwright.operations.live import cluster_table
from podwright.operations.live.cluster_table import report, write_report
from refusals import refusal

ENVIRONMENT = Environment.model_validate(
    {
        "name": "prod",
        "account": "111122223333",
        "region": "us-west-2",
        "network": {"zones": ["usw2-az1", "usw2-az2"]},
        "instance_groups": {
            "system": {"instance_type": "ml.m5.4xlarge", "count": 2},
            "h200": {"instance_type": "ml.p5en.48xlarge", "count": 4, "zone": "usw2-az2"},
        },
    }
)
STACKS = {"prod-network": ["AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::Subnet"], "prod-cluster": ["Custom::Nodes"]}


class Client:
    """CloudFormation and SageMaker as far as the table asks them."""

    def __init__(self, nodes: list[dict[str, Any]] | None) -> None:
        self.nodes = nodes

    def describe_cluster(self, ClusterName: str) -> dict[str, Any]:
        assert ClusterName == "prod"
        if self.nodes is None:
            raise refusal("ResourceNotFound")
        groups = [
            {"InstanceGroupName": name, "CurrentCount": 1, "TargetCount": group.count, "Status": "Creating"}
            for name, group in sorted(ENVIRONMENT.instance_groups.items())
        ]
        return {
            "ClusterArn": "arn:aws:sagemaker:x",
            "ClusterName": "prod",
            "ClusterStatus": "InService",
            "NodeProvisioningMode": "Continuous",
            "InstanceGroups": groups,
        }

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        assert (Bucket, Key) == ("sagemaker-prod-111122223333-us-west-2", "prod/quarantine/i-0001.json")
        record = {"node": "i-0001", "reason": "ECC", "by": "arn:aws:iam::x:role/ada", "since": "2026-11-21T10:00:00"}
        return {"Body": io.BytesIO(json.dumps(record).encode())}

    def list_cluster_events(self, **request: Any) -> dict[str, Any]:
        assert (request["SortOrder"], request["MaxResults"]) == ("Descending", 1)
        event = {"EventId": "e", "EventTime": datetime(2026, 11, 21, tzinfo=UTC), "Description": "no capacity"}
        return {"Events": [event] if request["InstanceGroupName"] == "h200" else []}

    def get_paginator(self, operation: str) -> "Pages":
        return Pages(operation, self.nodes)


class Pages:
    def __init__(self, operation: str, nodes: list[dict[str, Any]] | None) -> None:
        self.operation, self.nodes = operation, nodes

    def paginate(self, StackName: str = "", ClusterName: str = "", **_: Any) -> list[dict[str, Any]]:
        if self.operation == "list_objects_v2":
            return [{"Contents": [{"Key": "prod/quarantine/i-0001.json"}]}]
        if self.operation == "list_stack_resources":
            return [{"StackResourceSummaries": [{"ResourceType": kind}]} for kind in STACKS[StackName]]
        if self.operation == "list_cluster_nodes":
            return [{"ClusterNodeSummaries": [node]} for node in self.nodes or []]
        created = datetime(2026, 11, 21, tzinfo=UTC)
        stacks = [{"StackName": name, "StackStatus": "CREATE_COMPLETE", "CreationTime": created} for name in STACKS]
        return [{"Stacks": stacks}]


class FakeAccount:
    id, region = "111122223333", "us-west-2"

    def __init__(self, nodes: list[dict[str, Any]] | None, endpoint: str | None = None) -> None:
        self.endpoint = endpoint
        self.nodes = nodes

    def client(self, _: str) -> Client:
        return Client(self.nodes)


def nodes(count: int, status: str = "Running", message: str = "") -> list[dict[str, Any]]:
    return [
        {
            "InstanceId": f"i-{number:04}",
            "InstanceGroupName": "h200",
            "InstanceType": "ml.p5en.48xlarge",
            "InstanceStatus": {"Status": status, "Message": message},
        }
        for number in range(count)
    ]


def found(tmp_path: Path, nodes: list[dict[str, Any]] | None, endpoint: str | None = None) -> dict[str, Any]:
    return report(ENVIRONMENT, cast(Account, FakeAccount(nodes, endpoint)), tmp_path)


def printed(report: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    write_report(report)
    return [words for line in capsys.readouterr().out.splitlines() if (words := line.split())]


def test_report(tmp_path: Path) -> None:
    made = found(tmp_path, nodes(1))
    assert made["stacks"][0] == {"name": "prod-network", "status": "CREATE_COMPLETE", "resources": 3}
    assert made["cluster"] == {"name": "prod", "arn": "arn:aws:sagemaker:x", "status": "InService", "message": ""}
    assert made["groups"][1] == {
        "name": "h200",
        "types": ["ml.p5en.48xlarge"],
        "zones": ["usw2-az2"],
        "current": 1,
        "target": 4,
        "status": "Creating",
        "plan": None,
        "message": "no capacity",
    }
    assert [node["id"] for node in made["nodes"]] == ["i-0000"]
    assert made["sandbox"] is None
    assert made["recorded_only"] == {}


def test_stacks_and_nodes_are_asked_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(len(STACKS) + 1, timeout=300)
    usual = Pages.paginate

    def paginate(self: Pages, **request: Any) -> list[dict[str, Any]]:
        if self.operation in ("list_stack_resources", "list_cluster_nodes"):
            together.wait()
        return usual(self, **request)

    monkeypatch.setattr(Pages, "paginate", paginate)
    made = found(tmp_path, nodes(1))
    assert [stack["resources"] for stack in made["stacks"]] == [3, 1]
    assert len(made["nodes"]) == 1


def test_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(found(tmp_path, nodes(2)), capsys)
    assert ["prod-network", "3", "CREATE_COMPLETE"] in lines
    assert ["Cluster", "prod:", "InService"] in lines
    assert ["h200", "ml.p5en.48xlarge", "usw2-az2", "1", "4", "Creating"] in lines
    assert ["i-0000", "h200", "Running"] in lines
    [row] = [line for line in lines if line[0] == "i-0001"]
    assert " ".join(row[2:]) == "Running in quarantine since 2026-11-21T10:00:00 by ada: ECC"
    assert ["h200:", "no", "capacity"] in lines
    assert not any("Simulated:" in line for line in lines)


class OnPlan(Client):
    """The same cluster, whose second group is on a training plan with two windows."""

    plan = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/prod-h200"

    def __init__(self, statuses: list[str] | None) -> None:
        super().__init__(nodes(1))
        self.statuses = statuses

    def describe_cluster(self, ClusterName: str) -> dict[str, Any]:
        cluster = super().describe_cluster(ClusterName)
        cluster["InstanceGroups"][0] |= {"TrainingPlanArn": self.plan, "TrainingPlanStatus": "Scheduled"}
        return cluster

    def describe_training_plan(self, TrainingPlanName: str) -> dict[str, Any]:
        assert TrainingPlanName == self.plan
        if self.statuses is None:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "DescribeTrainingPlan")
        days = [datetime(2027, 1, day, 11, 30, tzinfo=UTC) for day in (4, 18, 21, 30)]
        windows = [
            {"Status": status, "StartTime": days[2 * index], "EndTime": days[2 * index + 1]}
            for index, status in enumerate(self.statuses)
        ]
        status = "Active" if "Active" in self.statuses else "Scheduled"
        return {"TrainingPlanName": "prod-h200", "Status": status, "ReservedCapacitySummaries": windows[::-1]}


@pytest.mark.parametrize(
    ("statuses", "shown"),
    [
        (["Scheduled", "Scheduled"], "prod-h200: Scheduled from 2027-01-04 11:30 UTC"),
        (["Active", "Scheduled"], "prod-h200: Active until 2027-01-18 11:30 UTC"),
        (["Expired", "Scheduled"], "prod-h200: Scheduled from 2027-01-21 11:30 UTC"),
        (None, "prod-h200: Scheduled"),
    ],
)
def test_a_group_on_a_training_plan_says_when_its_instances_come_or_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], statuses: list[str] | None, shown: str
) -> None:
    account = FakeAccount(None)
    account.client = lambda _: OnPlan(statuses)
    made = report(ENVIRONMENT, cast(Account, account), tmp_path)
    [line] = [line for line in printed(made, capsys) if line[:2] == ["h200", "ml.p5en.48xlarge"]]
    assert " ".join(line).endswith(f"Creating {shown}")
    if statuses is None:
        assert made["groups"][1]["plan"]["message"] == "AccessDeniedException"


def test_brackets_in_a_message_are_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(found(tmp_path, nodes(1, "Failure", "no capacity in [usw2-az2]")), capsys)
    assert ["i-0000", "h200", "Failure", "no", "capacity", "in", "[usw2-az2]"] in lines


def test_of_many_nodes_those_that_failed_or_are_in_quarantine_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = nodes(1, "Failure", "hardware")
    lines = printed(found(tmp_path, nodes(1200)[1:] + failed), capsys)
    assert ["i-0000", "h200", "Failure", "hardware"] in lines
    assert ["1,199", "nodes", "h200", "Running"] in lines
    assert any("quarantine" in line for line in lines if "i-0001" in line)
    assert not any("i-0002" in line for line in lines)


def test_without_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(found(tmp_path, None), capsys)
    assert ["There", "is", "no", "HyperPod", "cluster."] in lines


def test_the_sandbox_says_what_is_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It asks the sandbox which of the types that are there are records only."""

    def answer(call: Call) -> Reply:
        asked = parse_qs(urlsplit(call.path).query)["type"]
        return Reply(body=json.dumps([kind for kind in asked if kind == "AWS::EC2::Subnet"]).encode())

    with serving(answer) as sandbox:
        text = " ".join(" ".join(line) for line in printed(found(tmp_path, nodes(1), sandbox.url), capsys))
    assert "Simulated: a stand-in for AWS on this machine" in text
    # No Kubernetes objects are there, as with Slurm.
    assert "no script and no daemon runs on them, Slurm's excepted where Debian's Slurm is installed" in text
    assert "Kubernetes" not in text
    assert "Only recorded, with nothing behind them: AWS::EC2::Subnet (2)." in text


@pytest.mark.parametrize(
    ("endpoint", "version", "shown", "differs"),
    [
        ("https://127.0.0.1:41234", "kubernetes.1.34.4", "Kubernetes is upstream's control plane", False),
        ("https://127.0.0.1:41234", "kubernetes.1.33.4", "Its control plane is Kubernetes 1.33.4, another minor", True),
        (
            "https://localhost:4600/podwright/kubernetes/us-west-2/eks",
            "eks.1",
            "`podwright sandbox kubernetes install` gets",
            False,
        ),
    ],
)
def test_the_sandbox_says_what_kubernetes_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    endpoint: str,
    version: str,
    shown: str,
    differs: bool,
) -> None:
    cluster = {"name": "eks", "endpoint": endpoint, "version": "1.34", "platformVersion": version}
    answers = {CONTROL_PLANE: {"eks": {"real_nodes": 1, "why_simulated": "memory is short"}}}
    monkeypatch.setattr(cluster_table, "applied_objects", lambda *_: [{"namespace": "", "kind": "Node", "name": "a"}])
    monkeypatch.setattr(cluster_table, "eks_cluster", lambda *_: cluster)
    with serving(lambda call: Reply(body=json.dumps(answers.get(call.path.partition("?")[0], [])).encode())) as sandbox:
        text = " ".join(" ".join(line) for line in printed(found(tmp_path, nodes(1), sandbox.url), capsys))
    assert shown in text
    assert ("another minor version" in text) == differs
    nodes_words = "the first node is real, and no container starts on the others, since memory is short."
    assert (nodes_words in text) == version.startswith("kubernetes.")


PAPER = {"paper": {"begin": "2026-01-01", "end": "2199-01-01", "teams": {"research": {"quota": {"h200": 0}}}}}


@pytest.mark.parametrize(("running", "overrides", "is_named"), [(4, {}, False), (3, {}, True), (1, PAPER, False)])
def test_quotas_above_what_takes_work_are_named(
    running: int, overrides: dict[str, Any], is_named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teams = {"research": {"quota": {"h200": 3}}, "product": {"quota": {"h200": 1}}}
    governance = {"engine": "kueue", "teams": teams, "overrides": overrides}
    data = ENVIRONMENT.model_dump(exclude_unset=True) | {"governance": governance}
    account = FakeAccount([*nodes(running), *nodes(1, "Failure")])
    result = report(Environment.model_validate(data), cast(Account, account), tmp_path)
    write_report(result)
    printed = " ".join(capsys.readouterr().out.split())
    words = "8 GPUs of product + 24 GPUs of research = 32 GPUs of h200 are guaranteed, and 3 instances have 24 GPUs"
    assert (f"Quotas above what takes work now: {words}" in printed) == is_named
    assert [quota["flavor"] for quota in result["quotas_beyond"]] == ["h200"] * is_named
