"""`podwright upgrade ENV nodes` and `scripts`: what they ask HyperPod for, in which order, and what they refuse."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from podwright.operations.aws.clusters import Node
from podwright.operations.cli import main
from podwright.operations.kubernetes.kubectl import Refused
from podwright.operations.upgrade import follow, lifecycle, nodes, plan, renewal, scripts
from podwright.operations.upgrade.software import Software
from refusals import refusal

FILE = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
cluster: {name: prod}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 3}
  small: {instance_type: ml.p5en.48xlarge, count: 2, zone: usw2-az2}
  large:
    instance_type: ml.p5en.48xlarge
    count: 8
    zone: usw2-az2
    patching: {strategy: when_idle, batch: "25%", wait_seconds: 60, rollback_alarms: [loss]}
"""
SLURM = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2]}
cluster: {name: prod, orchestrator: slurm}
instance_groups:
  head: {instance_type: ml.m5.4xlarge, count: 1, slurm: {node_type: controller}}
  small: {instance_type: ml.p5en.48xlarge, count: 2, slurm: {node_type: compute}}
"""
OLD = {"CurrentImageReleaseVersion": "1.0.0", "DesiredImageReleaseVersion": "1.0.0"}
BEHIND = OLD | {"ImageVersionStatus": "UpdateAvailable"}
START = datetime(2026, 11, 1, tzinfo=UTC)


class UpgradeAccount:
    """SageMaker, CloudWatch and S3: an update of a group is over with the second check of it."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[str, Any]] = {
            name: {"TargetCount": count, **BEHIND} for name, count in (("system", 3), ("small", 2), ("large", 8))
        }
        self.calls = list[dict[str, Any]]()
        self.replaced = list[list[str]]()
        self.ends, self.latest = "Succeeded", "1.1.0"
        self.alarms = {"loss": "OK"}
        self.prefix, self.published = "s3://sagemaker-x/prod/aaaa", START
        self.node_prefix = self.prefix
        self.broken: BaseException | None = None

    def describe_cluster(self, ClusterName: str) -> dict[str, Any]:
        if self.broken and self.calls:
            raise self.broken
        for row in self.groups.values():
            row["looks"] = row.get("looks", 0) + 1
            if row.get("SoftwareUpdateStatus") == "InProgress" and row["looks"] > 1:
                row["SoftwareUpdateStatus"] = self.ends
                if self.ends == "Succeeded":
                    row |= {
                        "CurrentImageReleaseVersion": row["DesiredImageReleaseVersion"],
                        "ImageVersionStatus": "UpToDate",
                    }
        config = {"SourceS3Uri": self.prefix, "OnCreate": "on_create.sh"}
        rows = [{"InstanceGroupName": name, "LifeCycleConfig": config, **row} for name, row in self.groups.items()]
        failed = "Alarm loss went off" if self.ends != "Succeeded" else ""
        return {"ClusterStatus": "InService", "InstanceGroups": rows, "FailureMessage": failed}

    def update_cluster_software(self, **asked: Any) -> None:
        if isinstance(self.broken, ClientError):
            raise self.broken
        self.calls.append(asked)
        (group,) = asked["InstanceGroups"]
        row = self.groups[group["InstanceGroupName"]]
        row |= {
            "SoftwareUpdateStatus": "InProgress",
            "looks": 0,
            "DesiredImageReleaseVersion": group.get("ImageReleaseVersion", self.latest),
        }

    def describe_cluster_node(self, ClusterName: str, NodeId: str) -> dict[str, Any]:
        return {"NodeDetails": {"LifeCycleConfig": {"SourceS3Uri": self.node_prefix}}}

    def batch_replace_cluster_nodes(self, ClusterName: str, NodeIds: list[str]) -> dict[str, Any]:
        self.replaced.append(NodeIds)
        return {"Successful": NodeIds, "Failed": []}

    def head_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        assert (Bucket, Key) == ("sagemaker-x", f"{self.prefix.rpartition('sagemaker-x/')[2]}/on_create.sh")
        return {"LastModified": self.published}

    def get_paginator(self, operation: str) -> Any:
        return SimpleNamespace(paginate=getattr(self, operation))

    def describe_alarms(self, AlarmNames: list[str]) -> list[Any]:
        existing = [
            {"AlarmName": name, "StateValue": state} for name, state in self.alarms.items() if name in AlarmNames
        ]
        return [{"MetricAlarms": existing}]

    def list_cluster_nodes(self, ClusterName: str, InstanceGroupNameContains: str) -> list[Any]:
        name = InstanceGroupNameContains
        deleted = {id for ids in self.replaced for id in ids}
        rows = [
            {
                "InstanceId": f"i-{name}{number}{'-new' if f'i-{name}{number}' in deleted else ''}",
                "InstanceGroupName": name,
                "InstanceStatus": {"Status": "Running"},
                "LaunchTime": START + timedelta(days=2 if f"i-{name}{number}" in deleted else 1),
                "CurrentImageReleaseVersion": self.groups[name]["CurrentImageReleaseVersion"],
            }
            for number in range(self.groups[name]["TargetCount"])
        ]
        return [{"ClusterNodeSummaries": rows}]


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UpgradeAccount:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/prod.yaml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    simulated = UpgradeAccount()
    account = SimpleNamespace(endpoint=None, client=lambda _: simulated, region="us-west-2")
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
    for module in (nodes, scripts, plan):
        monkeypatch.setattr(module, "way", lambda *_: None)
    for module in (follow, lifecycle, renewal):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: 0.0, sleep=lambda _: None))
    return simulated


