"""The handler that waits for nodes, against stubbed AWS clients and a Kubernetes API on loopback with real TLS."""

import base64
import json
import ssl
import urllib.parse
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import ANY

from loopback import serving
from nodes_ready_services import (
    CLUSTER_ARN,
    FUNCTION_ARN,
    Answer,
    Answers,
    NodesReadyServices,
    encoded,
    nodes,
    nodes_ready_services,
    self_signed,
)
from podwright.constructs.hyperpod.nodes_ready.handler.nodes import RETRIES


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls") / "server.pem")


@pytest.fixture
def services(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodesReadyServices]:
    yield from nodes_ready_services(certificate, monkeypatch)


TWO = (("i-1", "system", "Running"), ("i-2", "system", "Running"))
READY = nodes(("hyperpod-i-1", "True"), ("hyperpod-i-2", "True"))


def test_nodes_that_are_there_answer_at_once(services: NodesReadyServices) -> None:
    services.say((200, READY))
    services.see(*TWO)
    answer = services.run()
    assert answer
    assert (answer["Status"], answer["PhysicalResourceId"], answer["Data"]) == (
        "SUCCESS",
        "prod/system",
        {"Ready": "2"},
    )
    (call,) = services.kubernetes.calls
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(call.path).query)
    assert query["labelSelector"] == ["sagemaker.amazonaws.com/instance-group-name=system"]
    token = call.headers["Authorization"].removeprefix("Bearer k8s-aws-v1.")
    signed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    assert signed.startswith("https://sts.us-west-2.amazonaws.com/?Action=GetCallerIdentity")
    assert "x-k8s-aws-id" in urllib.parse.parse_qs(signed)["X-Amz-SignedHeaders"][0]


def test_it_waits_for_both_sides(services: NodesReadyServices) -> None:
    services.say(
        (200, nodes()),
        (200, nodes(("hyperpod-i-1", "True"))),
        (200, nodes(("hyperpod-i-1", "True"), ("hyperpod-i-2", "Unknown"))),
        (200, READY),
    )
    services.see(("i-1", "system", "Pending"), ("i-2", "system", "Pending"))
    services.see_cluster()
    services.see(*TWO)
    services.see_cluster()
    services.see(*TWO)
    services.see_cluster()
    services.see(*TWO)
    started = services.now
    answer = services.run()
    assert answer
    assert answer["Status"] == "SUCCESS"
    assert services.now - started == 3 * 15


def test_kubernetes_alone_is_not_enough(services: NodesReadyServices) -> None:
    services.say((200, READY))
    services.see(("i-1", "system", "Running"), ("i-2", "system", "SystemUpdating"))
    services.see_cluster()
    services.see(*TWO)
    answer = services.run()
    assert answer
    assert answer["Status"] == "SUCCESS"
    assert len(services.kubernetes.calls) == 2


def test_a_group_with_a_longer_name_does_not_count(services: NodesReadyServices) -> None:
    services.say((200, READY))
    services.see(("i-1", "system", "Running"), ("i-3", "system-2", "Running"))
    services.see_cluster()
    services.see(*TWO)
    assert services.run()
    assert len(services.kubernetes.calls) == 2


def test_a_node_list_of_several_pages(services: NodesReadyServices) -> None:
    services.say((200, nodes(("hyperpod-i-1", "True"), more="page/2=")), (200, nodes(("hyperpod-i-2", "True"))))
    services.see(*TWO)
    answer = services.run()
    assert answer
    assert answer["Data"] == {"Ready": "2"}
    assert "continue=page%2F2%3D" in services.kubernetes.calls[1].path


@pytest.mark.parametrize("refusal", [(403, {}), (401, {}), (500, {}), (429, {})], ids=lambda answer: str(answer[0]))
def test_a_refusal_of_kubernetes_is_waited_out(services: NodesReadyServices, refusal: Answer) -> None:
    services.say(refusal, (200, READY))
    services.see(*TWO)
    services.see_cluster()
    services.see(*TWO)
    answer = services.run()
    assert answer
    assert answer["Status"] == "SUCCESS"


def fail_after(services: NodesReadyServices, minutes: int, events: Callable[[], None]) -> dict[str, Any]:
    """Let the deadline be that far away, with looks that see nothing new until then."""
    reads = minutes * 60 // 15
    for _ in range(reads):
        services.see(("i-1", "system", "Running"), ("i-2", "system", "Pending"))
        services.see_cluster()
    events()
    answer = services.run(Deadline=services.now + minutes * 60 - 1)
    assert answer
    return answer


def test_a_deadline_says_what_was_seen(services: NodesReadyServices) -> None:
    services.say((200, nodes(("hyperpod-i-1", "False"))))

    def events() -> None:
        messages = [("Error", "insufficient capacity in usw2-az2"), ("Info", "scaling"), ("Warn", "retrying")] * 2
        services.stubs["sagemaker"].add_response(
            "list_cluster_events",
            {
                "Events": [
                    {
                        "EventId": "00000000-0000-0000-0000-000000000000",
                        "ClusterArn": CLUSTER_ARN,
                        "ClusterName": "prod",
                        "ResourceType": "InstanceGroup",
                        "EventTime": datetime(2026, 11, 1, tzinfo=UTC),
                        "EventLevel": level,
                        "Description": text,
                    }
                    for level, text in messages
                ]
            },
            {
                "ClusterName": "prod",
                "InstanceGroupName": "system",
                "SortBy": "EventTime",
                "SortOrder": "Descending",
                "MaxResults": 20,
            },
        )

    answer = fail_after(services, 2, events)
    assert answer["Status"] == "FAILED"
    assert answer["PhysicalResourceId"]
    for part in (
        "1 of 2 nodes of system are Running for SageMaker and 0 are Ready",
        "i-2 Pending because",
        "hyperpod-i-1 NotReady container runtime is down",
        "insufficient capacity in usw2-az2",
        "retrying",
    ):
        assert part in answer["Reason"]
    assert answer["Reason"].count("insufficient") == 1
    assert "scaling" not in answer["Reason"]


