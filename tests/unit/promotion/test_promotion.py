"""Promotions with commands of their own: order, proof, approval, failures, and a kill at every point."""

import json
import os
import shlex
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.config.errors import CommandError
from podwright.config.loading.project import Project
from podwright.operations.cli import parser_of
from podwright.operations.promotion.content import Content
from podwright.operations.promotion.locks import only_promotion
from podwright.operations.promotion.record import Bucket, Entry, Folder, Record
from podwright.operations.promotion.run import Promotion, StepFailed, advice
from podwright.planning.delivery.pipeline_steps import EXECUTION_ROLES, Kind, Step, steps
from refusals import refusal
from waiting import until


def step(environment: str | None, kind: Kind, needs: tuple[str, ...], *commands: str, stage: str | None = None) -> Step:
    name = f"{environment or stage}.{kind}" if environment or stage else kind
    commands = commands or (f"echo {name} >> trace",) * (kind != "approval")
    return Step(name, kind, environment, commands, needs, EXECUTION_ROLES[kind], environment or stage)


STEPS = (
    step(None, "check", ()),
    step("dev", "effects", ("check",)),
    step("dev", "deploy", ("dev.effects",)),
    step(
        "dev",
        "gate",
        ("dev.deploy",),
        "echo dev.gate >> trace",
        "mkdir -p evidence/dev && echo {} > evidence/dev/g.json",
    ),
    step("prod", "effects", ("dev.gate",)),
    step(None, "approval", ("prod.effects",), stage="prod"),
    step("prod", "deploy", ("prod.approval",)),
    step("prod", "gate", ("prod.deploy",)),
)
NAMES = [item.name for item in STEPS if item.commands]
FIRST = Content("shared-1", {"dev": "dev-1", "prod": "prod-1"}, "a" * 40, ())
SECOND = Content("shared-2", {"dev": "dev-2", "prod": "prod-2"}, "b" * 40, ())


