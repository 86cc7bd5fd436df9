"""docs/scenarios/eight-and-eight.md, played: a node of a training breaks, is replaced, and the training resumes."""

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

from audit_log import KUEUE, STAND_IN, check_deciders
from podwright.operations.nodes.timeline import MARKS
from story import Terminal, page, story

# So slow that steps lie apart, and a drill on a busy machine sees each.
SCENARIO, TIME_SCALE = "eight-and-eight", 3.0
_, TRAINING, DRILL, HISTORY = story(SCENARIO)
PODS = "kubectl get pods --all-namespaces --selector app.kubernetes.io/name=pretrain --output json"


@dataclass(frozen=True)
class Play:
    """The job's pods before the drill and after it, what the drill kept, and what its history printed."""

    before: dict[str, str]
    after: dict[str, str]
    drill: dict[str, Any]
    history: str


@pytest.fixture(scope="module")
def played(terminal: Terminal) -> Play:
    terminal.play([TRAINING])
    before = nodes_of_pods(terminal)
    terminal.play([DRILL])
    (file,) = (terminal.folder / ".podwright/drills").iterdir()
    history = terminal.type(HISTORY.commands[0])
    return Play(before, nodes_of_pods(terminal), json.loads(file.read_text(encoding="utf-8")), history)


def nodes_of_pods(terminal: Terminal) -> dict[str, str]:
    """The node of each of the job's pods, by the pod's uid."""
    pods = json.loads(terminal.type(PODS))["items"]
    return {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods}


def test_the_page_tells_what_happens(played: Play) -> None:
    # It was compared while it was played; a page that lost its tables would pass, too.
    assert [len(step.tables) for step in (TRAINING, DRILL)] == [2, 1]


def test_the_drill_reports_each_step(played: Play) -> None:
    marks = played.drill["marks"]
    assert list(marks) == sorted(marks, key=lambda name: marks[name])
    assert marks.keys() >= {"labelled", "left", "away", "back", "resumed"}
    assert (played.drill["action"], played.drill["ok"], played.drill["simulated"]) == ("replace", True, True)
    assert f"xid-replace  {played.drill['node']}" in played.history


def test_the_page_lists_the_steps_in_the_order_of_the_drill(played: Play) -> None:
    listed = re.findall(r"^\d\. `(.*?)`", page(SCENARIO), re.MULTILINE)
    names = {words: name for name, words in MARKS.items()}
    times = [played.drill["marks"][names[words]] for words in listed]
    assert len(times) == 5
    assert times == sorted(times)


def test_the_node_is_replaced_and_its_pod_is_another_one(played: Play, terminal: Terminal) -> None:
    broken = f"hyperpod-{played.drill['node']}"
    assert list(played.before.values()).count(broken) == 1
    assert broken not in played.after.values()
    assert len(played.after.keys() - played.before.keys()) == 1
    nodes = {item["metadata"]["name"] for item in json.loads(terminal.type("kubectl get nodes --output json"))["items"]}
    assert broken not in nodes
    assert f"hyperpod-{played.drill['replacement']}" in nodes
    assert len(nodes) == 18


@pytest.mark.usefixtures("played")
def test_the_engines_alone_decide(terminal: Terminal) -> None:
    """Also while a node is broken, replaced and its pod made again."""
    check_deciders(terminal.plane / "audit.log", {KUEUE, STAND_IN})
