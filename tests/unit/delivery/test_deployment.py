import argparse
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from fake_cdk import FakeCdk
from podwright.config.catalog.preflight_checks import preflight_checks
from podwright.config.errors import CommandError
from podwright.config.findings import Finding, Level
from podwright.operations import arguments
from podwright.operations.aws.account import Account
from podwright.operations.cdk import deployment
from podwright.operations.cdk.cli import Synthesized
from podwright.operations.cdk.events import Event
from podwright.operations.cdk.progress import Progress
from podwright.operations.commands import deploy
from podwright.operations.effects import templates
from podwright.operations.preflight.check import Outcome
from podwright.planning.delivery.missing_artifacts import missing_artifacts
from refusals import refusal

GOOD = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""


class Client:
    """A boto3 client that knows stacks and one parameter."""

    def __init__(self, account: "FakeAccount") -> None:
        self.account = account

    def get_parameter(self, Name: str) -> dict[str, Any]:
        if Name not in self.account.parameters:
            raise refusal("ParameterNotFound")
        return {"Parameter": {"Value": self.account.parameters[Name]}}

    def describe_cluster(self, ClusterName: str) -> dict[str, Any]:
        return {
            "ClusterStatus": "InService",
            "InstanceGroups": [{"InstanceGroupName": "h200", "CurrentCount": 12, "TargetCount": 12}],
        }

    def get_template(self, StackName: str, TemplateStage: str) -> dict[str, Any]:
        return {"TemplateBody": "" if StackName in self.account.empty else cluster_of(12)}

    def get_paginator(self, operation: str) -> "Client":
        assert operation == "describe_stacks"
        return self

    def paginate(self) -> list[dict[str, Any]]:
        answer = self.account.stacks.pop(0) if len(self.account.stacks) > 1 else self.account.stacks[0]
        return [{"Stacks": [stack] if stack else []} for stack in answer]


class FakeAccount:
    id, region = "111122223333", "us-west-2"

    def __init__(self, *stacks: list[dict[str, Any]], endpoint: str | None = None) -> None:
        self.stacks = list(stacks) or [[]]
        self.endpoint = endpoint
        self.empty: set[str] = set()
        self.parameters: dict[str, str] = {}
        self.variables: dict[str, str] = {}

    def client(self, _: str) -> Client:
        return Client(self)

    def __str__(self) -> str:
        return "AWS, account 111122223333, us-west-2"


def cluster_of(count: int) -> dict[str, Any]:
    """A template of a cluster with so many nodes."""
    group = {"InstanceGroupName": "h200", "InstanceCount": count, "InstanceType": "ml.p5en.48xlarge"}
    return {"Resources": {"C": {"Type": "AWS::SageMaker::Cluster", "Properties": {"InstanceGroups": [group]}}}}


def stack(name: str, status: str = "CREATE_COMPLETE", minute: int = 0, protected: bool = False) -> dict[str, Any]:
    return {
        "StackName": name,
        "StackStatus": status,
        "CreationTime": datetime(2026, 11, 21, 12, minute, tzinfo=UTC),
        "EnableTerminationProtection": protected,
    }


def event(status: str, kind: str, logical_id: str, reason: str) -> Event:
    return Event("prod-cluster", "prod-cluster", status, kind, logical_id, reason, datetime(2026, 11, 23, tzinfo=UTC))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/prod.yaml").write_text(GOOD)
    return tmp_path


def cdk(project: Path, account: FakeAccount) -> FakeCdk:
    """The CLI for `prod`, whose assembly has a cluster of 8 nodes."""
    made = FakeCdk.of(project, "prod", cast(Account, account))
    made.assembly.mkdir()
    (made.assembly / "cluster.json").write_text(json.dumps(cluster_of(8)))
    cluster = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "cluster.json"}}
    (made.assembly / "manifest.json").write_text(json.dumps({"artifacts": {"prod-cluster": cluster}}))
    return made


def asked_for(project: Path, environment: str | None = None, **more: Any) -> argparse.Namespace:
    return argparse.Namespace(project=project, environment=environment, sandbox=False, plan=None, **more)


@pytest.mark.parametrize(
    ("names", "chosen"), [(["prod"], "prod"), (["prod", "sandbox"], "sandbox"), (["dev", "prod"], None), ([], None)]
)
def test_without_a_name_the_only_environment_or_the_sandbox(
    tmp_path: Path, names: list[str], chosen: str | None
) -> None:
    (tmp_path / "environments").mkdir()
    for name in names:
        (tmp_path / f"environments/{name}.yaml").write_text(GOOD)
    if chosen:
        assert arguments.load(asked_for(tmp_path)).environment.name == chosen
    else:
        with pytest.raises(CommandError, match="which environment"):
            arguments.load(asked_for(tmp_path))


