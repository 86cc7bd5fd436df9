"""Jobs whose processes meet: each pod's command starts with the environment that its operator gives it.

Ray's pods are not among them: KubeRay writes the command that joins them.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from job_environment import rendered
from job_shapes import SHAPES, Shape
from pod_environments import DerivedPod, derived_pods
from podwright.config.settings.jobs.jobs import AnyJob

_PROGRAMS: Final = ("torchrun", "hyperpodrun", "mpirun", "python", "python3")
_LONGEST: Final = 300
"""Seconds after which a rendezvous of the stand-in has failed."""
MODELS: Final = {get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(get_args(AnyJob)[0])}
"""The settings of each kind of job."""
KAI: Final = {"overrides": {"governance": {"engine": "kai"}}}
LWS_WORDS: Final = [
    *("--nnodes", "$(LWS_GROUP_SIZE)"),
    *("--node-rank", "$(LWS_WORKER_INDEX)"),
    *("--master-addr", "$(LWS_LEADER_ADDRESS)"),
]
ELASTIC: Final = {"min_replicas": 2, "max_replicas": 3}
CASES: Final[dict[str, tuple[str, dict[str, Any], list[int]]]] = {
    # Kind, settings, and the ranks of each group of pods.
    "two nodes": ("pytorch", {"nodes": 2, "command": ["torchrun", "train.py"]}, [16]),
    "one node": ("pytorch", {"command": ["torchrun", "train.py"]}, [8]),
    "eleven nodes": ("pytorch", {"nodes": 11, "accelerators": 1, "command": ["torchrun", "train.py"]}, [11]),
    "several pods of a node": ("pytorch", {"nodes": 4, "accelerators": 4, "command": ["torchrun", "train.py"]}, [16]),
    "the module": ("pytorch", {"nodes": 2, "command": ["python", "-m", "torch.distributed.run", "train.py"]}, [16]),
    "Python alone": ("pytorch", {"nodes": 3, "accelerators": 1, "command": ["python", "train.py"]}, [3]),
    "Python alone in slices": (
        "jobset",
        {"nodes": 4, "slices": 2, "accelerators": 1, "command": ["python", "train.py"]},
        [2, 2],
    ),
    "a shell": ("pytorch", {"nodes": 2, "command": ["sh", "-c", "torchrun train.py"]}, [16]),
    "variables in a shell": (
        "pytorch",
        {
            "nodes": 2,
            "command": [
                *("sh", "-c"),
                "torchrun --nnodes $PET_NNODES --node_rank $PET_NODE_RANK --master_addr $MASTER_ADDR "
                "--master_port $MASTER_PORT train.py",
            ],
        },
        [16],
    ),
    "an own master": (
        "pytorch",
        {"nodes": 2, "env": {"PET_MASTER_PORT": "4000"}, "command": ["torchrun", "--max-restarts", "3", "train.py"]},
        [16],
    ),
    "elastic": ("pytorch", {**KAI, "elastic": ELASTIC, "nodes": 2, "command": ["torchrun", "train.py"]}, [16]),
    "a set": ("jobset", {"nodes": 2, "command": ["torchrun", "train.py"]}, [16]),
    "slices": ("jobset", {"nodes": 4, "slices": 2, "accelerators": 4, "command": ["torchrun", "train.py"]}, [8, 8]),
    "slices in a shell": (
        "jobset",
        {"nodes": 4, "slices": 2, "command": ["sh", "-c", "torchrun --nnodes 2 --master-addr $MASTER_ADDR train.py"]},
        [16, 16],
    ),
    "a train job": ("train", {"nodes": 2, "command": ["torchrun", "train.py"]}, [16]),
    "groups": (
        "leader_worker_set",
        {
            "nodes": 2,
            "replicas": 2,
            "command": ["torchrun", *LWS_WORDS, "train.py"],
            "leader_command": ["torchrun", *LWS_WORDS, "train.py"],
        },
        [2, 2],
    ),
    "a script": ("hyperpod_pytorch", {"nodes": 2, "command": ["train.py", "--nnodes", "3"]}, [16]),
    "a script of Python": ("hyperpod_pytorch", {"nodes": 2, "command": ["python3", "-u", "train.py"]}, [16]),
    "torchrun in front": (
        "hyperpod_pytorch",
        {"nodes": 2, "command": ["/opt/bin/torchrun", "--nproc_per_node", "8", "--rdzv_backend=c10d", "train.py"]},
        [16],
    ),
    "hyperpodrun in front": (
        "hyperpod_pytorch",
        {"nodes": 2, "command": ["hyperpodrun", "--nnodes=2", "--shutdown-timeout=60", "train.py"]},
        [16],
    ),
    "the module in front": (
        "hyperpod_pytorch",
        {"nodes": 2, "command": ["python3", "-m", "torch.distributed.run", "--nnodes", "2", "train.py"]},
        [16],
    ),
    "elastic under HyperPod": (
        "hyperpod_pytorch",
        {"command": ["torchrun", "train.py"], "elastic": {"min_replicas": 2, "max_replicas": 4, "step": 2}},
        [16],
    ),
    "mpirun": ("mpi", {"nodes": 2, "command": ["mpirun", "-np", "16", "train.py"]}, [16]),
    "NCCL's tests": ("nccl_test", {"nodes": 2}, [16]),
}


DOCUMENTED: Final = [shape for shape in SHAPES if {"torchrun", "train.py"} & set(shape.plan.job.command)]
"""Jobs of the documentation that start ranks."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs that the commands find, and the script that they start."""
    folder = tmp_path_factory.mktemp("programs")
    stand_in = Path(__file__).with_name("launcher_program.py")
    for program in _PROGRAMS:
        path = folder / program
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {stand_in} {program} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
    (folder / "train.py").touch()
    return folder


