"""docs/scenarios/three-projects.md, played: its commands, and its tables as the API server has them."""

import pytest

from audit_log import (
    BINDER,
    KAI_SCHEDULER,
    KUBERNETES,
    PODGROUP_CONTROLLER,
    PODGROUPER,
    SCHEDULER,
    TRAINING_OPERATOR,
    check_writers,
    writers,
)
from story import QUIET_SECONDS, Different, Terminal, story

# A node takes long enough to come that the job is seen without it, on a busy machine, too.
SCENARIO, TIME_SCALE, ENGINE = "three-projects", 8.0, "kai-scheduler-h100"
_, *STEPS = story(SCENARIO)
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


@pytest.mark.usefixtures("played")
def test_the_page_tells_what_happens() -> None:
    # It was compared while it was played; a page that lost its tables would pass, too.
    assert [len(step.tables) for step in STEPS] == [2, 3, 2, 2]


@pytest.mark.usefixtures("played")
def test_kai_alone_decides(terminal: Terminal) -> None:
    check_writers(terminal.plane / "audit.log", DECIDES)
    # The log shows the administrator, through whom the sandbox writes what it writes.
    terminal.type("kubectl annotate podgroups.scheduling.run.ai --all --all-namespaces seen=true")
    assert writers(terminal.plane / "audit.log")["podgroups"] - DECIDES["podgroups"]


@pytest.mark.usefixtures("engine_stopped")
def test_nothing_happens_without_kais_scheduler(terminal: Terminal) -> None:
    with pytest.raises(Different, match="Pods running: 0"):
        terminal.play(STEPS, QUIET_SECONDS)


# The last one: the cluster keeps this quota.
@pytest.mark.usefixtures("no_jobs")
def test_one_gpu_less_to_borrow_is_another_story(terminal: Terminal) -> None:
    borrows = "project-a: {quota: {h100: {accelerators: 16}}, borrow_limit_percent: "
    terminal.deploy_changed(SCENARIO, f"{borrows}100", f"{borrows}99")
    # 31 GPUs are three workers.
    terminal.comes_to(STEPS[0], "Job: train-a | Pods running: 3 | Nodes: 3")
