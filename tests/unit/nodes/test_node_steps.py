"""How the steps of a node run, whatever they do."""

import itertools
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.lifecycle_scripts.podwright_node.runner import commands, deadline, lock, steps
from podwright.lifecycle_scripts.podwright_node.runner.applies import Only
from podwright.lifecycle_scripts.podwright_node.runner.failure import Failure
from podwright.lifecycle_scripts.podwright_node.runner.lock import held
from podwright.lifecycle_scripts.podwright_node.runner.log import Log
from podwright.lifecycle_scripts.podwright_node.runner.node import Node
from podwright.lifecycle_scripts.podwright_node.runner.retry import pauses, retry
from podwright.lifecycle_scripts.podwright_node.runner.steps import Step, run
from waiting import CEILING_SECONDS, VirtualClock, late_once


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Log(tmp_path / "log.jsonl") as log:
        yield Node(tmp_path, {"cluster": {"name": "test", "lifecycle": "strict"}}, "workers", "ml.m5.4xlarge", log)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    """The clock of the deadlines. The runner itself keeps the real one, on which no test comes near a limit."""
    clock = VirtualClock()
    monkeypatch.setattr(deadline, "time", clock)
    return clock


def events(node: Node) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (node.root / "log.jsonl").read_text().splitlines()]


def outcomes(node: Node) -> dict[str, str]:
    (summary,) = [event for event in events(node) if event["event"] == "summary"]
    return {name: step["outcome"] for name, step in summary["steps"].items()}


def step(
    name: str,
    done: list[str],
    *needs: str,
    applies: bool = True,
    fails: Exception | None = None,
    already: bool = False,
    meanwhile: Callable[[], Any] = lambda: None,
) -> Step:
    def apply(node: Node) -> None:
        meanwhile()
        if fails:
            raise fails
        done.append(name)

    return Step(name, lambda node: applies, lambda node: already or name in done, apply, needs)


def test_each_step_comes_after_those_that_it_needs(node: Node) -> None:
    done: list[str] = []
    steps = [step("c", done, "a", "b"), step("b", done, "a"), step("a", done), step("d", done, "c")]
    assert run(steps, node)
    assert done == ["a", "b", "c", "d"]
    assert outcomes(node) == dict.fromkeys("cbad", "changed")


def test_steps_that_need_nothing_of_each_other_run_at_the_same_time(node: Node) -> None:
    meeting = threading.Barrier(3, timeout=CEILING_SECONDS)
    done: list[str] = []
    assert run([step(name, done, meanwhile=meeting.wait) for name in "abc"], node)


def test_a_step_waits_for_its_own_needs_alone(node: Node) -> None:
    """Step a ends after c, which needs b, so c starts while a still runs."""
    done, c_has_run = list[str](), threading.Event()
    waits = step("a", done, meanwhile=lambda: c_has_run.wait(CEILING_SECONDS))
    assert run([waits, step("b", done), step("c", done, "b", meanwhile=c_has_run.set)], node)
    assert done == ["b", "c", "a"]


def test_does_nothing_where_all_is_so_already(node: Node) -> None:
    done: list[str] = []
    assert run([step("a", done, already=True), step("b", done, "a", applies=False), step("c", done, "b")], node)
    assert done == ["c"]
    assert outcomes(node) == {"a": "unchanged", "b": "not-needed", "c": "changed"}


def test_a_failure_holds_what_needs_it_and_nothing_else(node: Node) -> None:
    done: list[str] = []
    failure = Failure("no disk is mounted", "give the group a volume")
    steps = [step("a", done, fails=failure), step("b", done, "a"), step("c", done, "b"), step("d", done)]
    assert not run(steps, node)
    assert outcomes(node) == {"a": "failed", "b": "held", "c": "held", "d": "changed"}
    assert [event["error"] for event in events(node) if event["event"] == "error"] == [
        "no disk is mounted; give the group a volume"
    ]