def started(pod: DerivedPod, pods: list[DerivedPod], programs: Path, longest: float) -> "subprocess.Popen[str]":
    """The command of a pod, in a process with the pod's environment and nothing else of this process."""
    # Each process of the test suite has a network of its own, and runs one job at a time.
    network = f"127.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"
    addresses = {each.address: f"{network}.{number}" for number, each in enumerate(pods, 1)}
    group = [each for each in pods if each.group == pod.group]
    own = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "PODS": json.dumps(addresses),
        "POD_IP": addresses[pod.address],
        "POD_NAME": pod.name,
        "OPERATOR": json.dumps({"rank": group.index(pod), "master": f"{group[0].address}:29500"}),
        "LONGEST": str(longest),
    }
    program = programs / Path(pod.command[0]).name
    words = [str(program) if program.exists() else pod.command[0], *pod.command[1:]]
    return subprocess.Popen(
        words, cwd=programs, env={**pod.env, **own}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ranks(pods: list[DerivedPod], programs: Path, longest: float = _LONGEST) -> dict[str, list[int]]:
    """The ranks that the pods of each group start, in the order of the pods.

    Raises AssertionError where the processes of a group do not meet or think that they are fewer or more.
    """
    running = [pod for pod in pods if pod.command[0] != "/usr/sbin/sshd"]
    processes = [started(pod, pods, programs, longest) for pod in running]
    ended = [process.communicate() for process in processes]
    results: dict[str, list[int]] = {}
    sizes: dict[str, set[int]] = {}
    for pod, process, (output, errors) in zip(running, processes, ended, strict=True):
        assert process.returncode == 0, f"{pod.name}: {errors}"
        answer = json.loads(output)
        assert answer.get("script", "train.py") == "train.py"
        results.setdefault(pod.group, []).extend(answer["ranks"])
        sizes.setdefault(pod.group, set()).add(answer["world"])
    assert sizes == {group: {len(each)} for group, each in results.items()}
    return results


@pytest.mark.parametrize("name", CASES)
def test_all_ranks_meet(name: str, programs: Path) -> None:
    kind, job, groups = CASES[name]
    pods = derived_pods(rendered(kind, **job)[-1])
    assert list(ranks(pods, programs).values()) == [list(range(count)) for count in groups]


@pytest.mark.parametrize("shape", DOCUMENTED, ids=lambda shape: shape.anchor)
def test_ranks_of_a_documented_job_meet(shape: Shape, programs: Path) -> None:
    pods = derived_pods(shape.objects[-1])
    assert all(each == list(range(len(each))) for each in ranks(pods, programs).values())


def test_every_kind_of_several_nodes_has_a_case() -> None:
    """Ray is left out, as above.

    Pods of kind job work by themselves, a recipe is not an object, and Slurm has its tests.
    """
    distributed = {name for name, model in MODELS.items() if model.distributed}
    cases = {kind for kind, _, _ in CASES.values()}
    assert distributed - cases == {"job", "ray", "ray_cluster", "recipe", "sbatch"}


WITHOUT: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "workers without variables": ("pytorch", {"nodes": 2}, "1/2 clients joined"),
    "a set that takes one pod for the first of both slices": (
        "jobset",
        {"nodes": 4, "slices": 2},
        "clients joined|pods have the numbers|nothing listens|hung up",
    ),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_pods_without_their_variables_do_not_meet(name: str, programs: Path) -> None:
    kind, job, message = WITHOUT[name]
    pods = derived_pods(rendered(kind, **job, command=["torchrun", "train.py"])[-1])
    own = {"PET_NNODES", "PET_NPROC_PER_NODE"}
    bare = [replace(pod, env={key: value for key, value in pod.env.items() if key in own}) for pod in pods]
    if kind == "jobset":
        bare = [replace(pod, env={**pod.env, "PET_MASTER_ADDR": pods[0].address}) for pod in pods]
    with pytest.raises(AssertionError, match=message):
        ranks(bare, programs, longest=0.5)
