"""docs/examples/elastic on two real nodes: preempted by another team, resized by AWS's agents, broken in four ways."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from control_plane_parts import parts_of_scenario, require_parts
from elastic_story import (
    CHECKPOINT_EVERY,
    EXAMPLE,
    FAULTS,
    OPTIONS,
    SAMPLES,
    SCENARIO,
    Preemption,
    Run,
    Training,
    grow,
    preempt,
    sandbox,
)
from listening import free_port
from needs import needs
from podwright.planning.helm.operators import NODE_PARTS
from podwright.planning.jobs.launcher import FLAGS, VALUES
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.control_plane.pytorch import INSTALL, PINS, PyTorch
from podwright.sandbox.nodes.support import obstacle
from story import Terminal
from waiting import becomes, until

OBSTACLE: Final = obstacle(pins(), Cache.of_user())
PYTORCH: Final = PyTorch.of_user()
pytestmark = [needs(OBSTACLE is None, str(OBSTACLE)), needs(PYTORCH.state is State.INSTALLED, f"PyTorch: `{INSTALL}`")]
_OPTIONS: Final = """\
import json
from hyperpod_elastic_agent.run import add_additional_hyperpod_args
from torch.distributed.run import get_args_parser

parser = get_args_parser()
add_additional_hyperpod_args(parser)
options = [action for action in parser._actions if action.option_strings and action.dest != "help"]
print(json.dumps([[action.dest.replace("_", "-"), action.nargs == 0] for action in options]))
"""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, commands_without_cdk: Path) -> Iterator[Terminal]:
    """A user in whose sandbox the jobs are deployed."""
    require_parts(*NODE_PARTS, *parts_of_scenario(SCENARIO))
    with sandbox(tmp_path_factory.mktemp("training"), commands_without_cdk) as user:
        yield user


@pytest.fixture(scope="module")
def preemption(user: Terminal) -> Preemption:
    """A training that another team has preempted, and that continued."""
    return preempt(user)


@pytest.fixture(scope="module")
def training(user: Terminal, preemption: Preemption) -> Training:
    """A training that went through two sizes and all faults, and runs."""
    return grow(user)


@pytest.fixture(scope="module")
def run(training: Training) -> Run:
    """Its steps until then."""
    return training.run


@pytest.fixture(scope="module")
def alone(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same steps in one process that nothing interrupts."""
    folder = tmp_path_factory.mktemp("alone")
    process = rank_of(folder, 0, 1, OPTIONS | {"epochs": len(run.of_epochs())})
    assert process.wait() == 0
    return Run((folder / "record").iterdir())


def rank_of(folder: Path, rank: int, ranks: int, options: Mapping[str, Any], port: int = 0) -> subprocess.Popen[bytes]:
    """Start a process of a training on this machine."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
    variables = {name: str(number) for name, number in numbers.items()} | {"MASTER_ADDR": "127.0.0.1"}
    options = {**options, "record": folder / "record", "checkpoints": folder}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return subprocess.Popen([PYTORCH.programs / "python", EXAMPLE / "train.py", *words], env=os.environ | variables)


def test_a_preempted_training_saves_within_its_grace_period_and_continues_with_the_next_step(
    preemption: Preemption,
) -> None:
    assert preemption.checkpoint == preemption.last
    assert preemption.next == preemption.last + 1
    assert preemption.run.sizes == [2]
    # The training repeated no step.
    assert sum(map(len, preemption.run.starts)) == len(preemption.run.lines)


def test_it_has_trained_on_one_node_on_two_and_on_one(run: Run) -> None:
    # It may continue with one pod until a lost node is replaced.
    assert run.sizes[:2] == [1, 2]
    assert run.sizes[-2:] == [2, 1]
    assert list(run.of_steps("ranks")) == list(range(1, run.steps + 1))


def test_every_sample_is_seen_once_in_each_epoch(run: Run) -> None:
    *complete, last = run.of_epochs()
    once = Counter(range(SAMPLES))
    assert complete
    assert [number for number, epoch in enumerate(complete) if epoch != once] == []
    assert last <= once


def test_the_loss_is_that_of_a_training_without_interruption(run: Run, alone: Run) -> None:
    loss, expected = run.of_steps("loss"), alone.of_steps("loss")
    assert loss == pytest.approx({step: expected[step] for step in loss}, rel=0.01)
    assert loss[run.steps] < loss[1] / 2


def test_it_resumes_from_the_last_checkpoint_after_each_fault(training: Training) -> None:
    recoveries = list(training.recoveries())
    assert [item.fault for item in recoveries] == list(FAULTS)
    assert [item for item in recoveries if not 0 <= item.repeated <= CHECKPOINT_EVERY] == []


def test_goodput_is_what_the_recording_rule_says(training: Training) -> None:
    goodput = training.goodput()
    assert 0 < goodput.by_steps < 1
    assert goodput.recorded() == pytest.approx(goodput.by_steps)


def test_logs_show_the_steps(user: Terminal, training: Training) -> None:
    lines = json.loads(user.type(f"podwright logs {SCENARIO} {training.name} --sandbox --json"))["lines"]
    assert any("step " in line and "loss " in line for line in lines)


# The last one: the job is gone afterwards.
def test_a_stopped_job_saves_its_last_step(user: Terminal, training: Training) -> None:
    user.type(f"podwright stop {SCENARIO} {training.name} --sandbox")
    pods = "kubectl get pods --all-namespaces --selector HPJob=grows --output name"
    becomes("", lambda: user.type(pods))
    assert training.checkpoint == training.run.steps


def test_a_rank_without_a_signal_ends_with_the_last_complete_batch(tmp_path: Path) -> None:
    port, options = free_port(), {"samples": 24, "batch": 16, "epochs": 1, "step-seconds": 5}
    ranks = [rank_of(tmp_path, rank, 2, options, port) for rank in range(2)]
    try:
        until(lambda: list(tmp_path.glob("record/*-1.jsonl")))
        # In its only step.
        ranks[1].terminate()
        assert [rank.wait() for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            rank.kill()
    assert [line["seen"] for line in Run((tmp_path / "record").iterdir()).lines] == [16, 16]


def test_the_launchers_take_the_arguments_that_podwright_knows() -> None:
    answer = subprocess.run([PYTORCH.programs / "python", "-c", _OPTIONS], capture_output=True, text=True, check=True)
    options = dict(json.loads(answer.stdout.splitlines()[-1]))
    assert {name for name, is_flag in options.items() if is_flag} == set(FLAGS)
    assert {name for name, is_flag in options.items() if not is_flag} == set(VALUES)


def test_the_example_and_the_tests_have_the_same_versions() -> None:
    versions = PINS.read_text(encoding="utf-8").splitlines()
    assert set((EXAMPLE / "requirements.txt").read_text(encoding="utf-8").split()) <= set(versions)


def test_without_a_folder_for_checkpoints_it_says_so() -> None:
    variables = {name: value for name, value in os.environ.items() if name != "CHECKPOINT_DIR"}
    command = [PYTORCH.programs / "python", EXAMPLE / "train.py"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "train.py: error: the following arguments are required: --checkpoints",
    )
