"""KAI on a real API server: its chart's operator deploys it, and what it deploys runs as processes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api_server import started
from listening import addresses
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.kubernetes.api_objects import ApiObjects
from podwright.sandbox.kubernetes.cluster_objects import ApiError, Release
from waiting import until

NAME = "kai-scheduler"
OF_THE_CONFIG = ["admission", "binder", "pod-grouper", "podgroup-controller", "queue-controller"]
SCHEDULERS = ["kai-scheduler-default", "kai-scheduler-pool"]
POOL = "kai.scheduler/node-pool"
LABELS = {"kai.scheduler/queue": "team", POOL: "pool"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One of its own: on a shared one, kinds of KAI may be there as podwright wrote them."""
    with started(tmp_path_factory.mktemp("kai-plane"), "kai-scheduler") as control_plane:
        yield control_plane


@pytest.fixture(scope="module")
def objects(plane: ControlPlane) -> ApiObjects:
    return ApiObjects(plane.kubeconfig)


@pytest.fixture(scope="module")
def release(plane: ControlPlane, objects: ApiObjects, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """KAI's chart as the control plane carries it, and a node for a pool of its own."""
    values = tmp_path_factory.mktemp("kai") / "values.json"
    values.write_text(json.dumps({"global": {"gpuSharing": True}, "defaultQueue": {"createDefaultQueue": False}}))
    chart = plane.chart(NAME)
    assert chart is not None
    kai = Release(NAME, NAME, chart, values, makes_namespace=True, skips_crds=False)
    objects.upgrade(kai)
    plane.kai.deploy(NAME)
    yield kai
    objects.uninstall(NAME, NAME)
    plane.kai.remove()


@pytest.fixture(scope="module")
def queue(plane: ControlPlane, objects: ApiObjects, release: Release) -> Iterator[None]:
    """Two nodes of two GPUs, and a queue for two of the four."""
    made = [shard("pool", "bin"), queue_object("pool", None, 4), queue_object("team", "pool", 2)]
    made += [node("kai-1"), node("kai-2")]
    for item in made:
        objects.create(item)
    until_acting(lambda: running(plane) >= {*OF_THE_CONFIG, *SCHEDULERS}, plane.kai.run)
    yield
    for item in reversed(made):
        objects.remove(item)


def shard(name: str, placement: str) -> dict[str, Any]:
    spec = {"partitionLabelValue": name, "placementStrategy": {"gpu": f"{placement}pack", "cpu": f"{placement}pack"}}
    return {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": name}, "spec": spec}


def queue_object(name: str, parent: str | None, gpus: int) -> dict[str, Any]:
    any_amount = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec: dict[str, Any] = {"parentQueue": parent} if parent else {}
    gpu = {"quota": gpus, "limit": gpus, "overQuotaWeight": 1}
    spec["resources"] = {"gpu": gpu, "cpu": any_amount, "memory": any_amount}
    metadata = {"name": name, "labels": {POOL: "pool"}}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": metadata, "spec": spec}


def node(name: str) -> dict[str, Any]:
    resources = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"}
    labels = {POOL: "pool", "nvidia.com/gpu.memory": "81920"}
    metadata = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"capacity": resources, "allocatable": resources},
    }


def pod(name: str, gpus: int = 0, memory: int = 0) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    annotations = {"gpu-memory": str(memory)} if memory else {}
    container = {"name": "main", "image": "example.com/train", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": LABELS, "annotations": annotations},
        "spec": {"schedulerName": NAME, "containers": [container]},
    }


def until_acting(condition: Callable[[], Any], act: Callable[[], object]) -> None:
    """Act again and again until a condition holds."""

    def holds() -> bool:
        if condition():
            return True
        act()
        return False

    until(holds)


def running(plane: ControlPlane) -> set[str]:
    return {item.name for item in plane.running}


def phase(objects: ApiObjects, name: str) -> str:
    item = objects.find("v1", "Pod", name)
    return item["status"]["phase"] if item else ""


