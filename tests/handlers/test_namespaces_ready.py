"""The wait for namespaces of teams, against a Kubernetes API on loopback with real TLS."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopback import Call, Reply
from nodes_ready_services import NodesReadyServices, encoded, nodes_ready_services, self_signed

PROPERTIES = {
    "EksClusterName": "prod-eks",
    "Namespaces": ["hyperpod-ns-llm", "hyperpod-ns-vision"],
    "TimeoutSeconds": "1800",
}
ACTIVE = {"metadata": {}, "status": {"phase": "Active"}}
GOING = {"metadata": {"deletionTimestamp": "2026-11-24T04:00:00Z"}, "status": {"phase": "Terminating"}}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls") / "server.pem")


@pytest.fixture
def services(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodesReadyServices]:
    yield from nodes_ready_services(certificate, monkeypatch)


def observe(services: NodesReadyServices, *reads: dict[str, tuple[int, Any]]) -> None:
    """What Kubernetes answers at each read, by namespace; without an entry the namespace is there."""
    answers = [read.get(name, (200, ACTIVE)) for read in reads for name in PROPERTIES["Namespaces"]]
    services.say(*answers)
    certificate = {"endpoint": services.kubernetes.url, "certificateAuthority": {"data": encoded(services.authority)}}
    for _ in reads:
        services.stubs["eks"].add_response("describe_cluster", {"cluster": certificate}, {"name": "prod-eks"})


def run(services: NodesReadyServices, request: str = "Create", **more: Any) -> dict[str, Any] | None:
    kind = "Custom::PodwrightNamespacesReady"
    return services.run(request, ResourceType=kind, ResourceProperties=PROPERTIES, **more)


def test_namespaces_that_are_there_answer_at_once(services: NodesReadyServices) -> None:
    observe(services, {})
    started = services.now
    answer = run(services)
    assert answer
    assert (answer["Status"], answer["Data"]) == ("SUCCESS", {"Ready": "2"})
    assert answer["PhysicalResourceId"] == "prod-eks/namespaces"
    assert [call.path for call in services.kubernetes.calls] == [
        "/api/v1/namespaces/hyperpod-ns-llm",
        "/api/v1/namespaces/hyperpod-ns-vision",
    ]
    assert services.now == started


@pytest.mark.parametrize(
    "early", [(404, {}), (403, {}), (200, GOING)], ids=["not there", "not allowed yet", "left by a roll-back"]
)
def test_it_waits_for_each_of_them(services: NodesReadyServices, early: tuple[int, Any]) -> None:
    observe(services, {"hyperpod-ns-vision": early}, {})
    started = services.now
    answer = run(services)
    assert answer
    assert answer["Status"] == "SUCCESS"
    assert services.now - started == 15


def test_an_update_waits_for_the_team_that_came(services: NodesReadyServices) -> None:
    observe(services, {"hyperpod-ns-vision": (404, {})}, {})
    answer = run(services, "Update", PhysicalResourceId="prod-eks/namespaces")
    assert answer
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "prod-eks/namespaces")
    assert len(services.kubernetes.calls) == 4


def test_a_deployment_after_one_that_was_rolled_back_waits_until_the_former_namespaces_are_gone(
    services: NodesReadyServices,
) -> None:
    """Quotas go with the roll-back, and SageMaker takes their namespaces away later than it answers."""
    team = "hyperpod-ns-llm"
    observe(services, {})
    first = run(services)
    assert first
    rolled_back = run(services, "Delete", PhysicalResourceId=first["PhysicalResourceId"])
    assert rolled_back
    assert rolled_back["Status"] == "SUCCESS"
    services.kubernetes.calls.clear()
    # The next deployment's quota is there before the former namespace has gone, and the new one comes last.
    observe(services, {team: (200, GOING)}, {team: (200, GOING)}, {team: (404, {})}, {})
    started = services.now
    second = run(services)
    assert second
    assert (second["Status"], second["Data"]) == ("SUCCESS", {"Ready": "2"})
    assert services.now - started == 45, "objects of the team would have gone with the former namespace"
    assert len(services.kubernetes.calls) == 8


def test_a_deadline_names_what_is_missing(services: NodesReadyServices) -> None:
    observe(services, {"hyperpod-ns-llm": (404, {}), "hyperpod-ns-vision": (200, GOING)})
    answer = run(services, Deadline=services.now)
    assert answer
    assert answer["Status"] == "FAILED"
    assert "2 of 2 namespaces are not there after 30 minutes" in answer["Reason"]
    assert "hyperpod-ns-llm: Kubernetes: HTTP Error 404" in answer["Reason"]
    assert "hyperpod-ns-vision: it is being deleted" in answer["Reason"]


def test_an_api_that_cannot_be_reached_is_waited_for(services: NodesReadyServices) -> None:
    def closed(call: Call) -> Reply:
        return Reply(503, json.dumps({}).encode())

    observe(services, {})
    services.kubernetes.answer = closed
    answer = run(services, Deadline=services.now)
    assert answer
    assert answer["Status"] == "FAILED"
    assert "HTTP Error 503" in answer["Reason"]


def test_deleting_a_wait_touches_nothing(services: NodesReadyServices) -> None:
    answer = run(services, "Delete", PhysicalResourceId="prod-eks/namespaces")
    assert answer
    assert answer["Status"] == "SUCCESS"
    assert services.kubernetes.calls == []
