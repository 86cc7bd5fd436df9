"""Ways to a cluster: kubeconfig, tunnel, shell and the runner in the VPC."""

import argparse
import base64
import json
import os
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.operations.aws import runner, session
from podwright.operations.aws.deployed import eks_cluster_name, physical_id
from podwright.operations.aws.session import ClusterNode
from podwright.operations.commands import shell
from podwright.operations.kubernetes import connect
from podwright.planning.kubernetes.eks_token import eks_token

ENVIRONMENT = Project.at(Path(__file__).parents[3]).load("prod").environment
ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
SESSION = boto3.Session("key", "secret", region_name="us-west-2")
CLIENTS = {name: SESSION.client(name) for name in ("cloudformation", "codebuild", "eks", "logs", "sagemaker", "ssm")}


class Account:
    """An AWS account whose answers a test writes."""

    id, region, endpoint = "111122223333", "us-west-2", None

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.stubs = {name: Stubber(client) for name, client in CLIENTS.items()}
        for stub in self.stubs.values():
            stub.activate()

    def client(self, service: str) -> Any:
        return CLIENTS[service]

    def __str__(self) -> str:
        return "AWS"

    def stack(self, *resources: tuple[str, str]) -> None:
        """What the stack prod-eks holds: type and physical id."""
        summaries = [
            {
                "LogicalResourceId": id,
                "PhysicalResourceId": id,
                "ResourceType": kind,
                "LastUpdatedTimestamp": datetime(2026, 11, 1, tzinfo=UTC),
                "ResourceStatus": "CREATE_COMPLETE",
            }
            for kind, id in resources
        ]
        self.stubs["cloudformation"].add_response(
            "list_stack_resources", {"StackResourceSummaries": summaries}, {"StackName": "prod-eks"}
        )

    def nodes(self, *result: tuple[str, str, str]) -> None:
        """The cluster's nodes: group, instance id and status."""
        cluster = {"ClusterArn": ARN, "ClusterStatus": "InService", "InstanceGroups": []}
        self.stubs["sagemaker"].add_response("describe_cluster", cluster, {"ClusterName": "prod"})
        summaries = [
            {
                "InstanceGroupName": group,
                "InstanceId": id,
                "InstanceType": "ml.m5.4xlarge",
                "LaunchTime": datetime(2026, 11, 1, tzinfo=UTC),
                "InstanceStatus": {"Status": status},
            }
            for group, id, status in result
        ]
        self.stubs["sagemaker"].add_response("list_cluster_nodes", {"ClusterNodeSummaries": summaries})

    def cluster(self, endpoint: str = "https://api.example") -> dict[str, Any]:
        actual = {"name": "prod-1a2b", "endpoint": endpoint, "certificateAuthority": {"data": "Y2E="}}
        self.stubs["eks"].add_response("describe_cluster", {"cluster": actual}, {"name": "prod-1a2b"})
        return actual


@pytest.fixture
def account() -> Iterator[Any]:
    made = Account()
    yield made
    for stub in made.stubs.values():
        stub.assert_no_pending_responses()
        stub.deactivate()


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session-manager-plugin on PATH."""
    file = tmp_path / "bin" / "session-manager-plugin"
    file.parent.mkdir()
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(file.parent))
    return file


def arguments(root: Path, **more: Any) -> argparse.Namespace:
    provided = {"project": root, "environment": "prod", "sandbox": False, "port": 8443, "command": None}
    return argparse.Namespace(**{**provided, **more})


@pytest.fixture
def project(tmp_path: Path, account: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the environment prod, in an account that is open."""
    root = tmp_path / "project"
    (root / "environments").mkdir(parents=True)
    text = (Path(__file__).parents[3] / "environments" / "prod.yaml").read_text()
    (root / "environments" / "prod.yaml").write_text(text)
    for module in ("arguments", "commands.shell"):
        monkeypatch.setattr(f"podwright.operations.{module}.account_of", lambda *_, **__: account)
    return root


def test_the_cluster_is_found_by_type(account: Any) -> None:
    account.stack(("AWS::IAM::Role", "role"), ("AWS::EKS::Cluster", "prod-1a2b"))
    assert eks_cluster_name(account, ENVIRONMENT) == "prod-1a2b"


def test_an_existing_cluster_has_a_name_already(account: Any) -> None:
    existing = {
        "name": "theirs",
        "security_group": "sg-0123456789abcdef0",
        "kubectl_role": "arn:aws:iam::111122223333:role/Kubectl",
    }
    eks = type(ENVIRONMENT.cluster.eks).model_validate({"existing": existing})
    cluster = ENVIRONMENT.cluster.model_copy(update={"eks": eks})
    assert eks_cluster_name(account, ENVIRONMENT.model_copy(update={"cluster": cluster})) == "theirs"


