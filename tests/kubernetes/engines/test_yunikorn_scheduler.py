"""YuniKorn on a real API server: its scheduler binds pods by queues, and takes back what is guaranteed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api_server import started
from listening import addresses
from podwright.planning.jobs.queue import YUNIKORN_APPLICATION_LABEL, YUNIKORN_QUEUE_LABEL
from podwright.planning.quota.amounts import GPU
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.kubernetes.api_objects import ApiObjects
from waiting import until

NAME = "yunikorn"
GPUS = 4
"""Of each of two nodes, and guaranteed to each of two teams."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One of its own, with YuniKorn."""
    with started(tmp_path_factory.mktemp("yunikorn-plane"), "yunikorn") as control_plane:
        control_plane.install(NAME)
        yield control_plane


@pytest.fixture(scope="module")
def objects(plane: ControlPlane) -> ApiObjects:
    return ApiObjects(plane.kubeconfig)


@pytest.fixture(scope="module")
def queues(objects: ApiObjects) -> None:
    """Two nodes; team a may borrow all that team b has, and b nothing. As podwright renders it."""
    team = {"properties": {"priority.policy": "fence", "preemption.delay": "1s", "application.sort.policy": "fifo"}}
    teams = [
        {"name": name, **team, "resources": {"guaranteed": {GPU: str(GPUS)}, "max": {GPU: str(most)}}}
        for name, most in (("a", 2 * GPUS), ("b", GPUS))
    ]
    limits = {"properties": {"preemption.policy": "fence"}, "resources": {"max": {GPU: str(2 * GPUS)}}}
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "pool", "parent": True, "queues": teams, **limits}]}
    partition = {"name": "default", "placementrules": [{"name": "provided", "create": False}], "queues": [root]}
    metadata = {"name": "yunikorn-configs", "namespace": NAME}
    data = {"queues.yaml": json.dumps({"partitions": [partition]})}
    objects.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, NAME)
    for number in range(2):
        objects.create(node(f"gpu-{number}"))
    objects.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    until(lambda: objects.find("v1", "ServiceAccount", "default", "team") is not None)


def node(name: str) -> dict[str, Any]:
    resources = {"cpu": "32", "memory": "64Gi", "pods": "110", GPU: str(GPUS)}
    metadata = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    status = {"capacity": resources, "allocatable": resources}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(team: str, number: int) -> dict[str, Any]:
    labels = {YUNIKORN_APPLICATION_LABEL: f"job-{team}", YUNIKORN_QUEUE_LABEL: f"root.pool.{team}"}
    resources = {name: {"cpu": "1", "memory": "1Gi", GPU: "1"} for name in ("requests", "limits")}
    container = {"name": "main", "image": "example.com/train", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{team}-{number}", "namespace": "team", "labels": labels},
        "spec": {"schedulerName": NAME, "restartPolicy": "Never", "containers": [container]},
    }


def running(objects: ApiObjects, team: str) -> int:
    pods = objects.all("v1", "Pod", "team")
    return sum(item["status"].get("phase") == "Running" for item in pods if item["metadata"]["name"].startswith(team))


def waiting(objects: ApiObjects) -> list[dict[str, Any]]:
    return [item for item in objects.all("v1", "Pod", "team") if item["status"].get("phase") == "Pending"]


def refused(objects: ApiObjects) -> set[str]:
    """The pods of which YuniKorn has said that they are beyond what their queue may hold."""
    events = objects.all("v1", "Event", "team")
    return {item["involvedObject"]["name"] for item in events if "does not fit in queue" in item["message"]}


def test_a_team_borrows_and_the_other_takes_back_what_is_guaranteed(objects: ApiObjects, queues: None) -> None:
    for number in range(2 * GPUS):
        objects.create(pod("a", number))
    until(lambda: running(objects, "a") == 2 * GPUS)
    for number in range(GPUS + 1):
        objects.create(pod("b", number))
    until(lambda: running(objects, "b") == GPUS)
    # The last one is beyond what its queue may hold, so nobody makes room for it.
    (last,) = waiting(objects)
    until(lambda: last["metadata"]["name"] in refused(objects))
    assert (running(objects, "a"), running(objects, "b")) == (GPUS, GPUS)


def test_nothing_listens_on_another_interface(plane: ControlPlane) -> None:
    (process,) = [item for item in plane.running if item.name == NAME]
    assert addresses(process.pid) <= {"127.0.0.1"}