def test_stacks_of_an_environment_are_those_of_no_other(project: Path) -> None:
    (project / "environments/prod-eu.yaml").write_text(GOOD)
    account = FakeAccount(
        [stack("prod-eks", minute=2), stack("prod-network", minute=1), stack("prod-eu-eks"), stack("pro-x")]
    )
    stacks = deployment.deployed_stacks(cast(Account, account), "prod", project)
    assert [item.name for item in stacks] == ["prod-network", "prod-eks"]


def test_stacks_within_stacks_are_shown_only_to_who_asks(project: Path) -> None:
    inner = "prod-governance-IsolationTeams0-1ABCDEFGHIJKL"
    account = FakeAccount([stack("prod-eks"), stack("prod-governance", minute=1), stack(inner, minute=2)])
    for nested, names in ((False, ["prod-eks", "prod-governance"]), (True, ["prod-eks", "prod-governance", inner])):
        stacks = deployment.deployed_stacks(cast(Account, account), "prod", project, nested=nested)
        assert [item.name for item in stacks] == names


def test_an_earlier_run_is_waited_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    busy, done = [stack("prod-eks", "UPDATE_IN_PROGRESS")], [stack("prod-eks"), stack("prod-x", "REVIEW_IN_PROGRESS")]
    progress = Progress(output := io.StringIO())
    deployment.wait_for_earlier_run(cdk(project, FakeAccount(busy, busy, done)), progress)
    assert output.getvalue().count("is still at work on prod-eks (UPDATE_IN_PROGRESS); waiting") == 2


def test_a_stack_whose_first_change_set_was_never_executed_is_not_deployed(project: Path) -> None:
    account = FakeAccount([stack("prod-network"), stack("prod-eks", "DELETE_IN_PROGRESS", minute=1)])
    account.empty.add("prod-eks")
    assert [*templates.deployed(cast(Account, account), "prod", project)] == ["prod-network"]


class TestBootstrap:
    def test_what_is_there_is_left_alone(self, project: Path) -> None:
        account = FakeAccount()
        account.parameters["/cdk-bootstrap/hnb659fds/version"] = "30"
        deployment.bootstrap(made := cdk(project, account), Progress(io.StringIO()), desired=True)
        assert made.calls == []

    def test_aws_is_prepared_only_when_wanted(self, project: Path) -> None:
        made = cdk(project, FakeAccount())
        with pytest.raises(CommandError, match="111122223333 is not prepared for the CDK in us-west-2") as stopped:
            deployment.bootstrap(made, Progress(io.StringIO()), desired=False)
        assert "`cdk bootstrap aws://111122223333/us-west-2 --qualifier hnb659fds`" in stopped.value.hint
        deployment.bootstrap(made, Progress(io.StringIO()), desired=True)
        assert made.calls == [("bootstrap", "aws://111122223333/us-west-2", "--qualifier", "hnb659fds")]

    def test_the_sandbox_is_always_prepared(self, project: Path) -> None:
        made = cdk(project, FakeAccount(endpoint="http://localhost:1"))
        deployment.bootstrap(made, Progress(io.StringIO()), desired=False)
        assert made.calls == [("bootstrap", "aws://111122223333/us-west-2", "--qualifier", "hnb659fds")]

    def test_a_qualifier_of_the_users(self, project: Path) -> None:
        (project / "cdk.json").write_text(json.dumps({"context": {"@aws-cdk/core:bootstrapQualifier": "acme"}}))
        deployment.bootstrap(made := cdk(project, FakeAccount()), Progress(io.StringIO()), desired=True)
        assert made.calls[0][2:4] == ("--qualifier", "acme")


