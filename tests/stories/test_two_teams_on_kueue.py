"""docs/scenarios/two-teams.md with `engine: kueue`: the same commands come to the same tables."""

import pytest

from story import Different, Terminal, story

SCENARIO, TIME_SCALE, ENGINE = "two-teams", 0.1, "kueue"
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


@pytest.mark.usefixtures("engine_stopped")
def test_nothing_happens_without_kueue(terminal: Terminal) -> None:
    with pytest.raises(Different, match="kueue"):
        terminal.play(STEPS, seconds=30)


# The last one: the cluster keeps this quota.
@pytest.mark.usefixtures("no_jobs")
def test_one_node_more_of_quota_is_another_story(terminal: Terminal) -> None:
    terminal.deploy_changed(SCENARIO, "team-b: {quota: {training: 1}", "team-b: {quota: {training: 2}")
    terminal.play(STEPS[:1])
    with pytest.raises(Different) as difference:
        terminal.play(STEPS[1:], seconds=20)
    actual, _, _ = str(difference.value).partition("expected:")
    assert "after `podwright submit two-teams experiment-b --sandbox`" in actual
    assert "Team: team-b | vCPU: 88 | vCPU borrowed: 0 | GPUs: 8 | GPUs borrowed: 0" in actual
