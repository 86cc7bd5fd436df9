"""docs/scenarios/two-teams.md with `engine: kueue`: the same commands come to the same tables."""

import pytest

from story import Terminal, story

SCENARIO, TIME_SCALE = "two-teams", 0.1
LEFT_OUT = ("podwright check two-teams", "podwright quotas two-teams")
CHANGES = {
    "governance:\n": "governance:\n  engine: kueue\n",
    # HyperPod restarts such jobs in its own namespaces alone (JOB020).
    "    nodes: 2\n    auto_resume: 3\n": "    nodes: 2\n",
    "train.py]\n    auto_resume: 3\n": "train.py]\n",
}
_, *STEPS = story(SCENARIO)


@pytest.mark.usefixtures("played")
def test_the_page_holds_for_this_engine_too(terminal: Terminal) -> None:
    # It was compared while it was played. Only the queues have other names.
    queues = terminal.type("kubectl get clusterqueues --output name").split()
    assert queues == [f"clusterqueue.kueue.x-k8s.io/{team}" for team in ("team-a", "team-b")]
