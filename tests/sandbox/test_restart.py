"""The sandbox's state survives its server: a stop, and a process that was killed in the middle of an operation."""

import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from governed_cluster import until
from podwright.config.catalog.sandbox_account import access_key
from podwright.operations import cli
from podwright.operations.aws import sandbox_server as server
from sandbox_network import eks_cluster, surroundings
from sandbox_stacks import StackUnderTest, turn

REGION = "us-west-2"
LARGE = os.urandom(200_000)
SLOW = 200.0
IDLE_SECONDS = 3.0


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    server.stop(tmp_path)


def clients(running: server.Running) -> Callable[[str], Any]:
    session = boto3.Session("sandbox", "sandbox", region_name=REGION)
    return cache(partial(session.client, endpoint_url=running.endpoint))


def advance(running: server.Running, hours: int) -> None:
    turn(running.endpoint, "training-plans", {"advance_hours": hours})


def resources() -> dict[str, Any]:
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}
    document = {"Version": "2012-10-17", "Statement": [trust]}
    policy = {"Effect": "Allow", "Action": "kms:*", "Resource": "*", "Principal": {"AWS": "*"}}
    return {
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Key": {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": {"Version": "2012-10-17", "Statement": [policy]}}},
        "Queue": {"Type": "AWS::SQS::Queue"},
        "Repository": {"Type": "AWS::ECR::Repository"},
        "Parameter": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "kept"}},
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {
                "AssumeRolePolicyDocument": document,
                "ManagedPolicyArns": ["arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"],
            },
        },
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Runtime": "python3.13",
                "Handler": "index.handler",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Code": {"ZipFile": "def handler(event, context): return event['n'] + 1"},
            },
        },
    }


def test_everything_is_there_again(project: Path, run_unforked: None) -> None:
    """Both servers are processes that the product starts."""
    first = server.start(project, port=0, time_scale=0.1)
    aws = clients(first)
    stack = StackUnderTest(aws("cloudformation"), "kept")
    assert stack.create(resources()) == "CREATE_COMPLETE", stack.events()
    names = {name: stack.physical_id(name) for name in resources()}
    aws("s3").put_object(Bucket=names["Bucket"], Key="large", Body=LARGE)
    secret = aws("kms").encrypt(KeyId=names["Key"], Plaintext=b"secret")["CiphertextBlob"]
    aws("sqs").send_message(QueueUrl=names["Queue"], MessageBody="waiting")
    around = surroundings(aws)
    cluster = eks_cluster(aws, around, "kept")
    vpc = {"Subnets": around.subnets, "SecurityGroupIds": [around.security_group]}
    group = {"InstanceGroupName": "g", "InstanceType": "ml.m5.xlarge", "InstanceCount": 2, "ExecutionRole": around.role}
    aws("sagemaker").create_cluster(ClusterName="kept", VpcConfig=vpc, InstanceGroups=[group])
    nodes = {node["InstanceId"] for node in aws("sagemaker").list_cluster_nodes(ClusterName="kept")[
        "ClusterNodeSummaries"]}  # fmt: skip
    events = len(stack.events())
    [offer, *_] = aws("sagemaker").search_training_plan_offerings(InstanceType="ml.p5.48xlarge", InstanceCount=1)[
        "TrainingPlanOfferings"
    ]
    wish = {"TrainingPlanName": "kept", "TrainingPlanOfferingId": offer["TrainingPlanOfferingId"]}
    plan = aws("sagemaker").create_training_plan(**wish)["TrainingPlanArn"]
    advance(first, hours=24)
    other = boto3.Session(access_key("111122223333"), "sandbox", region_name=REGION)
    elsewhere = StackUnderTest(other.client("cloudformation", endpoint_url=first.endpoint), "kept")
    assert elsewhere.create({"Topic": {"Type": "AWS::SNS::Topic"}}) == "CREATE_COMPLETE"

    assert server.stop(project)
    assert server.status(project) is None
    assert not server.stop(project)
    second = server.start(project, time_scale=0.1)
    assert (second.port, second.kubernetes_port) == (first.port, first.kubernetes_port)
    assert second.pid != first.pid
    assert server.start(project) == second

    aws = clients(second)
    stack = StackUnderTest(aws("cloudformation"), "kept")
    assert {name: stack.physical_id(name) for name in resources()} == names
    assert len(stack.events()) == events
    assert elsewhere.describe()["StackId"].split(":")[4] == "111122223333"
    assert aws("s3").get_object(Bucket=names["Bucket"], Key="large")["Body"].read() == LARGE
    assert aws("kms").decrypt(CiphertextBlob=secret)["Plaintext"] == b"secret"
    assert aws("sqs").receive_message(QueueUrl=names["Queue"])["Messages"][0]["Body"] == "waiting"
    assert aws("ssm").get_parameter(Name=names["Parameter"])["Parameter"]["Value"] == "kept"
    attached = aws("iam").list_attached_role_policies(RoleName=names["Role"])["AttachedPolicies"]
    assert [policy["PolicyName"] for policy in attached] == ["AmazonEKSClusterPolicy"]
    answer = aws("lambda").invoke(FunctionName=names["Function"], Payload=json.dumps({"n": 41}))
    assert json.load(answer["Payload"]) == 42
    assert aws("eks").describe_cluster(name="kept")["cluster"]["endpoint"] == cluster["endpoint"]
    listed = aws("sagemaker").list_cluster_nodes(ClusterName="kept")["ClusterNodeSummaries"]
    assert {node["InstanceId"]: node["InstanceStatus"]["Status"] for node in listed} == dict.fromkeys(nodes, "Running")
    assert aws("sagemaker").describe_training_plan(TrainingPlanName=plan)["Status"] == "Active"
    aws("s3").delete_object(Bucket=names["Bucket"], Key="large")
    assert stack.delete() == "DELETE_COMPLETE"


