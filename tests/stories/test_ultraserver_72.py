"""docs/scenarios/ultraserver-72.md, played: its commands, and its tables as the API server has them."""

import json

import pytest

from audit_log import KUBERNETES, KUEUE, SCHEDULER, STAND_IN, check_writers
from story import Terminal, story

SCENARIO, TIME_SCALE = "ultraserver-72", 0.1
_, *STEPS = story(SCENARIO)
# Whoever else writes one of these has taken a decision from the engine.
DECIDES = {
    "pods": {*KUBERNETES, STAND_IN},
    "pods/binding": {SCHEDULER},
    "hyperpodpytorchjobs/status": {STAND_IN},
    "workloads": {*KUBERNETES, KUEUE, STAND_IN},
    "workloads/status": {KUEUE, STAND_IN},
}


@pytest.mark.usefixtures("played")
def test_the_page_tells_what_happens() -> None:
    # It was compared while it was played; a page that lost its tables would pass, too.
    assert [len(step.tables) for step in STEPS] == [1, 1, 2, 2, 3]


@pytest.mark.usefixtures("played")
def test_the_engines_alone_decide(terminal: Terminal) -> None:
    check_writers(terminal.plane / "audit.log", DECIDES)


@pytest.mark.usefixtures("played")
def test_each_pod_claims_a_channel(terminal: Terminal) -> None:
    """And Kueue takes work that does, though no quota counts channels."""
    pods = json.loads(terminal.type("kubectl get pods --namespace team-experts --output json"))["items"]
    assert len(pods) == 18
    claims = {entry["resourceClaimName"] for pod in pods for entry in pod["status"]["resourceClaimStatuses"]}
    assert len(claims) == 18
