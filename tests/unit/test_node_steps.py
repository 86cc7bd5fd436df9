"""How the steps of a node run, whatever they do."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.lifecycle_scripts.podwright_node.failure import Failure
from podwright.lifecycle_scripts.podwright_node.log import Log
from podwright.lifecycle_scripts.podwright_node.node import Node
from podwright.lifecycle_scripts.podwright_node.steps import Step, run


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Log(tmp_path / "log.jsonl") as log:
        yield Node(tmp_path, {}, "workers", "ml.m5.4xlarge", log)


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
    meeting = threading.Barrier(3, timeout=5)
    done: list[str] = []
    assert run([step(name, done, meanwhile=meeting.wait) for name in "abc"], node)


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