def run(*arguments: str) -> int:
    return main(["upgrade", "prod", *arguments])


def test_groups_go_one_after_the_other_with_the_rollouts_of_the_file(
    simulated: UpgradeAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("nodes", "--yes", "--json") == 0
    assert [call["InstanceGroups"][0]["InstanceGroupName"] for call in simulated.calls] == ["system", "small", "large"]
    assert simulated.calls[0]["DeploymentConfig"] == {
        "RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "CAPACITY_PERCENTAGE", "Value": 20}},
        "WaitIntervalInSeconds": 300,
    }
    assert simulated.calls[2]["DeploymentConfig"] == {
        "RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "CAPACITY_PERCENTAGE", "Value": 25}},
        "WaitIntervalInSeconds": 60,
        "AutoRollbackConfiguration": [{"AlarmName": "loss"}],
    }
    output = capsys.readouterr()
    assert (
        "large: 8 nodes, 1.0.0 → the newest, 2 at a time in 4 batches with 60 s between; turned back by loss"
        in output.err
    )
    assert "which jobs run there is not seen from here" in output.err
    assert json.loads(output.out)["ok"] is True
    assert run("nodes", "--yes") == 0
    assert len(simulated.calls) == 3, "nothing is behind any more"


def test_what_the_command_line_says_comes_first(simulated: UpgradeAccount) -> None:
    more = ("--batch", "2", "--rollback-batch", "100%", "--wait-between", "0", "--rollback-alarm", "loss")
    assert run("nodes", "--group", "small", "--release", "1.1.0", *more, "--yes") == 0
    (call,) = simulated.calls
    assert call["InstanceGroups"] == [{"InstanceGroupName": "small", "ImageReleaseVersion": "1.1.0"}]
    assert call["DeploymentConfig"] == {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 2},
            "RollbackMaximumBatchSize": {"Type": "CAPACITY_PERCENTAGE", "Value": 100},
        },
        "WaitIntervalInSeconds": 0,
        "AutoRollbackConfiguration": [{"AlarmName": "loss"}],
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--batch", "0"], "--batch is 0; allowed"),
        (["--batch", "101%"], "--batch is 101%"),
        (["--wait-between", "3601s"], "--wait-between is 3601 s; allowed: 0 to 3600 s"),
        (["--group", "other"], "the cluster has no group other"),
        (["--rollback-alarm", "nowhere"], "there is no alarm nowhere"),
        ([], "a confirmation needs a terminal"),
    ],
)
def test_what_cannot_be_asked_for_changes_nothing(
    simulated: UpgradeAccount, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert run("nodes", *arguments, *(["--yes"] if arguments else [])) == 2
    assert says in capsys.readouterr().err
    assert simulated.calls == []


def test_a_group_that_is_turned_back_stops_the_others(
    simulated: UpgradeAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated.ends = "RollbackComplete"
    assert run("nodes", "--yes") == 1
    assert len(simulated.calls) == 1
    output = capsys.readouterr()
    assert "RollbackComplete: Alarm loss went off" in " ".join(output.out.split())
    assert "the other groups are unchanged" in output.out


def test_an_update_that_is_under_way_is_followed_first(
    simulated: UpgradeAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated.groups["large"] |= {"SoftwareUpdateStatus": "InProgress", "DesiredImageReleaseVersion": "1.1.0"}
    assert run("nodes", "--yes", "--json") == 0
    output = capsys.readouterr()
    assert [item["group"] for item in json.loads(output.out)["groups"]] == ["large", "system", "small"]
    assert [call["InstanceGroups"][0]["InstanceGroupName"] for call in simulated.calls] == ["system", "small"]


def test_an_interrupt_says_how_to_go_on(simulated: UpgradeAccount, capsys: pytest.CaptureFixture[str]) -> None:
    simulated.broken = KeyboardInterrupt()
    assert run("nodes", "--yes") == 130
    assert "What has begun continues in AWS. `podwright upgrade prod nodes` follows it" in capsys.readouterr().err


def test_a_busy_cluster_is_explained(simulated: UpgradeAccount, capsys: pytest.CaptureFixture[str]) -> None:
    simulated.broken = refusal("ConflictException", "the cluster is Updating")
    assert run("nodes", "--yes") == 1
    assert "HyperPod does not update system now: the cluster is Updating" in capsys.readouterr().err


def test_a_pinned_release_is_the_files(simulated: UpgradeAccount, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path("environments/prod.yaml")
    file.write_text(FILE.replace("ml.p5en.48xlarge, count: 2", "ml.p5en.48xlarge, image_release: 1.0.0, count: 2"))
    assert run("nodes", "--group", "small", "--release", "1.1.0", "--yes") == 2
    assert "the file pins small to image_release 1.0.0" in capsys.readouterr().err
    assert run("nodes", "--yes") == 0
    assert [call["InstanceGroups"][0]["InstanceGroupName"] for call in simulated.calls] == ["system", "large"]
    file.write_text(file.read_text().replace("image_release: 1.0.0", "image_id: ami-0123456789abcdef0"))
    assert run("nodes", "--group", "small", "--yes") == 2
    assert "small has the image ami-0123456789abcdef0 of your own" in capsys.readouterr().err


def test_a_slurm_cluster_goes_at_once(simulated: UpgradeAccount, capsys: pytest.CaptureFixture[str]) -> None:
    Path("environments/prod.yaml").write_text(SLURM)
    simulated.groups = {name: {"TargetCount": 1, **BEHIND} for name in ("head", "small")}
    assert run("nodes", "--batch", "1", "--yes") == 2
    assert run("nodes", "--yes") == 0
    assert simulated.calls[0] == {"ClusterName": "prod", "InstanceGroups": [{"InstanceGroupName": "head"}]}
    assert "small: all its nodes are replaced at the same time" in capsys.readouterr().err


def test_idle_needs_to_see_jobs(
    simulated: UpgradeAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("nodes", "--idle-only", "--yes") == 1
    monkeypatch.setattr(nodes, "way", lambda *_: SimpleNamespace())
    monkeypatch.setattr(nodes, "jobs_on_nodes", lambda _: {"i-small1": ["hyperpod-ns-a/job/llama"]})
    for module in (nodes, renewal):
        monkeypatch.setattr(module, "kubernetes_nodes", lambda _: {})
    assert run("nodes", "--idle-only", "--yes") == 0
    assert "small is left out: hyperpod-ns-a/job/llama" in capsys.readouterr().err
    assert [call["InstanceGroups"][0]["InstanceGroupName"] for call in simulated.calls] == ["system", "large"]


def test_an_update_that_never_begins_is_no_success(
    simulated: UpgradeAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated.update_cluster_software = lambda **_: None
    assert run("nodes", "--group", "small", "--yes") == 1
    assert "HyperPod began no update" in capsys.readouterr().out


def test_a_kubernetes_that_goes_away_is_no_failure(
    simulated: UpgradeAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(kubectl: Any) -> dict[str, Any]:
        if kubectl and (simulated.calls or not answers):
            raise Refused("connection refused")
        return {}

    answers = True
    monkeypatch.setattr(nodes, "way", lambda *_: SimpleNamespace())
    monkeypatch.setattr(nodes, "jobs_on_nodes", lambda _: {})
    for module in (nodes, renewal):
        monkeypatch.setattr(module, "kubernetes_nodes", gone)
    assert run("nodes", "--group", "small", "--yes", "--json") == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["notes"] == ["Kubernetes does not answer now, so kubelets and health were not looked at"]
    for module in (nodes, renewal):
        monkeypatch.setattr(module, "kubernetes_nodes", lambda kubectl: simulated.calls.clear() or gone(kubectl))
    answers = False
    assert run("nodes", "--yes") == 1
    assert "Kubernetes does not answer: connection refused" in capsys.readouterr().err


@pytest.mark.parametrize(("reads", "problem"), [(3, []), (1000, ["i-small0 is not Ready in Kubernetes"])])
def test_kubelets_get_time_to_report(
    reads: int,
    problem: list[str],
    simulated: UpgradeAccount,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers = []

    def late(kubectl: Any) -> dict[str, Any]:
        """The second node is Ready at once, the first one at a later read after the update."""
        answers.extend([1] if simulated.calls else [])
        known = {"group": "small", "health": "Schedulable", "kubelet": "1.34"}
        return {"i-small0": known | {"ready": len(answers) >= reads}, "i-small1": known | {"ready": True}}

    monkeypatch.setattr(nodes, "way", lambda *_: SimpleNamespace())
    monkeypatch.setattr(nodes, "jobs_on_nodes", lambda _: {})
    for module in (nodes, renewal):
        monkeypatch.setattr(module, "kubernetes_nodes", late)
    assert run("nodes", "--group", "small", "--yes", "--json") == bool(problem)
    printed = capsys.readouterr()
    (group,) = json.loads(printed.out)["groups"]
    assert group["problems"] == problem
    assert printed.err.count("small: its nodes join Kubernetes") == 1


def test_the_verdict_looks_at_every_node() -> None:
    now = Software("small", 3, "1.1.0", "1.1.0", "UpToDate", "Succeeded", 2)

    def row(id: str, status: str, release: str) -> Node:
        return Node(id, "small", "ml.p5en.48xlarge", status, release=release)

    well = {"health": "Schedulable", "ready": True}
    kubernetes = {"a": well, "b": {"health": "Unschedulable", "ready": True}}
    assert follow.problems("", now, [row("a", "Running", "1.1.0")], {}) == ["1 of 3 nodes are there"]
    assert follow.problems(
        "1.1.0",
        now,
        [row("a", "Running", "1.1.0"), row("b", "Failure", "1.0.0"), row("c", "Running", "1.1.0")],
        kubernetes,
    ) == [
        "b is Failure: no reason told",
        "b has release 1.0.0, not 1.1.0",
        "b takes no work: Unschedulable",
        "c has not joined Kubernetes",
    ]


def test_scripts_are_told_apart_by_prefix_and_by_time(
    simulated: UpgradeAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("scripts") == 0
    simulated.node_prefix = "s3://sagemaker-x/prod/0000"
    assert run("scripts", "--group", "small", "--json") == 1
    capsys.readouterr()
    simulated.node_prefix, simulated.published = simulated.prefix, START + timedelta(days=1, hours=1)
    assert run("scripts", "--group", "small") == 1
    assert "set up 2026-11-02 00:00 UTC" in capsys.readouterr().out
    assert run("scripts", "--group", "small", "--replace", "--batch", "1", "--yes") == 0
    assert simulated.replaced == [["i-small0"], ["i-small1"]]
    assert run("scripts", "--batch", "26") == 2


def test_the_plan_names_what_is_behind_in_order(simulated: UpgradeAccount, capsys: pytest.CaptureFixture[str]) -> None:
    Path("environments/prod.yaml").write_text(SLURM)
    simulated.groups = {name: {"TargetCount": 1, **BEHIND} for name in ("head", "small")}
    assert run("--json") == 1
    actual = json.loads(capsys.readouterr().out)
    assert [(step["part"], step["behind"]) for step in actual["steps"]] == [("nodes", True), ("scripts", False)]
    for row in simulated.groups.values():
        row["ImageVersionStatus"] = "UpToDate"
    assert run() == 0
    assert "up to date, as HyperPod says" in capsys.readouterr().out