class TestFailure:
    def test_is_cloudformations_reason_and_what_to_do(self, project: Path) -> None:
        progress = Progress(io.StringIO())
        reason = "We currently do not have sufficient capacity for the requested instance type(s)."
        made = cdk(project, FakeAccount())
        entry = [{"type": "aws:cdk:logicalId", "data": "X7F"}]
        named = {"/prod/eks/x/Resource": entry, "/prod/cluster/x/Resource": entry}
        (made.assembly / "cluster.metadata.json").write_text(json.dumps(named))
        progress.failures.append(event("CREATE_FAILED", "AWS::SageMaker::Cluster", "X7F", reason))
        stop = deployment.failure(made, progress, Synthesized(made.assembly))
        assert str(stop) == f"prod-cluster: prod/cluster/x (AWS::SageMaker::Cluster) failed: {reason}"
        assert "training plan" in stop.hint
        assert "run the same command again" in stop.hint
        assert "prod.log" in stop.hint

    def test_is_the_reason_of_the_stack_where_no_resource_failed(self, project: Path) -> None:
        progress = Progress(io.StringIO())
        reason = "Export prod-vpc cannot be updated as it is in use by prod-eks"
        progress.turned_back.append(event("UPDATE_ROLLBACK_IN_PROGRESS", "AWS::CloudFormation::Stack", "x", reason))
        stop = deployment.failure(cdk(project, FakeAccount()), progress)
        assert str(stop) == f"prod-cluster failed: {reason}"
        assert stop.hint.startswith("deploy in two steps")

    def test_is_the_clis_last_words_where_nothing_was_deployed(self, project: Path) -> None:
        progress = Progress(io.StringIO())
        progress.line("‣ AppError: subprocess exited with error 1")
        stop = deployment.failure(cdk(project, FakeAccount()), progress)
        assert str(stop) == "the CDK CLI failed:\n    ‣ AppError: subprocess exited with error 1"


