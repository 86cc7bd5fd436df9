"""docs/scenarios/elastic-eight.md, played: its commands, and its tables as the API server has them."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit_log import JOBS, KUBERNETES, KUEUE, SCHEDULER, STAND_IN, bodies, writers
from needs import needs
from podwright.operations.aws import sandbox_server as server
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.pins import pins
from story import Different, Step, Terminal, story

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = all(Cache.of_user().state(part) is State.INSTALLED for part in pins().parts)
pytestmark = needs(INSTALLED, "the control plane: `podwright sandbox kubernetes install`")

READING, *STEPS = story(ROOT / "docs/scenarios/elastic-eight.md")
DEPLOYMENT = Step([command for command in READING.commands if " size " not in command])
JOB_KINDS = "hyperpodpytorchjobs,jobs.batch"
# Whoever else writes one of these has taken a decision from the engine.
DECIDES = {
    "pods": {*KUBERNETES, STAND_IN},
    "pods/binding": {SCHEDULER},
    "jobs/status": {JOBS, KUEUE},
    "hyperpodpytorchjobs/status": {STAND_IN},
    "workloads": {*KUBERNETES, KUEUE, STAND_IN},
    "workloads/status": {KUEUE, STAND_IN},
}


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A folder with the scenario's file, and a sandbox of its own in which it is deployed."""
    folder = tmp_path_factory.mktemp("elastic-eight")
    (folder / "environments").mkdir()
    shutil.copy(ROOT / "environments/elastic-eight.yaml", folder / "environments")
    server.start(folder, port=0, time_scale=0.1, kubernetes="real")
    try:
        user = Terminal(folder)
        user.play([DEPLOYMENT])
        yield user
    finally:
        server.stop(folder)


@pytest.fixture(scope="module")
def plane(terminal: Terminal) -> Path:
    """The folder of the cluster's control plane."""
    (folder,) = (terminal.folder / server.STATE_DIRECTORY / "kubernetes").glob("*/*/*")
    return folder


@pytest.fixture(scope="module")
def played(terminal: Terminal) -> list[Step]:
    terminal.play(STEPS)
    return STEPS


@pytest.fixture
def no_jobs(terminal: Terminal) -> None:
    terminal.type(f"kubectl delete {JOB_KINDS} --selector kueue.x-k8s.io/queue-name --all-namespaces")


@pytest.fixture
def kueue_stopped(plane: Path, no_jobs: None) -> Iterator[None]:
    """Kueue's process of this cluster stands still."""
    processes = json.loads((plane / "processes/processes.json").read_text(encoding="utf-8"))
    (pid,) = (process["pid"] for process in processes if process["name"] == "kueue")
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGCONT)


def test_the_page_tells_what_happens(played: list[Step]) -> None:
    # It was compared while it was played; a page that lost its tables would pass, too.
    assert [len(step.tables) for step in played] == [2, 2, 1, 2, 1]


def test_the_engines_alone_decide(played: list[Step], plane: Path) -> None:
    decided = writers(plane / "audit.log")
    assert decided.keys() == DECIDES.keys()
    assert [users - DECIDES[resource] for resource, users in decided.items()] == [set()] * len(DECIDES)


def test_the_stand_in_says_nothing_but_what_a_framework_has_to(played: list[Step], plane: Path) -> None:
    """Whether pods are ready, the end, and that it gives back what Kueue has taken away."""
    statuses = [body["status"] for body in bodies(plane / "audit.log", STAND_IN, "workloads")]
    returned = [status for status in statuses if "admission" in status]
    own = [entry["type"] for status in statuses if "admission" not in status for entry in status["conditions"]]
    assert set(own) == {"PodsReady"}
    # Three steps, each once.
    assert [status["admission"] for status in returned] == [None] * 3
    held = [{entry["type"]: entry["status"] for entry in status["conditions"]} for status in returned]
    assert [(item["QuotaReserved"], item["Admitted"], item["Evicted"]) for item in held] == [
        ("False", "False", "True")
    ] * 3


@pytest.mark.usefixtures("kueue_stopped")
def test_nothing_happens_without_kueue(terminal: Terminal) -> None:
    with pytest.raises(Different, match="llama-70b"):
        terminal.play(STEPS, seconds=30)


# The last one: the cluster keeps this quota.
@pytest.mark.usefixtures("no_jobs")
def test_one_node_less_of_quota_is_another_story(terminal: Terminal) -> None:
    file = terminal.folder / "environments/elastic-eight.yaml"
    text = file.read_text(encoding="utf-8")
    assert text.count("serving: {quota: {h100: 6}") == 1
    file.write_text(text.replace("serving: {quota: {h100: 6}", "serving: {quota: {h100: 5}"), encoding="utf-8")
    with pytest.raises(Different) as difference:
        terminal.play([DEPLOYMENT, *STEPS], seconds=30)
    actual, _, _ = str(difference.value).partition("expected:")
    # Seven nodes are no size, and the training has six.
    assert "after `podwright submit elastic-eight llama-70b --sandbox`" in actual
    assert "Job: llama-70b | State: Running | Pods running: 6 | Nodes: 6" in actual
