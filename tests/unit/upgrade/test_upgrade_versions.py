"""`podwright upgrade ENV podwright`: where the other podwright is, and which differences are told."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podwright.config.errors import CommandError
from podwright.operations.cli import main
from podwright.operations.upgrade import other_version, versions

FILE = """\
account: "123456789012"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""
BUCKET = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "a"}, "DeletionPolicy": "Retain"}
ROLE = {"Type": "AWS::IAM::Role", "Properties": {"Description": "one"}}
OLD = {"dev-storage": {"Resources": {"Data": BUCKET, "Role": ROLE}}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/dev.yaml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_virtual_environment_or_its_python(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin/python"
    python.symlink_to(sys.executable)
    assert other_version.interpreter(str(tmp_path), tmp_path / "x") == (str(python), None)
    assert other_version.interpreter(str(python), tmp_path / "x") == (str(python), None)


def test_a_commit_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout"
    for folder in ("config", "planning", "tests"):
        (checkout / folder).mkdir(parents=True)
        (checkout / folder / "a.py").write_text("first = True\n")
    monkeypatch.setattr(other_version, "_ROOT", checkout)

    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", "-C", str(checkout), *who, *words], check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    git("tag", "v0.1.0")
    (checkout / "config/a.py").write_text("first = False\n")
    python, path = other_version.interpreter("v0.1.0", tmp_path / "old")
    assert python == sys.executable
    assert path
    assert (Path(path) / "podwright/config/a.py").read_text() == "first = True\n"
    assert {path.name for path in Path(path, "podwright").iterdir()} == {"config", "planning"}
    with pytest.raises(CommandError, match="git says"):
        other_version.interpreter("v9.9.9", tmp_path / "other")


def test_a_podwright_that_cannot_says_why(project: Path) -> None:
    failing = project / "python"
    failing.write_text("#!/bin/sh\necho no such setting >&2\nexit 2\n")
    failing.chmod(0o755)
    with pytest.raises(CommandError, match="does not synthesize dev:\n    no such setting"):
        other_version.synthesis(project, str(failing), None, {"environment": "dev"}, project / "out", "dev")


def differing(monkeypatch: pytest.MonkeyPatch, new: dict[str, Any]) -> None:
    monkeypatch.setattr(versions, "synthesis", lambda *_: OLD)
    monkeypatch.setattr(versions, "_templates", lambda *_: new)


def test_a_renamed_bucket_is_told(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    role = ROLE | {"Properties": {"Description": "two"}}
    differing(monkeypatch, {"dev-storage": {"Resources": {"Renamed": BUCKET, "Role": role}}})
    assert main(["upgrade", "dev", "podwright", "--from", sys.executable]) == 1
    output = capsys.readouterr().out
    assert "delete storage/Data  AWS::S3::Bucket" in output
    assert "Role" not in output
    assert "dev: 1 differences with an effect, 2 without (--all shows them)" in output


def test_the_same_templates_are_no_difference(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    differing(monkeypatch, OLD)
    assert main(["upgrade", "dev", "podwright", "--from", sys.executable, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"environment": "dev", "changes": [], "ok": True}
