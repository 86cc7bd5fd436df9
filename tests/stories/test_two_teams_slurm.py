"""docs/scenarios/two-teams-slurm.md, played: its commands, and its tables as Debian's Slurm has them."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from governed_cluster import until
from needs import require
from podwright.constructs.observability.cluster_events.handler import quarantine
from podwright.operations.aws import sandbox_server as server
from podwright.operations.aws import session
from podwright.operations.aws.account import Account
from podwright.operations.aws.clusters import node_details
from podwright.operations.nodes.members import slurm_name
from podwright.sandbox.slurm.machine import missing
from story import Terminal, deployed, story

SCENARIO, TIME_SCALE = "two-teams-slurm", 0.1
_, *STEPS = story(SCENARIO)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory, commands: Path) -> Iterator[Terminal]:
    """The terminal of a user who has deployed the scenario in a sandbox."""
    require(missing() is None, str(missing()))
    folder = tmp_path_factory.mktemp(SCENARIO)
    with deployed(SCENARIO, folder, TIME_SCALE, kubernetes="installed", programs=commands) as user:
        yield user


def sandboxed(terminal: Terminal) -> Account:
    """The account in the terminal's sandbox."""
    running = server.status(terminal.folder)
    assert running is not None
    return Account("111122223333", "us-east-1", running.endpoint, {})


def on_the_controller(terminal: Terminal, line: str) -> list[str]:
    """Run a line there as root; what it prints."""
    account = sandboxed(terminal)
    (node,) = (each for each in session.nodes(account, SCENARIO) if each.group == "controller")
    command = session.one_command(account, node, line)
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout.splitlines()[1:]


@pytest.mark.usefixtures("played")
def test_the_page_tells_what_happens() -> None:
    # It was compared while it was played; a page that lost its tables would pass, too.
    assert [len(step.tables) for step in STEPS] == [1, 1, 1, 1, 1]


@pytest.mark.usefixtures("played")
def test_the_accounts_are_those_of_the_file(terminal: Terminal) -> None:
    evidence = json.loads(terminal.type(f"podwright gate {SCENARIO} quotas --sandbox --json"))
    shown = json.dumps(evidence)
    assert "cpu=48,gres/gpu=4" in shown
    assert '"simulated": true' in shown


@pytest.mark.usefixtures("played")
def test_a_job_that_was_queued_again_continues_its_log(terminal: Terminal) -> None:
    """The page's last state is that both jobs of team A run; this one began twice."""
    line = "[rank0] ip-10-28-"
    log = f"podwright logs {SCENARIO} spare-a --sandbox"
    until(lambda: terminal.type(log).count(line) == 2)
    assert "trainer:1.0 would run: bash -c torchrun" in terminal.type(log)
    assert "spare-a (2) of team-a_borrow is running" in terminal.type(f"podwright why {SCENARIO} spare-a --sandbox")


@pytest.mark.usefixtures("played")
def test_a_run_that_is_not_in_the_file_ends_by_itself(terminal: Terminal) -> None:
    """On team B's own node, which it takes back for so long."""
    options = "--team team-b --group training --name once --set env.PODWRIGHT_RUNS_FOR=1s --sandbox"
    submitted = terminal.type(f"podwright run {SCENARIO} {options} -- nvidia-smi -L")
    assert "of bo\n" in submitted

    def state() -> str:
        jobs = json.loads(terminal.type(f"podwright jobs {SCENARIO} --all --sandbox --json"))["jobs"]
        return {job["name"]: job["state"] for job in jobs}["once"]

    until(lambda: state() == "succeeded")
    assert "trainer:1.0 would run: nvidia-smi -L" in terminal.type(f"podwright logs {SCENARIO} once --sandbox")
    assert terminal.run(f"podwright stop {SCENARIO} once --sandbox").returncode == 1


def told_by_the_rule(instance: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The command that people get by mail of a node that fails again and again."""
    rule = {"faults": 3, "within_hours": 24, "marker": ""}
    monkeypatch.setenv("QUARANTINE", json.dumps(rule))
    monkeypatch.setenv("ENVIRONMENT", SCENARIO)
    monkeypatch.setattr(quarantine, "count", lambda *_, **__: rule["faults"])
    detail = {"ClusterName": SCENARIO, "InstanceId": instance, "HealthSummary": {"HealthStatus": "Unhealthy"}}
    event = {"id": "event", "time": "2026-11-28T10:00:00Z", "detail": detail}
    notice = quarantine.quarantined(boto3.Session(), None, event)
    assert notice
    return commands(notice.next_step)[0]


def commands(text: str) -> list[str]:
    return re.findall("`(podwright [^`]+)`", text)


@pytest.mark.usefixtures("played")
def test_the_commands_that_people_get_take_a_node_out_of_work_and_back(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`train-a` and `spare-a` run on a node each, as the page ends; the node of `spare-a` is taken out."""

    def node_of(job: str) -> str:
        return "".join(on_the_controller(terminal, f"squeue --noheader --states=running --name={job} --format=%N"))

    def state(node: str) -> str:
        return on_the_controller(terminal, f"sinfo --noheader --Node --nodes={node} --format=%T")[0]

    # An earlier run may have sent it back into the queue, for half a minute.
    bad, good = until(lambda: node_of("spare-a")), node_of("train-a")
    account = sandboxed(terminal)
    details = (node_details(account, SCENARIO, node.instance) for node in session.nodes(account, SCENARIO))
    (instance,) = (each["InstanceId"] for each in details if slurm_name(each["InstanceId"], each) == bad)
    take_out = told_by_the_rule(instance, monkeypatch)
    (give_back,) = commands(terminal.type(f"{take_out} --sandbox"))

    # What runs there continues; Slurm has the state and the reason.
    assert (state(bad), node_of("spare-a")) == ("draining", bad)
    (reason,) = on_the_controller(terminal, f"sinfo --noheader --list-reasons --nodes={bad} --format=%E")
    assert reason.startswith("podwright quarantine: 3 faults (arn:aws:")
    assert "DRAIN" in "".join(on_the_controller(terminal, f"scontrol show node {bad} | grep State="))
    terminal.type(f"podwright stop {SCENARIO} spare-a --sandbox")
    until(lambda: state(bad) == "drained")
    terminal.type(f"podwright submit {SCENARIO} spare-a --sandbox")
    terminal.type(f"podwright stop {SCENARIO} train-a --sandbox")
    # Both nodes are idle, and one is out of work.
    until(lambda: node_of("spare-a") == good)
    assert state(bad) == "drained"

    terminal.type(f"{give_back} --sandbox")
    assert on_the_controller(terminal, "sinfo --noheader --list-reasons") == []
    terminal.type(f"podwright submit {SCENARIO} train-a --sandbox")
    until(lambda: node_of("train-a") == bad)


# The last one: its jobs stay.
@pytest.mark.usefixtures("played")
def test_it_is_slurm_that_decides(terminal: Terminal) -> None:
    for job in ("train-a", "spare-a"):
        terminal.type(f"podwright stop {SCENARIO} {job} --sandbox")
    until(lambda: json.loads(terminal.type(f"podwright jobs {SCENARIO} --sandbox --json"))["jobs"] == [])
    on_the_controller(terminal, "scontrol update PartitionName=training State=DOWN")
    terminal.comes_to(STEPS[0], "PartitionDown")