def test_an_unforeseen_error_is_a_failure_with_its_kind(node: Node) -> None:
    assert not run([step("a", [], fails=KeyError("zone"))], node)
    assert [event["error"] for event in events(node) if event["event"] == "error"] == ["KeyError: 'zone'"]


def test_a_step_that_does_not_do_what_it_says_fails(node: Node) -> None:
    assert not run([Step("a", lambda node: True, lambda node: False, lambda node: None)], node)
    assert outcomes(node) == {"a": "failed"}


def test_a_need_that_nobody_meets_is_refused(node: Node) -> None:
    with pytest.raises(KeyError, match="missing"):
        run([step("a", [], "missing")], node)


def test_a_command_that_the_image_lacks_is_named(node: Node) -> None:
    with pytest.raises(Failure, match="no-such-command is not on this image; use a HyperPod image"):
        node.run("no-such-command")


def test_a_command_that_fails_is_quoted_with_what_it_said(node: Node) -> None:
    with pytest.raises(Failure, match="`sh -c echo oh >&2; exit 3` ended with 3: oh"):
        node.run("sh", "-c", "echo oh >&2; exit 3")


def test_a_file_is_put_in_place_whole(node: Node) -> None:
    node.write("/etc/a/b", "1\n")
    node.write("/etc/a/b", "2\n")
    assert node.path("/etc/a/b").read_text() == "2\n"
    assert [path.name for path in node.path("/etc/a").iterdir()] == ["b"]


def test_a_step_that_takes_too_long_fails_and_its_command_is_gone(node: Node, tmp_path: Path) -> None:
    def apply(node: Node) -> None:
        node.run("sh", "-c", f"echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; sleep 3600")

    with late_once((tmp_path / "pid").exists) as limits:
        assert not run([Step("a", lambda node: True, lambda node: False, apply, seconds=100)], node)
    assert limits[0] <= 100, "the command has no more time than its step"
    (error,) = [event["error"] for event in events(node) if event["event"] == "error"]
    assert "did not end in" in error
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_a_step_out_of_time_changes_nothing_more(node: Node, clock: VirtualClock) -> None:
    def apply(node: Node) -> None:
        clock.sleep(301)
        node.write("/etc/a", "too late")

    assert not run([Step("a", lambda node: True, lambda node: False, apply, seconds=300)], node)
    assert "was not through in 300 s" in events(node)[-1]["error"]
    assert not node.path("/etc/a").exists()


def test_a_step_that_hangs_in_the_kernel_holds_no_other_step(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "GRACE_SECONDS", 0.1)
    forever, done = threading.Event(), list[str]()
    hangs = step("a", done, meanwhile=lambda: forever.wait(CEILING_SECONDS))
    assert not run([replace(hangs, seconds=0.1), step("b", done, "a"), step("c", done)], node)
    assert outcomes(node) == {"a": "failed", "b": "held", "c": "changed"}
    assert "hangs where no signal reaches it" in events(node)[-1]["error"]
    forever.set()


def test_a_step_is_tried_as_often_as_it_says(node: Node, clock: VirtualClock) -> None:
    tried: list[int] = []

    def apply(node: Node) -> None:
        tried.append(len(tried))
        if len(tried) < 3:
            raise Failure("not yet", "try again")

    flaky = Step("a", lambda node: True, lambda node: len(tried) == 3, apply, attempts=3)
    assert run([flaky], node)
    assert [event["error"] for event in events(node) if event["event"] == "again"] == ["not yet; try again"] * 2
    tried.clear()
    assert not run([replace(flaky, attempts=2)], node)


def test_pauses_grow_to_a_limit_and_differ() -> None:
    first = list(itertools.islice(pauses(1, 8), 8))
    for value, top in zip(first, (1, 2, 4, 8, 8, 8, 8, 8), strict=True):
        assert top / 2 <= value <= top
    assert first != list(itertools.islice(pauses(1, 8), 8))


