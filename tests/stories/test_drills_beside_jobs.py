"""Drills of docs/operator/drills.md on two real nodes: each kind breaks a node on which jobs of three kinds run.

The HyperPod job also has pods on the other node, whose processes fail or are stopped when it loses the first.
"""

import json
import re
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
    vcpu: 10
    auto_resume: 10
    config_maps: {train: {path: /etc/train}}
  hyperpod:
    kind: hyperpod_pytorch
    team: research
    group: h200
    image: 123456789012.dkr.ecr.us-west-2.amazonaws.com/trainer:1.0
    command: [hyperpodrun, /etc/train/connected.py]
    nodes: 3
    # Only two of these pods fit on a node, and Ray's head does not fit next to them.
    accelerators: 4
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
    head: {vcpu: 16}
    retries: 10
    # Without `ray` its pods are simulated. Each start of a real Ray takes half a minute of a processor.
    env: {PATH: "/usr/sbin:/usr/bin:/sbin:/bin"}
"""
CHANGES: Final = {
    "count: 4": "count: 2",
    "quota: {h200: 3}": "quota: {h200: 2}",
    "    product: {quota: {h200: {accelerators: 4}}, share: lend}\n": "",
    # The recovery counts here, and not how busy this machine is.
    "drills: true": "drills: true\n  targets: {detection_seconds: 3600, reboot_minutes: 60, resume_minutes: 60}",
    "\njobs:\n": JOBS,
}
PODS: Final = {"pytorchjob/torch": (2, 2), "hyperpodpytorchjob/hyperpod": (1, 3), "rayjob/ray": (3, 3)}
"""Pods of each job on the broken node, and in total. Ray has one more for its head."""
OTHERS: Final = PODS["pytorchjob/torch"][1] + PODS["rayjob/ray"][1]
SLEEP: Final = """
import time
time.sleep(3600)
"""
CONNECTED: Final = r"""
# Ranks that lose their connection fail, like those of a process group.
import os, socket, time

rank, ranks, port = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["MASTER_PORT"]) + 1
if rank == 0:
    server = socket.create_server(("", port))
    others = [server.accept()[0] for _ in range(ranks - 1)]
else:
    others = []
    while not others:
        try:
            others.append(socket.create_connection((os.environ["MASTER_ADDR"], port)))
        except OSError:
            time.sleep(0.1)
print(f"rank {rank} of {ranks} started at {time.time()}", flush=True)
while True:
    for other in others:
        other.sendall(b".")
        if not other.recv(1):
            raise SystemExit("another rank has ended")
    time.sleep(0.5)
"""
STARTED: Final = re.compile(r"rank (\d) of 3 started at ([\d.]+)")


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
        for name, script in {"train": SLEEP, "connected": CONNECTED}.items():
            (folder / f"{name}.py").write_text(script, encoding="utf-8")
        scripts = f"--from-file={folder / 'train.py'} --from-file={folder / 'connected.py'}"
        user.type(f"kubectl create configmap train --namespace {NAMESPACE} {scripts}")
        for job in ("torch", "hyperpod", "ray"):
            user.type(f"podwright submit sandbox {job} --sandbox")
        becomes(OTHERS, lambda: len(containers(user)))
        becomes([0, 1, 2], lambda: sorted(ranks(user)))
        yield user
    finally:
        server.stop(folder)


def pods(user: Terminal) -> list[dict[str, Any]]:
    """The pods of the jobs that run, and are ready."""
    items = json.loads(user.type(f"kubectl get pods --namespace {NAMESPACE} --output json"))["items"]
    conditions = {"type": "Ready", "status": "True"}.items()
    return [pod for pod in items if any(conditions <= item.items() for item in pod["status"].get("conditions", ()))]


def containers(user: Terminal) -> dict[str, float]:
    """When the first container of each pod started. The HyperPod job may keep pods, in which processes start again."""
    return {
        pod["metadata"]["name"]: min(
            datetime.fromisoformat(status["state"]["running"]["startedAt"]).timestamp()
            for status in pod["status"]["containerStatuses"]
        )
        for pod in pods(user)
        if "HPJob" not in pod["metadata"]["labels"]
    }


def ranks(user: Terminal) -> dict[int, float]:
    """When each rank of the HyperPod job last started to train with the others."""
    # A container may not have started yet.
    logs = user.run(f"kubectl logs --namespace {NAMESPACE} --selector HPJob=hyperpod --tail=-1").stdout
    starts = sorted((float(time), int(rank)) for rank, time in STARTED.findall(logs))
    return {rank: time for time, rank in starts}


def restarts(user: Terminal) -> int:
    """Counted restarts of the HyperPod job."""
    job = f"kubectl get hyperpodpytorchjob hyperpod --namespace {NAMESPACE} --output json"
    return json.loads(user.type(job))["status"]["restartCount"]


@pytest.mark.parametrize("fault", [kind.name for kind in drill_kinds().values() if kind.orchestrator == "eks"])
def test_all_jobs_of_a_broken_node_start_again(user: Terminal, fault: str) -> None:
    (node,) = {pod["spec"]["nodeName"] for pod in pods(user) if "HPJob" not in pod["metadata"]["labels"]}
    before = restarts(user)
    result = user.run(f"podwright drill fault sandbox --node {node} --fault {fault} --yes --sandbox --json")
    assert result.returncode == 0, result.stdout + result.stderr
    for job, (on_node, count) in PODS.items():
        assert f"{NAMESPACE}/{job} has {on_node} of its {count} running pods on it" in result.stderr
    drill = json.loads(result.stdout)
    assert drill["ok"]
    assert drill["action"] == drill["expected"] == drill_kinds()[fault].action
    assert "resumed" in drill["marks"]
    broken = datetime.fromisoformat(drill["begun"]).timestamp()
    becomes([0, 1, 2], lambda: sorted(rank for rank, start in ranks(user).items() if start > broken))
    becomes([True] * OTHERS, lambda: [start > broken for start in containers(user).values()])
    # Kueue evicts a job whose node is replaced. That is no restart of the job, unless it lost the pod before.
    assert restarts(user) - before in ((0, 1) if drill["action"] == "replace" else (1,))
