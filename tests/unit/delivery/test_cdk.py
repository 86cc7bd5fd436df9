import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from fake_cdk import FakeCdk
from needs import needs
from podwright.config.errors import CommandError
from podwright.operations import cli
from podwright.operations.aws.account import Account
from podwright.operations.cdk import cli as module
from podwright.operations.cdk.app import app_context, cdk_settings, runs_our_app
from podwright.operations.cdk.cli import Cdk, Synthesized, forget_the_dead
from podwright.operations.cdk.inputs import SynthesisInputs
from podwright.operations.cdk.progress import Progress
from podwright.operations.cdk.store import StoredAssembly


def made(project: Path) -> Cdk:
    account = Account("111122223333", "us-west-2", None, {"PATH": "/usr/bin:/bin", "AWS_REGION": "us-west-2"})
    inputs = SynthesisInputs(project, {"environment": "prod"}, {})
    return Cdk(project, "prod", inputs, account, project / "logs/prod.log")


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, Any]]]:
    """The command lines and options of the processes that were started."""
    calls: list[tuple[list[str], dict[str, Any]]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        calls.append((command, options))
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_runs_on_an_assembly_with_the_accounts_variables(
    tmp_path: Path, called: list[tuple[list[str], dict[str, Any]]]
) -> None:
    assembly = Synthesized(tmp_path / "out", 7)
    assert made(tmp_path).run(assembly, "diff", "prod/*") == 3
    ((command, options),) = called
    assert command[command.index("diff") :] == ["diff", "prod/*", "--app", str(tmp_path / "out")]
    assert (options["cwd"], options["pass_fds"]) == (tmp_path, (7,)), "the CLI keeps the assembly's lock"
    assert options["env"] == {"PATH": "/usr/bin:/bin", "AWS_REGION": "us-west-2", "PODWRIGHT_PYTHON": sys.executable}


def test_an_app_of_the_users_own_is_synthesized_by_the_cli_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may read anything, so nothing is known to be unchanged."""
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "python own.py"}))
    program = "import sys; print(sys.argv[1:]); sys.exit('--output' not in sys.argv)"
    monkeypatch.setattr(module, "_CLI", (sys.executable, "-c", program))
    cdk, folder = made(tmp_path), tmp_path / ".podwright/cdk.out/prod"
    for _ in range(2):
        with cdk.synthesized(Progress(sys.stderr)) as assembly:
            assert assembly == Synthesized(folder)
    lines = (tmp_path / "logs/prod.log").read_text().splitlines()
    context = ["--context", "environment=prod"]
    assert lines == [str(["synth", "--quiet", "prod/*", "--output", str(folder), *context])] * 2
    monkeypatch.setattr(module, "_CLI", (sys.executable, "-c", "raise SystemExit('no such module')"))
    with pytest.raises(CommandError, match="the CDK CLI failed:\n    no such module"), cdk.synthesized(Progress()):
        pass


def test_a_deletion_needs_no_artifacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`cdk destroy` deletes by an assembly with errors, which `cdk synth` and `cdk deploy` refuse."""
    stored = StoredAssembly(tmp_path / "stored", reused=True, lock=7)
    stored.folder.mkdir()
    error = {"type": "aws:cdk:error", "data": "CHT001: no chart"}
    (stored.folder / "eks.metadata.json").write_text(json.dumps({"/prod/eks": [error]}))
    monkeypatch.setattr(module, "assembly_of", lambda *_, **__: nullcontext(stored))
    with pytest.raises(CommandError, match="prod/eks: CHT001: no chart"), made(tmp_path).synthesized(Progress()):
        pass
    with made(tmp_path).synthesized(Progress(), incomplete=True) as assembly:
        assert assembly == Synthesized(stored.folder, 7)
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "python own.py"}))
    monkeypatch.setattr(module, "_CLI", (sys.executable, "-c", "import sys; print(sys.argv[1:])"))
    with made(tmp_path).synthesized(Progress(), incomplete=True):
        assert "'--ignore-errors'" in (tmp_path / "logs/prod.log").read_text()


def test_a_project_without_cdk_json_gets_the_settings_that_init_writes(
    tmp_path: Path, called: list[tuple[list[str], dict[str, Any]]]
) -> None:
    module.run_app(tmp_path, "deploy", output=tmp_path / "out", context={})
    ((command, _),) = called
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
    assert cdk_settings(tmp_path / "no-project").items() <= settings.items()
    assert runs_our_app(tmp_path / "new")


@pytest.mark.parametrize(
    ("app", "ours"),
    [
        ("bin/setup && .venv/bin/python -P -m podwright.bin.app", True),
        ("python3 -m podwright.bin.app", True),
        ("python3 app.py", False),
        ("STAGE=prod python3 -m podwright.bin.app", False),
        ("python3 -m podwright.bin.app && python3 more.py", False),
        ("python3 -m podwright.bin.app | tee log", False),
    ],
)
def test_only_our_app_runs_without_the_cli(app: str, ours: bool, tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text(json.dumps({"app": app}))
    assert runs_our_app(tmp_path) == ours


def test_a_build_command_makes_the_app_the_users_own(tmp_path: Path) -> None:
    """`cdk synth` runs it before the app, for which it may write files."""
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "python3 -m podwright.bin.app", "build": "make"}))
    assert not runs_our_app(tmp_path)


def test_context_of_cdk_json_prevails_over_answers_of_the_account(tmp_path: Path) -> None:
    """As in the CDK CLI: its own arguments first, then cdk.json, then cdk.context.json."""
    (tmp_path / "cdk.json").write_text(json.dumps({"context": {"a": "settings", "b": "settings"}}))
    (tmp_path / "cdk.context.json").write_text(json.dumps({"b": "answer", "c": "answer"}))
    context = app_context(tmp_path, {"a": "argument"})
    assert (context["a"], context["b"], context["c"]) == ("argument", "settings", "answer")
    (tmp_path / "cdk.json").write_text('{"context": null}')
    assert app_context(tmp_path, {})["b"] == "answer"


@pytest.mark.parametrize("text", ["{", "[]", '{"context": "a"}'])
def test_a_damaged_cdk_json_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text(text)
    with pytest.raises(CommandError, match=r"cdk\.json is not"):
        runs_our_app(tmp_path)


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


def test_the_diff_of_the_cdk_cli_is_of_the_environment_or_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.main(["init", str(tmp_path), "--name", "prod", "--account", "111122223333"])
    fake = FakeCdk.of(tmp_path, "prod", made(tmp_path).account)
    monkeypatch.setattr("podwright.operations.effects.command.cdk_for", lambda *_: fake)
    words = ["diff", "prod", "--cdk", "--project", str(tmp_path)]
    assert cli.main(words) == 0
    assert fake.calls == [("synth",), ("diff", "prod/*")]
    assert cli.main([*words, "--assembly", str(tmp_path)]) == 0
    assert fake.calls[2:] == [("diff", "prod/*")]