def test_retrying_ends_with_the_last_failure(node: Node, clock: VirtualClock) -> None:
    observed = itertools.count(1)

    def observe() -> None:
        raise Failure(f"look {next(observed)}", "look again")

    with pytest.raises(Failure, match="look again") as last:
        retry(node, observe, seconds=10, what="looking")
    reads = next(observed) - 1
    assert reads > 2
    assert str(last.value) == f"look {reads}; look again"
    assert clock.now == 10


@pytest.mark.parametrize("second", [["sleep", "3600"], ["true"]], ids=["a command is cut short", "no other begins"])
def test_an_attempt_out_of_time_hides_nothing(
    node: Node, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, second: list[str]
) -> None:
    monkeypatch.setattr(deadline, "pause", lambda seconds: clock.sleep(10 if second == ["true"] else 9.9))
    reads = itertools.count()

    def observe() -> None:
        if next(reads) == 0:
            raise Failure("7 of 8 GPUs", "look again")
        node.run(*second)

    with pytest.raises(Failure, match="7 of 8 GPUs"):
        retry(node, observe, seconds=10, what="looking")


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (Only(), True),
        (Only(orchestrator="slurm"), True),
        (Only(orchestrator="eks"), False),
        (Only(roles=("controller", "login")), True),
        (Only(roles=("compute",)), False),
        (Only(families=("p5", "p5en")), True),
        (Only(families=("p4d",)), False),
        (Only(systems=("ubuntu",)), True),
        (Only(systems=("ubuntu24.04", "amzn")), False),
        (Only(accelerator="nvidia"), True),
        (Only(accelerator="neuron"), False),
        (Only(also=lambda node: node.group == "workers"), True),
        (Only(orchestrator="slurm", also=lambda node: False), False),
    ],
)
def test_where_a_step_applies(tmp_path: Path, condition: Only, holds: bool) -> None:
    facts = {
        "cluster": {"orchestrator": "slurm"},
        "slurm": {"controller_group": "head", "login_groups": ["workers"]},
        "instance_types": {"ml.p5en.48xlarge": {"accelerator_vendor": "nvidia"}},
    }
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="22.04"\n')
    with Log(tmp_path / "log.jsonl") as log:
        assert condition(Node(tmp_path, facts, "workers", "ml.p5en.48xlarge", log)) is holds


def test_one_run_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "run/podwright.lock"
    with held(file), pytest.raises(Failure, match="another run, or a command that it left behind"), held(file, 0.1):
        pytest.fail("two runs at once")


def test_a_run_waits_for_the_commands_of_a_killed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run/podwright.lock"
    with held(file):
        left = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=commands.INHERITED)
    pauses = list[float]()

    def pause(seconds: float) -> None:
        """Let the command end while the lock is waited for."""
        pauses.append(seconds)
        left.communicate()

    monkeypatch.setattr(lock, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=pause))
    with held(file):
        assert left.returncode == 0
    assert len(pauses) == 1


def test_reads_a_node_as_slurm_and_eks_know_it(node: Node) -> None:
    eks = replace(node, facts={"cluster": {"orchestrator": "eks"}, "groups": {"workers": {"zones": ["usw2-az2"]}}})
    assert (eks.role, eks.family, eks.zone) == ("worker", "m5", "usw2-az2")
    unknown = replace(eks, group=None, instance_type=None)
    assert (unknown.family, unknown.zone, unknown.type_facts, unknown.group_facts) == ("", None, {}, {})


@pytest.mark.parametrize(("text", "says"), [(None, "No such file"), ("{", "Expecting"), ("7", "holds a int")])
def test_provisioning_parameters_that_cannot_be_read(node: Node, text: str | None, says: str) -> None:
    if text is not None:
        node.write("/opt/ml/config/provisioning_parameters.json", text)
    with pytest.raises(Failure, match=f"{says}.*publish provisioning_parameters.json"):
        node.provisioning_parameters()