@pytest.mark.parametrize("actual", [0, 2])
def test_a_stack_without_the_one_resource(account: Any, actual: int) -> None:
    account.stack(*[("AWS::EKS::Cluster", f"c{number}") for number in range(actual)])
    with pytest.raises(CommandError, match=f"has {actual} resources"):
        physical_id(account, "prod-eks", "AWS::EKS::Cluster")


def test_what_is_not_deployed(account: Any) -> None:
    account.stubs["cloudformation"].add_client_error("list_stack_resources", "ValidationError", "does not exist")
    with pytest.raises(CommandError, match="there is no stack prod-eks"):
        physical_id(account, "prod-eks", "AWS::EKS::Cluster")


def test_a_kubeconfig_for_the_owner_alone_without_a_secret(account: Any, tmp_path: Path) -> None:
    account.variables = {"AWS_PROFILE": "platform", "AWS_SECRET_ACCESS_KEY": "never", "HOME": "/"}
    actual = {"name": "prod-1a2b", "endpoint": "https://api.example", "certificateAuthority": {"data": "Y2E="}}
    file = connect.write_kubeconfig(tmp_path, ENVIRONMENT, account, actual, "https://127.0.0.1:8443")
    assert file == tmp_path / ".podwright" / "kubeconfig" / "prod"
    assert file.stat().st_mode & 0o777 == 0o600
    written = json.loads(file.read_text())
    cluster = written["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:8443"
    assert cluster["tls-server-name"] == "api.example", "the certificate is checked against the API's own name"
    program = written["users"][0]["user"]["exec"]
    assert program["command"] == sys.executable
    assert program["args"][-4:] == ["--cluster", "prod-1a2b", "--region", "us-west-2"]
    assert program["env"] == [{"name": "AWS_PROFILE", "value": "platform"}]
    assert "never" not in file.read_text()


def test_an_api_within_reach_needs_no_tunnel(
    account: Any, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account.stack(("AWS::EKS::Cluster", "prod-1a2b"))
    account.cluster()
    monkeypatch.setattr(connect, "reachable", lambda host, port: (host, port) == ("api.example", 443))
    assert connect.run(arguments(project)) == 0
    written = json.loads((project / ".podwright/kubeconfig/prod").read_text())
    assert written["clusters"][0]["cluster"]["server"] == "https://api.example"
    assert f"export KUBECONFIG={project}/.podwright/kubeconfig/prod" in capsys.readouterr().out


def test_a_private_api_is_reached_through_a_node(
    account: Any, project: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.stack(("AWS::EKS::Cluster", "prod-1a2b"))
    account.cluster()
    account.nodes(("h200", "i-2", "Running"), ("a", "i-0", "Pending"), ("h200", "i-1", "Running"))
    request = {
        "Target": "sagemaker-cluster:abcdefghijkl_h200-i-1",
        "DocumentName": "AWS-StartPortForwardingSessionToRemoteHost",
        "Parameters": {"host": ["api.example"], "portNumber": ["443"], "localPortNumber": ["9443"]},
    }
    answer = {"SessionId": "s", "TokenValue": "t", "StreamUrl": "wss://x"}
    account.stubs["ssm"].add_response("start_session", answer, request)
    monkeypatch.setattr(connect, "reachable", lambda *_: False)
    became: list[list[str]] = []
    monkeypatch.setattr(connect, "hand_over", lambda command: became.append(command) or 0)
    assert connect.run(arguments(project, port=9443)) == 0
    ((program, started, region, action, _profile, sent, endpoint),) = became
    assert (program, region, action) == (str(plugin), "us-west-2", "StartSession")
    assert json.loads(started) == answer
    assert json.loads(sent) == request
    assert endpoint == "https://ssm.us-west-2.amazonaws.com"
    written = json.loads((project / ".podwright/kubeconfig/prod").read_text())
    assert written["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:9443"


def test_without_a_node_the_runner_is_offered(account: Any, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account.stack(("AWS::EKS::Cluster", "prod-1a2b"))
    account.cluster()
    account.nodes(("system", "i-1", "Pending"))
    monkeypatch.setattr(connect, "reachable", lambda *_: False)
    with pytest.raises(CommandError, match="no running node") as stopped:
        connect.run(arguments(project))
    assert "--run" in stopped.value.hint


def test_the_sandbox_serves_its_api_on_loopback_and_runs_no_builds(
    account: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.endpoint = "http://localhost:1"
    account.variables = {"AWS_ENDPOINT_URL": "http://localhost:1", "AWS_ACCESS_KEY_ID": "sandbox", "HOME": "/"}
    account.stack(("AWS::EKS::Cluster", "prod-1a2b"))
    account.cluster("https://localhost:34360/podwright/kubernetes")
    monkeypatch.setattr(connect, "reachable", lambda host, port: (host, port) == ("localhost", 34360))
    assert connect.run(arguments(project)) == 0
    written = json.loads((project / ".podwright/kubeconfig/prod").read_text())
    assert written["clusters"][0]["cluster"]["server"] == "https://localhost:34360/podwright/kubernetes"
    assert [item["name"] for item in written["users"][0]["user"]["exec"]["env"]] == [
        "AWS_ACCESS_KEY_ID",
        "AWS_ENDPOINT_URL",
    ]
    with pytest.raises(CommandError, match="runs no builds"):
        connect.run(arguments(project, command="true"))


def test_reachable_means_that_somebody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert connect.reachable("127.0.0.1", port)
    assert not connect.reachable("127.0.0.1", port)


def test_a_session_needs_the_plugin(account: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CommandError, match="session-manager-plugin is not on PATH"):
        session.shell(account, ClusterNode(ARN, "h200", "i-1"))


@pytest.mark.usefixtures("plugin")
def test_a_node_that_takes_no_session_is_told(account: Any) -> None:
    account.stubs["ssm"].add_client_error("start_session", "TargetNotConnected", "i-1 is not connected.")
    with pytest.raises(CommandError, match="i-1 is not connected") as stopped:
        session.shell(account, ClusterNode(ARN, "h200", "i-1"))
    assert "podwright status" in stopped.value.hint


def test_a_missing_cluster_has_no_nodes(account: Any) -> None:
    account.stubs["sagemaker"].add_client_error("describe_cluster", "ResourceNotFound")
    assert session.nodes(account, "prod") == []


@pytest.mark.parametrize("name", ["i-1", "hyperpod-i-1"])
def test_a_shell_on_a_node(
    account: Any, project: Path, plugin: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.nodes(("system", "i-0", "Running"), ("h200", "i-1", "Running"))
    target = {"Target": "sagemaker-cluster:abcdefghijkl_h200-i-1"}
    account.stubs["ssm"].add_response("start_session", {"SessionId": "s"}, target)
    became: list[list[str]] = []
    monkeypatch.setattr(shell, "hand_over", lambda command: became.append(command) or 0)
    assert shell.run(argparse.Namespace(project=project, node=name, environment=None)) == 0
    assert became[0][0] == str(plugin)


def test_a_node_that_is_nowhere_says_where_it_was_looked_for(
    account: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (project / "environments" / "prod.yaml").read_text().replace("name: prod", "name: other")
    (project / "environments" / "other.yaml").write_text(text)

    def account_of(environment: Environment, *_: Any, **__: Any) -> Any:
        if environment.name == "other":
            raise CommandError("the credentials belong to another account")
        return account

    monkeypatch.setattr(shell, "account_of", account_of)
    account.nodes(("system", "i-1", "Running"))
    with pytest.raises(CommandError) as stopped:
        shell.run(argparse.Namespace(project=project, node="i-9", environment=None))
    assert "other: the credentials belong to another account" in str(stopped.value)
    assert "prod: no running node i-9" in str(stopped.value)


def test_the_sandbox_is_not_started_for_a_node_that_it_only_simulates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "account_of", lambda *_, **__: pytest.fail("the account is opened"))
    with pytest.raises(CommandError, match="sandbox: its nodes are simulated"):
        shell.run(argparse.Namespace(project=Path(__file__).parents[3], node="i-9", environment="sandbox"))


def build(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "prod:1", "buildStatus": status, **more}


LOGS = {"logs": {"groupName": "g", "streamName": "s"}}


def test_the_runner_shows_the_output_and_returns_the_outcome(account: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podwright.operations.aws.runner.time.sleep", lambda _: None)
    account.stack(("AWS::CodeBuild::Project", "Runner-1"))
    variable = {"name": "PODWRIGHT_COMMAND", "value": "kubectl get nodes", "type": "PLAINTEXT"}
    codebuild, logs = account.stubs["codebuild"], account.stubs["logs"]
    codebuild.add_response(
        "start_build",
        {"build": build("IN_PROGRESS")},
        {"projectName": "Runner-1", "environmentVariablesOverride": [variable]},
    )
    codebuild.add_response("batch_get_builds", {"builds": [build("IN_PROGRESS")]}, {"ids": ["prod:1"]})
    codebuild.add_response("batch_get_builds", {"builds": [build("IN_PROGRESS", **LOGS)]})
    logs.add_client_error("get_log_events", "ResourceNotFoundException")
    codebuild.add_response("batch_get_builds", {"builds": [build("IN_PROGRESS", **LOGS)]})
    first = {"logGroupName": "g", "logStreamName": "s", "startFromHead": True}
    logs.add_response("get_log_events", {"events": [{"message": "one\n"}], "nextForwardToken": "f1"}, first)
    logs.add_response("get_log_events", {"events": [], "nextForwardToken": "f1"}, {**first, "nextToken": "f1"})
    codebuild.add_response("batch_get_builds", {"builds": [build("FAILED", **LOGS, phases=[])]})
    page = {"events": [{"message": "two\n"}], "nextForwardToken": "f2"}
    logs.add_response("get_log_events", page, {**first, "nextToken": "f1"})
    logs.add_response("get_log_events", {"events": [], "nextForwardToken": "f2"}, {**first, "nextToken": "f2"})
    lines: list[str] = []
    assert runner.run_in_vpc(account, ENVIRONMENT, "kubectl get nodes", lines.append) == 1
    assert lines == ["one", "two"]


def test_a_runner_that_does_not_start_says_why(account: Any) -> None:
    account.stack(("AWS::CodeBuild::Project", "Runner-1"))
    account.stubs["codebuild"].add_response("start_build", {"build": build("IN_PROGRESS")})
    phase = {
        "phaseType": "PROVISIONING",
        "phaseStatus": "CLIENT_ERROR",
        "contexts": [{"message": "subnet has no free address"}],
    }
    account.stubs["codebuild"].add_response("batch_get_builds", {"builds": [build("FAILED", phases=[phase])]})
    with pytest.raises(CommandError, match="PROVISIONING: subnet has no free address"):
        runner.run_in_vpc(account, ENVIRONMENT, "true", print)


def test_an_interrupt_stops_the_build(account: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("podwright.operations.aws.runner.time.sleep", interrupt)
    account.stack(("AWS::CodeBuild::Project", "Runner-1"))
    account.stubs["codebuild"].add_response("start_build", {"build": build("IN_PROGRESS")})
    account.stubs["codebuild"].add_response("batch_get_builds", {"builds": [build("IN_PROGRESS")]})
    account.stubs["codebuild"].add_response("stop_build", {"build": build("STOPPED")}, {"id": "prod:1"})
    with pytest.raises(KeyboardInterrupt):
        runner.run_in_vpc(account, ENVIRONMENT, "sleep 1000", print)


def test_a_command_runs_in_the_vpc(account: Any, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "run_in_vpc", lambda _, environment, command, __: (environment.name, command))
    assert connect.run(arguments(project, command="kubectl get pods")) == ("prod", "kubectl get pods")


def test_a_token_is_a_signed_request_that_names_the_cluster() -> None:
    made = eks_token(SESSION, "prod-1a2b").removeprefix("k8s-aws-v1.")
    url = base64.urlsafe_b64decode(made + "=" * (-len(made) % 4)).decode()
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)
    assert url.startswith("https://sts.us-west-2.amazonaws.com/?")
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
    assert query["X-Amz-Expires"] == ["60"]
    assert eks_token(SESSION, "another") != eks_token(SESSION, "prod-1a2b")


def test_a_token_costs_no_more_than_the_sdk() -> None:
    """kubectl asks for one with each command: no settings are loaded for it."""
    program = "import sys, podwright.operations.kubernetes.token; print('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("signed_in", [True, False])
def test_kubectl_gets_its_token_from_a_process(signed_in: bool) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"} if signed_in else {}
    result = subprocess.run(
        [
            sys.executable,
            "-I",
            "-m",
            "podwright.operations.kubernetes.token",
            "--cluster",
            "prod",
            "--region",
            "us-west-2",
        ],
        env={**os.environ, **keys},
        capture_output=True,
        text=True,
    )
    assert result.returncode == (0 if signed_in else 1)
    if signed_in:
        printed = json.loads(result.stdout)
        assert printed["kind"] == "ExecCredential"
        assert printed["status"]["token"].startswith("k8s-aws-v1.")
        assert printed["status"]["expirationTimestamp"].endswith("Z")
    else:
        assert "sign in to AWS again" in result.stderr
        assert "Traceback" not in result.stderr
