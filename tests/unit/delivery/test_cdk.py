import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from needs import needs
from podwright.operations import cli
from podwright.operations.aws.account import Account
from podwright.operations.cdk import cli as module
from podwright.operations.cdk.cli import Cdk, forget_the_dead
from podwright.operations.cdk.progress import Progress


def made(project: Path) -> Cdk:
    account = Account("111122223333", "us-west-2", None, {"PATH": "/usr/bin:/bin", "AWS_REGION": "us-west-2"})
    return Cdk(project, "prod", {"environment": "prod"}, account, project / "logs/prod.log")


def called(project: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], dict[str, Any]]:
    calls = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        calls.append((command, options))
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", run)
    assert made(project).run("diff", "prod/*") == 3
    return calls[0]


def test_narrows_the_app_and_names_its_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cdk.json").write_text("{}")
    command, options = called(tmp_path, monkeypatch)
    assert command[command.index("diff") :] == [
        *("diff", "prod/*"),
        *("--output", str(tmp_path / ".podwright/cdk.out/prod")),
        *("--context", "environment=prod"),
    ]
    assert options["cwd"] == tmp_path
    assert options["env"] == {"PATH": "/usr/bin:/bin", "AWS_REGION": "us-west-2", "PODWRIGHT_PYTHON": sys.executable}


def test_a_project_without_cdk_json_gets_the_settings_that_init_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, _ = called(tmp_path, monkeypatch)
    assert f'"{sys.executable}" -P -m podwright.bin.app' in command
    cli.main(["init", str(tmp_path / "new")])
    settings = json.loads((tmp_path / "new/cdk.json").read_text())
    flags = {
        "notices": "--no-notices",
        "versionReporting": "--no-version-reporting",
        "assetMetadata": "--no-asset-metadata",
    }
    assert settings.keys() - {"app"} == flags.keys()
    assert all(settings[name] is False and flag in command for name, flag in flags.items())


def test_follows_the_output_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line counts, finished or not, and bytes that are no text do no harm."""
    program = r"import sys; sys.stdout.buffer.write(b'one\ntwo \xff\nthree'); sys.exit(4)"
    monkeypatch.setattr(module, "_CLI", (sys.executable, "-c", program))
    progress = Progress(sys.stderr)
    assert made(tmp_path).follow(progress, "deploy") == 4
    assert list(progress.last) == ["one", "two \N{REPLACEMENT CHARACTER}", "three"]
    assert (tmp_path / "logs/prod.log").read_bytes() == b"one\ntwo \xff\nthree"


@needs(Path("/proc/self/stat").exists(), "/proc: elsewhere the first process is always an init")
def test_locks_of_a_killed_cli_that_nobody_waited_for_are_forgotten(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as living, subprocess.Popen(["sleep", "60"]) as killed:
        killed.kill()
        os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)
        retained, deleted = tmp_path / f"read.{living.pid}.1.lock", tmp_path / f"read.{killed.pid}.1.lock"
        retained.touch()
        deleted.touch()
        (tmp_path / "synth.lock").write_text(str(killed.pid))
        forget_the_dead(tmp_path)
        assert list(tmp_path.iterdir()) == [retained]
        living.kill()
