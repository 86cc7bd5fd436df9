"""Drills of docs/operator/drills.md on two real nodes: each kind breaks a node on which jobs of three kinds run."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from control_plane_parts import require_parts
from needs import needs
from podwright.config.catalog.drills import drill_kinds
from podwright.operations.aws import sandbox_server as server
from podwright.planning.helm.operators import NODE_PARTS
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.control_plane.pytorch import INSTALL, PyTorch
from podwright.sandbox.nodes.support import obstacle
from story import ROOT, Terminal
from waiting import becomes

OBSTACLE: Final = obstacle(pins(), Cache.of_user())
pytestmark = [
    needs(not OBSTACLE, str(OBSTACLE)),
    needs(PyTorch.of_user().state is State.INSTALLED, f"PyTorch: `{INSTALL}`"),
]
NAMESPACE: Final = "hyperpod-ns-research"
JOBS: Final = """
platform: {cert_manager: {}, training_operator: {}, kuberay: {}}

jobs:
  torch:
    kind: pytorch
    team: research
    group: h200
    image: 123456789012.dkr.ecr.us-west-2.amazonaws.com/trainer:1.0
    command: [python, /etc/train/train.py]
    nodes: 2
    accelerators: 1
    auto_resume: 10
    config_maps: {train: {path: /etc/train}}
  hyperpod:
    kind: hyperpod_pytorch
    team: research
    group: h200
    image: 123456789012.dkr.ecr.us-west-2.amazonaws.com/trainer:1.0
    command: [hyperpodrun, /etc/train/train.py]
    nodes: 2
    accelerators: 1
    processes_per_node: 1
    restarts: {before_full: 10}
    config_maps: {train: {path: /etc/train}}
  ray:
    kind: ray
    ray_version: 2.54.0
    team: research
    group: h200
    image: 123456789012.dkr.ecr.us-west-2.amazonaws.com/ray:2.54.0
    command: [python, train.py]
    nodes: 2
    accelerators: 1
    retries: 10
    # Without `ray` its pods are simulated. Each start of a real Ray takes half a minute of a processor.
    env: {PATH: "/usr/sbin:/usr/bin:/sbin:/bin"}
"""
CHANGES: Final = {
    "count: 4": "count: 2",
    "quota: {h200: 3}": "quota: {h200: 1}",
    # The recovery counts here, and not how busy this machine is.
    "drills: true": "drills: true\n  targets: {detection_seconds: 3600, reboot_minutes: 60, resume_minutes: 60}",
    "\njobs:\n": JOBS,
}
PODS: Final = {"pytorchjob/torch": 2, "hyperpodpytorchjob/hyperpod": 2, "rayjob/ray": 3}
"""Pods of each job. Ray has one more for its head."""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, commands_without_cdk: Path) -> Iterator[Terminal]:
    """A user in whose sandbox the three jobs run."""
    require_parts(*NODE_PARTS, "kueue", "training-operator", "kuberay")
    folder = tmp_path_factory.mktemp("drills")
    text = (ROOT / "environments/sandbox.yaml").read_text(encoding="utf-8")
    for old, new in CHANGES.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "environments").mkdir()
    (folder / "environments/sandbox.yaml").write_text(text, encoding="utf-8")
    server.start(folder, port=0, time_scale=1.0, kubernetes="real", real_nodes=2)
    try:
        user = Terminal(folder, programs=commands_without_cdk)
        user.type("podwright deploy sandbox --sandbox")
        user.type(f"export KUBECONFIG={user.plane / 'keys/admin.kubeconfig'}")
        script = "--from-literal=train.py='import time; time.sleep(3600)'"
        user.type(f"kubectl create configmap train --namespace {NAMESPACE} {script}")
        for job in ("torch", "hyperpod", "ray"):
            user.type(f"podwright submit sandbox {job} --sandbox")
        becomes(sum(PODS.values()), lambda: len(starts(user)))
        yield user
    finally:
        server.stop(folder)


def pods(user: Terminal) -> list[dict[str, Any]]:
    """The pods of the jobs that run, and are ready."""
    items = json.loads(user.type(f"kubectl get pods --namespace {NAMESPACE} --output json"))["items"]
    conditions = {"type": "Ready", "status": "True"}.items()
    return [pod for pod in items if any(conditions <= item.items() for item in pod["status"].get("conditions", ()))]


def starts(user: Terminal) -> dict[str, float]:
    """When the first container of each pod started."""
    return {
        pod["metadata"]["name"]: min(
            datetime.fromisoformat(status["state"]["running"]["startedAt"]).timestamp()
            for status in pod["status"]["containerStatuses"]
        )
        for pod in pods(user)
    }


@pytest.mark.parametrize("fault", [kind.name for kind in drill_kinds().values() if kind.orchestrator == "eks"])
def test_all_jobs_of_a_broken_node_start_again(user: Terminal, fault: str) -> None:
    (node,) = {pod["spec"]["nodeName"] for pod in pods(user)}
    result = user.run(f"podwright drill fault sandbox --node {node} --fault {fault} --yes --sandbox --json")
    assert result.returncode == 0, result.stdout + result.stderr
    for job, count in PODS.items():
        assert f"{NAMESPACE}/{job} has {count} of its {count} running pods on it" in result.stderr
    drill = json.loads(result.stdout)
    assert drill["ok"]
    assert drill["action"] == drill["expected"] == drill_kinds()[fault].action
    assert "resumed" in drill["marks"]
    broken = datetime.fromisoformat(drill["begun"]).timestamp()
    becomes(sum(PODS.values()), lambda: len([start for start in starts(user).values() if start > broken]))
