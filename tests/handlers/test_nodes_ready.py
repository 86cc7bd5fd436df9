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
from nodes_ready_world import CLUSTER_ARN, FUNCTION_ARN, Answer, Answers, World, encoded, nodes, self_signed, worlds
from podwright.constructs.hyperpod.nodes_ready.handler.nodes import RETRIES


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls") / "server.pem")


@pytest.fixture
def world(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield from worlds(certificate, monkeypatch)


TWO = (("i-1", "system", "Running"), ("i-2", "system", "Running"))
READY = nodes(("hyperpod-i-1", "True"), ("hyperpod-i-2", "True"))


def test_nodes_that_are_there_answer_at_once(world: World) -> None:
    world.say((200, READY))
    world.see(*TWO)
    answer = world.run()
    assert answer
    assert (answer["Status"], answer["PhysicalResourceId"], answer["Data"]) == (
        "SUCCESS",
        "prod/system",
        {"Ready": "2"},
    )
    (call,) = world.kubernetes.calls
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(call.path).query)
    assert query["labelSelector"] == ["sagemaker.amazonaws.com/instance-group-name=system"]
    token = call.headers["Authorization"].removeprefix("Bearer k8s-aws-v1.")
    signed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    assert signed.startswith("https://sts.us-west-2.amazonaws.com/?Action=GetCallerIdentity")
    assert "x-k8s-aws-id" in urllib.parse.parse_qs(signed)["X-Amz-SignedHeaders"][0]


def test_it_waits_for_both_sides(world: World) -> None:
    world.say(
        (200, nodes()),
        (200, nodes(("hyperpod-i-1", "True"))),
        (200, nodes(("hyperpod-i-1", "True"), ("hyperpod-i-2", "Unknown"))),
        (200, READY),
    )
    world.see(("i-1", "system", "Pending"), ("i-2", "system", "Pending"))
    world.see_cluster()
    world.see(*TWO)
    world.see_cluster()
    world.see(*TWO)
    world.see_cluster()
    world.see(*TWO)
    started = world.now
    answer = world.run()
    assert answer
    assert answer["Status"] == "SUCCESS"
    assert world.now - started == 3 * 15


def test_kubernetes_alone_is_not_enough(world: World) -> None:
    world.say((200, READY))
    world.see(("i-1", "system", "Running"), ("i-2", "system", "SystemUpdating"))
    world.see_cluster()
    world.see(*TWO)
    answer = world.run()
    assert answer
    assert answer["Status"] == "SUCCESS"
    assert len(world.kubernetes.calls) == 2


def test_a_group_with_a_longer_name_does_not_count(world: World) -> None:
    world.say((200, READY))
    world.see(("i-1", "system", "Running"), ("i-3", "system-2", "Running"))
    world.see_cluster()
    world.see(*TWO)
    assert world.run()
    assert len(world.kubernetes.calls) == 2


def test_a_node_list_of_several_pages(world: World) -> None:
    world.say((200, nodes(("hyperpod-i-1", "True"), more="page/2=")), (200, nodes(("hyperpod-i-2", "True"))))
    world.see(*TWO)
    answer = world.run()
    assert answer
    assert answer["Data"] == {"Ready": "2"}
    assert "continue=page%2F2%3D" in world.kubernetes.calls[1].path


@pytest.mark.parametrize("refusal", [(403, {}), (401, {}), (500, {}), (429, {})], ids=lambda answer: str(answer[0]))
def test_a_refusal_of_kubernetes_is_waited_out(world: World, refusal: Answer) -> None:
    world.say(refusal, (200, READY))
    world.see(*TWO)
    world.see_cluster()
    world.see(*TWO)
    answer = world.run()
    assert answer
    assert answer["Status"] == "SUCCESS"


def fail_after(world: World, minutes: int, events: Callable[[], None]) -> dict[str, Any]:
    """Let the deadline be that far away, with looks that see nothing new until then."""
    looks = minutes * 60 // 15
    for _ in range(looks):
        world.see(("i-1", "system", "Running"), ("i-2", "system", "Pending"))
        world.see_cluster()
    events()
    answer = world.run(Deadline=world.now + minutes * 60 - 1)
    assert answer
    return answer


