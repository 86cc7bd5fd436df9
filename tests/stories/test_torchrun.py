"""PyTorch's own torchrun with the environments of rendered pods: processes on CPUs that add up over gloo."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from elastic_pods import NEEDS_PYTORCH, PYTORCH, free_port
from job_environment import rendered
from pod_environments import DerivedPod, derived_pods
from podwright.planning.jobs.launcher import FLAGS, VALUES

pytestmark = NEEDS_PYTORCH

_SCRIPT: Final = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} adds up to {int(total)}", flush=True)
dist.destroy_process_group()
"""
_OPTIONS: Final = """\
import json
from hyperpod_elastic_agent.run import add_additional_hyperpod_args
from torch.distributed.run import get_args_parser

parser = get_args_parser()
add_additional_hyperpod_args(parser)
options = [action for action in parser._actions if action.option_strings and action.dest != "help"]
print(json.dumps([[action.dest.replace("_", "-"), action.nargs == 0] for action in options]))
"""
CASES: Final[dict[str, tuple[str, dict[str, Any], int]]] = {
    # Kind, settings, and the ranks of each group of pods.
    "fixed size": ("pytorch", {"nodes": 2, "accelerators": 2}, 4),
    "elastic": (
        "pytorch",
        {
            "nodes": 2,
            "accelerators": 1,
            "elastic": {"min_replicas": 2, "max_replicas": 2},
            "overrides": {"governance": {"engine": "kai"}},
        },
        2,
    ),
    "slices": ("jobset", {"nodes": 4, "slices": 2, "accelerators": 1}, 2),
    "train job": ("train", {"nodes": 2, "accelerators": 1}, 2),
}


def started(pod: DerivedPod, port: str, number: int, folder: Path) -> "subprocess.Popen[str]":
    """The pod's command, with loopback and a free port in place of the first pod's name and port."""
    env = {key: value for key, value in pod.env.items() if key.startswith(("PET_", "MASTER_"))}
    env |= {key: "127.0.0.1" for key in env if key.endswith("MASTER_ADDR")}
    env |= {key: port for key in env if key.endswith("MASTER_PORT")}
    env |= {key: f"127.0.0.1:{port}" for key in env if key == "PET_RDZV_ENDPOINT"}
    # Pods have a name each, by which c10d tells them apart.
    own = {"PET_LOCAL_ADDR": f"127.0.0.{number + 1}", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    own |= {"PATH": f"{PYTORCH.programs}:{os.environ['PATH']}", "HOME": str(folder)}
    return subprocess.Popen(
        pod.command, cwd=folder, env=env | own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def master(pod: DerivedPod) -> str:
    """Where the pod looks for the first one."""
    return pod.env.get("PET_MASTER_ADDR") or pod.env["PET_RDZV_ENDPOINT"]


@pytest.mark.parametrize("name", CASES)
def test_all_ranks_add_up(name: str, tmp_path: Path) -> None:
    kind, job, count = CASES[name]
    (tmp_path / "train.py").write_text(_SCRIPT, encoding="utf-8")
    pods = derived_pods(rendered(kind, **job, command=["torchrun", "train.py"])[-1])
    ports = {address: str(free_port()) for address in dict.fromkeys(map(master, pods))}
    processes = [started(pod, ports[master(pod)], number, tmp_path) for number, pod in enumerate(pods)]
    ended = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(pods), "\n".join(errors for _, errors in ended)
    by_group: dict[str, list[str]] = {}
    for pod, (output, _) in zip(pods, ended, strict=True):
        by_group.setdefault(master(pod), []).extend(output.splitlines())
    total = sum(range(count))
    expected = [f"rank {rank} of {count} adds up to {total}" for rank in range(count)]
    assert [sorted(lines) for lines in by_group.values()] == [expected] * len(ports)


def test_the_launchers_take_the_arguments_that_podwright_knows() -> None:
    answer = subprocess.run([PYTORCH.programs / "python", "-c", _OPTIONS], capture_output=True, text=True, check=True)
    options = dict(json.loads(answer.stdout.splitlines()[-1]))
    assert {name for name, is_flag in options.items() if is_flag} == set(FLAGS)
    assert {name for name, is_flag in options.items() if not is_flag} == set(VALUES)
