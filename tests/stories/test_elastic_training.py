"""docs/examples/elastic, run: AWS's real agent, PyTorch on CPUs, and processes that come and go.

They are 2, then 8, then 4, by graceful stops and SIGTERM; then a pod is lost, and the other one continues alone.
"""

import itertools
import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from elastic_pods import EXAMPLE, NEEDS_PYTORCH, PROCESSES, PYTORCH, ROOT, free_port, operator, rendered_command
from podwright.sandbox.control_plane.pytorch import PINS
from waiting import until

pytestmark = NEEDS_PYTORCH

# Epochs end within a batch.
SAMPLES, EPOCHS, BATCH = 360, 4, 16
PODS = (1, 4, 2, 1)
# A step of eight processes takes long enough on two cores for a stop to come in between.
FROM_STEPS = (15, 30)
# Some steps after a checkpoint, which are lost with the pod.
CHECKPOINT_EVERY, LOST_FROM = 10, 66


class Run:
    """The records of a training: a line for each step of each rank."""

    def __init__(self, folder: Path) -> None:
        starts: dict[tuple[int, int], list[dict[str, Any]]] = {}
        # Names begin with the time, and the ranks of one start begin with the same step.
        for file in sorted(folder.glob("*.jsonl")):
            own = [json.loads(line) for line in file.read_text().splitlines()]
            if own:
                starts.setdefault((own[0]["seen"], own[0]["ranks"]), []).extend(own)
        self.lines: list[dict[str, Any]] = []
        """Without those of steps that were lost, which a later start took again."""
        for (first, _), own in starts.items():
            self.lines = [line for line in self.lines if line["seen"] < first] + own
        self.lost = sum(map(len, starts.values())) - len(self.lines)

    @property
    def seen(self) -> int:
        """Samples until now."""
        return max((line["seen"] for line in self.lines), default=0)

    def of_steps(self, key: str) -> dict[int, Any]:
        """What the ranks say alike, by step."""
        values: dict[int, set[Any]] = {}
        for line in self.lines:
            values.setdefault(line["seen"] // BATCH, set()).add(line[key])
        assert [step for step, actual in values.items() if len(actual) != 1] == []
        return {step: value for step, (value,) in sorted(values.items())}

    def of_epochs(self) -> list[Counter[int]]:
        """How often each sample of each epoch was trained on."""
        epochs = [Counter[int]() for _ in range(EPOCHS)]
        for line in self.lines:
            first = line["seen"] - BATCH + line["rank"]
            for number, sample in enumerate(line["samples"]):
                epochs[(first + number * line["ranks"]) // SAMPLES][sample] += 1
        return epochs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """The training with rescaling, and the same in one process that nobody interrupts."""
    folder = tmp_path_factory.mktemp("elastic")
    options = ["--samples", SAMPLES, "--epochs", EPOCHS, "--batch", BATCH, "--checkpoint-every", CHECKPOINT_EVERY]
    common = ["train.py", "--loaders", "1", *map(str, options)]
    variables = {"OMP_NUM_THREADS": "1", "CHECKPOINT_DIR": str(folder / "checkpoints")}
    page = (ROOT / "docs/user/elastic.md").read_text(encoding="utf-8")
    (piece,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    rendered = rendered_command(piece, "grows")
    command = [*rendered[: rendered.index("train.py")], *common, "--record", str(folder / "elastic")]
    with operator(folder, command, variables) as actual:
        for number, smaller, steps in zip(PODS[:2], (1, 2), FROM_STEPS, strict=True):
            actual.run_on(number)
            until(lambda steps=steps: Run(folder / "elastic").seen >= steps * BATCH, f"step {steps}")
            actual.stop(keep=smaller)
        actual.run_on(PODS[2])
        until(lambda: Run(folder / "elastic").seen >= LOST_FROM * BATCH, f"step {LOST_FROM}")
        actual.lose()
        actual.run_on(PODS[3])
        actual.finish()
    alone = {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    subprocess.run(
        [
            str(PYTORCH.programs / "python"),
            *common,
            "--record",
            str(folder / "alone"),
            "--checkpoints",
            str(folder / "other"),
        ],
        cwd=EXAMPLE,
        env=os.environ | variables | alone,
        check=True,
        capture_output=True,
    )
    return Run(folder / "elastic"), Run(folder / "alone")


def test_it_has_run_with_two_eight_four_and_two_processes(runs: tuple[Run, Run]) -> None:
    ranks = runs[0].of_steps("ranks")
    assert list(ranks) == list(range(1, SAMPLES * EPOCHS // BATCH + 1))
    sizes = [size for size, _ in itertools.groupby(ranks.values())]
    assert sizes == [number * PROCESSES for number in PODS]
    assert runs[0].lost > 0


def test_every_sample_is_seen_once_in_each_epoch(runs: tuple[Run, Run]) -> None:
    once = Counter(range(SAMPLES))
    assert [number for number, epoch in enumerate(runs[0].of_epochs()) if epoch != once] == []


def test_the_loss_is_that_of_a_training_without_interruption(runs: tuple[Run, Run]) -> None:
    elastic, alone = (run.of_steps("loss") for run in runs)
    assert elastic == pytest.approx(alone, rel=0.01)
    assert elastic[len(elastic)] < elastic[1] / 4


def test_the_example_and_the_tests_have_the_same_versions() -> None:
    pins = PINS.read_text(encoding="utf-8").splitlines()
    assert set((EXAMPLE / "requirements.txt").read_text(encoding="utf-8").split()) <= set(pins)


def test_without_a_folder_for_checkpoints_it_says_so() -> None:
    variables = {name: value for name, value in os.environ.items() if name != "CHECKPOINT_DIR"}
    command = [PYTORCH.programs / "python", EXAMPLE / "train.py"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "train.py: error: the following arguments are required: --checkpoints",
    )
