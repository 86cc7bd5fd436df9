"""A client that asks for progress gets the lines that a command prints while it works; one that goes stops nothing."""

import asyncio
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import Context

from agent_client import MODES
from podwright.operations.agents.answers import Answer
from podwright.operations.agents.server import server_of
from podwright.operations.agents.session import Session
from podwright.operations.output.console import write_line, write_note
from podwright.operations.output.moving import under_way
from waiting import CEILING_SECONDS

ROOT = Path(__file__).resolve().parents[3]
STEPS = 3


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "environments/shared", tmp_path / "environments/shared")
    shutil.copy(ROOT / "environments/prod.yaml", tmp_path / "environments")
    return tmp_path


class Progress:
    """What a client was told meanwhile."""

    def __init__(self) -> None:
        self.numbers: list[float] = []
        self.messages: list[str | None] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        assert total is None, "nobody knows how many lines come"
        self.numbers.append(progress)
        self.messages.append(message)


def stdio(project: Path) -> StdioServerParameters:
    words = ["-P", "-m", "podwright.operations.cli", "mcp", "--project", str(project)]
    return StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ), cwd=project)


@pytest.mark.parametrize("mode", MODES)
def test_the_lines_of_a_command_are_progress_over_stdio(mode: str, project: Path) -> None:
    progress = Progress()

    async def run() -> None:
        async with Client(stdio(project), mode=mode) as client:
            arguments = {"environment": "prod", "generate": "1d"}
            result = await client.call_tool("simulate", arguments, progress_callback=progress)
            assert not result.is_error

    asyncio.run(run())
    assert (progress.numbers, progress.messages) == ([1], ["simulating"])


class Command:
    """Stands for a command that prints what it does, and waits to be told to continue after the first line."""

    def __init__(self) -> None:
        self.began, self.resume, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, *_: Any) -> Answer:
        under_way("looking at the account")
        assert self.resume.wait(CEILING_SECONDS)
        for step in range(STEPS):
            write_note(f"  step {step}")
        write_line("for people")
        self.ended.set()
        return Answer("podwright …", 0, {"ok": True, "checks": [], "findings": []})


def called(command: Command, project: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    monkeypatch.setattr(Session, "ask", command)

    async def run() -> None:
        async with Client(server_of(Session(project))) as client:
            await client.call_tool("preflight", {"environment": "prod"}, **options)

    asyncio.run(run())


def test_each_line_is_told_once_and_the_answer_is_none_of_them(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, progress = Command(), Progress()
    command.resume.set()
    called(command, project, monkeypatch, progress_callback=progress)
    assert progress.messages == ["looking at the account", *(f"step {step}" for step in range(STEPS))]
    assert progress.numbers == [1, 2, 3, 4]


def test_who_does_not_ask_is_told_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command()
    command.resume.set()
    called(command, project, monkeypatch)
    assert "step 2" in capsys.readouterr().err, "the log of the server has it all the same"


def test_a_call_that_is_cancelled_stops_nothing_that_has_begun(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the client takes no more lines: then telling it is what is cancelled."""
    command = Command()
    monkeypatch.setattr(Session, "ask", command)

    async def slow(*_: Any) -> None:
        command.began.set()
        await asyncio.sleep(0.2)

    async def run() -> None:
        async with Client(server_of(Session(project)), mode="legacy") as client:
            call = asyncio.create_task(client.call_tool("preflight", {"environment": "prod"}))
            await asyncio.to_thread(command.began.wait, CEILING_SECONDS)
            call.cancel()
            command.resume.set()

    monkeypatch.setattr(Context, "report_progress", slow)
    asyncio.run(run())
    assert command.ended.wait(CEILING_SECONDS)
