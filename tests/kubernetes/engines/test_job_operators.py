"""Jobs as podwright renders them, each by its own operator: queued by Kueue, with pods on nodes, until they end."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from api_server import ApiServer, Object
from control_plane_parts import require_parts
from job_environment import rendered, with_jobs
from listening import addresses
from podwright.cdk8s_charts.training_runtime import torch_runtime
from podwright.operations.aws.account import Account
from podwright.operations.cdk.progress import Progress
from podwright.operations.jobs.cluster_jobs import read_cluster
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.teardown import work
from podwright.operations.teardown.work import end_work
from podwright.planning.helm.operators import BUNDLED, OPERATORS
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.eks.task_governance import apply_quota, remove_quota, settings
from podwright.sandbox.hyperpod.pod_ends import EXIT_CODE, RUNS_FOR
from podwright.sandbox.kubernetes.api_objects import ApiObjects
from real_cluster import add_nodes
from waiting import until

QUEUES = "kueue.x-k8s.io/v1beta2"
TYPE = "ml.g5.12xlarge"
TEAM = "hyperpod-ns-llm"
ENVIRONMENT: dict[str, Any] = {
    "groups": {"g5": {"instance_type": TYPE, "count": 4}},
    "teams": {"llm": {"quota": {"g5": 4}}},
}
QUOTA = {
    "ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": TYPE, "Count": 4}]},
    "ComputeQuotaTarget": {"TeamName": "llm", "FairShareWeight": 10},
}
COMMAND = ["python", "train.py"]


@dataclass(frozen=True)
class Kind:
    """A kind of job: how one is written, how many pods it has, and how it is seen to have ended."""

    name: str
    written: Object
    pods: int
    last: str = ""
    """A label of the pods whose end is the job's; all of them where there is none."""
    done: str = "Succeeded"
    """Nothing where it runs until somebody stops it."""
    groups: int = 0
    """So many groups of pods queue by themselves, whose pods are there and held back; a job as a whole where zero."""

    def manifest(self, **changes: Any) -> Object:
        """The job as podwright renders it."""
        (manifest,) = rendered(self.name, overrides=ENVIRONMENT, group="g5", **self.written | changes)
        return manifest


LAUNCHER = "training.kubeflow.org/job-role=launcher"
KINDS = [
    Kind("job", {"nodes": 2, "command": COMMAND, "retries": 0}, 2, done="Complete"),
    Kind("pytorch", {"nodes": 2, "command": COMMAND}, 2),
    Kind("mpi", {"nodes": 2, "command": ["mpirun", "hostname"]}, 3, LAUNCHER),
    Kind("nccl_test", {"nodes": 2}, 3, LAUNCHER),
    Kind("ray", {"nodes": 2, "command": COMMAND, "ray_version": "2.49.0"}, 3, "ray.io/node-type=head", "Complete"),
    Kind("ray_cluster", {"nodes": 2, "ray_version": "2.49.0", "head": {"accelerators": 4}}, 3, done=""),
    Kind("jobset", {"nodes": 2, "slices": 2, "command": COMMAND}, 2, done="Completed"),
    Kind(
        "leader_worker_set",
        {"nodes": 2, "replicas": 2, "command": COMMAND, "leader_command": ["serve"]},
        4,
        done="",
        groups=2,
    ),
    Kind("train", {"nodes": 2, "command": COMMAND}, 2, done="Complete"),
]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with all operators, nodes, and a team's quota as task governance makes it."""
    cache = Cache.of_user()
    require_parts(*(name for name in OPERATORS if name not in BUNDLED), "kueuectl")
    control_plane = ControlPlane(tmp_path_factory.mktemp("plane"), pins(), cache)
    control_plane.start()
    try:
        # Kueue last, as in a deployment.
        for name in sorted(OPERATORS, key="kueue".__eq__):
            control_plane.install(name, settings({}) if name == "kueue" else None)
        add_nodes(control_plane, {"g5": (TYPE, 4)})
        objects = ApiObjects(control_plane.kubeconfig)
        apply_quota(objects, QUOTA)
        objects.apply(torch_runtime())
        yield control_plane
    finally:
        control_plane.stop()


@pytest.fixture(scope="module")
def server(plane: ControlPlane) -> ApiServer:
    """Its API server, as its administrator."""
    return ApiServer.of(plane.kubeconfig)


def pods(server: ApiServer, labels: str = "") -> list[Object]:
    """The pods of the team, of a label if one is named."""
    name, _, value = labels.partition("=")
    items = server.items("v1", "Pod", TEAM)
    return [item for item in items if not labels or item["metadata"]["labels"].get(name) == value]


def workloads(server: ApiServer) -> list[Object]:
    return server.items(QUEUES, "Workload", TEAM)


def conditions(item: Object) -> set[str]:
    """What is true of an object. A RayJob says it in a field of its own."""
    status = item.get("status", {})
    true = {one["type"] for one in status.get("conditions") or () if one["status"] == "True"}
    return true | {status.get("jobDeploymentStatus", "")}


def running(server: ApiServer, count: int) -> list[Object]:
    """The pods, once so many run on nodes."""

    def so_many() -> list[Object]:
        items = [item for item in pods(server) if item["status"]["phase"] == "Running"]
        return items if len(items) == count else []

    return until(so_many)