def reasons(objects: ApiObjects, name: str) -> str:
    """What the events of a pod say."""
    events = objects.all("v1", "Event", "default")
    return " ".join(event["message"] for event in events if event["involvedObject"]["name"] == name)


def test_the_operator_deploys_the_rest(plane: ControlPlane, release: Release) -> None:
    assert running(plane) >= {"kai-operator", "kai-scheduler-default", *OF_THE_CONFIG}


@pytest.mark.usefixtures("queue")
def test_each_pool_has_a_scheduler_that_says_how_it_places(plane: ControlPlane, objects: ApiObjects) -> None:
    configured = Path(next(item.log for item in plane.running if item.name == "kai-scheduler-pool")).with_suffix("")
    assert "nodeplacement" in (configured / "config.yaml").read_text()
    before = {item.name: item.pid for item in plane.running}
    objects.apply({**shard("pool", "bin"), "spec": {**shard("pool", "bin")["spec"], "kValue": 0.5}})

    def restarted() -> bool:
        now = {item.name: item.pid for item in plane.running}
        return "kValue" in (configured / "config.yaml").read_text() and now.keys() == before.keys()

    until_acting(restarted, plane.kai.run)
    now = {item.name: item.pid for item in plane.running}
    assert {name for name, pid in now.items() if pid != before[name]} == {"kai-scheduler-pool"}


@pytest.mark.usefixtures("queue")
def test_the_webhook_of_queues_refuses_one_without_resources(objects: ApiObjects) -> None:
    """The schema does not ask for them."""
    with pytest.raises(ApiError, match=r"queue-validation.*resources must be specified"):
        objects.create(queue_object("empty", "pool", 1) | {"spec": {"parentQueue": "pool"}})


@pytest.mark.usefixtures("queue")
def test_pods_run_within_the_quota_and_share_a_gpu(objects: ApiObjects) -> None:
    pods = [pod("whole", gpus=1), pod("part-1", memory=20480), pod("part-2", memory=20480)]

    def create_missing() -> None:
        for item in pods:
            if not phase(objects, item["metadata"]["name"]):
                objects.create(item)

    def settled() -> bool:
        # One pod of KAI's holds the GPU that both parts lie on.
        phases = [phase(objects, item["metadata"]["name"]) for item in pods]
        return phases == ["Running"] * 3 and len(objects.all("v1", "Pod", "kai-resource-reservation")) == 1

    create_missing()
    # KAI's binder reads pods from a cache: on a busy machine it may find a GPU held for nobody, free it, and delete the
    # parts on it, which a controller would create again.
    until_acting(settled, create_missing)
    objects.create(pod("waits", gpus=1))
    until(lambda: "OverLimit" in reasons(objects, "waits"))
    assert phase(objects, "waits") == "Pending"
    for item in (*pods, pod("waits")):
        objects.remove(item)
    until(lambda: not objects.all("v1", "Pod", "kai-resource-reservation"))


def test_nothing_listens_on_another_interface(plane: ControlPlane, release: Release) -> None:
    assert {address for item in plane.running for address in addresses(item.pid)} == {"127.0.0.1"}


@pytest.mark.usefixtures("queue")
def test_it_starts_again_with_the_control_plane(plane: ControlPlane, objects: ApiObjects) -> None:
    before = running(plane)
    plane.stop()
    plane.start()
    assert running(plane) == before
    objects.create(pod("later", gpus=1))
    until(lambda: phase(objects, "later") == "Running")
    objects.remove(pod("later"))


# The last one.
def test_removal_leaves_a_cluster_that_works(plane: ControlPlane, objects: ApiObjects, release: Release) -> None:
    objects.uninstall(NAME, NAME)
    plane.kai.remove()
    removed = {"kai-operator", "kai-scheduler-default", *OF_THE_CONFIG}
    until_acting(lambda: not running(plane) & removed, plane.kai.run)
    objects.create(pod("plain"))
    objects.remove(pod("plain"))
