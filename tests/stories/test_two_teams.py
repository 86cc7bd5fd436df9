"""docs/scenarios/two-teams.md, played: its commands, and its tables as the API server has them."""

import json

import pytest

from audit_log import KUBERNETES, KUEUE, SCHEDULER, TRAINING_OPERATOR, check_writers, writers
from story import Different, Terminal, story

SCENARIO, TIME_SCALE, ENGINE = "two-teams", 0.1, "kueue"
_, *STEPS = story(SCENARIO)
# Whoever else writes one of these has taken a decision from the engine.
DECIDES = {
    "pods": {*KUBERNETES, TRAINING_OPERATOR},
    "pods/binding": {SCHEDULER},
    "pytorchjobs/status": {TRAINING_OPERATOR},
    "workloads": {*KUBERNETES, KUEUE},
    "workloads/status": {KUEUE},
}


@pytest.mark.usefixtures("played")
def test_the_page_tells_what_happens() -> None:
    # It was compared while it was played; a page that lost its tables would pass, too.
    assert [len(step.tables) for step in STEPS] == [2, 2, 2, 1, 2]


@pytest.mark.usefixtures("played")
def test_the_engines_alone_decide(terminal: Terminal) -> None:
    check_writers(terminal.plane / "audit.log", DECIDES)
    # The log shows the administrator, through whom the sandbox writes what it writes.
    workload = json.loads(terminal.type("kubectl get workloads --all-namespaces --output json"))["items"][0]["metadata"]
    target = f"--namespace {workload['namespace']} {workload['name']} --subresource status --type merge"
    terminal.type(f'kubectl patch workload {target} --patch \'{{"status": {{"requeueState": {{"count": 1}}}}}}\'')
    assert writers(terminal.plane / "audit.log")["workloads/status"] > DECIDES["workloads/status"]


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
    # There are two nodes whatever the quotas say, so team A makes room again; but team B borrows none of them.
    assert "after `podwright submit two-teams experiment-b --sandbox`" in actual
    assert "Team: team-b | vCPU: 88 | vCPU borrowed: 0 | GPUs: 8 | GPUs borrowed: 0" in actual
