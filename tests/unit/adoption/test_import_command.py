"""`podwright import` on a command line: what it refuses before it reads, and what it prints of a comparison."""

from pathlib import Path

import pytest

from podwright.config.errors import CommandError
from podwright.operations.adoption.command import _lines
from podwright.operations.adoption.differences import Comparison, Deviation, compare
from podwright.operations.adoption.reading import RunningCluster
from podwright.operations.cli import main
from screens import text_of

SHELL = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A shell without region and credentials."""
    for name in SHELL:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "sentence", "hint"),
    [
        (["Cluster-of-mine"], "which region?", "--region us-west-2, or set AWS_REGION"),
        (["mine", "--region", "us-west-2"], "has no AWS credentials", "set AWS_PROFILE"),
        (["mine", "--name", "My_Env"], "My_Env is not an environment name", "--name"),
        (["c" * 40], "is not an environment name", "--name"),
    ],
)
def test_a_refusal_says_what_to_do(
    arguments: list[str], sentence: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", *arguments]) in (1, 2)
    errors = capsys.readouterr().err
    assert sentence in errors
    assert hint in errors


def test_a_file_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/mine.yaml").write_text("mine: true\n")
    assert main(["import", "mine", "--region", "us-west-2"]) == 2
    assert "environments/mine.yaml exists, and nothing is overwritten" in capsys.readouterr().err
    assert (tmp_path / "environments/mine.yaml").read_text() == "mine: true\n"


def test_groups_that_differ_alike_are_one_row() -> None:
    def deviation(group: str, now: str) -> Deviation:
        return Deviation("AWS::SageMaker::Cluster prod", f"InstanceGroups[{group}].Batch 20%", now, "x", "why")

    compared = Comparison(3, (deviation("a", "1"), deviation("b", "1"), deviation("c", "2")), {"prod-network": 1})
    shown = text_of(_lines(compared, "", "prod"))
    assert "Cluster prod: InstanceGroups[a, b].Batch 20%  1    x     why" in shown
    assert "Cluster prod: InstanceGroups[c].Batch 20%     2    x     why" in shown
    assert "prod: 3 resources compared, 3 properties are unlike the cluster" in shown


def test_a_file_that_is_no_environment_is_not_compared(tmp_path: Path) -> None:
    """`import` then still prints what it has written and what is wrong with it."""
    file = tmp_path / "mine.yaml"
    file.write_text("account: nobody\n")
    running = RunningCluster("111122223333", "us-west-2", {})
    with pytest.raises(CommandError, match=r"mine\.yaml does not synthesize, so nothing was compared:\n.*account"):
        compare(running, "mine", file, tmp_path, sandbox=False)
