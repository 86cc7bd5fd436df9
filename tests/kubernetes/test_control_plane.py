"""The installed control plane: upstream programs that start, do their work, and stop."""

import os
import signal
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from control_plane_parts import needs_parts
from podwright.config.errors import CommandError
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.control_plane.processes import answers, is_alive
from waiting import until

CACHE = Cache.of_user()
pytestmark = needs_parts("kueue")

COMPONENTS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kueue"]
NODES = 16
CPUS_OF_NODE = 8
TEAM = "team"
KUEUE = {"group": "kueue.x-k8s.io", "version": "v1beta2"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with Kueue, started once for this file."""
    control_plane = ControlPlane(tmp_path_factory.mktemp("plane"), pins(), CACHE)
    control_plane.start()
    try:
        control_plane.install("kueue")
        yield control_plane
    finally:
        control_plane.stop()


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> client.ApiClient:
    return config.new_client_from_config(str(plane.kubeconfig))


@pytest.fixture(scope="module")
def core(api: client.ApiClient) -> Any:
    return client.CoreV1Api(api)


@pytest.fixture(scope="module")
def batch(api: client.ApiClient) -> Any:
    return client.BatchV1Api(api)


@pytest.fixture(scope="module")
def objects(api: client.ApiClient) -> Any:
    return client.CustomObjectsApi(api)


def node(number: int) -> dict[str, Any]:
    resources = {"cpu": str(CPUS_OF_NODE), "memory": "32Gi", "pods": "110"}
    metadata = {"name": f"node-{number}", "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {"metadata": metadata, "status": {"capacity": resources, "allocatable": resources}}


def is_ready(item: Any) -> bool:
    conditions = {condition.type: condition.status for condition in item.status.conditions or ()}
    return conditions.get("Ready") == "True" and not item.spec.taints


def job(name: str, pods: int) -> dict[str, Any]:
    container = {"name": "main", "image": "example.com/train", "resources": {"requests": {"cpu": str(CPUS_OF_NODE)}}}
    return {
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": TEAM}},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


@pytest.fixture(scope="module")
def nodes(core: Any) -> list[str]:
    """Sixteen nodes that kwok keeps ready."""
    for number in range(NODES):
        core.create_node(node(number))
    ready = until(lambda: (items := core.list_node().items) and all(map(is_ready, items)) and items)
    return [item.metadata.name for item in ready]


@pytest.fixture(scope="module")
def queue(core: Any, objects: Any, nodes: list[str]) -> str:
    """A queue of eight of the nodes' processors, in a namespace of its own."""
    core.create_namespace({"metadata": {"name": TEAM}})
    objects.create_cluster_custom_object(**KUEUE, plural="resourceflavors", body=custom("ResourceFlavor", "any", {}))
    quota = {"name": "cpu", "nominalQuota": str(8 * CPUS_OF_NODE)}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": [quota]}]}
    cluster_queue = custom("ClusterQueue", TEAM, {"namespaceSelector": {}, "resourceGroups": [group]})
    objects.create_cluster_custom_object(**KUEUE, plural="clusterqueues", body=cluster_queue)
    local_queue = custom("LocalQueue", TEAM, {"clusterQueue": TEAM})
    objects.create_namespaced_custom_object(**KUEUE, namespace=TEAM, plural="localqueues", body=local_queue)
    return TEAM


def custom(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_all_components_run(plane: ControlPlane) -> None:
    assert [item.name for item in plane.running] == COMPONENTS


def test_the_api_server_is_ready_and_of_the_pinned_version(api: client.ApiClient) -> None:
    connection: Any = api.configuration
    assert answers(f"{connection.host}/readyz", Path(connection.ssl_ca_cert))
    version: Any = client.VersionApi(api).get_code()
    assert version.git_version == f"v{pins().part('kubernetes').version}"


def test_a_namespace_and_what_lies_in_it(core: Any) -> None:
    core.create_namespace({"metadata": {"name": "first"}})
    core.create_namespaced_config_map("first", {"metadata": {"name": "settings"}, "data": {"a": "b"}})
    assert core.read_namespaced_config_map("settings", "first").data == {"a": "b"}
    # The controller manager's part.
    accounts = until(lambda: core.list_namespaced_service_account("first").items)
    assert [account.metadata.name for account in accounts] == ["default"]


def test_objects_are_checked_by_the_server(core: Any) -> None:
    with pytest.raises(ApiException, match="Invalid value"):
        core.create_namespace({"metadata": {"name": "Not_A_Name"}})


def test_nodes_get_ready(nodes: list[str]) -> None:
    assert len(nodes) == NODES


def test_a_job_runs_on_nodes_that_have_what_it_requests(core: Any, batch: Any, queue: str) -> None:
    batch.create_namespaced_job(TEAM, job("fits", 6))

    def running() -> list[Any]:
        pods = core.list_namespaced_pod(TEAM, label_selector="job-name=fits").items
        return pods if [pod.status.phase for pod in pods] == ["Running"] * 6 else []

    # One pod fills a node.
    assert len({pod.spec.node_name for pod in until(running)}) == 6


def test_a_job_beyond_the_quota_waits(batch: Any, objects: Any, queue: str) -> None:
    """And so does the list of pending workloads, which Kueue's own API server gives by way of the aggregation layer."""
    batch.create_namespaced_job(TEAM, job("waits", 4))
    visible: dict[str, Any] = KUEUE | {"group": "visibility.kueue.x-k8s.io"}

    def pending() -> list[dict[str, Any]]:
        name = f"{TEAM}/pendingworkloads"
        at = visible | {"namespace": TEAM, "plural": "localqueues"}
        try:
            return objects.get_namespaced_custom_object(**at, name=name)["items"]
        except ApiException as error:
            # The aggregation layer looks now and then whether it is there.
            if error.status != HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            return []

    assert [item["metadata"]["name"].startswith("job-waits-") for item in until(pending)] == [True]
    assert batch.read_namespaced_job("waits", TEAM).spec.suspend


def test_kueues_webhooks_refuse(objects: Any, queue: str) -> None:
    """A rule that no schema has: one resource in two groups."""
    quota = {"name": "cpu", "nominalQuota": "1"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": [quota]}]}
    twice = custom("ClusterQueue", "twice", {"resourceGroups": [group, group]})
    with pytest.raises(ApiException, match="admission webhook"):
        objects.create_cluster_custom_object(**KUEUE, plural="clusterqueues", body=twice)


@pytest.mark.parametrize(("code", "condition"), [("0", "Complete"), ("3", "Failed")])
def test_pods_end_when_an_annotation_says_so(batch: Any, queue: str, code: str, condition: str) -> None:
    name = f"ends-{code}"
    body = job(name, 1)
    body["metadata"].pop("labels")
    body["spec"] |= {"suspend": False, "backoffLimit": 0}
    body["spec"]["template"]["metadata"] = {"annotations": {"podwright/runs-for": "1s", "podwright/exit-code": code}}
    batch.create_namespaced_job(TEAM, body)

    def ended() -> set[str]:
        return {item.type for item in batch.read_namespaced_job(name, TEAM).status.conditions or ()}

    assert condition in until(lambda: (conditions := ended()) & {"Complete", "Failed"} and conditions)


@pytest.mark.parametrize("name", ["kueue", "kube-apiserver", "etcd"])
def test_what_is_killed_is_started_again(plane: ControlPlane, core: Any, queue: str, name: str) -> None:
    (killed,) = [item for item in plane.running if item.name == name]
    os.kill(killed.pid, signal.SIGKILL)
    assert name in until(plane.restart_ended)
    # What could not do without it ends, and is started again, too.
    until(lambda: not plane.restart_ended() and {item.name for item in plane.running} == {*COMPONENTS})
    assert killed not in plane.running
    assert core.read_namespace(TEAM).status.phase == "Active"


def test_a_second_start_is_refused(plane: ControlPlane) -> None:
    with pytest.raises(CommandError, match="runs already"):
        plane.start()


def test_all_stop_and_start_again_with_what_was_there(plane: ControlPlane, queue: str) -> None:
    processes = plane.running
    plane.stop()
    assert [item.name for item in processes if is_alive(item)] == []
    assert plane.running == []
    plane.start()
    restarted: Any = client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))
    assert restarted.read_namespace(TEAM).status.phase == "Active"


def test_logs_lie_beside_the_data(plane: ControlPlane) -> None:
    assert [Path(item.log).name for item in plane.running] == [f"{name}.log" for name in COMPONENTS]


def kueue_objects(objects: Any) -> dict[str, int]:
    """How many there are of Kueue's kinds; each is read by way of its conversion, if it has one."""
    plurals = ("clusterqueues", "localqueues", "workloads", "resourceflavors")
    return {plural: len(objects.list_cluster_custom_object(**KUEUE, plural=plural)["items"]) for plural in plurals}


# The last one: Kueue is another one afterwards.
def test_an_engine_goes_and_comes_again_and_running_jobs_notice_nothing(
    plane: ControlPlane, core: Any, batch: Any, objects: Any, queue: str
) -> None:
    """Also one that comes with other settings, as by an upgrade."""
    before = kueue_objects(objects)
    assert before["workloads"] >= 2
    plane.uninstall("kueue")
    assert "kueue" not in {item.name for item in plane.running}
    assert kueue_objects(objects) == before
    pods = core.list_namespaced_pod(TEAM, label_selector="job-name=fits").items
    assert [pod.status.phase for pod in pods] == ["Running"] * 6
    # No webhook of its stands in the way, and nobody admits.
    batch.create_namespaced_job(TEAM, job("late", 1))
    plane.install("kueue", {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}})
    until(lambda: not batch.read_namespaced_job("late", TEAM).spec.suspend)
    assert {pod.metadata.uid for pod in core.list_namespaced_pod(TEAM, label_selector="job-name=fits").items} == {
        pod.metadata.uid for pod in pods
    }
    assert kueue_objects(objects) == before | {"workloads": before["workloads"] + 1}
