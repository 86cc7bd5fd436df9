"""docs/scenarios/governed-hundred.md, played: its commands, and its tables as the API server has them."""

import pytest

from audit_log import KUBERNETES, KUEUE, SCHEDULER, TRAINING_OPERATOR, check_writers
from story import Different, Terminal, story

SCENARIO, TIME_SCALE, ENGINE = "governed-hundred", 0.1, "kueue"
_, *STEPS = story(SCENARIO)
# Whoever else writes one of these has taken a decision from the engine.
DECIDES = {
    "pods": {*KUBERNETES, TRAINING_OPERATOR},
    "pods/binding": {SCHEDULER},
    "jobs/status": {*KUBERNETES, KUEUE},
    "pytorchjobs/status": {TRAINING_OPERATOR},
    "workloads": {*KUBERNETES, KUEUE},
    "workloads/status": {KUEUE},
}


@pytest.mark.usefixtures("played")
def test_the_page_tells_what_happens() -> None:
    # It was compared while it was played; a page that lost its tables would pass, too.
    assert [len(step.tables) for step in STEPS] == [2, 2, 2, 2]


@pytest.mark.usefixtures("played")
def test_the_engines_alone_decide(terminal: Terminal) -> None:
    check_writers(terminal.plane / "audit.log", DECIDES)


@pytest.mark.usefixtures("engine_stopped")
def test_nothing_happens_without_kueue(terminal: Terminal) -> None:
    with pytest.raises(Different, match="kueue"):
        terminal.play(STEPS, seconds=20)


# The last one: the cluster keeps this quota.
@pytest.mark.usefixtures("no_jobs")
def test_one_node_less_of_quota_is_another_story(terminal: Terminal) -> None:
    terminal.deploy_changed(SCENARIO, "foundation: {quota: {p5: 40", "foundation: {quota: {p5: 39")
    with pytest.raises(Different) as difference:
        terminal.play(STEPS[:1], seconds=60)
    actual, _, _ = str(difference.value).partition("expected:")
    assert "after `podwright submit governed-hundred pretrain --sandbox`" in actual
    assert "Team: foundation | GPUs: 384 | GPUs borrowed: 72" in actual
