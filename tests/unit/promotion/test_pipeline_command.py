"""`podwright pipeline`: what it prints, and what builds call."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import Stubber

from podwright.config.errors import CommandError
from podwright.operations import cli
from podwright.operations.aws.account import Account
from podwright.operations.cdk.store import VALIDATION_REPORT
from podwright.operations.pipeline import cache, synth
from podwright.operations.pipeline.builds import waiting
from podwright.planning.delivery.pipeline_steps import ASSEMBLY
from promotion_project import GITHUB, PIPELINE, write_project

ROOT = Path(__file__).resolve().parents[3]
NEWEST = "11111111-0000-4000-8000-000000000003"
OLDER = "11111111-0000-4000-8000-000000000002"
OLDEST = "11111111-0000-4000-8000-000000000001"


def pipeline(folder: Path, *arguments: str) -> int:
    return cli.main(["pipeline", *arguments, "--project", str(folder)])


def test_shows_every_step_and_its_role(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_project(tmp_path)
    assert pipeline(tmp_path, "show") == 0
    shown = capsys.readouterr().out
    assert "podwright gate prod cluster canary" in " ".join(shown.split())
    assert "a person consents" in shown
    assert pipeline(tmp_path, "show", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    kinds = [step["kind"] for step in document["steps"] if step["environment"] == "prod"]
    assert kinds == ["preflight", "effects", "deploy", "gate"]
    assert [step["commands"] for step in document["drift"]][-1] == ["podwright drift prod"]


@pytest.mark.parametrize(
    ("text", "id", "word"),
    [
        ("environments: [dev]\n", "PIP004", "does not say where commits come from"),
        ("pipeline: {tests: [pytest]}\n", "PIP004", "does not say where commits come from"),
        ("pipeline: {source: {codecommit: clusters}}\n", "PIP005", "CodePipeline needs account and region"),
    ],
)
def test_what_a_pipeline_lacks_is_said(
    tmp_path: Path, text: str, id: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path, text)
    assert pipeline(tmp_path, "bootstrap") == 2
    output = capsys.readouterr().err
    assert f"podwright.yaml:1  {id}  error" in output
    assert word in output


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    """An assembly whose templates are some of the reviewed ones."""
    folder = tmp_path / "assembly"
    for name in ("dev", "staging-west", "staging-east", "prod"):
        for prefix, snapshot in (
            (name, "templates/training-jobs-queue/network"),
            (f"podwright-{name}", "pipeline/access"),
        ):
            location = folder / f"assembly-{prefix}"
            location.mkdir(parents=True)
            (location / "x.template.json").write_text((ROOT / f"tests/snapshot/{snapshot}.json").read_text())
    (folder / "pipeline.template.json").write_text((ROOT / "tests/snapshot/pipeline/pipeline.json").read_text())
    return folder


def bootstrapped(folder: Path, assembly: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    assert pipeline(folder, "bootstrap", "--assembly", str(assembly), "--json") == 0
    return json.loads(capsys.readouterr().out)["commands"]


def test_every_account_and_region_is_prepared_once_and_trusts_the_pipeline(
    tmp_path: Path, assembly: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path)
    lines = [command["line"] for command in bootstrapped(tmp_path, assembly, capsys)]
    made = [line.split() for line in lines if line.startswith("cdk bootstrap")]
    assert [words[2] for words in made] == [
        # The pipeline keeps a bucket in each region that it deploys to.
        "aws://012345678901/us-west-2",
        "aws://012345678901/us-east-1",
        "aws://111122223333/us-west-2",
        "aws://123456789012/us-west-2",
        "aws://123456789012/us-east-1",
        "aws://012345670123/us-west-2",
    ]
    assert ["--trust" in words for words in made] == [False, False, True, True, True, True]
    assert {words[words.index("--trust") + 1] for words in made[2:]} == {"012345678901"}
    assert lines[-2:] == ["podwright pipeline deploy", "podwright pipeline cache"]


def test_the_policies_are_written_where_the_commands_look(
    tmp_path: Path, assembly: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path)
    expected = ""
    for command in bootstrapped(tmp_path, assembly, capsys):
        words = command["line"].split()
        if words[:3] == ["aws", "cloudformation", "deploy"]:
            template = json.loads(Path(words[words.index("--template-file") + 1]).read_text())
            names = [item["Properties"]["ManagedPolicyName"] for item in template["Resources"].values()]
            # The last is the boundary of what the role makes, and no policy of its own.
            assert names.pop() == "podwright-boundary"
            expected = ",".join(f"arn:aws:iam::{command['account']}:policy/{name}" for name in names)
        elif words[:2] == ["cdk", "bootstrap"]:
            assert words[words.index("--cloudformation-execution-policies") + 1] == expected


def test_github_gets_roles_in_each_account_and_environments_for_one_branch(
    tmp_path: Path, assembly: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path, GITHUB)
    lines = [command["line"] for command in bootstrapped(tmp_path, assembly, capsys)]
    assert not [line for line in lines if "--trust" in line]
    assert [line for line in lines if line.startswith("podwright")] == [
        f"podwright pipeline deploy {name}" for name in ("dev", "staging-west", "staging-east", "prod")
    ]
    assert "gh api -X POST repos/acme/clusters/environments/prod/deployment-branch-policies -f name=main" in lines


def test_an_assembly_that_lacks_an_environment_is_refused(
    tmp_path: Path, assembly: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path)
    (assembly / "assembly-prod/x.template.json").unlink()
    assert pipeline(tmp_path, "bootstrap", "--assembly", str(assembly)) == 2
    assert "assembly-prod" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "arguments", "word"),
    [
        (GITHUB, (), "whose roles?"),
        (GITHUB, ("qa",), "qa is not promoted"),
        (PIPELINE, ("dev",), "the pipeline deploys the roles of environments itself"),
    ],
)
def test_deploy_refuses_what_it_cannot_mean(
    tmp_path: Path, text: str, arguments: tuple[str, ...], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path, text)
    assert pipeline(tmp_path, "deploy", *arguments) == 2
    assert word in capsys.readouterr().err


def executions(*actual: tuple[str, str]) -> dict[str, Any]:
    return {"pipelineExecutionSummaries": [{"pipelineExecutionId": id, "status": status} for id, status in actual]}


@pytest.fixture
def wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run `pipeline wait` as OLDER or another; the answers of CodePipeline come one after another."""

    def run(deployed: dict[str, Any], *answers: dict[str, Any], execution: str = OLDER, minutes: float = 60) -> int:
        write_project(tmp_path)
        (tmp_path / "cdk.out").mkdir(exist_ok=True)
        (tmp_path / "cdk.out/pipeline.template.json").write_text(json.dumps({"Resources": {"New": {}}}))
        monkeypatch.setattr(waiting, "_POLL_SECONDS", 0)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        account = Account("012345678901", "us-west-2", None, {})
        monkeypatch.setattr(waiting, "pipeline_account", lambda project: (account, "podwright"))
        cloudformation, codepipeline = account.client("cloudformation"), account.client("codepipeline")
        asked = {"StackName": "podwright-pipeline", "TemplateStage": "Original"}
        with Stubber(cloudformation) as stacks, Stubber(codepipeline) as pipelines:
            stacks.add_response("get_template", {"TemplateBody": json.dumps(deployed)}, asked)
            for answer in answers:
                pipelines.add_response("list_pipeline_executions", answer, {"pipelineName": "podwright"})
            code = pipeline(tmp_path, "wait", "--execution", execution, "--timeout", f"{minutes}m")
            pipelines.assert_no_pending_responses()
        return code

    return run