def test_a_cluster_without_events_still_gets_its_reason(services: NodesReadyServices) -> None:
    services.say((200, nodes()))
    events = services.stubs["sagemaker"].add_client_error
    answer = fail_after(
        services, 1, lambda: events("list_cluster_events", "ValidationException", "only with continuous provisioning")
    )
    assert answer["Status"] == "FAILED"
    assert "no events: only with continuous provisioning" in answer["Reason"]


def test_a_certificate_of_another_authority_is_not_trusted(services: NodesReadyServices) -> None:
    services.say((200, READY))
    # Amazon's root in place of the server's own.
    services.authority = ssl.DER_cert_to_PEM_cert(ssl.create_default_context().get_ca_certs(binary_form=True)[0])
    answer = fail_after(
        services, 1, lambda: services.stubs["sagemaker"].add_response("list_cluster_events", {"Events": []})
    )
    assert "certificate verify failed" in answer["Reason"]
    assert services.kubernetes.calls == []


def test_a_reason_is_never_too_long_for_cloudformation(services: NodesReadyServices) -> None:
    many = nodes(*((f"hyperpod-i-{number:04}", "False") for number in range(400)))
    services.say((200, many))
    answer = fail_after(
        services, 1, lambda: services.stubs["sagemaker"].add_response("list_cluster_events", {"Events": []})
    )
    assert len(json.dumps(answer)) < 4096
    assert answer["Reason"].count("NotReady") < 10


def test_a_failed_cluster_is_not_waited_for(services: NodesReadyServices) -> None:
    services.say((200, nodes()))
    services.see()
    services.see_cluster("Failed", "EFA health checks did not run successfully")
    started = services.now
    answer = services.run()
    assert answer
    assert answer["Status"] == "FAILED"
    assert "EFA health checks did not run successfully" in answer["Reason"]
    assert services.now == started


def test_before_its_time_is_up_it_invokes_itself_and_goes_on(services: NodesReadyServices) -> None:
    services.say((200, nodes()))
    for _ in range(55):
        services.see(("i-1", "system", "Pending"))
        services.see_cluster()
    services.stubs["lambda"].add_response(
        "invoke", {"StatusCode": 202}, {"FunctionName": FUNCTION_ARN, "InvocationType": "Event", "Payload": ANY}
    )
    sent: list[dict[str, Any]] = []
    services.clients["lambda"].meta.events.register(
        "provide-client-params.lambda.Invoke", lambda params, **_: sent.append(json.loads(params["Payload"]))
    )
    started = services.now
    assert services.run() is None, "the next invocation answers"
    assert 700 < services.now - started < 900
    (event,) = sent
    assert event["Deadline"] == started + 3300

    services.lambda_ends = services.now + 900
    services.say((200, READY))
    services.see(*TWO)
    answer = services.run(Deadline=event["Deadline"])
    assert answer
    assert answer["Status"] == "SUCCESS"


def test_a_deadline_survives_from_invocation_to_invocation(services: NodesReadyServices) -> None:
    services.say((200, nodes()))
    services.see()
    services.see_cluster()
    services.stubs["sagemaker"].add_response("list_cluster_events", {"Events": []})
    answer = services.run(Deadline=services.now - 1)
    assert answer
    assert answer["Status"] == "FAILED"


def test_deleting_touches_nothing(services: NodesReadyServices) -> None:
    answer = services.run("Delete", PhysicalResourceId="prod/system")
    assert answer
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "prod/system")
    assert services.kubernetes.calls == []


def test_an_update_keeps_the_physical_id(services: NodesReadyServices) -> None:
    services.say((200, READY))
    services.see(*TWO)
    answer = services.run("Update", PhysicalResourceId="prod/system", OldResourceProperties={"Count": "1"})
    assert answer
    assert answer["PhysicalResourceId"] == "prod/system"


def test_what_sagemaker_refuses_fails_with_its_words(services: NodesReadyServices) -> None:
    services.stubs["sagemaker"].add_client_error(
        "list_cluster_nodes", "AccessDeniedException", "not authorized to perform sagemaker:ListClusterNodes"
    )
    answer = services.run()
    assert answer
    assert answer["Status"] == "FAILED"
    assert "not authorized to perform sagemaker:ListClusterNodes" in answer["Reason"]


def test_throttling_and_faults_of_sagemaker_are_tried_again(services: NodesReadyServices) -> None:
    """Against botocore's own retries: a real client and a server that is not well."""
    throttled = (400, {"__type": "ThrottlingException", "message": "Rate exceeded"})
    listed = {
        "ClusterNodeSummaries": [
            {
                "InstanceGroupName": group,
                "InstanceId": id,
                "InstanceType": "ml.m5.4xlarge",
                "LaunchTime": 1.0,
                "InstanceStatus": {"Status": status},
            }
            for id, group, status in TWO
        ]
    }
    with serving(Answers([throttled, (503, {}), throttled, (200, listed)])) as sagemaker:
        services.clients["sagemaker"] = services.session.client("sagemaker", endpoint_url=sagemaker.url, config=RETRIES)
        services.say((200, READY))
        services.stubs["eks"].add_response(
            "describe_cluster",
            {
                "cluster": {
                    "endpoint": services.kubernetes.url,
                    "certificateAuthority": {"data": encoded(services.authority)},
                }
            },
        )
        answer = services.run()
        assert answer
        assert answer["Status"] == "SUCCESS"
        assert len(sagemaker.calls) == 4
