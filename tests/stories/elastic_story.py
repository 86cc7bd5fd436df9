"""docs/examples/elastic in a deployed sandbox, on its two real nodes: preempted, resized, broken and resumed.

The test and `bin/bench --only recoveries` play it. Each rank records its steps in the file system of its team.
"""

import itertools
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any, Final

from podwright.operations.programs.prometheus import history
from podwright.planning.monitoring.recordings import filled, recordings
from story import ROOT, Row, Terminal, deployed, story
from waiting import until

SCENARIO: Final = "two-teams"
EXAMPLE: Final = ROOT / "docs/examples/elastic"
SAMPLES, BATCH = 360, 16
"""Samples of an epoch and of a step. Epochs end within a step."""
CHECKPOINT_EVERY: Final = 5
_NAMESPACE: Final = "hyperpod-ns-team-a"
_STEPS: Final = 6
"""Steps of each part of the story."""
OPTIONS: Final = {"samples": SAMPLES, "batch": BATCH, "checkpoint-every": CHECKPOINT_EVERY, "loaders": 1}
_SCRIPT: Final = [
    "/etc/train/train.py",
    *itertools.chain.from_iterable((f"--{name}", str(value)) for name, value in OPTIONS.items()),
    # It trains until it is stopped.
    *("--epochs", "1000", "--log-every", "1", "--step-seconds", "0.3"),
]
_PODS: Final = """
    env: {OMP_NUM_THREADS: "1"}
    config_maps: {train: {path: /etc/train}}
    mounts: {/fsx: data}
"""


def _command(job: str, *launcher: str) -> str:
    return f"command: {json.dumps([*launcher, *_SCRIPT, '--record', f'/fsx/{job}/record'])}"


_GROWS: Final = f"""
platform: {{cert_manager: {{}}, training_operator: {{}}}}

jobs:
  grows:
    kind: hyperpod_pytorch
    team: team-a
    group: training
    priority: training
    image: 111122223333.dkr.ecr.us-east-1.amazonaws.com/elastic:1.0
    {_command("grows")}
    processes_per_node: 1
    elastic:
      min_replicas: 1
      max_replicas: 2
      step: 1
      scaling_timeout_seconds: 1
      graceful_shutdown_timeout_seconds: 30
      faulty_scale_down_timeout_seconds: 3600
      extra_priority: fine-tuning
    restarts: {{before_full: 100}}
    log_rules: {{hangs: {{pattern: '.*step \\d+', every_seconds: 20}}}}
    checkpoints: {{path: /fsx/grows}}{_PODS}"""
CHANGES: Final = {
    "team-a: {quota: {training: 1}, borrow_limit_percent: 100}": "team-a: {quota: {training: 1}, "
    "borrow_limit_percent: 100, access: {storage: {data: {path: /team-a}}}}",
    "\njobs:\n": _GROWS,
    "command: [torchrun, train.py]\n    nodes: 2\n": f"{_command('train-a', 'torchrun', '--nproc-per-node=1')}\n"
    f"    nodes: 2\n    checkpoints: {{path: /fsx/train-a}}{_PODS}",
}
"""Replacements in the scenario's file: its job `train-a` and the new elastic job `grows` run the example."""
FAULTS: Final = {
    "A process gets SIGKILL": f"kubectl exec --namespace {_NAMESPACE} POD -- pkill -KILL -f train.py",
    "A process gets SIGSTOP": f"kubectl exec --namespace {_NAMESPACE} POD -- pkill -STOP -f train.py",
    "The node is rebooted": f"podwright node reboot {SCENARIO} NODE --sandbox --yes",
    "The node loses a GPU and is replaced": 'eval "$(podwright sandbox status | grep export)"; '
    "curl --fail -X PUT $AWS_ENDPOINT_URL/podwright/faults?account=111122223333 "
    """-d '{"nodes": [{"node": "NODE", "kind": "gpu-lost"}]}'""",
}
"""Faults of the second pod of the elastic job or of its node, with the command that causes each."""