def test_a_killed_operation_is_rolled_back(project: Path) -> None:
    first = server.start(project, port=0, time_scale=SLOW)
    aws = clients(first)
    around = surroundings(aws)
    group = {"InstanceGroupName": "g", "InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "ExecutionRole": around.role}
    vpc = {"Subnets": around.subnets, "SecurityGroupIds": [around.security_group]}
    parameter = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "x", "Name": "made-first"}}
    properties = {"ClusterName": "killed", "VpcConfig": vpc, "InstanceGroups": [group]}
    cluster = {"Type": "AWS::SageMaker::Cluster", "Properties": properties, "DependsOn": "First"}
    body = json.dumps({"Resources": {"First": parameter, "Cluster": cluster}})
    stack = StackUnderTest(aws("cloudformation"), "killed")
    stack.client.create_stack(StackName="killed", TemplateBody=body)
    snapshot = project / server.STATE_DIRECTORY / "snapshot"
    until(lambda: "Cluster CREATE_IN_PROGRESS" in stack.log())
    # What is in a snapshot with a later bucket is in it as well.
    aws("s3").create_bucket(Bucket="made-later", CreateBucketConfiguration={"LocationConstraint": REGION})
    until(lambda: snapshot.exists() and b"made-later" in snapshot.read_bytes())
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: server.status(project) is None)

    aws = clients(server.start(project, time_scale=0.1))
    stack = StackUnderTest(aws("cloudformation"), "killed")
    assert stack.wait() == "ROLLBACK_COMPLETE"
    assert "The sandbox was stopped during the operation" in stack.reasons("killed")
    assert aws("ssm").describe_parameters()["Parameters"] == []


