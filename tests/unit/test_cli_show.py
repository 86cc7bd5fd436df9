import json
from pathlib import Path

import pytest

from podwright.config.loading.load import environment_from
from podwright.config.loading.project import Project
from podwright.config.loading.source import parse_source
from podwright.operations import cli

ROOT = Path(__file__).parents[2]


def show(name: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["show", name, *arguments, "--project", str(ROOT)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("file", sorted((ROOT / "environments").glob("*.yaml")), ids=lambda file: file.stem)
def test_what_is_shown_is_the_same_environment(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = environment_from(parse_source(show(file.stem, capsys), "shown.yaml"), file.stem)
    assert shown.environment == Project.at(ROOT).load(file.stem).environment


def test_marks_what_the_file_does_not_say(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {line.split("#")[0].strip(): line.endswith("# default") for line in show("prod", capsys).splitlines()}
    assert lines["account: '111122223333'"] is False
    assert lines["endpoint: private"] is False
    assert lines["nat: per_zone"] is True
    assert lines["logs: [api, audit, authenticator, controllerManager, scheduler]"] is True


@pytest.mark.parametrize(("name", "shown", "left_out"), [("slurm-classic", "slurm", "eks"), ("prod", "eks", "slurm")])
def test_leaves_out_the_orchestrator_that_is_not_used(
    name: str, shown: str, left_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = show(name, capsys).splitlines()
    assert f"  {shown}:" in lines
    assert f"  {left_out}:" not in lines


def test_json_holds_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(show("prod", capsys, "--json"))
    assert shown["settings"]["storage"]["lustre"]["repositories"][0]["import"] == ["new", "changed"]
    assert shown["settings"]["storage"]["kms_key"] is None