class PromotionRuns:
    """A project, and what its promotions did and said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.shown: list[str] = []
        self.record = Record(Folder(folder / ".podwright/promotion"))

    def promotion(self, content: Content = FIRST, **changes: Any) -> Promotion:
        values: dict[str, Any] = {
            "project": self.folder,
            "steps": STEPS,
            "chosen": frozenset(item.name for item in STEPS),
            "content": content,
            "read_content": lambda: content,
            "record": self.record,
            "tell": lambda event, **more: self.said.append((event, more)),
            "show": self.shown.append,
            "by": "me",
        }
        return Promotion(**values | changes)

    def run(self, content: Content = FIRST, approve: str | None = "them", **changes: Any) -> bool:
        with only_promotion(self.folder / ".podwright/promotion", self.wait) as lock:
            return self.promotion(content, **changes).run(lambda _: approve, lock)

    def wait(self) -> None:
        """Note that a promotion waits for a command, and let that end."""
        self.shown.append("waits")
        (self.folder / "go").touch()

    @property
    def trace(self) -> list[str]:
        file = self.folder / "trace"
        return file.read_text().splitlines() if file.exists() else []

    def events(self, *names: str) -> list[str]:
        return [more["step"] for event, more in self.said if event in names]


@pytest.fixture
def account(tmp_path: Path) -> PromotionRuns:
    return PromotionRuns(tmp_path)


def failing(name: str, line: str = "echo it is broken; exit 3") -> tuple[Step, ...]:
    return tuple(replace(item, commands=(line,)) if item.name == name else item for item in STEPS)


def test_steps_run_once_each_in_their_order_and_leave_a_record(account: PromotionRuns) -> None:
    assert account.run()
    assert account.trace == NAMES
    assert account.events("passed") == NAMES
    entry = account.record.of("dev.gate", "dev-1")
    assert entry is not None
    assert (entry.state, entry.commit, entry.by) == ("passed", "a" * 40, "me")
    assert entry.evidence[0].startswith(".podwright/logs/promote-dev.gate-")
    assert entry.evidence[1:] == ("evidence/dev/g.json",)
    assert account.record.of("prod.approval", FIRST.of(None)) is not None

    account.said.clear()
    assert account.run(approve=None)
    assert (account.trace, account.events("skipped")) == (NAMES, [item.name for item in STEPS])


@pytest.mark.parametrize("failed", NAMES)
def test_a_failed_step_stops_what_follows(account: PromotionRuns, failed: str) -> None:
    with pytest.raises(StepFailed) as caught:
        account.run(steps=failing(failed))
    before = NAMES[: NAMES.index(failed)]
    assert (account.trace, caught.value.last) == (before, ["$ echo it is broken; exit 3", "it is broken"])
    assert caught.value.entry.code == 3
    account.said.clear()
    assert account.run()
    assert account.trace == NAMES
    assert account.events("passed") == NAMES[len(before) :]


def test_a_failed_gate_says_what_to_do_and_where_to_go_back_to(account: PromotionRuns) -> None:
    account.run()
    broken = account.promotion(SECOND, steps=failing("dev.gate"))
    with pytest.raises(StepFailed) as caught:
        account.run(SECOND, steps=failing("dev.gate"))
    output = "\n".join(advice(broken, caught.value))
    assert "not touched: prod" in output
    assert "dev, prod" not in output
    assert "podwright doctor dev" in output
    assert "git switch --detach aaaaaaaaaaaa" in output
    assert "podwright promote --to dev" in output


def test_a_first_commit_that_fails_has_nothing_to_go_back_to(account: PromotionRuns) -> None:
    with pytest.raises(StepFailed) as caught:
        account.run(steps=failing("dev.deploy"))
    assert "an earlier commit" in advice(account.promotion(), caught.value)[-1]
    with pytest.raises(StepFailed) as caught:
        account.run(SECOND, steps=failing("dev.effects"))
    output = "\n".join(advice(account.promotion(SECOND), caught.value))
    assert "evidence/dev/effects.json" in output
    assert "git switch" not in output


def test_other_files_begin_anew_and_going_back_deploys_again(account: PromotionRuns) -> None:
    account.run()
    account.run(SECOND)
    assert account.trace == NAMES * 2
    account.run()
    # Project-wide checks of the first content still hold; its environments have had another since.
    assert account.trace == NAMES * 2 + NAMES[1:]


def test_an_edit_of_one_environment_leaves_the_proof_of_others(account: PromotionRuns) -> None:
    account.run()
    edited = replace(FIRST, environments={"dev": "dev-1", "prod": "prod-9"})
    account.run(edited)
    assert account.trace == [*NAMES, "check", "prod.effects", "prod.deploy", "prod.gate"]


DEV = frozenset({"check", "dev.effects", "dev.deploy", "dev.gate"})
PROD = frozenset({"check", "prod.effects", "prod.approval", "prod.deploy", "prod.gate"})


def test_a_stage_whose_forerunner_is_not_proved_is_refused(account: PromotionRuns) -> None:
    with pytest.raises(
        CommandError, match=r"prod\.effects needs dev\.gate, and dev\.gate has not passed for these files"
    ) as stop:
        account.run(chosen=PROD)
    assert "`podwright promote --from dev`" in stop.value.hint
    assert account.trace == []
    with pytest.raises(StepFailed):
        account.run(steps=failing("dev.gate"))
    with pytest.raises(CommandError, match=r"dev\.gate has failed"):
        account.run(chosen=PROD)
    account.run(chosen=DEV)
    with pytest.raises(CommandError, match=r"not passed for these files; what it last proved is commit aaaaaaaaaaaa"):
        account.run(SECOND, chosen=PROD)
    assert "prod.deploy" not in account.trace
    assert account.run(chosen=PROD)
    assert account.trace.count("prod.deploy") == 1


def test_a_stage_waits_for_its_approval(account: PromotionRuns) -> None:
    assert not account.run(approve=None)
    assert account.trace == NAMES[: NAMES.index("prod.deploy")]
    [(_, waiting)] = [item for item in account.said if item[0] == "waiting"]
    assert waiting["step"] == "prod.approval"
    assert any("promote-prod.effects" in file for file in waiting["evidence"])
    assert account.run(approve="them")
    assert account.trace == NAMES
    entry = account.record.of("prod.approval", FIRST.of(None))
    assert entry is not None
    assert entry.by == "them"
    account.said.clear()
    assert not account.run(SECOND, approve=None)


def test_files_that_change_meanwhile_stop_it(account: PromotionRuns) -> None:
    answers = iter([FIRST, FIRST, FIRST, SECOND])
    with pytest.raises(CommandError, match="changed during the promotion"):
        account.run(read_content=lambda: next(answers))
    assert account.trace == NAMES[:3]


def test_output_is_shown_and_profiles_reach_commands(account: PromotionRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    steps = failing("dev.deploy", 'echo "as ${AWS_PROFILE:-nobody}"')
    steps = tuple(replace(item, commands=steps[2].commands) if item.name == "prod.deploy" else item for item in steps)
    account.run(steps=steps, profiles={"dev": "acme-dev"})
    assert [line for line in account.shown if line.startswith("as ")] == ["as acme-dev", "as nobody"]


def test_the_sandbox_is_for_commands_about_an_environment(account: PromotionRuns) -> None:
    promotion = account.promotion(sandbox=True)
    own = replace(STEPS[2], commands=("podwright deploy dev --yes",))
    assert promotion._line(own, own.commands[0]) == "podwright deploy dev --yes --sandbox"
    assert promotion._line(STEPS[0], "podwright check") == "podwright check"
    assert promotion._line(own, "pytest tests") == "pytest tests"


@pytest.mark.parametrize("sandbox", [False, True])
def test_every_command_of_a_promotion_exists(account: PromotionRuns, sandbox: bool) -> None:
    promotion, project = account.promotion(sandbox=sandbox), Project.at(Path(__file__).parents[3])
    lines = [promotion._line(item, line) for item in steps(project.settings, project.names) for line in item.commands]
    own = [words for words in map(shlex.split, lines) if words[0] == "podwright"]
    assert len(own) > 10
    for _, *words in own:
        assert parser_of(words[0]).parse_args(words)


def test_a_damaged_record_is_named(account: PromotionRuns) -> None:
    account.record.store.write("check/x.json", '{"step": 1}')
    with pytest.raises(CommandError, match=r"cannot be read: check/x\.json"):
        account.record.of("check", "x")


def killed_after(account: PromotionRuns, point: int, **changes: Any) -> bool:
    """Promote in a process of its own, which dies at its `point`th change or message. False where it has fewer."""
    process = os.fork()
    if not process:
        left = point

        def die(*_: Any, **__: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        store, write = account.record.store, Folder.write

        class Dying:
            read, keys, remove = staticmethod(store.read), staticmethod(store.keys), staticmethod(store.remove)

            @staticmethod
            def write(key: str, text: str) -> None:
                die()
                write(store, key, text)  # pyrefly: ignore[bad-argument-type]
                die()

        code = 1
        try:
            account.record = Record(Dying())
            code = 0 if account.run(tell=die, **changes) else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_killed_at_every_point_it_ends_the_same_and_repeats_nothing_that_passed(tmp_path: Path) -> None:
    point, ends = 0, set[str]()
    while True:
        point += 1
        account = PromotionRuns(tmp_path / str(point))
        account.folder.mkdir()
        alive = not killed_after(account, point)
        passed = [name for name in NAMES if (entry := _entry(account, name)) and entry.state == "passed"]
        assert passed == NAMES[: len(passed)]
        assert account.run()
        # Only what was under way when it died may have run twice; what had passed has not.
        assert sorted(set(account.trace), key=NAMES.index) == NAMES
        assert len(account.trace) - len(NAMES) <= 1
        assert all(account.trace.count(name) == 1 for name in passed)
        ends.add(json.dumps({name: (e := _entry(account, name)) and (e.state, e.commit, e.content) for name in NAMES}))
        if alive:
            break
    assert point > 4 * len(NAMES)
    assert len(ends) == 1


def _entry(account: PromotionRuns, name: str) -> Entry | None:
    environment = name.rpartition(".")[0] or None
    return account.record.of(name, FIRST.of(environment))


SLOW = "echo begin | tee -a trace; until [ -e go ]; do sleep 0.05; done; echo end >> trace"
"""A command that ends once the file `go` exists."""


def test_a_command_that_outlives_its_promotion_is_waited_for(account: PromotionRuns) -> None:
    steps = failing("dev.deploy", SLOW)
    assert killed_after(
        account, 11, steps=steps
    )  # at the message that dev.deploy has begun: its command is not yet there
    process = os.fork()
    if not process:
        try:
            account.run(steps=steps)
        finally:
            os._exit(1)
    until(lambda: "begin" in account.trace, "the command has begun")
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    assert account.run(steps=steps)
    assert "waits" in account.shown
    assert [line for line in account.trace if line in ("begin", "end")] == ["begin", "end", "begin", "end"]


def test_two_promotions_at_a_time_are_refused(account: PromotionRuns) -> None:
    folder = account.folder / ".podwright/promotion"
    with (
        only_promotion(folder, lambda: None),
        pytest.raises(CommandError, match="another `podwright promote` is at work"),
    ):
        account.run()
    assert account.run()


def test_an_interrupt_waits_for_the_command(account: PromotionRuns) -> None:
    steps = failing("dev.deploy", "trap '' INT; " + SLOW)

    def interrupt(line: str) -> None:
        """Interrupt the promotion while it waits for the command, which ends a moment later."""
        if line == "begin":
            threading.Timer(0.2, (account.folder / "go").touch).start()
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        account.run(steps=steps, show=interrupt)
    assert account.trace[-1] == "end"
    assert account.run(steps=steps)


class Client:
    """S3 as far as a record needs it."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        if Key not in self.objects:
            raise refusal("NoSuchKey")
        body = type("Body", (), {"read": lambda _: self.objects[Key]})()
        return {"Body": body}

    def put_object(self, Bucket: str, Key: str, Body: bytes, ContentType: str) -> None:
        self.objects[Key] = Body

    def delete_object(self, Bucket: str, Key: str) -> None:
        self.objects.pop(Key, None)

    def get_paginator(self, name: str) -> Any:
        pages: Callable[..., Any] = lambda _, Bucket, Prefix: [  # noqa: E731
            {"Contents": [{"Key": key}]} for key in sorted(self.objects) if key.startswith(Prefix)
        ]
        return type("Pages", (), {"paginate": pages})()


@pytest.mark.parametrize("prefix", ["", "acme/clusters/"])
def test_a_record_in_s3_is_that_of_a_folder(account: PromotionRuns, prefix: str, tmp_path: Path) -> None:
    client = Client()
    record = Record(Bucket(SimpleNamespace(client=lambda _: client), "evidence", prefix))
    assert account.run(record=record, chosen=DEV)
    assert f"{prefix}dev.gate/dev-1.json" in client.objects
    assert len(list(record.all("dev.deploy"))) == 1
    elsewhere = PromotionRuns(tmp_path / "elsewhere")
    elsewhere.folder.mkdir()
    assert elsewhere.run(record=record, chosen=PROD)
    assert elsewhere.trace == ["prod.effects", "prod.deploy", "prod.gate"]
    record.store.remove("dev.gate/dev-1.json")
    assert record.of("dev.gate", "dev-1") is None
