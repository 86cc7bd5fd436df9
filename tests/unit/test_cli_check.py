import json
from pathlib import Path

import pytest

from podwright.operations import cli

GOOD = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
cluster: {eks: {admins: ["arn:aws:iam::111122223333:role/MlPlatform"]}}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""
NO_ENVIRONMENT = "account: 12\nregion: us-west-2\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/good.yaml").write_text(GOOD)
    return tmp_path


def check(project: Path, *arguments: str) -> int:
    # Some findings depend on the day.
    return cli.main(["check", *arguments, "--date", "2026-08-01", "--project", str(project)])


def test_a_good_file_is_0(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(project, "good") == 0
    assert "good: ok\n    at least $" in capsys.readouterr().out


def test_a_file_outside_the_project_is_checked_by_its_path(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "elsewhere.yaml"
    file.write_text(GOOD)
    assert check(project, str(file)) == 0


def test_a_file_that_is_no_environment_is_2_with_all_findings_and_lines(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "environments/bad.yaml").write_text(NO_ENVIRONMENT)
    assert check(project, "bad") == 2
    printed = capsys.readouterr().out
    assert "environments/bad.yaml:1  ENV003  error  account is '12'" in printed
    assert "network is missing" in printed
    assert printed.endswith("bad: not an environment (3 errors)\n")


def test_a_broken_rule_is_1(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A control plane needs two zones."""
    file = project / "environments/one.yaml"
    file.write_text(GOOD.replace("[usw2-az1, usw2-az2]", "[usw2-az1]"))
    assert check(project, "one") == 1
    assert capsys.readouterr().out.endswith("one: failed (1 error)\n")


def test_an_accepted_finding_is_printed_with_its_reason(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    no_admins = GOOD.replace('cluster: {eks: {admins: ["arn:aws:iam::111122223333:role/MlPlatform"]}}\n', "")
    file = project / "environments/closed.yaml"
    file.write_text(no_admins)
    assert check(project, "closed") == 0
    rule = capsys.readouterr().out.split("  ")[1]
    file.write_text(no_admins + f"acknowledge: [{{rule: {rule}, reason: the runner applies everything}}]\n")
    assert check(project, "closed") == 0
    printed = capsys.readouterr().out
    assert f"{rule}  accepted" in printed
    assert "accepted because the runner applies everything\nclosed: ok (1 accepted)\n" in printed


def test_without_names_all_are_checked_and_the_worst_decides(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "environments/bad.yaml").write_text(NO_ENVIRONMENT)
    assert check(project) == 2
    printed = capsys.readouterr().out
    assert "bad: not an environment" in printed
    assert "good: ok\n" in printed


def test_a_folder_without_environments_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path) == 2
    assert "podwright init" in capsys.readouterr().err


def test_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "environments/bad.yaml").write_text(NO_ENVIRONMENT)
    assert check(project, "bad", "good", "--json") == 2
    bad, good = json.loads(capsys.readouterr().out)["environments"]
    assert (bad["environment"], bad["ok"], bad["exit_code"]) == ("bad", False, 2)
    assert bad["findings"][0] | {"message": "", "hint": ""} == {
        "id": "ENV003",
        "level": "error",
        "path": "account",
        "message": "",
        "hint": "",
        "place": {"file": "environments/bad.yaml", "line": 1, "column": 1},
        "acknowledged": None,
    }
    assert (good["environment"], good["ok"], bad["cost"]) == ("good", True, None)
    # Two ml.m5.4xlarge for $0.768, an EKS control plane for $0.10 an hour, and a key for a dollar a month.
    assert good["cost"]["monthly"] == pytest.approx((2 * 0.768 + 0.10 + 2 * 0.045 + 13 * 2 * 0.01) * 730 + 1)


@pytest.mark.parametrize("text", ["", "[]", "a: [", "\t", "name: x\n---\nname: y", "\x00", "account: &a [*a]"])
def test_no_text_makes_a_traceback(project: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "environments/odd.yaml").write_text(text)
    assert check(project, "odd") == 2
    assert "→" in capsys.readouterr().out
