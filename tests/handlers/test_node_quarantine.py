"""The function that marks a node: what it writes, and what it leaves alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopback import Call, Reply
from nodes_ready_services import NodesReadyServices, encoded, nodes_ready_services, self_signed
from podwright.constructs.observability.node_quarantine.handler import index
from podwright.planning.node.quarantine import BY, MARK, REASON, SINCE

EVENT = {"eks_cluster": "prod", "instance": "i-0391f86fa0fe0d465", "reason": "3 faults", "by": "rule of prod"}
EVENT |= {"since": "2026-11-21T10:00:00Z"}
HEALTH = {"key": "sagemaker.amazonaws.com/node-health-status", "value": "Unschedulable", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls") / "kubernetes.pem")


@pytest.fixture
def services(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodesReadyServices]:
    yield from nodes_ready_services(certificate, monkeypatch)


def answering(services: NodesReadyServices, *replies: tuple[int, Any]) -> list[Call]:
    """What Kubernetes answers, one after the other; gives what it is asked."""
    calls: list[Call] = []
    left = list(replies)

    def answer(call: Call) -> Reply:
        calls.append(call)
        status, body = left.pop(0)
        return Reply(status, json.dumps(body).encode())

    services.kubernetes.answer = answer
    described = {"endpoint": services.kubernetes.url, "certificateAuthority": {"data": encoded(services.authority)}}
    services.stubs["eks"].add_response("describe_cluster", {"cluster": described}, {"name": "prod"})
    return calls


def test_a_node_keeps_the_taints_of_others(services: NodesReadyServices) -> None:
    old = {"key": MARK, "value": "true", "effect": "NoSchedule"}
    node = {"metadata": {"resourceVersion": "7"}, "spec": {"taints": [HEALTH, old]}}
    calls = answering(services, (200, node), (200, node))
    assert index.handler(EVENT, None) == {"marked": True}
    assert [(call.method, call.path) for call in calls] == [
        ("GET", "/api/v1/nodes/hyperpod-i-0391f86fa0fe0d465"),
        ("PATCH", "/api/v1/nodes/hyperpod-i-0391f86fa0fe0d465"),
    ]
    change = json.loads(calls[1].body)
    assert calls[1].headers["Content-Type"] == "application/merge-patch+json"
    assert change["spec"]["taints"] == [HEALTH, old]
    assert change["metadata"]["resourceVersion"] == "7"
    assert change["metadata"]["labels"] == {MARK: "true"}
    expected = {REASON: "3 faults", BY: "rule of prod", SINCE: "2026-11-21T10:00:00Z"}
    assert change["metadata"]["annotations"] == expected


def test_a_node_that_is_gone_is_none(services: NodesReadyServices) -> None:
    answering(services, (404, {}))
    assert index.handler(EVENT, None) == {"marked": False}


@pytest.mark.parametrize(
    "replies", [[(403, {})], [(200, {"metadata": {"resourceVersion": "7"}, "spec": {}}), (409, {})]]
)
def test_what_kubernetes_refuses_is_tried_again_by_whoever_called(
    services: NodesReadyServices, replies: list[tuple[int, Any]]
) -> None:
    answering(services, *replies)
    with pytest.raises(OSError, match="40"):
        index.handler(EVENT, None)
