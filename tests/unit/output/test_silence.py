"""Before each call that may take long a command says what it does, in a log as well as on a terminal.

The calls are played: each takes a minute of a clock that nothing else moves. What was said last then says when.
"""

import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.config.errors import CommandError
from podwright.operations import cli
from podwright.operations.aws.account import Account
from podwright.operations.aws.unseen import Unseen
from podwright.operations.doctor.bundle import SOURCES
from podwright.operations.doctor.collection import Collection
from podwright.operations.output.moving import Waiting, settle, under_way
from podwright.operations.programs.process import followed
from screens import Screen, screen

ROOT = Path(__file__).parents[3]
ACCOUNT = "arguments.account_of"
MINUTE = 60.0
SLOW = {
    "status prod": (ACCOUNT, "live.command.report"),
    "import mine": ("adoption.command.opened_shell", "adoption.command.read"),
    "doctor prod": (ACCOUNT, "doctor.command.collect"),
    "collect prod": (ACCOUNT, "doctor.collect_command.collect"),
    "dashboards preview prod": ("dashboards.sources.made_up",),
    "dashboards preview prod --live": (ACCOUNT, "dashboards.sources.workspace"),
    "drift prod": (ACCOUNT, "drift.command.compare"),
    "preflight prod": (ACCOUNT, "preflight.command.preflight"),
    "spend prod": (ACCOUNT, "spend.command.report"),
    "diff prod --assembly none": (ACCOUNT, "effects.command.change_set"),
    "destroy prod --dry-run": (ACCOUNT, "teardown.command.wait_for_earlier_run"),
    "jobs two-teams": (ACCOUNT, "jobs.reach.kubectl_of"),
    "why two-teams none": (ACCOUNT, "jobs.reach.kubectl_of"),
    "stop two-teams none": (ACCOUNT, "jobs.reach.kubectl_of"),
    "logs two-teams none": (ACCOUNT, "jobs.reach.kubectl_of"),
    "capacity show prod": (ACCOUNT, "capacity.command.account_plans"),
    "capacity search prod --type ml.p5.48xlarge --count 2 --duration 7d": (ACCOUNT, "capacity.command.ask"),
    "bench show --environment prod": (ACCOUNT, "benchmarks.command.published"),
    "upgrade prod": (ACCOUNT, "upgrade.plan.existing_cluster"),
    "gate prod": (ACCOUNT, "gates.command.Keeper"),
    "canary prod": (ACCOUNT, "canary.command.cluster"),
    "node reboot prod i-0123456789abcdef0": (ACCOUNT, "nodes.command.cluster_nodes"),
    "report prod": ("cdk.synthesis.synthesize",),
    "simulate prod --generate 3d": ("simulation.command.simulation",),
    "images list two-teams --sandbox": ("artifacts.images.images",),
    "image check none": ("artifacts.image_check._opened",),
    "kernels build": ("artifacts.kernels.build",),
    "chart fetch": ("artifacts.charts.fetch",),
    "submit two-teams train-a": (ACCOUNT, "jobs.reach.kubectl_of"),
    "run two-teams --group training --team team-a -- hostname": (ACCOUNT, "jobs.reach.kubectl_of"),
    "forecast two-teams train-a": (ACCOUNT, "simulation.cluster_state.required_way"),
    "prices fetch prod": (ACCOUNT, "aws.account.Account.client"),
    "connect prod": (ACCOUNT, "kubernetes.connect.eks_cluster"),
    "workers shared-platform-wanted": (ACCOUNT, "workers.command.eks_cluster"),
    "shell i-0123456789abcdef0": ("commands.shell.account_of", "commands.shell.nodes"),
    "drill fault sandbox --node i-0123456789abcdef0 --fault xid-replace": (ACCOUNT, "drills.command.nodes"),
}


