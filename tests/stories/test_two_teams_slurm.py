"""docs/scenarios/two-teams-slurm.md, played: its commands, and its tables as Debian's Slurm has them."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from governed_cluster import until
from needs import require
from podwright.operations.aws import sandbox_server as server
from podwright.operations.aws import session
from podwright.operations.aws.account import Account
from podwright.sandbox.slurm.machine import missing
from story import Different, Terminal, deployed, story

SCENARIO, TIME_SCALE = "two-teams-slurm", 0.1
_, *STEPS = story(SCENARIO)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A folder with the scenario's file, and a sandbox of its own in which it is deployed."""
    require(missing() is None, str(missing()))
    with deployed(SCENARIO, tmp_path_factory.mktemp(SCENARIO), TIME_SCALE, kubernetes="installed") as user:
        yield user


def on_the_controller(terminal: Terminal, line: str) -> None:
    """Run a line there as root."""
    running = server.status(terminal.folder)
    assert running is not None
    account = Account("111122223333", "us-east-1", running.endpoint, {})
    (node,) = (each for each in session.nodes(account, SCENARIO) if each.group == "controller")
    subprocess.run(session.one_command(account, node, line), check=True, capture_output=True, timeout=120)


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


# The last one: its jobs stay.
@pytest.mark.usefixtures("played")
def test_it_is_slurm_that_decides(terminal: Terminal) -> None:
    for job in ("train-a", "spare-a"):
        terminal.type(f"podwright stop {SCENARIO} {job} --sandbox")
    until(lambda: json.loads(terminal.type(f"podwright jobs {SCENARIO} --sandbox --json"))["jobs"] == [])
    on_the_controller(terminal, "scontrol update PartitionName=training State=DOWN")
    with pytest.raises(Different, match="PartitionDown"):
        terminal.play(STEPS[:1], seconds=10)
