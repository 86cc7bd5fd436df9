"""`podwright render`: where values come from, what is said of missing ones, and which files are written."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from podwright.config.errors import CommandError
from podwright.config.loading.load import environment_from
from podwright.config.loading.source import parse_source
from podwright.operations import cli
from podwright.operations.kubernetes import filled

ROOT = Path(__file__).parents[3]

ENVIRONMENT = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
storage: {lustre: {}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h100: {instance_type: ml.p5.48xlarge, count: 4, zone: usw2-az1}
governance:
  engine: kueue
  teams:
    research: {quota: {h100: 2}, access: {storage: {work: {path: /teams/research}}}}
    product: {quota: {h100: 1}}
"""
VALUES = """
lustre: {lustre: {id: fs-0123456789abcdef0, dns_name: files.example, mount_name: abcdefgh}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/here.yaml").write_text(ENVIRONMENT)
    (tmp_path / "values.yaml").write_text(VALUES)
    return tmp_path


def run(project: Path, *arguments: str) -> int:
    return cli.main(["render", "here", "--project", str(project), *arguments])


def test_each_team_and_each_shared_object_is_a_file(project: Path) -> None:
    out = project / "out"
    assert run(project, "--out", str(out), "--values", str(project / "values.yaml")) == 0
    team = (out / "teams/research.yaml").read_text()
    assert "volumeHandle: fs-0123456789abcdef0:team-research:work" in team
    assert "mountname: abcdefgh/teams/research" in team
    assert (out / "shared/ResourceFlavor.h100.yaml").is_file()
    assert (out / "charts/kueue.values.yaml").read_text().startswith("# Values of chart kueue 0.19.2")


def test_files_of_what_is_gone_go_and_others_stay(project: Path) -> None:
    out = project / "out"
    run(project, "--out", str(out), "--values", str(project / "values.yaml"))
    (out / "teams/mine.yaml").write_text("mine")
    file = project / "environments/here.yaml"
    file.write_text(file.read_text().replace("    product: {quota: {h100: 1}}\n", ""))
    assert run(project, "--out", str(out), "--values", str(project / "values.yaml")) == 0
    assert sorted(path.name for path in (out / "teams").iterdir()) == ["mine.yaml", "research.yaml"]


def test_a_value_that_nobody_gave_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "values.yaml").write_text("lustre: {lustre: {id: fs-0123456789abcdef0}}")
    assert run(project, "--values", str(project / "values.yaml")) == 1
    output = capsys.readouterr().err
    assert "nobody says what lustre.lustre.dns_name, lustre.lustre.mount_name of here are" in output
    assert "lustre.lustre.id" not in output


def test_without_credentials_too_it_is_said_what_is_missing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise CommandError("the default profile has no AWS credentials", "set AWS_PROFILE")

    monkeypatch.setattr("podwright.operations.arguments.account_of", refuse)
    assert run(project) == 1
    output = capsys.readouterr().err
    assert (
        "lustre.lustre.mount_name of here are in its stacks, and the default profile has no AWS credentials" in output
    )
    assert "→ give them in a file with --values, or: set AWS_PROFILE" in output


def test_a_cluster_without_kubernetes_has_no_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a/b"
    assert cli.main(["render", "slurm-classic", "--out", str(out), "--project", str(ROOT)]) == 0
    output = capsys.readouterr()
    assert output.err == "slurm-classic has no Kubernetes objects\n"
    assert output.out == f"0 files in {out}\n"


def test_values_are_a_mapping(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "values.yaml").write_text("- fs-0123456789abcdef0")
    assert run(project, "--values", str(project / "values.yaml")) == 2
    assert "values.yaml is not a mapping of values" in capsys.readouterr().err


def test_a_value_that_the_environment_does_not_have_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "values.yaml").write_text("lustre: {scratch: {id: fs-0123456789abcdef0}}")
    assert run(project, "--values", str(project / "values.yaml")) == 2
    assert "says what lustre.scratch.id are, which here does not have" in capsys.readouterr().err


def test_values_come_from_the_outputs_of_stacks(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = [
        {"OutputKey": "a", "Description": "podwright value lustre.lustre.id", "OutputValue": "fs-1"},
        {"OutputKey": "b", "Description": "Subscribe to hear of ends", "OutputValue": "arn"},
        {"OutputKey": "c", "OutputValue": "something"},
    ]
    monkeypatch.setattr(
        filled,
        "deployed_stacks",
        lambda *_: [SimpleNamespace(description={"Outputs": outputs}), SimpleNamespace(description={})],
    )
    environment = environment_from(parse_source(ENVIRONMENT, "here.yaml"), "here").environment
    account = object()
    assert filled.stack_values(account, environment, project) == {"lustre.lustre.id": "fs-1"}