class Heard:
    """Takes the time of what is said, and plays calls that take a minute."""

    def __init__(self, stream: io.StringIO) -> None:
        self.stream = stream
        self.now = self.spoken = 0.0
        self.silences: list[float] = []
        self.length = 0

    def call(self, answer: Any) -> Callable[..., Any]:
        """A call that takes a minute, at whose begin something new has to stand there."""

        def slow(*_: Any, **__: Any) -> Any:
            if len(self.stream.getvalue()) > self.length:
                self.spoken = self.now
            self.silences.append(self.now - self.spoken)
            self.now += MINUTE
            self.length = len(self.stream.getvalue())
            if isinstance(answer, Exception):
                raise answer
            return answer

        return slow


@pytest.mark.parametrize("kind", [io.StringIO, Screen])
@pytest.mark.parametrize("command", SLOW)
def test_something_is_said_before_each_slow_call(
    command: str, kind: type[io.StringIO], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Otherwise an earlier run's assembly would make the synthesis unnecessary.
    monkeypatch.setattr("podwright.operations.cdk.store.FOLDER", tmp_path)
    heard = Heard(kind())
    monkeypatch.setattr(sys, "stderr", heard.stream)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    for target in SLOW[command]:
        known = target.endswith(("account_of", "opened_shell"))
        answer: Any = Account("111122223333", "us-west-2", None, {}) if known else CommandError("enough")
        monkeypatch.setattr(f"podwright.operations.{target}", heard.call(answer))
    cli.main([*command.split(), "--project", str(ROOT)])
    assert heard.silences == [0.0] * len(SLOW[command])


def test_a_bundle_names_each_source_before_it_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    collection = Collection(None, None)  # type: ignore[arg-type]
    for source in SOURCES:

        def read(name: str = source.replace("_", " ")) -> None:
            assert capsys.readouterr().err == f"reading {name} …\n"
            raise Unseen("nobody", "lets us")

        collection.take(source, read)
    assert set(collection.unseen) == set(SOURCES)


def test_on_a_terminal_it_goes_when_something_is_printed() -> None:
    with screen(80) as terminal:
        under_way("reading prod")
        assert "reading prod …" in terminal.seen()[0]
        print_after(terminal)
    assert terminal.seen() == ["done"]


def test_a_terminal_that_cannot_redraw_gets_lines() -> None:
    with screen(80, TERM="dumb") as terminal:
        under_way("reading prod")
    assert terminal.getvalue() == "reading prod …\n"


def print_after(terminal: Screen) -> None:
    settle()
    terminal.write("done\n")


def test_what_takes_long_is_said_again_less_and_less_often(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    waiting = Waiting("waiting for i-1", lambda: now)
    assert capsys.readouterr().err == "", "what begins was said"
    for second in range(1, 121):
        now = float(second)
        waiting.tick()
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == [f"waiting for i-1, 0:{second:02} …" for second in (5, 10, 15)]
    assert 8 < len(lines) < 20


def test_a_program_that_works_is_said_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends once it was said to be at work."""
    original = Waiting.tick

    def tick(waiting: Waiting) -> None:
        original(waiting)
        (tmp_path / "heard").touch()

    monkeypatch.setattr(Waiting, "tick", tick)
    monkeypatch.setattr("podwright.operations.output.moving._SILENCE_SECONDS", (0.0, 0.0))
    done = followed(["sh", "-c", "until [ -e heard ]; do sleep 0.05; done; echo made"], "evaluating", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "made\n", "")
    assert re.search(r"^evaluating, \d+:\d\d …$", capsys.readouterr().err, re.MULTILINE)


def test_a_program_that_is_interrupted_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[str]] = []

    class Noted(subprocess.Popen[str]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    def interrupted(_: Waiting) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(Waiting, "tick", interrupted)
    with pytest.raises(KeyboardInterrupt):
        followed([sys.executable, "-c", "import time; time.sleep(600)"], "evaluating")
    assert started[0].returncode is not None
