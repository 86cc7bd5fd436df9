"""docs/scenarios/elastic-eight.md, played: its commands, and its tables as the API server has them."""

import pytest

from audit_log import JOBS, KUBERNETES, KUEUE, SCHEDULER, STAND_IN, bodies, check_writers
from story import Terminal, story

SCENARIO, TIME_SCALE = "elastic-eight", 0.1
_, *STEPS = story(SCENARIO)
# Whoever else writes one of these has taken a decision from the engine.
DECIDES = {
    "pods": {*KUBERNETES, STAND_IN},
    "pods/binding": {SCHEDULER},
    "jobs/status": {JOBS, KUEUE},
    "hyperpodpytorchjobs/status": {STAND_IN},
    "workloads": {*KUBERNETES, KUEUE, STAND_IN},
    "workloads/status": {KUEUE, STAND_IN},
}


@pytest.mark.usefixtures("played")
def test_the_page_tells_what_happens() -> None:
    # It was compared while it was played; a page that lost its tables would pass, too.
    assert [len(step.tables) for step in STEPS] == [2, 2, 1, 2, 1]


@pytest.mark.usefixtures("played")
def test_the_engines_alone_decide(terminal: Terminal) -> None:
    check_writers(terminal.plane / "audit.log", DECIDES)


@pytest.mark.usefixtures("played")
def test_the_stand_in_says_nothing_but_what_a_framework_has_to(terminal: Terminal) -> None:
    """Whether pods are ready, the end, and that it gives back what Kueue has taken away."""
    statuses = [body["status"] for body in bodies(terminal.plane / "audit.log", STAND_IN, "workloads")]
    returned = [status for status in statuses if "admission" in status]
    own = [entry["type"] for status in statuses if "admission" not in status for entry in status["conditions"]]
    assert set(own) == {"PodsReady"}
    # Three steps, each once.
    assert [status["admission"] for status in returned] == [None] * 3
    held = [{entry["type"]: entry["status"] for entry in status["conditions"]} for status in returned]
    assert [(item["QuotaReserved"], item["Admitted"], item["Evicted"]) for item in held] == [
        ("False", "False", "True")
    ] * 3