def test_without_a_request_it_ends_by_itself_and_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it held is there again; requests keep it."""
    running = server.start(project, port=0, kubernetes="store", idle_minutes=IDLE_SECONDS / 60)
    topics = clients(running)("sns")
    topics.create_topic(Name="kept")
    began = asked = time.monotonic()
    while asked < began + 1.5 * IDLE_SECONDS:
        last, asked = asked, time.monotonic()
        # On a busy machine a request may come too late to keep the sandbox.
        runs = server.status(project) == running
        late = time.monotonic() > last + IDLE_SECONDS
        assert runs or late
        with suppress(EndpointConnectionError):
            topics.list_topics()
        time.sleep(0.2)
    until(lambda: server.status(project) is None)
    assert cli.main(["sandbox", "status", "--project", str(project)]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("The sandbox does not run.\nIt stopped by itself on 20")
    assert "after 0.05 minutes without a request; `podwright sandbox start` continues" in printed
    again = server.start(project, port=0, kubernetes="store")
    assert len(clients(again)("sns").list_topics()["Topics"]) == 1
    server.stop(project)
    assert server.ended_idle(project) == ""


def test_reset_forgets(project: Path) -> None:
    running = server.start(project, port=0)
    clients(running)("s3").create_bucket(Bucket="gone", CreateBucketConfiguration={"LocationConstraint": REGION})
    assert server.reset(project)
    assert not server.reset(project)
    again = server.start(project, port=0)
    assert clients(again)("s3").list_buckets()["Buckets"] == []


def test_a_sandbox_whose_folder_is_deleted_ends_and_leaves_the_next_one_alone(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, folder = server.start(project, port=0), project / server.STATE_DIRECTORY
    clients(first)("sns").create_topic(Name="of-first")
    shutil.rmtree(folder)
    # The first would save into the folder of the next.
    folder.mkdir()
    assert cli.main(["sandbox", "status", "--project", str(project)]) == 1
    assert cli.main(["sandbox", "stop", "--project", str(project)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("The sandbox does not run.\nThe sandbox is stopped;")
    assert printed.err == ""
    second = server.start(project, port=0)
    until(lambda: not server._is_ours(first), "the first server has ended")
    assert server.status(project) == second
    assert clients(second)("sns").list_topics()["Topics"] == []
    snapshot = folder / "snapshot"
    assert not snapshot.exists() or b"of-first" not in snapshot.read_bytes()


def test_a_damaged_snapshot_is_named(project: Path) -> None:
    snapshot = project / server.STATE_DIRECTORY / "snapshot"
    snapshot.parent.mkdir(parents=True)
    snapshot.write_bytes(b"half of it")
    with pytest.raises(server.SandboxError, match="snapshot is damaged") as caught:
        server.start(project, port=0)
    assert "Traceback" not in str(caught.value)
    assert "`podwright sandbox reset`" in caught.value.hint
    assert not server.reset(project)
    server.start(project, port=0)


def test_a_state_that_cannot_be_written_is_written_later(project: Path) -> None:
    """As when the disk was full; what was done in between is not lost, whatever ends the server."""
    running = server.start(project, port=0)
    obstacle = project / server.STATE_DIRECTORY / "snapshot.new"
    obstacle.mkdir()
    clients(running)("ssm").put_parameter(Name="kept", Value="1", Type="String")
    log = Path(running.log)
    until(lambda: "could not be saved, which is tried again" in log.read_text())
    obstacle.rmdir()
    until((project / server.STATE_DIRECTORY / "snapshot").exists)
    os.kill(running.pid, signal.SIGKILL)
    until(lambda: server.status(project) is None)
    again = clients(server.start(project, port=0))
    assert again("ssm").get_parameter(Name="kept")["Parameter"]["Value"] == "1"


def test_a_control_plane_that_is_not_installed_is_asked_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(project))
    with pytest.raises(server.SandboxError, match="the control plane lacks etcd") as caught:
        server.start(project, port=0, kubernetes="real")
    assert caught.value.hint.startswith("`podwright sandbox kubernetes install`; until then the sandbox continues on ")
    assert "reset" not in caught.value.hint


def test_a_taken_port_is_named_or_passed_over(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        with pytest.raises(server.SandboxError, match=f"port {taken} is in use"):
            server.start(project, port=taken)
        (project / server.STATE_DIRECTORY / "server.json").write_text(
            json.dumps({"port": taken, "kubernetes_port": taken, "pid": 0, "log": ""})
        )
        assert server.start(project).port != taken


def test_a_record_of_another_process_is_not_ours(project: Path) -> None:
    record = project / server.STATE_DIRECTORY / "server.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"port": 4599, "kubernetes_port": 4600, "pid": os.getpid(), "log": ""}))
    assert server.status(project) is None
    assert not server.stop(project)
