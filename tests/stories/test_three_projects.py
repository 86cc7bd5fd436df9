"""docs/scenarios/three-projects.md, played: its commands, and its tables as the API server has them."""

from collections.abc import Iterator

import pytest

from audit_log import (
    BINDER,
    KAI_SCHEDULER,
    KUBERNETES,
    PODGROUP_CONTROLLER,
    PODGROUPER,
    SCHEDULER,
    TRAINING_OPERATOR,
    writers,
)
from needs import needs
from story import INSTALLED, ROOT, Different, Step, Terminal, deployed, standing_still, story

pytestmark = needs(INSTALLED, "the control plane: `podwright sandbox kubernetes install`")

DEPLOYMENT, *STEPS = story(ROOT / "docs/scenarios/three-projects.md")
# Whoever else writes one of these has taken a decision from KAI. Its binder makes the pods that keep shared GPUs.
DECIDES = {
    "pods": {*KUBERNETES, TRAINING_OPERATOR, BINDER},
    "pods/binding": {SCHEDULER, BINDER},
    "podgroups": {*KUBERNETES, PODGROUPER, KAI_SCHEDULER},
    "podgroups/status": {PODGROUP_CONTROLLER, KAI_SCHEDULER},
    "bindrequests": {*KUBERNETES, KAI_SCHEDULER, BINDER},
    "bindrequests/status": {BINDER},
    "pytorchjobs/status": {TRAINING_OPERATOR},
    "jobs/status": KUBERNETES,
}


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A folder with the scenario's file, and a sandbox of its own in which it is deployed."""
    # A node takes long enough to come that the job is seen without it, on a busy machine, too.
    with deployed("three-projects", tmp_path_factory.mktemp("three-projects"), time_scale=3) as user:
        yield user


@pytest.fixture(scope="module")
def played(terminal: Terminal) -> list[Step]:
    terminal.play(STEPS)
    return STEPS


@pytest.fixture
def no_jobs(terminal: Terminal) -> None:
    terminal.type("kubectl delete pytorchjobs,jobs --all --all-namespaces")


@pytest.fixture
def kai_stopped(terminal: Terminal, no_jobs: None) -> Iterator[None]:
    with standing_still(terminal.plane, "kai-scheduler-h100"):
        yield


def test_the_page_tells_what_happens(played: list[Step]) -> None:
    # It was compared while it was played; a page that lost its tables would pass, too.
    assert [len(step.tables) for step in played] == [2, 3, 2, 2]


def test_kai_alone_decides(played: list[Step], terminal: Terminal) -> None:
    decided = writers(terminal.plane / "audit.log")
    assert decided.keys() == DECIDES.keys()
    assert [users - DECIDES[resource] for resource, users in decided.items()] == [set()] * len(DECIDES)
    # The log shows the administrator, through whom the sandbox writes what it writes.
    terminal.type("kubectl annotate podgroups.scheduling.run.ai --all --all-namespaces seen=true")
    assert writers(terminal.plane / "audit.log")["podgroups"] - DECIDES["podgroups"]


@pytest.mark.usefixtures("kai_stopped")
def test_nothing_happens_without_kais_scheduler(terminal: Terminal) -> None:
    with pytest.raises(Different, match="Pods running: 0"):
        terminal.play(STEPS, seconds=20)


# The last one: the cluster keeps this quota.
@pytest.mark.usefixtures("no_jobs")
def test_one_gpu_less_to_borrow_is_another_story(terminal: Terminal) -> None:
    file = terminal.folder / "environments/three-projects.yaml"
    text = file.read_text(encoding="utf-8")
    borrows = "project-a: {quota: {h100: {accelerators: 16}}, borrow_limit_percent: "
    assert text.count(f"{borrows}100") == 1
    file.write_text(text.replace(f"{borrows}100", f"{borrows}99"), encoding="utf-8")
    terminal.play([DEPLOYMENT])
    with pytest.raises(Different) as difference:
        terminal.play(STEPS, seconds=20)
    actual, _, _ = str(difference.value).partition("expected:")
    # 31 GPUs are three workers.
    assert "after `podwright submit three-projects train-a --sandbox`" in actual
    assert "Job: train-a | Pods running: 3 | Nodes: 3" in actual
