"""docs/scenarios/governed-hundred.md, played: its commands, and its tables as the API server has them."""

import pytest

from audit_log import KUBERNETES, KUEUE, SCHEDULER, TRAINING_OPERATOR, check_writers
from story import Terminal, story

SCENARIO, TIME_SCALE = "governed-hundred", 0.1
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
