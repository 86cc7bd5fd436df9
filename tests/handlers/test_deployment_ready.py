"""The wait for a Deployment, against a Kubernetes API on loopback with real TLS."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes_ready_world import World, encoded, self_signed, worlds

PROPERTIES = {
    "EksClusterName": "prod-eks",
    "Namespace": "kueue-system",
    "Deployment": "kueue-controller-manager",
    "Version": "v1.6.0-eksbuild.1",
    "TimeoutSeconds": "3300",
}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls") / "server.pem")


@pytest.fixture
def world(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield from worlds(certificate, monkeypatch)


def deployment(ready: int, updated: int = 2, observed: int = 4, **more: Any) -> dict[str, Any]:
    status = {"observedGeneration": observed, "replicas": 2, "readyReplicas": ready, "updatedReplicas": updated}
    return {"metadata": {"generation": 4}, "spec": {"replicas": 2}, "status": status | more}


def look(world: World, *answers: tuple[int, Any]) -> None:
    """What Kubernetes answers, one look after the other; the cluster is described before each."""
    world.say(*answers)
    certificate = {"endpoint": world.kubernetes.url, "certificateAuthority": {"data": encoded(world.authority)}}
    for _ in answers:
        world.stubs["eks"].add_response("describe_cluster", {"cluster": certificate}, {"name": "prod-eks"})


def run(world: World, request: str = "Create", **more: Any) -> dict[str, Any] | None:
    return world.run(request, ResourceType="Custom::PodwrightDeploymentReady", ResourceProperties=PROPERTIES, **more)


def test_a_deployment_whose_replicas_are_ready_answers_at_once(world: World) -> None:
    look(world, (200, deployment(2)))
    answer = run(world)
    assert answer
    assert (answer["Status"], answer["Data"]) == ("SUCCESS", {"Ready": "2"})
    assert answer["PhysicalResourceId"] == "prod-eks/kueue-system/kueue-controller-manager"
    (call,) = world.kubernetes.calls
    assert call.path == "/apis/apps/v1/namespaces/kueue-system/deployments/kueue-controller-manager"


@pytest.mark.parametrize(
    "early",
    [
        (404, {}),
        (403, {}),
        (200, deployment(1)),
        (200, deployment(2, updated=1)),
        (200, deployment(2, replicas=3)),
        (200, deployment(2, terminatingReplicas=1)),
        (200, deployment(2, observed=3)),
        (200, {"metadata": {}, "spec": {"replicas": 2}}),
    ],
    ids=[
        "not there",
        "not allowed yet",
        "one missing",
        "old replicas",
        "old ones too",
        "old ones end",
        "change not seen",
        "no status",
    ],
)
def test_it_waits_for_every_replica_of_the_latest_revision(world: World, early: tuple[int, Any]) -> None:
    look(world, early, (200, deployment(2)))
    started = world.now
    answer = run(world)
    assert answer
    assert answer["Status"] == "SUCCESS"
    assert world.now - started == 15


def test_a_deployment_of_no_replicas_is_not_ready(world: World) -> None:
    look(world, (200, {"metadata": {}, "spec": {"replicas": 0}, "status": {}}))
    answer = run(world, Deadline=world.now)
    assert answer
    assert answer["Status"] == "FAILED"


def test_a_deadline_tells_what_the_conditions_say(world: World) -> None:
    conditions = [
        {"type": "Available", "status": "False", "message": "Deployment does not have minimum availability."},
        {"type": "Progressing", "status": "True", "message": "ReplicaSet is progressing."},
        {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"},
    ]
    look(world, (200, deployment(1, conditions=conditions)))
    answer = run(world, Deadline=world.now)
    assert answer
    assert answer["Status"] == "FAILED"
    assert (
        "Deployment kueue-controller-manager in kueue-system has 1 of 2 replicas ready after 55 minutes; "
        "Deployment does not have minimum availability.; exceeded quota"
    ) in answer["Reason"]
    assert "progressing" not in answer["Reason"]


def test_deleting_a_wait_touches_nothing(world: World) -> None:
    answer = run(world, "Delete", PhysicalResourceId="prod-eks/kueue-system/kueue-controller-manager")
    assert answer
    assert answer["Status"] == "SUCCESS"
    assert world.kubernetes.calls == []
