"""Environments of a project beside one another: `podwright check` without names, and `podwright project`."""

import json
from pathlib import Path

import pytest

from podwright.operations import cli

ROOT = Path(__file__).parents[2]
WEST = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""
ACCEPTED = "acknowledge: [{rule: PRJ003, path: network.cidr, reason: never to be connected}]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    for name in ("east", "west"):
        (tmp_path / f"environments/{name}.yaml").write_text(WEST)
    return tmp_path


def run(project: Path, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert cli.main([*arguments, "--project", str(project)]) == code
    return capsys.readouterr().out


def test_check_of_all_compares_them(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = run(project, capsys, "check")
    assert "environments/west.yaml:3  PRJ003  warning  network.cidr: the network overlaps with east" in printed
    assert "PRJ003" not in run(project, capsys, "check", "west")
    assert "PRJ003" not in run(project, capsys, "check", "west", "east")


def test_an_error_between_two_fails_the_check(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("east", "west"):
        (project / f"environments/{name}.yaml").write_text(f"{WEST}cluster: {{name: one}}\n")
    printed = run(project, capsys, "check", "--date", "2026-08-01", code=1)
    assert "environments/west.yaml:5  PRJ001  error" in printed
    assert "west: failed (1 error, 2 warnings)" in printed
    assert "east: ok" in printed


def test_a_file_accepts_what_is_found_between_it_and_others(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "environments/west.yaml").write_text(WEST + ACCEPTED)
    assert "accepted because never to be connected" in run(project, capsys, "check")
    # By itself it has nothing to accept, and nothing is wrong with that.
    assert "ENV012" not in run(project, capsys, "check", "west")
    (project / "environments/east.yaml").write_text(WEST.replace("{zones", "{cidr: 10.20.0.0/16, zones"))
    assert "ENV012  warning" in run(project, capsys, "check")


def test_what_cannot_be_read_keeps_the_others_from_being_compared(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "environments/middle.yaml").write_text("a: 1\n")
    printed = run(project, capsys, "check", code=2)
    assert "not compared with each other" in printed
    assert [line.split(":")[0] for line in printed.splitlines() if ": ok" in line or ": not an" in line] == [
        "east", "middle", "west",
    ]  # fmt: skip
    assert "PRJ003" not in printed


def test_project_prints_environments_and_links(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split() for line in run(ROOT, capsys, "project").splitlines()]
    row = next(line for line in lines if line[:1] == ["shared-platform-ohio"])
    assert row[1:5] == ["111122223333", "us-east-2", "shared-platform-ohio", "(eks)"]
    assert row[-2:] == ["10.56.0.0/16", "environments/shared/platform-worker.yaml"]
    assert ["shared-platform-wanted", "ohio", "shared-platform-ohio", "h200", "16", "job,", "ray,", "train", "yes"] in [
        line[:9] for line in lines
    ]


def test_project_as_json_names_what_is_wrong_with_a_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/shared").symlink_to(ROOT / "environments/shared")
    for name in ("wanted", "worker", "ohio"):
        text = (ROOT / f"environments/shared-platform-{name}.yaml").read_text()
        text = text.replace("h200: {count: 16,", "h200: {count: 12,").replace("cidr: 10.56", "cidr: 10.48")
        (tmp_path / f"environments/shared-platform-{name}.yaml").write_text(text)
    actual = json.loads(run(tmp_path, capsys, "project", "--json"))
    oregon, ohio = actual["links"]
    assert (oregon["findings"], oregon["regions"]) == ([], ["us-west-2", "us-west-2"])
    assert (ohio["findings"], ohio["regions"]) == (["PRJ011", "PRJ015"], ["us-west-2", "us-east-2"])
    assert {item["id"] for item in actual["findings"]} == {"PRJ011", "PRJ015"}
    assert actual["environments"][0]["files"] == [
        "environments/shared/platform-worker.yaml",
        "environments/shared-platform-ohio.yaml",
    ]


def test_a_project_without_environments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, capsys, "project", code=2)
