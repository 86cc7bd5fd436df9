"""Upgrades against the sandbox: real commands renew nodes batch by batch, and EKS goes one version at a time."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from governed_cluster import GovernedCluster, until
from podwright.operations.aws.account import Account
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.cli import main
from podwright.operations.kubernetes.connect import write_kubeconfig
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.upgrade import eks, nodes, plan, scripts, steps
from sandbox_stacks import turn

Aws = Callable[[str], Any]
NAME = "upgraded"
FILE = f"""\
account: "123456789012"
region: us-west-2
network: {{zones: [usw2-az1, usw2-az2]}}
cluster:
  name: {NAME}     # for good
  eks:
    version: "1.34"   # since March
instance_groups:
  system: {{instance_type: ml.m5.4xlarge, count: 2}}
  h200: {{instance_type: ml.p5en.48xlarge, count: 2, zone: usw2-az1}}
"""


def put(sandbox: Running, control: str, **values: Any) -> None:
    turn(sandbox.endpoint, control, values)


@pytest.fixture(scope="module")
def cluster(aws: Aws) -> Iterator[GovernedCluster]:
    made = GovernedCluster(aws, NAME, addon=False)
    aws("eks").create_addon(clusterName=NAME, addonName="vpc-cni", addonVersion="v1.21.1-eksbuild.7")
    aws("eks").create_addon(clusterName=NAME, addonName="kube-proxy", addonVersion="v1.34.6-eksbuild.13")
    until(lambda: running(aws))
    yield made
    aws("sagemaker").delete_cluster(ClusterName=NAME)


@pytest.fixture
def project(
    aws: Aws, sandbox: Running, cluster: GovernedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A project whose environment is that cluster, and commands that find it."""
    (tmp_path / "environments").mkdir()
    (tmp_path / f"environments/{NAME}.yaml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    account = Account("123456789012", "us-west-2", sandbox.endpoint, sandbox.environment("us-west-2"))
    description = aws("eks").describe_cluster(name=NAME)["cluster"]
    file = write_kubeconfig(
        tmp_path,
        SimpleNamespace(name=NAME),
        account,
        description,
        description["endpoint"],  # pyrefly: ignore
    )
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
    for module in (eks, nodes, plan, scripts):
        monkeypatch.setattr(module, "way", lambda *_: Kubectl(file, is_real=False))
    for module in (eks, steps):
        monkeypatch.setattr(module, "eks_cluster_name", lambda *_: NAME)
    return tmp_path


def running(aws: Aws) -> list[dict[str, Any]]:
    cluster_node_summaries = aws("sagemaker").list_cluster_nodes(ClusterName=NAME)["ClusterNodeSummaries"]
    return (
        cluster_node_summaries
        if [row["InstanceStatus"]["Status"] for row in cluster_node_summaries] == ["Running"] * 2
        else []
    )


def releases(aws: Aws) -> set[str]:
    return {row["CurrentImageReleaseVersion"] for row in running(aws)}


def upgrade(*arguments: str) -> int:
    return main(["upgrade", NAME, *arguments])


def test_nodes_go_batch_by_batch_and_are_looked_at(
    aws: Aws, sandbox: Running, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert upgrade("nodes", "--yes") == 0
    assert f"{NAME}: no group to renew; h200 1.0.0 UpToDate" in capsys.readouterr().out
    put(sandbox, "images", latest="1.1.0")
    assert upgrade() == 1
    assert "h200 1.0.0 UpdateAvailable" in capsys.readouterr().out
    assert upgrade("nodes", "--yes", "--batch", "1", "--wait-between", "60s", "--json") == 0
    output = capsys.readouterr()
    assert "h200: 2 nodes, 1.0.0 → the newest, 1 at a time in 2 batches with 60 s between" in output.err
    (group,) = json.loads(output.out)["groups"]
    assert (group["from"], group["to"], group["status"], group["problems"]) == ("1.0.0", "1.1.0", "Succeeded", [])
    first, second = sorted(node["seconds"] for node in group["nodes"])
    assert second > first, "one after the other"
    assert {node["kubelet"] for node in group["nodes"]} == {"1.34"}
    assert releases(aws) == {"1.1.0"}


def test_an_alarm_turns_an_update_back(
    aws: Aws, sandbox: Running, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(sandbox, "images", latest="1.2.0")
    alarms = aws("cloudwatch")
    assert upgrade("nodes", "--yes", "--rollback-alarm", "nowhere") == 2
    alarms.put_metric_alarm(
        AlarmName="slow",
        MetricName="m",
        Namespace="n",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
        Statistic="Sum",
    )
    alarms.set_alarm_state(AlarmName="slow", StateValue="ALARM", StateReason="a test")
    assert upgrade("nodes", "--yes", "--rollback-alarm", "slow") == 1
    assert "would turn the update back at once" in capsys.readouterr().err
    alarms.set_alarm_state(AlarmName="slow", StateValue="OK", StateReason="a test")
    before = releases(aws)
    aws("sagemaker").update_cluster_software(
        ClusterName=NAME,
        InstanceGroups=[{"InstanceGroupName": "h200"}],
        DeploymentConfig={
            "RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1}},
            "WaitIntervalInSeconds": 300,
            "AutoRollbackConfiguration": [{"AlarmName": "slow"}],
        },
    )
    with pytest.raises(ClientError, match="ConflictException"):
        aws("sagemaker").update_cluster_software(ClusterName=NAME)
    alarms.set_alarm_state(AlarmName="slow", StateValue="ALARM", StateReason="a test")
    # The update is under way already: the command follows it instead of asking for another one.
    assert upgrade("nodes", "--yes", "--json") == 1
    output = capsys.readouterr()
    assert "h200: an update is under way, which is followed" in output.err
    # A busy machine may look only when that is over.
    assert "the update is turned back" in output.err or "h200: all nodes have 1.1.0 again" in output.err
    (group,) = json.loads(output.out)["groups"]
    assert group["status"] == "RollbackComplete"
    assert group["problems"][0].startswith("RollbackComplete: Alarm slow is in state ALARM")
    alarms.set_alarm_state(AlarmName="slow", StateValue="OK", StateReason="a test")
    assert until(lambda: releases(aws)) == before


def test_failing_scripts_turn_an_update_back(
    aws: Aws, sandbox: Running, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(sandbox, "faults", lifecycle={"h200": ["mount: no such device"]})
    assert upgrade("nodes", "--yes", "--json") == 1
    put(sandbox, "faults", lifecycle={})
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["status"] == "Failed"
    assert "Lifecycle scripts did not run successfully" in group["problems"][0]


def scripts_of(aws: Aws) -> set[str]:
    """Where the scripts lie by which nodes were set up."""
    actual = (
        aws("sagemaker").describe_cluster_node(ClusterName=NAME, NodeId=row["InstanceId"]) for row in running(aws)
    )
    return {node["NodeDetails"]["LifeCycleConfig"]["SourceS3Uri"] for node in actual}


def test_a_group_at_once_without_batches_gets_the_scripts_of_now(aws: Aws, project: Path) -> None:
    client = aws("sagemaker")
    until(lambda: running(aws))
    (earlier,) = scripts_of(aws)
    (group,) = client.describe_cluster(ClusterName=NAME)["InstanceGroups"]
    bucket, _, prefix = earlier.removeprefix("s3://").partition("/")
    aws("s3").put_object(Bucket=bucket, Key=f"later/{prefix}on_create.sh", Body=b"#!/bin/bash")
    later = {"SourceS3Uri": f"s3://{bucket}/later/{prefix}", "OnCreate": "on_create.sh"}
    same = {key: group[key] for key in ("InstanceGroupName", "InstanceType", "ExecutionRole")}
    client.update_cluster(ClusterName=NAME, InstanceGroups=[{**same, "InstanceCount": 2, "LifeCycleConfig": later}])
    until(lambda: client.describe_cluster(ClusterName=NAME)["ClusterStatus"] == "InService")
    assert scripts_of(aws) == {earlier}  # nodes that are there keep theirs
    client.update_cluster_software(ClusterName=NAME)
    until(lambda: running(aws))
    existing = client.list_cluster_nodes(ClusterName=NAME)["ClusterNodeSummaries"]
    assert len(existing) == 2
    assert len({row["LastSoftwareUpdateTime"] for row in existing}) == 1  # at once
    (group,) = client.describe_cluster(ClusterName=NAME)["InstanceGroups"]
    assert group["SoftwareUpdateStatus"] == "Succeeded"
    assert scripts_of(aws) == {later["SourceS3Uri"]}


def test_nodes_with_earlier_scripts_are_replaced(aws: Aws, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    until(lambda: running(aws))
    assert upgrade("scripts") == 0
    assert "all 2 nodes were set up by the scripts that their groups name" in capsys.readouterr().out
    (group,) = aws("sagemaker").describe_cluster(ClusterName=NAME)["InstanceGroups"]
    source = group["LifeCycleConfig"]["SourceS3Uri"]
    bucket, _, prefix = source.removeprefix("s3://").partition("/")
    # S3 keeps whole seconds.
    last = int(time.time())
    until(lambda: int(time.time()) > last)
    aws("s3").put_object(Bucket=bucket, Key=f"{prefix}on_create.sh", Body=b"#!/bin/bash\n: new")
    former = {row["InstanceId"] for row in running(aws)}
    assert upgrade("scripts", "--json") == 1
    actual = json.loads(capsys.readouterr().out)
    assert actual["older"] == 2
    assert "the scripts are there since" in actual["nodes"][0]["why"]
    assert upgrade("scripts", "--replace", "--yes") == 0
    assert not former & {row["InstanceId"] for row in running(aws)}


def test_eks_goes_one_version_at_a_time(aws: Aws, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / f"environments/{NAME}.yaml"
    assert upgrade("eks", "--to", "1.36") == 1
    assert "EKS goes one version at a time: 1.36 is 2 away" in capsys.readouterr().out
    assert upgrade("eks", "--to", "1.33") == 1
    assert "the cluster has Kubernetes 1.34, and 1.33 is older" in capsys.readouterr().out
    assert upgrade("eks", "--write", "--json") == 0
    actual = json.loads(capsys.readouterr().out)
    assert (actual["deployed"], actual["wanted"], actual["written"]) == ("1.34", "1.35", True)
    assert {row["name"]: row["then"] for row in actual["addons"]} == {
        "kube-proxy": "v1.35.3-eksbuild.13",
        "vpc-cni": "v1.21.1-eksbuild.7",
    }
    assert [row["status"] for row in actual["insights"]] == ["WARNING", "PASSING"]
    assert file.read_text() == FILE.replace('"1.34"   # since March', '"1.35"   # since March')
    assert upgrade() == 1
    assert "1.34 is deployed, the file says 1.35" in capsys.readouterr().out

    client = aws("eks")
    with pytest.raises(ClientError, match=r"Unsupported Kubernetes minor version update from 1\.34 to 1\.36"):
        client.update_cluster_version(name=NAME, version="1.36")
    started = client.update_cluster_version(name=NAME, version="1.35")["update"]
    assert started["status"] == "InProgress"
    until(lambda: client.describe_update(name=NAME, updateId=started["id"])["update"]["status"] == "Successful")
    assert client.describe_cluster(name=NAME)["cluster"]["version"] == "1.35"
    # Nodes keep their kubelet until their software is updated.
    assert upgrade("eks", "--to", "1.36", "--json") == 1
    assert json.loads(capsys.readouterr().out)["kubelets"] == {"1.34": 2}
    assert upgrade() == 1
    assert "h200 with kubelet 1.34 beside 1.35" in capsys.readouterr().out
    assert upgrade("nodes", "--yes", "--json") == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert (group["notes"], {node["kubelet"] for node in group["nodes"]}) == ([], {"1.35"})
    assert upgrade("eks", "--to", "1.36", "--json") == 1
    assert json.loads(capsys.readouterr().out)["kubelets"] == {"1.35": 2}
    assert client.update_cluster_version(name=NAME, version="1.34")["update"]["type"] == "VersionRollback"
