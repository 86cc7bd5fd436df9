"""Jobs of each kind, as podwright renders them, on two real nodes: their operators make the pods, whose processes meet.

The control plane has no queue, so manifests are applied without the labels and schedulers by which one admits them.
"""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest

from api_server import Object, started
from control_plane_parts import needs_parts
from job_cases import ALL_REDUCE, CASES, MPI, MPI_SCRIPT, RAY, RAY_SCRIPT, SCRIPT, Case
from job_environment import rendered
from needs import needs
from podwright.cdk8s_charts.lustre_volumes import lustre_volume
from podwright.cdk8s_charts.training_runtime import torch_runtime
from podwright.config.loading.project import Project
from podwright.config.settings.platform import TRAINING_OPERATOR
from podwright.operations.cli import main
from podwright.operations.kubernetes.job_manifests import job_manifests
from podwright.planning.helm.operators import BUNDLED, NODE_PARTS
from podwright.planning.kubernetes.deployed_values import LustreValues
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.control_plane.processes import Ports
from podwright.sandbox.control_plane.pytorch import INSTALL, PyTorch
from podwright.sandbox.kubernetes.custom_kinds import installed_by
from podwright.sandbox.nodes.support import obstacle
from test_real_nodes import NAME, REGION, TYPE, WHOLE_NODE, Cluster, Service
from waiting import until

OBSTACLE = obstacle(pins(), Cache.of_user())
OPERATORS = tuple(dict.fromkeys(operator for case in CASES.values() for operator in case.operators))
pytestmark = [
    needs_parts(*NODE_PARTS, *(name for name in OPERATORS if name not in BUNDLED)),
    needs(OBSTACLE is None, str(OBSTACLE)),
    needs(PyTorch.of_user().state is State.INSTALLED, f"PyTorch: `{INSTALL}`"),
]

ROOT = Path(__file__).parents[3]
TEAM = "hyperpod-ns-llm"
LINE = re.compile(r"rank \d+ of \d+ adds up to \d+")
FOLDER, _, FILE = SCRIPT.rpartition("/")
MPI_FILE, RAY_FILE = (script.rpartition("/")[2] for script in (MPI_SCRIPT, RAY_SCRIPT))
ENVIRONMENT: dict[str, Any] = {
    "groups": {"h200": {"instance_type": TYPE, "count": 2}},
    "teams": {"llm": {"quota": {"h200": 2}}},
}


def of_team(kind: str, name: str, **content: Any) -> Object:
    """An object of the team."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": TEAM}, **content}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two nodes, both of which are real and ready."""
    folder = tmp_path_factory.mktemp("real-nodes")
    with started(folder / "111122223333" / REGION / NAME, *NODE_PARTS) as plane:
        cluster = Cluster(plane, folder)
        cluster.service = Service(2)
        try:
            for operator in OPERATORS:
                plane.install(operator)
            until(lambda: all(map(cluster.is_ready, cluster.names)))
            cluster.server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
            cluster.server.apply(of_team("ConfigMap", "train", data={FILE: ALL_REDUCE, MPI_FILE: MPI, RAY_FILE: RAY}))
            # Pods are refused until their namespace has it.
            until(lambda: cluster.server.items("v1", "ServiceAccount", TEAM))
            cluster.server.apply(torch_runtime())
            for definition in installed_by(TRAINING_OPERATOR):
                cluster.server.apply(definition)
            yield cluster
        finally:
            cluster.planes.planes.clear()
            cluster.planes.stop()


def unqueued(manifest: Object) -> Object:
    """A manifest without what hands it to a queue."""
    manifest["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name", None)
    return _without(manifest, "schedulerName")


def _without(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: _without(item, key) for name, item in value.items() if name != key}
    return [_without(item, key) for item in value] if isinstance(value, list) else value


def pods(cluster: Cluster) -> list[Object]:
    """The pods of the team, after the nodes have followed."""
    cluster.planes.follow(cluster.service)
    return cluster.server.items("v1", "Pod", TEAM)


def printed(cluster: Cluster) -> list[str]:
    """The lines of all pods' logs that ranks print."""
    logs = map(cluster.server.log, pods(cluster))
    # Two processes of a container may write into one line.
    return sorted(line for log in logs for line in LINE.findall(log))


def described(cluster: Cluster) -> str:
    """What is known of the pods."""
    return cluster.kubectl("describe", "pods", f"--namespace={TEAM}") + "\n".join(
        cluster.kubectl("logs", pod["metadata"]["name"], f"--namespace={TEAM}", "--all-containers")
        for pod in pods(cluster)
    )


def marked(name: str) -> Any:
    """A case, with what it needs of this machine."""
    has_mpi = shutil.which("mpirun") is not None and Path("/usr/sbin/sshd").exists()
    marks = [needs(has_mpi, "`apt-get install openmpi-bin openssh-server`")] if name == "mpi" else []
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [*map(marked, CASES)])
def test_all_ranks_add_up(cluster: Cluster, name: str) -> None:
    case: Case = CASES[name]
    config_maps = {"train": {"path": FOLDER}}
    overrides = ENVIRONMENT | case.overrides
    *others, job = rendered(case.kind, overrides=overrides, group="h200", config_maps=config_maps, **case.settings)
    assert others == []
    # Engines name the team's namespace differently.
    job["metadata"]["namespace"] = TEAM
    applied = unqueued(job)
    until(lambda: cluster.server.accepts(applied), lambda: described(cluster))
    try:
        until(lambda: printed(cluster) == case.lines, lambda: described(cluster))
        nodes = {pod["spec"]["nodeName"] for pod in pods(cluster)}
        assert nodes == set(cluster.names)
        if case.kind == "ray":
            # Only the dashboard of the head knows when the job started.
            until(lambda: "start_time" in answer_of_dashboard(cluster, applied), lambda: described(cluster))
            until(lambda: cluster.server.read(applied)["status"].get("jobStatus") == "SUCCEEDED")
    finally:
        cluster.server.delete(applied)
        until(lambda: not pods(cluster), lambda: described(cluster))