def test_nothing_waits_where_the_pipeline_stays_as_it_is(wait: Callable[..., int]) -> None:
    assert wait({"Resources": {"New": {}}}) == 0


def test_a_changed_pipeline_waits_for_earlier_promotions_and_not_for_later_ones(wait: Callable[..., int]) -> None:
    under_way = executions((NEWEST, "InProgress"), (OLDER, "InProgress"), (OLDEST, "InProgress"))
    stopping = executions((NEWEST, "InProgress"), (OLDER, "InProgress"), (OLDEST, "Stopping"))
    through = executions((NEWEST, "InProgress"), (OLDER, "InProgress"), (OLDEST, "Succeeded"))
    assert wait({"Resources": {}}, under_way, stopping, through) == 0


def test_waiting_has_an_end_that_says_what_to_do(wait: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert wait({"Resources": {}}, executions((OLDER, "InProgress"), (OLDEST, "InProgress")), minutes=0) == 1
    output = capsys.readouterr().err
    assert OLDEST in output
    assert "retry the stage Build" in output


def test_an_execution_that_is_not_there_is_refused(
    wait: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert wait({"Resources": {}}, executions((OLDEST, "InProgress")), execution=NEWEST) == 2
    assert NEWEST in capsys.readouterr().err


def protectable(folder: Path) -> Path:
    """An assembly of prod: two stacks that are to be protected, and one that is not."""
    location = folder / "out/assembly-prod"
    location.mkdir(parents=True)
    expected = {"prod-network": True, "prod-storage": True, "prod-cluster": False}
    artifacts: dict[str, Any] = {
        name: {
            "type": "aws:cloudformation:stack",
            "properties": {"stackName": name, "templateFile": "x", "terminationProtection": protected},
        }
        for name, protected in expected.items()
    }
    artifacts["assets"] = {"type": "cdk:asset-manifest", "properties": {"file": "x"}}
    (location / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder / "out"


def stack(name: str, protected: bool) -> dict[str, Any]:
    return {
        "Stacks": [
            {
                "StackName": name,
                "CreationTime": "2026-11-22T00:00:00Z",
                "StackStatus": "CREATE_COMPLETE",
                "EnableTerminationProtection": protected,
            }
        ]
    }


def test_stacks_are_protected_as_the_cdk_would_and_only_where_they_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path)
    assembly = protectable(tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    account = Account("012345670123", "us-west-2", None, {})
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda environment, project, sandbox: account)
    with Stubber(account.client("cloudformation")) as stacks:
        stacks.add_response("describe_stacks", stack("prod-network", True), {"StackName": "prod-network"})
        stacks.add_response("describe_stacks", stack("prod-storage", False), {"StackName": "prod-storage"})
        asked = {"StackName": "prod-storage", "EnableTerminationProtection": True}
        stacks.add_response("update_termination_protection", {"StackId": "x"}, asked)
        assert pipeline(tmp_path, "protect", "prod", "--assembly", str(assembly)) == 0
        stacks.assert_no_pending_responses()
    assert capsys.readouterr().out.splitlines() == [
        "prod-storage: protected from being deleted",
        "prod: 2 stacks are protected",
    ]


def test_protecting_without_an_assembly_says_where_it_comes_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path)
    assert pipeline(tmp_path, "protect", "prod") == 2
    assert "podwright pipeline synth" in capsys.readouterr().err


def test_the_validators_report_of_an_earlier_synthesis_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With CDK_VALIDATION=false the app leaves the report of the run before."""
    write_project(tmp_path)
    (tmp_path / "cdk.json").unlink(missing_ok=True)
    report = tmp_path / ASSEMBLY / VALIDATION_REPORT
    report.parent.mkdir()
    violation = {"description": "no such property", "severity": "error", "violatingConstructs": []}
    failed = {"pluginName": "Validator", "conclusion": "failure", "violations": [violation]}
    report.write_text(json.dumps({"pluginReports": [failed]}))
    monkeypatch.setattr(synth, "synthesize_app", lambda *_: None)
    assert synth.synthesize(tmp_path) == report.parent
    again = json.dumps({"pluginReports": [failed]})

    def refused_again(*_: object) -> None:
        report.write_text(again)

    monkeypatch.setattr(synth, "synthesize_app", refused_again)
    with pytest.raises(CommandError, match="Validator: no such property"):
        synth.synthesize(tmp_path)


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    return tmp_path


def test_archives_are_uploaded_once(
    cached: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account = Account("012345678901", "us-west-2", None, {})
    monkeypatch.setattr(cache, "pipeline_account", lambda project: (account, "podwright"))
    folder = cached / ".podwright/artifacts"
    folder.mkdir(parents=True)
    (folder / "old.tgz").write_text("four")
    (folder / "new.tgz").write_text("newer")
    outputs = [{"OutputKey": "EvidenceBucket", "OutputValue": "podwright-pipeline-evidence"}]
    actual = stack("podwright-pipeline", True)
    actual["Stacks"][0]["Outputs"] = outputs
    existing = {"Contents": [{"Key": "artifacts/old.tgz", "Size": 4}]}
    uploaded: list[str] = []
    with Stubber(account.client("cloudformation")) as stacks, Stubber(account.client("s3")) as buckets:
        stacks.add_response("describe_stacks", actual, {"StackName": "podwright-pipeline"})
        asked = {"Bucket": "podwright-pipeline-evidence", "Prefix": "artifacts/"}
        buckets.add_response("list_objects_v2", existing, asked)
        monkeypatch.setattr(
            account.client("s3"), "upload_file", lambda file, bucket, key: uploaded.append(f"{bucket}/{key}")
        )
        assert pipeline(cached, "cache") == 0
    assert uploaded == ["podwright-pipeline-evidence/artifacts/new.tgz"]
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["uploaded", "there"]


def test_a_pipeline_that_is_not_deployed_is_said_to_be(
    cached: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account = Account("012345678901", "us-west-2", None, {})
    monkeypatch.setattr(cache, "pipeline_account", lambda project: (account, "podwright"))
    (cached / ".podwright/artifacts").mkdir(parents=True)
    (cached / ".podwright/artifacts/a.tgz").write_text("x")
    with Stubber(account.client("cloudformation")) as stacks:
        stacks.add_client_error("describe_stacks", "ValidationError", "Stack with id podwright-pipeline does not exist")
        assert pipeline(cached, "cache") == 1
    assert "`podwright pipeline deploy` makes it" in capsys.readouterr().err


def test_github_has_no_pipeline_to_hand_archives_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_project(tmp_path, GITHUB)
    assert pipeline(tmp_path, "cache") == 2
    assert "GitHub Actions promotes this project" in capsys.readouterr().err