@contextmanager
def applied(server: ApiServer, job: Object) -> Iterator[Object]:
    """A job; in the end it is gone with its pods."""
    server.apply(job)
    try:
        yield job
    finally:
        server.delete(job)
        until(lambda: not pods(server) and not workloads(server))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_job_is_admitted_runs_on_nodes_and_ends(server: ApiServer, kind: Kind) -> None:
    with applied(server, kind.manifest()) as job:
        nodes = {item["spec"]["nodeName"] for item in running(server, kind.pods)}
        assert len(nodes) >= kind.written["nodes"]
        assert len(workloads(server)) == (kind.groups or 1)
        for workload in workloads(server):
            assert {"QuotaReserved", "Admitted"} <= conditions(workload)
            assert job["kind"] in [owner["kind"] for owner in workload["metadata"]["ownerReferences"]]
        for pod in pods(server, kind.last) if kind.done else ():
            server.merge({"apiVersion": "v1", "kind": "Pod"} | pod, {"metadata": {"annotations": {RUNS_FOR: "1s"}}})
        if kind.done:
            until(lambda: kind.done in conditions(server.read(job)))
            until(lambda: "Finished" in conditions(workloads(server)[0]))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_job_beyond_the_quota_waits_without_pods(server: ApiServer, kind: Kind) -> None:
    with applied(server, kind.manifest(nodes=6)) as job:
        until(lambda: len(workloads(server)) == (kind.groups or 1))
        # Of groups that equal each other Kueue may consider one alone.
        until(lambda: any(map(was_considered, workloads(server))))
        for workload in workloads(server):
            assert "QuotaReserved" not in conditions(workload)
            assert job["kind"] in [owner["kind"] for owner in workload["metadata"]["ownerReferences"]]
        if kind.groups:
            assert all(item["spec"]["schedulingGates"] for item in until(lambda: pods(server)))
        else:
            assert pods(server) == []


def test_of_equal_jobs_each_says_why_it_waits(plane: ControlPlane, server: ApiServer) -> None:
    """Kueue often says it of one alone."""
    (kind,) = (kind for kind in KINDS if kind.name == "pytorch")
    environment = with_jobs({}, **ENVIRONMENT)
    first, second = kind.manifest(nodes=6), kind.manifest(nodes=6)
    second["metadata"]["name"] = "second"
    with applied(server, first):
        until(lambda: any(map(was_considered, workloads(server))))
        server.apply(second)
        until(lambda: len(workloads(server)) == 2)
        jobs = read_cluster(Kubectl(plane.kubeconfig, True), environment).jobs
        server.delete(second)
        assert [job.reason for job in jobs] == [jobs[0].reason] * 2
        assert "ml.g5.12xlarge" in jobs[0].reason


def test_the_training_operators_webhook_refuses_what_it_cannot_run(server: ApiServer) -> None:
    (kind,) = (kind for kind in KINDS if kind.name == "pytorch")
    job = kind.manifest()
    (template,) = (replica["template"] for replica in job["spec"]["pytorchReplicaSpecs"].values())
    template["spec"]["containers"][0]["name"] = "not-pytorch"
    with pytest.raises(ApiException, match=r"admission webhook .*training-operator"):
        server.apply(job)


def test_nothing_listens_on_another_interface(plane: ControlPlane) -> None:
    assert {item.name for item in plane.running} >= {"etcd", "kube-apiserver", *OPERATORS}
    for item in plane.running:
        assert addresses(item.pid) <= {"127.0.0.1"}, item.name


def was_considered(workload: Object) -> bool:
    """Whether Kueue has said why it does not start."""
    return any(item["type"] == "QuotaReserved" for item in workload.get("status", {}).get("conditions", []))


def test_a_ray_job_whose_command_fails_has_failed(server: ApiServer) -> None:
    (kind,) = (kind for kind in KINDS if kind.name == "ray")
    with applied(server, kind.manifest()) as job:
        running(server, kind.pods)
        (head,) = pods(server, kind.last)
        ends = {RUNS_FOR: "1s", EXIT_CODE: "1"}
        server.merge({"apiVersion": "v1", "kind": "Pod"} | head, {"metadata": {"annotations": ends}})
        until(lambda: "Failed" in conditions(server.read(job)))


def test_kueuectl_lists_stops_and_resumes_work(plane: ControlPlane, server: ApiServer) -> None:
    program = Cache.of_user().folder(pins().part("kueuectl")) / "kueuectl"

    def kueuectl(*arguments: str) -> str:
        command = [str(program), "--kubeconfig", str(plane.kubeconfig), "--namespace", TEAM, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    with applied(server, KINDS[0].manifest()):
        running(server, KINDS[0].pods)
        name = workloads(server)[0]["metadata"]["name"]
        assert name in kueuectl("list", "workload", "--status", "admitted")
        kueuectl("stop", "workload", name)
        until(lambda: not pods(server))
        kueuectl("resume", "workload", name)
        running(server, KINDS[0].pods)


def test_a_teardown_ends_work_before_its_queue_goes(
    plane: ControlPlane, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that wait too: otherwise one of them would start where another has ended, and Kueue keep the queue."""
    environment = with_jobs({}, **ENVIRONMENT)
    monkeypatch.setattr(work, "way", lambda *_: Kubectl(plane.kubeconfig, True))
    (kind,) = (kind for kind in KINDS if kind.name == "pytorch")
    first, second = kind.manifest(), kind.manifest(nodes=3)
    second["metadata"]["name"] = "second"
    with applied(server, first), applied(server, second):
        running(server, kind.pods)
        until(lambda: len(workloads(server)) == 2)
        end_work(tmp_path, environment, Account("111122223333", "us-west-2", "http://localhost:9", {}), Progress())
        assert workloads(server) == []
        remove_quota(ApiObjects(plane.kubeconfig), QUOTA)
        assert server.items(QUEUES, "ClusterQueue", "") == []
        apply_quota(ApiObjects(plane.kubeconfig), QUOTA)