def answer_of_dashboard(cluster: Cluster, job: Object) -> Object:
    """What KubeRay learns of a job of Ray when it asks the dashboard."""
    status = cluster.server.read(job)["status"]
    ports = Ports.read(cluster.plane.kubeconfig.parents[1] / "ports.json")
    assert ports
    ask = build_opener(ProxyHandler({"http": f"http://127.0.0.1:{ports.ray_dashboard}"})).open
    with ask(f"http://{status['dashboardURL']}/api/jobs/{status['jobId']}") as answer:
        return json.load(answer)


def submitted_hello(cluster: Cluster, command: Sequence[str] = ()) -> Object:
    """Apply the job `hello` of the shipped sandbox, with its claim, and with another command if one is named."""
    environment = Project.at(ROOT).load("sandbox")
    [job] = job_manifests(environment, ["hello"])["hello"]
    namespace = job["metadata"]["namespace"]
    cluster.server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    values = LustreValues(id="fs-0123456789abcdef0", dns_name="fs.fsx.us-east-1.amazonaws.com", mount_name="abcdefgh")
    for item in lustre_volume(namespace, "work", values, path="/research", read_only=False):
        cluster.server.apply(item)
    until(lambda: cluster.server.items("v1", "ServiceAccount", namespace))
    if command:
        job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["command"] = list(command)
    applied = unqueued(job)
    until(lambda: cluster.server.accepts(applied))
    return applied


def logs_of_hello(cluster: Cluster, *options: str) -> int:
    """Run `podwright logs sandbox hello`."""
    way = ["--kubeconfig", str(cluster.plane.kubeconfig), "--project", str(ROOT)]
    return main(["logs", "sandbox", "hello", *options, *way])


def statuses(cluster: Cluster, namespace: str) -> list[Object]:
    """The statuses of the containers of a namespace."""
    cluster.planes.follow(cluster.service)
    pods = cluster.server.items("v1", "Pod", namespace)
    return [status for pod in pods for status in pod["status"].get("containerStatuses", [])]


def test_hello_of_the_sandbox_prints_both_ranks(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    job = submitted_hello(cluster)
    namespace = job["metadata"]["namespace"]

    def ended() -> list[int]:
        states = [status["state"].get("terminated") for status in statuses(cluster, namespace)]
        return [state["exitCode"] for state in states if state]

    try:
        until(lambda: ended() == [0, 0], lambda: cluster.kubectl("describe", "pods", f"--namespace={namespace}"))
        for options in ((), ("--rank", "1")):
            assert logs_of_hello(cluster, *options) == 0
            # torchrun may add errors of its exit barrier: its store ends with the master.
            printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("rank ")]
            assert printed == [f"rank {rank} of 2 adds up to 1" for rank in range(2) if not options or rank == 1]
    finally:
        cluster.server.delete(job)
        until(lambda: not cluster.server.items("v1", "Pod", namespace))


def test_logs_say_that_a_container_cannot_start(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    # A container whose program is missing is simulated. This one is there, and is no program.
    job = submitted_hello(cluster, ["/etc/passwd"])
    namespace = job["metadata"]["namespace"]
    try:
        until(lambda: any(status["restartCount"] for status in statuses(cluster, namespace)))
        assert logs_of_hello(cluster) == 1
        printed = " ".join(capsys.readouterr().err.split())
        assert '"/etc/passwd": permission denied' in printed
    finally:
        cluster.server.delete(job)
        until(lambda: not cluster.server.items("v1", "Pod", namespace))


DEVICES = """
import subprocess, torch
print(torch.cuda.is_available(), flush=True)
subprocess.run(["nvidia-smi"], stderr=subprocess.STDOUT)
"""


def test_a_program_that_looks_for_gpus_is_told_of_the_sandbox(cluster: Cluster) -> None:
    pod = cluster.run("devices", cluster.names[0], DEVICES, WHOLE_NODE)
    until(lambda: cluster.phase(pod) == "Succeeded", lambda: cluster.kubectl("describe", "pod", "devices"))
    available, explained = cluster.kubectl("logs", "devices").splitlines()
    assert available == "False"
    assert explained.startswith("nvidia-smi: this node of podwright's sandbox advertises GPUs")
    cluster.server.delete(pod)


ROOTS_WORK = """
import os, socket
socket.create_server(("", 22)).close()
os.chown("/tmp", 1000, 1000)
print("bound and changed")
"""


def test_root_has_the_capabilities_that_containerd_gives(cluster: Cluster) -> None:
    pod = cluster.run("capable", cluster.names[0], ROOTS_WORK)
    until(lambda: cluster.phase(pod) in ("Succeeded", "Failed"))
    assert cluster.kubectl("logs", "capable") == "bound and changed\n"
    cluster.server.delete(pod)


def test_an_image_by_digest_runs(cluster: Cluster) -> None:
    container = {"name": "main", "image": f"example.com/team/train@sha256:{'1' * 64}", "command": ["python", "-V"]}
    selector = {"kubernetes.io/hostname": cluster.names[0]}
    spec = {"restartPolicy": "Never", "nodeSelector": selector, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "digest", "namespace": "default"}, "spec": spec}
    cluster.server.create(pod)
    until(lambda: cluster.phase(pod) == "Succeeded", lambda: cluster.kubectl("describe", "pod", "digest"))
    assert cluster.kubectl("logs", "digest").startswith("Python 3")
    cluster.server.delete(pod)