def test_a_deadline_says_what_was_seen(world: World) -> None:
    world.say((200, nodes(("hyperpod-i-1", "False"))))

    def events() -> None:
        told = [("Error", "insufficient capacity in usw2-az2"), ("Info", "scaling"), ("Warn", "retrying")] * 2
        world.stubs["sagemaker"].add_response(
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
                    for level, text in told
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

    answer = fail_after(world, 2, events)
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


def test_a_cluster_without_events_still_gets_its_reason(world: World) -> None:
    world.say((200, nodes()))
    events = world.stubs["sagemaker"].add_client_error
    answer = fail_after(
        world, 1, lambda: events("list_cluster_events", "ValidationException", "only with continuous provisioning")
    )
    assert answer["Status"] == "FAILED"
    assert "no events: only with continuous provisioning" in answer["Reason"]


def test_a_certificate_of_another_authority_is_not_trusted(world: World) -> None:
    world.say((200, READY))
    # Amazon's root in place of the server's own.
    world.authority = ssl.DER_cert_to_PEM_cert(ssl.create_default_context().get_ca_certs(binary_form=True)[0])
    answer = fail_after(world, 1, lambda: world.stubs["sagemaker"].add_response("list_cluster_events", {"Events": []}))
    assert "certificate verify failed" in answer["Reason"]
    assert world.kubernetes.calls == []


def test_a_reason_is_never_too_long_for_cloudformation(world: World) -> None:
    many = nodes(*((f"hyperpod-i-{number:04}", "False") for number in range(400)))
    world.say((200, many))
    answer = fail_after(world, 1, lambda: world.stubs["sagemaker"].add_response("list_cluster_events", {"Events": []}))
    assert len(json.dumps(answer)) < 4096
    assert answer["Reason"].count("NotReady") < 10


def test_a_failed_cluster_is_not_waited_for(world: World) -> None:
    world.say((200, nodes()))
    world.see()
    world.see_cluster("Failed", "EFA health checks did not run successfully")
    started = world.now
    answer = world.run()
    assert answer
    assert answer["Status"] == "FAILED"
    assert "EFA health checks did not run successfully" in answer["Reason"]
    assert world.now == started


def test_before_its_time_is_up_it_invokes_itself_and_goes_on(world: World) -> None:
    world.say((200, nodes()))
    for _ in range(55):
        world.see(("i-1", "system", "Pending"))
        world.see_cluster()
    world.stubs["lambda"].add_response(
        "invoke", {"StatusCode": 202}, {"FunctionName": FUNCTION_ARN, "InvocationType": "Event", "Payload": ANY}
    )
    sent: list[dict[str, Any]] = []
    world.clients["lambda"].meta.events.register(
        "provide-client-params.lambda.Invoke", lambda params, **_: sent.append(json.loads(params["Payload"]))
    )
    started = world.now
    assert world.run() is None, "the next invocation answers"
    assert 700 < world.now - started < 900
    (event,) = sent
    assert event["Deadline"] == started + 3300

    world.lambda_ends = world.now + 900
    world.say((200, READY))
    world.see(*TWO)
    answer = world.run(Deadline=event["Deadline"])
    assert answer
    assert answer["Status"] == "SUCCESS"


def test_a_deadline_survives_from_invocation_to_invocation(world: World) -> None:
    world.say((200, nodes()))
    world.see()
    world.see_cluster()
    world.stubs["sagemaker"].add_response("list_cluster_events", {"Events": []})
    answer = world.run(Deadline=world.now - 1)
    assert answer
    assert answer["Status"] == "FAILED"


def test_deleting_touches_nothing(world: World) -> None:
    answer = world.run("Delete", PhysicalResourceId="prod/system")
    assert answer
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "prod/system")
    assert world.kubernetes.calls == []


def test_an_update_keeps_the_physical_id(world: World) -> None:
    world.say((200, READY))
    world.see(*TWO)
    answer = world.run("Update", PhysicalResourceId="prod/system", OldResourceProperties={"Count": "1"})
    assert answer
    assert answer["PhysicalResourceId"] == "prod/system"


def test_what_sagemaker_refuses_fails_with_its_words(world: World) -> None:
    world.stubs["sagemaker"].add_client_error(
        "list_cluster_nodes", "AccessDeniedException", "not authorized to perform sagemaker:ListClusterNodes"
    )
    answer = world.run()
    assert answer
    assert answer["Status"] == "FAILED"
    assert "not authorized to perform sagemaker:ListClusterNodes" in answer["Reason"]


def test_throttling_and_faults_of_sagemaker_are_tried_again(world: World) -> None:
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
        world.clients["sagemaker"] = world.session.client("sagemaker", endpoint_url=sagemaker.url, config=RETRIES)
        world.say((200, READY))
        world.stubs["eks"].add_response(
            "describe_cluster",
            {"cluster": {"endpoint": world.kubernetes.url, "certificateAuthority": {"data": encoded(world.authority)}}},
        )
        answer = world.run()
        assert answer
        assert answer["Status"] == "SUCCESS"
        assert len(sagemaker.calls) == 4