class TestDeployToAws:
    @pytest.fixture
    def made(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCdk:
        account = FakeAccount()
        account.parameters["/cdk-bootstrap/hnb659fds/version"] = "30"
        made = cdk(project, account)
        monkeypatch.setattr(deploy, "cdk_for", lambda *_: made)
        monkeypatch.setattr(deploy, "report", lambda *_: {"environment": "prod"})
        monkeypatch.setattr(deploy, "missing_artifacts", lambda *_: [])
        monkeypatch.setattr(deploy, "preflight", lambda *_, **__: [])
        monkeypatch.setattr("sys.stdin.isatty", lambda: True)
        return made

    def run(self, made: FakeCdk, yes: bool = False, preflight: bool = True, allow: tuple[str, ...] = ()) -> int:
        asked = asked_for(made.project, "prod", yes=yes, bootstrap=False, json=True, preflight=preflight, allow=allow)
        return deploy.run(asked)

    def test_shows_the_changes_and_asks(self, made: FakeCdk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("builtins.input", lambda _: "y")
        assert self.run(made) == 0
        assert [call[0] for call in made.calls] == ["synth", "validate", "deploy"]
        assert made.calls[0] == ("synth",), "the plan appears without the validator"

    def test_does_nothing_without_a_yes(self, made: FakeCdk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("builtins.input", lambda _: "")
        with pytest.raises(CommandError, match="nothing was deployed"):
            self.run(made)
        assert [call[0] for call in made.calls] == ["synth"]

    def test_does_nothing_where_nobody_can_be_asked(self, made: FakeCdk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin.isatty", lambda: False)
        with pytest.raises(CommandError, match="a confirmation needs a terminal"):
            self.run(made)
        assert made.calls == []

    def test_yes_asks_nothing(self, made: FakeCdk) -> None:
        assert self.run(made, yes=True) == 0
        assert [call[:2] for call in made.calls] == [("synth", "validated"), ("validate",), ("deploy", "prod/*")]

    def with_nodes(self, made: FakeCdk) -> FakeCdk:
        cast(FakeAccount, made.account).stacks = [[stack("prod-cluster")]]
        return made

    def test_refuses_harm_that_nobody_named(self, made: FakeCdk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin.isatty", lambda: False)
        with pytest.raises(CommandError, match="CHG004  h200: the deployment would set h200 12 → 8") as refused:
            self.run(self.with_nodes(made), yes=True)
        assert [call[0] for call in made.calls] == ["synth"]
        assert "--allow h200" in refused.value.hint
        with pytest.raises(CommandError, match="CHG004"):
            self.run(made, yes=True, allow=("burst",))

    def test_does_harm_that_is_named(self, made: FakeCdk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin.isatty", lambda: False)
        assert self.run(self.with_nodes(made), yes=True, allow=("h200",)) == 0
        assert [call[0] for call in made.calls] == ["synth", "validate", "deploy"]

    def test_does_harm_that_the_file_approves(self, made: FakeCdk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin.isatty", lambda: False)
        with pytest.raises(CommandError) as refused:
            self.run(self.with_nodes(made), yes=True)
        file = made.project / "environments/prod.yaml"
        entry = refused.value.hint.partition("to the file:\n")[2].replace("…", "the plan for it has ended")
        file.write_text(f"{GOOD}\n{entry}\n")
        assert self.run(made, yes=True) == 0

    def test_harm_is_typed_on_a_terminal(self, made: FakeCdk, monkeypatch: pytest.MonkeyPatch) -> None:
        prompts: list[str] = []

        def typed(*words: str) -> None:
            answers = iter(words)
            monkeypatch.setattr("builtins.input", lambda prompt: (prompts.append(prompt), next(answers))[1])

        typed("no")
        with pytest.raises(CommandError, match="nothing was done"):
            self.run(self.with_nodes(made))
        typed("h200", "y")
        assert self.run(made) == 0
        assert "Type h200 to accept that" in prompts[0]
        assert prompts[-1].startswith("Deploy these changes")

    def test_what_preflight_finds_stops_it(
        self, made: FakeCdk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        finding = Finding("PRE012", Level.ERROR, "instance_groups.h200.zone", "not offered", "move the group")
        outcome = Outcome(preflight_checks()["PRE012"], "found", (finding,), (), (), 0.1)
        monkeypatch.setattr(deploy, "preflight", lambda *_, **__: [outcome])
        assert self.run(made, yes=True) == 1
        assert made.calls == []
        output = capsys.readouterr().err
        assert "1 check: 1 with findings" in output
        assert "PRE012  error  instance_groups.h200.zone: not offered\n    → move the group" in output
        assert output.splitlines()[-1].startswith("nothing was deployed: 1 error;")
        assert "--no-preflight" in output
        assert self.run(made, yes=True, preflight=False) == 0

    def test_what_the_file_lacks_stands_last_with_a_count(
        self, made: FakeCdk, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = made.project / "environments/prod.yaml"
        file.write_text(file.read_text().replace("zones: [", "cidr: 10.0.0.0/8, zones: [", 1))
        assert self.run(made, yes=True) == 1
        assert made.calls == []
        lines = capsys.readouterr().err.splitlines()
        assert "NET020  error" in lines[-3]
        assert lines[-1].startswith("nothing was deployed: 1 error")

    @pytest.mark.parametrize("first", [True, False])
    def test_a_first_deployment_ends_with_what_to_type_next(
        self, first: bool, made: FakeCdk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(deploy, "write_report", lambda _: None)
        monkeypatch.setattr(
            deploy, "deployed_stacks", lambda *_: [] if first else [SimpleNamespace(name="prod-cluster")]
        )
        monkeypatch.setattr(deploy, "_review_changes", lambda *_: None)
        with (made.project / "environments/prod.yaml").open("a") as file:
            file.write("\nobservability: {}\n")
        asked = asked_for(made.project, "prod", yes=True, bootstrap=False, json=False, preflight=False, allow=())
        assert deploy.run(asked) == 0
        shown = capsys.readouterr().out
        for command in ("podwright report prod", "podwright dashboards preview prod"):
            assert (command in shown) == first

    def test_charts_without_a_digest_stop_it(
        self, made: FakeCdk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(deploy, "missing_artifacts", missing_artifacts)
        assert self.run(made, yes=True) == 1
        assert made.calls == []
        assert "CHT001  error  artifacts.lock has no digest" in capsys.readouterr().err

    def test_a_failed_check_stops_before_the_account_is_touched(self, made: FakeCdk) -> None:
        file = made.project / "environments/prod.yaml"
        file.write_text(GOOD.replace("[usw2-az1, usw2-az2]", "[usw2-az1]"))
        assert self.run(made, yes=True) == 1
        assert made.calls == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (json.dumps(cluster_of(12)), cluster_of(12)),
        # As the CDK CLI sends a small template that is no asset.
        (yaml.safe_dump(cluster_of(12)), cluster_of(12)),
        ("", {}),
    ],
    ids=["JSON", "YAML", "of a change set that was never executed"],
)
def test_a_deployed_template_is_read_in_each_form(
    body: str, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Client, "get_template", lambda *_, **__: {"TemplateBody": body})
    actual = templates.deployed(cast(Account, FakeAccount([stack("prod-cluster")])), "prod", tmp_path)
    assert actual.get("prod-cluster", {}) == expected


def test_a_template_with_short_forms_is_nobodys_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = "Resources: {C: {Type: AWS::S3::Bucket, Properties: {BucketName: !Ref Name}}}"
    monkeypatch.setattr(Client, "get_template", lambda *_, **__: {"TemplateBody": body})
    with pytest.raises(CommandError, match="the template of prod-cluster has short forms of YAML"):
        templates.deployed(cast(Account, FakeAccount([stack("prod-cluster")])), "prod", tmp_path)
