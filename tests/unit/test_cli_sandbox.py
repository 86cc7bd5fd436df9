import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podwright.operations import cli
from podwright.operations.aws import sandbox_server as server
from podwright.operations.commands import sandbox as command

RUNNING = server.Running(4599, 4600, 12, "server.log")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A sandbox that is started and stopped in name only."""
    made: list[str] = []
    state: list[server.Running] = []

    def start(
        project: Path, port: int | None, *, kubernetes: str | None, idle_minutes: float, real_nodes: int | None
    ) -> server.Running:
        made.append(f"start {port} {kubernetes} {idle_minutes:g}" + (f" {real_nodes} real" if real_nodes else ""))
        state[:] = [RUNNING]
        return RUNNING

    def stop(project: Path) -> bool:
        made.append("stop")
        state.clear()
        return True

    monkeypatch.setattr(command, "start", start)
    monkeypatch.setattr(command, "stop", stop)
    monkeypatch.setattr(command, "reset", lambda project: made.append("reset") or stop(project))
    monkeypatch.setattr(command, "status", lambda _: state[0] if state else None)
    return made


def run(tmp_path: Path, *arguments: str) -> int:
    return cli.main(["sandbox", *arguments, "--project", str(tmp_path)])


def test_start_says_where_it_is_and_how_to_use_it(
    tmp_path: Path, calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "start", "--port", "5000", "--region", "eu-west-1", "--kubernetes", "store") == 0
    assert calls == ["start 5000 store 240"]
    printed = capsys.readouterr().out
    assert "http://localhost:4599 (process 12, log server.log)" in printed
    assert "export AWS_ENDPOINT_URL=http://localhost:4599 " in printed
    assert "AWS_REGION=eu-west-1" in printed


def test_real_nodes_are_asked_for(tmp_path: Path, calls: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "start", "--real-nodes", "2") == 0
    assert calls == ["start None None 240 2 real"]
    assert run(tmp_path, "start", "--real-nodes", "-1") == 2
    assert "--real-nodes is -1; allowed: 0 or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("slurm", "words"),
    [
        ("", "Slurm clusters have a real Slurm, of Debian's packages."),
        ("this machine lacks root", "Slurm clusters have no Slurm: this machine lacks root."),
    ],
)
def test_it_says_whether_slurm_is_real(
    slurm: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "status", lambda _: server.Running(4599, 4600, 12, "server.log", "real", slurm))
    assert run(tmp_path, "status") == 0
    assert words in capsys.readouterr().out


def test_status_is_1_without_a_sandbox(tmp_path: Path, calls: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "status") == 1
    assert capsys.readouterr().out == "The sandbox does not run.\n"
    run(tmp_path, "start")
    assert run(tmp_path, "status") == 0


def test_stop_and_reset(tmp_path: Path, calls: list[str]) -> None:
    run(tmp_path, "start")
    assert run(tmp_path, "stop") == 0
    assert run(tmp_path, "reset") == 0
    assert calls == ["start None None 240", "stop", "reset", "stop"]


def test_json(tmp_path: Path, calls: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, "start", "--json")
    started = json.loads(capsys.readouterr().out)
    assert (started["running"], started["port"]) == (True, 4599)
    assert started["environment"]["AWS_ACCESS_KEY_ID"] == "sandbox"
    run(tmp_path, "stop", "--json")
    assert json.loads(capsys.readouterr().out) == {"running": False}


def test_a_port_that_cannot_be_used_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object, **options: object) -> server.Running:
        raise server.SandboxError("The sandbox did not start on port 1")

    monkeypatch.setattr(command, "start", refused)
    assert run(tmp_path, "start") == 1
    assert "podwright: The sandbox did not start on port 1" in capsys.readouterr().err


def test_without_its_libraries_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("podwright.operations.aws.account.find_spec", lambda _: None)
    assert run(tmp_path, "start") == 1
    assert "pip install 'podwright[sandbox]'" in capsys.readouterr().err


def test_how_long_it_waits_is_0_or_more(tmp_path: Path, calls: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "start", "--idle", "0") == 0
    with pytest.raises(SystemExit):
        run(tmp_path, "start", "--idle", "-1h")
    assert calls == ["start None None 0"]
    assert "sandbox start: --idle needs a value" in capsys.readouterr().err


@pytest.mark.parametrize("record", ["", "{", '{"port": 4599, "pid": 1, "log": "x"}'])
def test_a_record_of_another_version_is_none(tmp_path: Path, record: str) -> None:
    file = tmp_path / ".podwright/sandbox/server.json"
    file.parent.mkdir(parents=True)
    file.write_text(record)
    assert server.status(tmp_path) is None


def test_two_commands_that_find_no_server_start_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running, made = server.Running(1, 2, 3, ""), []

    def started(*arguments: object) -> server.Running:
        time.sleep(0.2)
        made.append(arguments)
        return running

    monkeypatch.setattr(server, "_started", started)
    monkeypatch.setattr(server, "status", lambda _: running if made else None)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(server.start, [tmp_path] * 2)) == [running] * 2
    assert len(made) == 1
