"""The wait for a Deployment, against a Kubernetes API on loopback with real TLS."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes_ready_services import NodesReadyServices, encoded, nodes_ready_services, self_signed

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
def services(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodesReadyServices]:
    yield from nodes_ready_services(certificate, monkeypatch)


def deployment(ready: int, updated: int = 2, observed: int = 4, **more: Any) -> dict[str, Any]:
    status = {"observedGeneration": observed, "replicas": 2, "readyReplicas": ready, "updatedReplicas": updated}
    return {"metadata": {"generation": 4}, "spec": {"replicas": 2}, "status": status | more}


def observe(services: NodesReadyServices, *answers: tuple[int, Any]) -> None:
    """What Kubernetes answers, one read after the other; the cluster is described before each."""
    services.say(*answers)
    certificate = {"endpoint": services.kubernetes.url, "certificateAuthority": {"data": encoded(services.authority)}}
    for _ in answers:
        services.stubs["eks"].add_response("describe_cluster", {"cluster": certificate}, {"name": "prod-eks"})


def run(services: NodesReadyServices, request: str = "Create", **more: Any) -> dict[str, Any] | None:
    return services.run(request, ResourceType="Custom::PodwrightDeploymentReady", ResourceProperties=PROPERTIES, **more)


def test_a_deployment_whose_replicas_are_ready_answers_at_once(services: NodesReadyServices) -> None:
    observe(services, (200, deployment(2)))
    answer = run(services)
    assert answer
    assert (answer["Status"], answer["Data"]) == ("SUCCESS", {"Ready": "2"})
    assert answer["PhysicalResourceId"] == "prod-eks/kueue-system/kueue-controller-manager"
    (call,) = services.kubernetes.calls
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
def test_it_waits_for_every_replica_of_the_latest_revision(
    services: NodesReadyServices, early: tuple[int, Any]
) -> None:
    observe(services, early, (200, deployment(2)))
    started = services.now
    answer = run(services)
    assert answer
    assert answer["Status"] == "SUCCESS"
    assert services.now - started == 15


def test_a_deployment_of_no_replicas_is_not_ready(services: NodesReadyServices) -> None:
    observe(services, (200, {"metadata": {}, "spec": {"replicas": 0}, "status": {}}))
    answer = run(services, Deadline=services.now)
    assert answer
    assert answer["Status"] == "FAILED"


def test_a_deadline_tells_what_the_conditions_say(services: NodesReadyServices) -> None:
    conditions = [
        {"type": "Available", "status": "False", "message": "Deployment does not have minimum availability."},
        {"type": "Progressing", "status": "True", "message": "ReplicaSet is progressing."},
        {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"},
    ]
    observe(services, (200, deployment(1, conditions=conditions)))
    answer = run(services, Deadline=services.now)
    assert answer
    assert answer["Status"] == "FAILED"
    assert (
        "Deployment kueue-controller-manager in kueue-system has 1 of 2 replicas ready after 55 minutes; "
        "Deployment does not have minimum availability.; exceeded quota"
    ) in answer["Reason"]
    assert "progressing" not in answer["Reason"]


def test_deleting_a_wait_touches_nothing(services: NodesReadyServices) -> None:
    answer = run(services, "Delete", PhysicalResourceId="prod-eks/kueue-system/kueue-controller-manager")
    assert answer
    assert answer["Status"] == "SUCCESS"
    assert services.kubernetes.calls == []
