"""MultiKueue between two real API servers, with what `podwright workers` writes: a job runs on the worker."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api_server import ApiServer, Object
from control_plane_parts import require_parts
from podwright.cdk8s_charts.multikueue import MULTIKUEUE_CHECK, manager_objects, worker_objects
from podwright.config.settings.governance.kueue import MultiKueue
from podwright.operations.kubernetes.kubectl import Kubectl, Refused
from podwright.operations.workers.credentials import remove_secret, state, worker_token, write_secret
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import pins
from waiting import until

WORKER = MultiKueue.model_validate({"role": "worker", "jobs": ["job"]})
MANAGER = MultiKueue.model_validate(
    {
        "role": "manager",
        "jobs": ["job"],
        "workers": {"oregon": {"secret": "oregon", "groups": {"cpu": {"instance_type": "ml.m5.4xlarge", "count": 1}}}},
    }
)
JOB: Object = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "align", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
    "spec": {
        "suspend": True,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
            }
        },
    },
}


def queues(*checks: str) -> list[Object]:
    """A team's namespace and queues, with admission checks."""
    kueue = "kueue.x-k8s.io/v1beta2"
    quota = {"name": "cpu", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
    spec: dict[str, Any] = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
    }
    if checks:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": name} for name in checks]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
        {"apiVersion": kueue, "kind": "ResourceFlavor", "metadata": {"name": "cpu"}, "spec": {}},
        {"apiVersion": kueue, "kind": "ClusterQueue", "metadata": {"name": "team"}, "spec": spec},
        {
            "apiVersion": kueue,
            "kind": "LocalQueue",
            "metadata": {"name": "team", "namespace": "team"},
            "spec": {"clusterQueue": "team"},
        },
    ]


class Cluster:
    """A control plane with Kueue, and how podwright sees it."""

    def __init__(self, folder: Path) -> None:
        self.plane = ControlPlane(folder, pins(), Cache.of_user())
        self.plane.start()
        # As podwright configures it: a worker without a kind that is handed on is not active.
        self.plane.install("kueue", {"integrations": {"frameworks": ["batch/job"]}})
        self.api, self.kubectl = ApiServer.of(self.plane.kubeconfig), Kubectl(self.plane.kubeconfig, True)

    @property
    def description(self) -> dict[str, Any]:
        """As EKS describes it."""
        authority = base64.b64encode(self.plane.authority).decode()
        return {"endpoint": self.plane.endpoint, "certificateAuthority": {"data": authority}}


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Cluster]]:
    """The manager and its worker, not connected yet."""
    require_parts("kueue")
    started = list[Cluster]()
    try:
        for name, objects in (
            ("manager", [*manager_objects(MANAGER), *queues(MULTIKUEUE_CHECK)]),
            ("worker", [*worker_objects(WORKER), *queues()]),
        ):
            started.append(Cluster(tmp_path_factory.mktemp(name)))
            for item in objects:
                started[-1].api.apply(item)
        manager, worker = started
        yield manager, worker
    finally:
        for cluster in started:
            cluster.plane.stop()


def connect(manager: Cluster, worker: Cluster, *, renew: bool = False) -> None:
    token = worker_token(worker.kubectl, WORKER, renew=renew)
    write_secret(manager.kubectl, "oregon", worker.description, token)
    until(lambda: state(manager.kubectl, "oregon")[0])


def test_a_job_of_the_managers_runs_on_the_worker(clusters: tuple[Cluster, Cluster]) -> None:
    manager, worker = clusters
    assert state(manager.kubectl, "oregon")[0] is False
    connect(manager, worker)
    manager.api.create(JOB)
    until(lambda: worker.api.items("v1", "Pod", "team"))
    assert manager.api.items("v1", "Pod", "team") == []
    assert manager.api.read(JOB)["spec"]["managedBy"] == "kueue.x-k8s.io/multikueue"


def test_the_secret_holds_its_token_once(clusters: tuple[Cluster, Cluster]) -> None:
    manager, worker = clusters
    connect(manager, worker)
    secret = manager.kubectl.one("secret", "oregon", "--namespace", "kueue-system")
    assert "annotations" not in secret["metadata"]
    assert list(secret["data"]) == ["kubeconfig"]


def test_a_manager_may_hand_in_jobs_and_read_no_secrets(clusters: tuple[Cluster, Cluster]) -> None:
    _, worker = clusters
    account = "--as=system:serviceaccount:kueue-system:podwright-multikueue"
    assert worker.kubectl.run("auth", "can-i", "create", "jobs", "--all-namespaces", account) == "yes"
    with pytest.raises(Refused):
        worker.kubectl.run("get", "secrets", "--namespace", "kueue-system", account)


def test_a_renewed_token_ends_the_former_one(clusters: tuple[Cluster, Cluster]) -> None:
    manager, worker = clusters
    connect(manager, worker)
    former = worker_token(worker.kubectl, WORKER, renew=False)
    connect(manager, worker, renew=True)
    assert worker_token(worker.kubectl, WORKER, renew=False) != former
    bare = Kubectl(worker.plane.kubeconfig.with_name("bare.kubeconfig"), True)
    bare.kubeconfig.write_text('{"apiVersion": "v1", "kind": "Config"}')
    way = (f"--server={worker.plane.endpoint}", "--insecure-skip-tls-verify", f"--token={former}")

    def is_refused() -> bool:
        try:
            bare.run("get", "workloads", "--all-namespaces", *way)
        except Refused as refused:
            return "Unauthorized" in str(refused) or "must be logged in" in str(refused)
        return False

    # The API server remembers a token for seconds.
    until(is_refused)


# The last one: the worker is connected no more.
def test_without_its_secret_a_worker_is_gone(clusters: tuple[Cluster, Cluster]) -> None:
    manager, worker = clusters
    connect(manager, worker)
    remove_secret(manager.kubectl, "oregon")
    until(lambda: not state(manager.kubectl, "oregon")[0])
    remove_secret(manager.kubectl, "oregon")
