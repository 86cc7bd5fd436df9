"""A node that is killed anywhere during its set-up and started again ends as if it had not been."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fake_node import SCRIPTS, make_node
from kill_runs import kill_runs

NODES: dict[str, dict[str, Any]] = {
    "eks": {"node": {"instance_type": "ml.p5en.48xlarge"}, "running": ["containerd", "kubelet"]},
    "slurm": {
        "node": {"instance_type": "ml.p5.48xlarge", "orchestrator": "slurm", "system": "ubuntu22.04"},
        "file_systems": True,
        "running": ["containerd", "docker", "docker.socket", "slurmd"],
    },
    "ultraserver": {
        "node": {"instance_type": "ml.p6e-gb200.36xlarge", "orchestrator": "slurm", "system": "ubuntu24.04"},
        "running": [],
    },
    "trainium": {"node": {"instance_type": "ml.trn1.32xlarge"}, "running": ["containerd"]},
}
CASES = {"eks": 120, "slurm": 170, "ultraserver": 120, "trainium": 100}
"""At least so many points of each kind: 510. A usual run takes every STRIDE-th, `--every-point` all of them."""
STRIDE = 40
FIRST = "eks"
"""The kind of which a usual run kills every step; of another kind it kills the steps that tell it from this one."""
STEPS = {
    "eks": {
        "clock",
        "efa-use",
        "fabric-manager",
        "gdrcopy",
        "gpus",
        "limits",
        "local-nvme",
        "log-rotation",
        "persistence",
    },
    "slurm": {"home", "homes", "job-variables", "lnet", "lustre", "ssh", "storage"},
    "ultraserver": {"imex", "storage"},
    "trainium": {"neuron", "neuron-tools"},
}
"""Steps of the host that have to be among them. Those of Slurm itself are killed where Slurm is real."""


def kill(
    folder: Path, name: str, *, stride: int = 1, spoilt: bool = False, steps: list[str] | None = None
) -> dict[str, Any]:
    """What killing.py says about that kind of node."""
    slurm = [f"slurm-{file.stem.replace('_', '-')}" for file in (SCRIPTS / "podwright_node/slurm").glob("*.py")]
    provided = {"stride": stride, "spoilt": spoilt, "steps": steps, "without": slurm}
    return kill_runs("killing.py", folder, {"file_systems": False, **provided, **NODES[name]})


@pytest.mark.parametrize("name", NODES)
def test_every_step_can_be_killed_anywhere(folder: Path, name: str, request: pytest.FixtureRequest) -> None:
    every_point = request.config.getoption("--every-point")
    stride = 1 if every_point else STRIDE
    steps = None if every_point or name == FIRST else sorted(STEPS[name])
    answer = kill(folder, name, stride=stride, steps=steps)
    for case in answer["cases"]:
        assert case["code"] == 0, f"killed before {case['point']}\n{case['log']}"
        assert case["differs"] == {}, f"killed before {case['point']}"
    points = [case["point"] for case in answer["cases"] if case["killed"]]
    # A point that another step took over by chance, three times in a row, is a rare thing.
    assert len(points) > 0.97 * len(answer["cases"])
    assert len(points) >= CASES[name] // stride
    assert {point.partition(":")[0] for point in points} >= STEPS[name]


def test_a_step_that_is_not_idempotent_is_caught(folder: Path) -> None:
    answer = kill(folder, "trainium", spoilt=True, steps=["spoilt"])
    caught = {case["point"]: sorted(case["differs"]) for case in answer["cases"] if case["differs"]}
    assert len(answer["cases"]) >= 3
    assert {"etc/spoilt"} in map(set, caught.values()), answer["cases"]


@pytest.mark.parametrize("service", ["containerd", "kubelet"])
def test_killed_in_the_middle_of_a_copy(folder: Path, service: str) -> None:
    real = shutil.which("cp")
    node = make_node(folder)
    node.running("containerd", "kubelet")
    # It leaves half a copy, and takes the process that called it along.
    half = 'mkdir -p "${@: -1}/half"; kill -9 $PPID'
    node.put("fakes/cp", f'#!/bin/bash\n[[ "$*" == *{service} ]] || exec {real} "$@"\n{half}\n')
    (node.root / "fakes/cp").chmod(0o755)
    attempt = "find $PODWRIGHT_ROOT/var/lib/containerd $PODWRIGHT_ROOT/var/lib/kubelet -printf '%P\\n'"
    result = node.shell(f"nvme; on_create && exit 3; rm $PODWRIGHT_ROOT/fakes/cp; on_create; {attempt}")
    assert result.returncode == 0, result.stderr
    assert "failed with status 137" in node.log
    assert set(result.stdout.split()) == {"io.containerd.content", "io.containerd.content/blob", "config.json"}


def test_the_state_says_where_the_data_went(folder: Path) -> None:
    node = make_node(folder)
    node.shell("nvme; on_create")
    state = json.loads((node.root / "var/lib/podwright/storage.json").read_text())
    assert state == {"disk": "/opt/dlami/nvme", "moved": ["containerd", "kubelet"], "restart": []}
