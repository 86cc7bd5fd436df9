"""docs/scenarios/two-teams.md, played: its commands, and its tables as the API server has them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit_log import KUBERNETES, KUEUE, SCHEDULER, TRAINING_OPERATOR, writers
from needs import needs
from story import INSTALLED, ROOT, Different, Step, Terminal, deployed, standing_still, story

pytestmark = needs(INSTALLED, "the control plane: `podwright sandbox kubernetes install`")

DEPLOYMENT, *STEPS = story(ROOT / "docs/scenarios/two-teams.md")
# Whoever else writes one of these has taken a decision from the engine.
DECIDES = {
    "pods": {*KUBERNETES, TRAINING_OPERATOR},
    "pods/binding": {SCHEDULER},
    "pytorchjobs/status": {TRAINING_OPERATOR},
    "workloads": {*KUBERNETES, KUEUE},
    "workloads/status": {KUEUE},
}


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A folder with the scenario's file, and a sandbox of its own in which it is deployed."""
    with deployed("two-teams", tmp_path_factory.mktemp("two-teams"), time_scale=0.1) as user:
        yield user


@pytest.fixture(scope="module")
def plane(terminal: Terminal) -> Path:
    return terminal.plane


@pytest.fixture(scope="module")
def played(terminal: Terminal) -> list[Step]:
    terminal.play(STEPS)
    return STEPS


@pytest.fixture
def no_jobs(terminal: Terminal) -> None:
    terminal.type("kubectl delete pytorchjobs --all --all-namespaces")


@pytest.fixture
def kueue_stopped(plane: Path, no_jobs: None) -> Iterator[None]:
    """Kueue's process of this cluster stands still."""
    with standing_still(plane, "kueue"):
        yield


def test_the_page_tells_what_happens(played: list[Step]) -> None:
    # It was compared while it was played; a page that lost its tables would pass, too.
    assert [len(step.tables) for step in played] == [2, 2, 2, 1, 2]


def test_the_engines_alone_decide(played: list[Step], plane: Path, terminal: Terminal) -> None:
    decided = writers(plane / "audit.log")
    assert decided.keys() == DECIDES.keys()
    assert [users - DECIDES[resource] for resource, users in decided.items()] == [set()] * len(DECIDES)
    # The log shows the administrator, through whom the sandbox writes what it writes.
    workload = json.loads(terminal.type("kubectl get workloads --all-namespaces --output json"))["items"][0]["metadata"]
    target = f"--namespace {workload['namespace']} {workload['name']} --subresource status --type merge"
    terminal.type(f'kubectl patch workload {target} --patch \'{{"status": {{"requeueState": {{"count": 1}}}}}}\'')
    assert writers(plane / "audit.log")["workloads/status"] > DECIDES["workloads/status"]


@pytest.mark.usefixtures("kueue_stopped")
def test_nothing_happens_without_kueue(terminal: Terminal) -> None:
    with pytest.raises(Different, match="kueue"):
        terminal.play(STEPS, seconds=30)


# The last one: the cluster keeps this quota.
@pytest.mark.usefixtures("no_jobs")
def test_one_node_more_of_quota_is_another_story(terminal: Terminal) -> None:
    file = terminal.folder / "environments/two-teams.yaml"
    text = file.read_text(encoding="utf-8")
    assert text.count("team-b: {quota: {training: 1}") == 1
    file.write_text(text.replace("team-b: {quota: {training: 1}", "team-b: {quota: {training: 2}"), encoding="utf-8")
    terminal.play([DEPLOYMENT, STEPS[0]])
    with pytest.raises(Different) as difference:
        terminal.play(STEPS[1:], seconds=20)
    actual, _, _ = str(difference.value).partition("expected:")
    # There are two nodes whatever the quotas say, so team A makes room again; but team B borrows none of them.
    assert "after `podwright submit two-teams experiment-b --sandbox`" in actual
    assert "Team: team-b | vCPU: 88 | vCPU borrowed: 0 | GPUs: 8 | GPUs borrowed: 0" in actual
