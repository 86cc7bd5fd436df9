"""docs/scenarios/two-teams.md, played: its commands, and its tables as the API server has them."""

import json
from typing import Any

import pytest

from audit_log import KUBERNETES, KUEUE, SCHEDULER, TRAINING_OPERATOR, check_writers, writers
from governed_cluster import until
from podwright.config.catalog.kubernetes_groups import team_group
from story import QUIET_SECONDS, Different, Terminal, story

SCENARIO, TIME_SCALE, ENGINE, CDK_CLI = "two-teams", 0.1, "kueue", True
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


def as_role(terminal: Terminal, team: str, role: str) -> str:
    """The option that makes a command act with a team's role alone, and no right of AWS."""
    file = terminal.folder / f"{team}-{role}"
    # The cluster's own administrator impersonates it: kubectl starts no plugin for a certificate.
    config = json.loads((terminal.plane / "keys/admin.kubeconfig").read_text())
    (admin,) = config["users"]
    admin["user"] |= {"as": "ada", "as-groups": [team_group(team, role), "system:authenticated"]}
    file.write_text(json.dumps(config))
    return f"--kubeconfig {file}"


def comes_to(terminal: Terminal, job: str, state: str, options: str) -> None:
    """Wait until a job has a state, which `podwright jobs` has a word for."""
    words = {"Running": "running", "Suspended": "preempted"}
    # Looking at the cluster first starts the command once or twice.
    terminal.wait_for(job, state)
    until(lambda: jobs(terminal, options).get(job, {}).get("state") == words[state])


def jobs(terminal: Terminal, options: str) -> dict[str, Any]:
    """What `podwright jobs` prints as JSON, by job."""
    answer = json.loads(terminal.type(f"podwright jobs two-teams --json {options}"))
    return {job["name"]: job for job in answer["jobs"]} | {"": answer["not_readable"]}


@pytest.mark.usefixtures("played")
def test_each_team_submits_watches_and_stops_with_its_own_role(terminal: Terminal) -> None:
    """The page's last state is that train-a runs on both nodes; a run of team B takes one back, and gives it again."""
    own, other = as_role(terminal, "team-a", "view"), as_role(terminal, "team-b", "edit")
    submitted = terminal.type(f"podwright submit two-teams train-b --name again --set env.LR=1e-4 {other}")
    assert submitted.endswith(f"podwright logs two-teams again --follow {other}\n"), "the next command to type"
    comes_to(terminal, "again", "Running", other)
    comes_to(terminal, "train-a", "Suspended", own)
    shown = jobs(terminal, own)
    assert shown[""] == ["hyperpod-ns-team-b"]
    assert shown["train-a"]["preempted_by"] == "a job of queue hyperpod-ns-team-b-clusterqueue"
    assert (shown["train-a"]["position"], shown["train-a"]["accelerators"]) == ([1, 1], 8)

    why = json.loads(terminal.type("podwright why two-teams train-a --sandbox --json"))
    assert (why["preemption"]["by"], why["preemption"]["reason"]) == ("again", "InCohortReclamation")
    gpus, _ = why["quota"]
    assert [gpus[key] for key in ("asks", "guaranteed", "most", "holds", "others", "idle")] == [8, 4, 8, 0, 4, 4]
    why = terminal.type(f"podwright why two-teams train-a {own}")
    assert "team-a has 4 GPUs left of its guarantee, and would have to borrow 4 GPUs." in why

    assert "again-worker-0 on hyperpod-i-" in terminal.type(f"podwright logs two-teams again --rank 3 {other}")
    assert "has no job again" in terminal.run(f"podwright logs two-teams again {own}").stderr
    refused = terminal.run(f"podwright stop two-teams train-a {own}").stderr
    assert "train-a stays: " in refused
    assert "a team's role `edit` may stop its jobs, `view` may not" in refused
    tried = terminal.type(f"podwright run two-teams --team team-b --group training --dry-run {other} -- nvidia-smi -L")
    assert "kind: Job\n" in tried
    assert tried.endswith("The cluster would take it; nothing runs.\n")

    terminal.type(f"podwright stop two-teams again {other}")
    comes_to(terminal, "train-a", "Running", own)
    assert "again" not in jobs(terminal, "--sandbox --all")


@pytest.mark.usefixtures("played")
def test_a_forecast_of_the_cluster_is_what_happens(terminal: Terminal) -> None:
    """train-a runs on both nodes, of which team B owns one."""
    comes_to(terminal, "train-a", "Running", "--sandbox --all")
    command = "podwright forecast two-teams train-b --sandbox --duration 1h --grace 10s"
    forecast = json.loads(terminal.type(f"{command} --json"))
    assert [stop["victim"].startswith("pytorchjob-train-a-") for stop in forecast["stops"]] == [True]
    assert forecast["stops"][0]["reason"] == "InCohortReclamation"
    # Kueue looks at it as it comes, and it starts when the pods of train-a are gone.
    assert forecast["starts_in"] == 10
    assert "stops" in terminal.type(command)
    terminal.type("podwright submit two-teams train-b --name foreseen --sandbox")
    comes_to(terminal, "foreseen", "Running", "--sandbox --all")
    assert jobs(terminal, "--sandbox --all")["train-a"]["state"] == "preempted"
    terminal.type("podwright stop two-teams foreseen --sandbox")
    comes_to(terminal, "train-a", "Running", "--sandbox --all")


@pytest.mark.usefixtures("engine_stopped")
def test_nothing_happens_without_kueue(terminal: Terminal) -> None:
    with pytest.raises(Different, match="kueue"):
        terminal.play(STEPS, QUIET_SECONDS)


# The last one: the cluster keeps this quota.
@pytest.mark.usefixtures("no_jobs")
def test_one_node_more_of_quota_is_another_story(terminal: Terminal) -> None:
    terminal.deploy_changed(SCENARIO, "team-b: {quota: {training: 1}", "team-b: {quota: {training: 2}")
    terminal.play(STEPS[:2])
    # There are two nodes whatever the quotas say, so team A makes room again; but team B borrows none of them.
    terminal.comes_to(STEPS[2], "Team: team-b | vCPU: 88 | vCPU borrowed: 0 | GPUs: 8 | GPUs borrowed: 0")