class Run:
    """The records of a training: a line for each step of each rank."""

    def __init__(self, files: Iterable[Path]) -> None:
        starts: dict[int, list[dict[str, Any]]] = {}
        for file in sorted(files):
            lines = [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
            starts.setdefault(int(file.name.partition("-")[0]), []).extend(lines)
        self.starts = [lines for _, lines in sorted(starts.items()) if lines]
        """Lines by start of the processes, the earliest start first."""
        self.lines: list[dict[str, Any]] = []
        """The lines of all starts, without the steps that a later start repeated."""
        for lines in self.starts:
            first = min(line["seen"] for line in lines)
            self.lines = [line for line in self.lines if line["seen"] < first] + lines

    @property
    def steps(self) -> int:
        """Number of the newest step."""
        return max((line["seen"] for line in self.lines), default=0) // BATCH

    @property
    def sizes(self) -> list[int]:
        """Numbers of ranks, in the order in which the training had them."""
        return [size for size, _ in itertools.groupby(self.of_steps("ranks").values())]

    def of_steps(self, key: str) -> dict[int, Any]:
        """Return a value that all ranks recorded, by step. Raises AssertionError if they differ."""
        values: dict[int, set[Any]] = {}
        for line in self.lines:
            values.setdefault(line["seen"] // BATCH, set()).add(line[key])
        assert [step for step, actual in values.items() if len(actual) != 1] == []
        return {step: value for step, (value,) in sorted(values.items())}

    def of_epochs(self) -> list[Counter[int]]:
        """Count the uses of each sample, by epoch. The last epoch may be incomplete."""
        epochs = [Counter[int]() for _ in range(self.steps * BATCH // SAMPLES + 1)]
        for line in self.lines:
            first = line["seen"] - BATCH + line["rank"]
            for number, sample in enumerate(line["samples"]):
                epochs[(first + number * line["ranks"]) // SAMPLES][sample] += 1
        return epochs

    def times(self, start: int) -> dict[int, float]:
        """Return the end time of each step of a start, by the number of the step."""
        lines = [line for line in self.starts[start] if line["rank"] == 0]
        return {line["seen"] // BATCH: line["time"] for line in lines}

    def retained(self, start: int) -> list[float]:
        """Return the end times of the steps of a start that no later start repeated."""
        later = [min(self.times(number)) for number in range(start + 1, len(self.starts))]
        return [time for step, time in self.times(start).items() if all(step < first for first in later)]

    @property
    def pace(self) -> float:
        """Mean seconds of a step without interruption."""
        pairs = (itertools.pairwise(self.retained(start)) for start in range(len(self.starts)))
        return mean(after - before for before, after in itertools.chain.from_iterable(pairs))


@dataclass(frozen=True)
class Recovery:
    """A fault, and the recovery of the training."""

    fault: str
    seconds: float
    """From the fault to the first step after it."""
    repeated: int
    """Steps that the training lost and repeated."""


@dataclass(frozen=True)
class Goodput:
    """Seconds in which a job trained and in which it did not, and its steps."""

    trained: float
    lost_to_faults: float
    lost_to_sizes: float
    done: int
    possible: float
    """Steps of an uninterrupted training in the same time."""

    @property
    def by_steps(self) -> float:
        """Steps done of the steps possible."""
        return self.done / self.possible

    def recorded(self) -> float:
        """Evaluate podwright's recording rule of goodput, which a page and an alert read, for these seconds."""
        seconds = {
            "training_time_ms": self.trained,
            "training_auto_recovery_downtime": self.lost_to_faults,
            "training_manual_downtime_ms": self.lost_to_sizes,
        }
        labels, at = f'{{cluster_name="{SCENARIO}",job_name="grows",namespace="{_NAMESPACE}"}}', 1_800_000_000
        lines = (f"# TYPE {name} gauge\n{name}{labels} {1000 * value} {at}\n" for name, value in seconds.items())
        (rule,) = (item for item in recordings() if item.name == "job:goodput:ratio")
        with history("".join(lines) + "# EOF\n") as prometheus:
            (answer,) = prometheus.instant(filled(rule.expression, cluster=SCENARIO, rate_seconds=300), at)
        return float(answer["value"][1])


@dataclass
class Training:
    """A training job of the user."""

    user: Terminal
    name: str
    faults: list[tuple[str, float, int]] = field(default_factory=list)
    """Each fault with its time and the start of the processes before it."""

    def files(self, pattern: str) -> Iterator[Path]:
        """Return files of the job's folder in the file system of its team. The first pod that mounts it creates it."""
        return self.user.plane.glob(f"file-systems/*/*/team-a/{self.name}/{pattern}")

    @property
    def run(self) -> Run:
        """The records so far."""
        return Run(self.files("record/*.jsonl"))

    @property
    def checkpoint(self) -> int:
        """The step of its newest complete checkpoint."""
        return max(int(file.parent.name) for file in self.files("*/.metadata")) // BATCH

    def train(self, pods: int, steps: int = _STEPS) -> None:
        """Wait for further steps, of which the last has this number of pods."""
        before = self.run.steps

        def has_trained() -> bool:
            run = self.run
            ranks = [line["ranks"] for line in run.lines if line["seen"] // BATCH == run.steps]
            return run.steps >= before + steps and ranks == [pods] * pods

        until(has_trained, lambda: self.described(f"{steps} steps after step {before} with {pods} pods"))

    def break_second_pod(self, fault: str) -> None:
        """Cause a fault of the second pod or its node, and wait until the job trains on two nodes again."""
        names = f"--namespace {_NAMESPACE} --selector HPJob={self.name} --output json"
        pods = json.loads(self.user.type(f"kubectl get pods {names}"))["items"]
        (pod,) = (item for item in pods if "-elastic-" in item["metadata"]["name"])
        node = pod["spec"]["nodeName"].removeprefix("hyperpod-")
        starts = len(self.run.starts)
        self.faults.append((fault, time.time(), starts - 1))
        self.user.type(FAULTS[fault].replace("POD", pod["metadata"]["name"]).replace("NODE", node))
        until(lambda: len(self.run.starts) > starts, lambda: self.described(f"a start after: {fault}"))
        self.train(2)

    def recoveries(self) -> Iterator[Recovery]:
        """Yield the recovery from each fault."""
        run = self.run
        for fault, at, start in self.faults:
            first, last = next(iter(run.times(start + 1).items())), max(run.times(start))
            yield Recovery(fault, first[1] - at, last - first[0] + 1)

    def goodput(self) -> Goodput:
        """Split the time from the first step to the last into training and losses."""
        run, broken = self.run, {start for _, _, start in self.faults}
        pace, trained, lost = run.pace, 0.0, {True: 0.0, False: 0.0}
        end, before = min(run.times(0).values()) - pace, 0
        for number in range(len(run.starts)):
            # Later starts repeated all steps of a start without any.
            if times := run.retained(number):
                lost[any(start in broken for start in range(before, number))] += times[0] - pace - end
                trained += times[-1] - times[0] + pace
                end, before = times[-1], number
        whole = trained + sum(lost.values())
        return Goodput(trained, lost[True], lost[False], run.steps, whole / pace)

    def described(self, expected: str) -> str:
        """Return the state of the job, for the message of a wait that failed."""
        commands = (
            f"kubectl get pods --namespace {_NAMESPACE} --output wide",
            f"kubectl describe pods --namespace {_NAMESPACE}",
            f"kubectl get hyperpodpytorchjobs,pytorchjobs --namespace {_NAMESPACE} --output yaml",
            f"podwright logs {SCENARIO} {self.name} --sandbox",
        )
        texts = [self.user.run(command) for command in commands]
        outputs = "\n".join(text.stdout + text.stderr for text in texts)
        return f"no {expected}; {self.run.steps} steps, sizes {self.run.sizes}\n{outputs}"


@contextmanager
def sandbox(folder: Path, programs: Path) -> Iterator[Terminal]:
    """A terminal of a user in whose sandbox the environment is deployed, with the example's script in the cluster."""
    left_out = (f"podwright check {SCENARIO}", f"podwright quotas {SCENARIO}")
    with deployed(SCENARIO, folder, 1.0, CHANGES, left_out=left_out, programs=programs, real_nodes=2) as user:
        user.type(f"kubectl create configmap train --namespace {_NAMESPACE} --from-file={EXAMPLE / 'train.py'}")
        yield user


@dataclass(frozen=True)
class Preemption:
    """Steps of a training before and after its preemption."""

    last: int
    """The last step before its pods ended."""
    checkpoint: int
    """The step of the newest checkpoint at that time."""
    next: int
    """The first step after the preemption."""
    run: Run


def preempt(user: Terminal) -> Preemption:
    """Train with team A on both nodes, preempt it by a job of team B, and let it continue after that job.

    The commands and the expected quotas are those of the scenario's page.
    """
    training = Training(user, "train-a")
    _, borrows, takes, *_ = story(SCENARIO)
    _submit(user, borrows.commands, borrows.tables)
    training.train(2)
    _submit(user, takes.commands, takes.tables)
    last, checkpoint = training.run.steps, training.checkpoint
    user.type(f"podwright stop {SCENARIO} train-b --sandbox")
    user.wait("podwright stop", [borrows.tables[1]])
    training.train(2)
    user.type(f"podwright stop {SCENARIO} train-a --sandbox")
    run = training.run
    return Preemption(last, checkpoint, min(run.times(1)), run)


def _submit(user: Terminal, commands: list[str], tables: list[list[Row]]) -> None:
    for command in commands:
        user.type(command)
    user.wait(commands[-1], tables)


def grow(user: Terminal, faults: Mapping[str, str] = FAULTS) -> Training:
    """Train on one node, on two once team B frees one, through all faults, and on one again once B takes it back."""
    training = Training(user, "grows")
    user.type(f"podwright submit {SCENARIO} train-b --name holds --sandbox")
    user.wait_for("holds", "Running")
    user.type(f"podwright submit {SCENARIO} grows --sandbox")
    training.train(1)
    user.type(f"podwright stop {SCENARIO} holds --sandbox")
    training.train(2)
    for fault in faults:
        training.break_second_pod(fault)
    user.type(f"podwright submit {SCENARIO} train-b --name returns --sandbox")
    training.train(1)
    return training
