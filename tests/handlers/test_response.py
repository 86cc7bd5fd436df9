"""What CloudFormation hears from a handler."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any, cast

import pytest

from podwright.constructs.common.handler_runtime import response
from podwright.constructs.common.handler_runtime.response import Answer, answering

CONTEXT = SimpleNamespace(log_group_name="/aws/lambda/f", log_stream_name="2026/11/21")


class CloudFormation(HTTPServer):
    """Takes answers at a signed URL, after refusing as many as `refusals` says."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.bodies: list[dict[str, Any]] = []
        self.content_types: list[str | None] = []
        self.sizes: list[int] = []
        self.refusals = 0

    def request(self, **changes: Any) -> dict[str, Any]:
        return {
            "RequestType": "Create",
            "ResourceType": "Custom::Thing",
            "LogicalResourceId": "Thing",
            "StackId": "arn:aws:cloudformation:us-west-2:111122223333:stack/s/1",
            "RequestId": "r-1",
            "ResponseURL": f"http://127.0.0.1:{self.server_port}/?signature=secret",
            "ResourceProperties": {},
            **changes,
        }


class Receiver(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server = cast(CloudFormation, self.server)
        refused = server.refusals > 0
        server.refusals -= refused
        if not refused:
            server.bodies.append(json.loads(body))
            server.sizes.append(len(body))
            server.content_types.append(self.headers["Content-Type"])
        self.send_response(503 if refused else 200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def cloudformation(monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudFormation]:
    monkeypatch.setattr(response.time, "sleep", lambda seconds: None)
    server = CloudFormation()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_success(cloudformation: CloudFormation) -> None:
    answering(lambda event, context: Answer("thing-1", {"Arn": "arn"}))(cloudformation.request(), CONTEXT)
    assert cloudformation.bodies == [
        {
            "Status": "SUCCESS",
            "PhysicalResourceId": "thing-1",
            "Data": {"Arn": "arn"},
            "StackId": "arn:aws:cloudformation:us-west-2:111122223333:stack/s/1",
            "RequestId": "r-1",
            "LogicalResourceId": "Thing",
        }
    ]
    # The URL is signed for an empty content type; any other is a 403.
    assert cloudformation.content_types == [""]


def failing(event: dict[str, Any], context: Any) -> Answer:
    raise ValueError("the zone has no capacity" + " at all" * 1000)


def test_a_failure_says_why_and_where_to_read_on(cloudformation: CloudFormation) -> None:
    answering(failing)(cloudformation.request(), CONTEXT)
    (body,) = cloudformation.bodies
    assert body["Status"] == "FAILED"
    assert body["Reason"].startswith("ValueError: the zone has no capacity")
    assert body["Reason"].endswith("(log group /aws/lambda/f, stream 2026/11/21)")
    assert cloudformation.sizes[0] <= 4096


def test_a_create_that_failed_has_an_id_that_its_rollback_deletes(cloudformation: CloudFormation) -> None:
    answering(failing)(cloudformation.request(), CONTEXT)
    assert cloudformation.bodies[0]["PhysicalResourceId"] == "Thing-not-created"


def test_an_update_that_failed_keeps_its_id(cloudformation: CloudFormation) -> None:
    request = cloudformation.request(RequestType="Update", PhysicalResourceId="thing-1")
    answering(failing)(request, CONTEXT)
    assert cloudformation.bodies[0]["PhysicalResourceId"] == "thing-1"


def test_a_request_that_is_not_done_stays_open(cloudformation: CloudFormation) -> None:
    answering(lambda event, context: None)(cloudformation.request(), CONTEXT)
    assert cloudformation.bodies == []


def test_answers_again_when_s3_is_busy(cloudformation: CloudFormation) -> None:
    cloudformation.refusals = 4
    answering(lambda event, context: Answer("thing-1"))(cloudformation.request(), CONTEXT)
    assert len(cloudformation.bodies) == 1


def test_an_answer_that_nobody_takes_makes_lambda_run_the_request_again(cloudformation: CloudFormation) -> None:
    cloudformation.refusals = 5
    with pytest.raises(OSError, match="503"):
        answering(lambda event, context: Answer("thing-1"))(cloudformation.request(), CONTEXT)


def test_the_signed_url_is_never_logged(cloudformation: CloudFormation, caplog: pytest.LogCaptureFixture) -> None:
    cloudformation.refusals = 1
    answering(failing)(cloudformation.request(), CONTEXT)
    assert "Create Custom::Thing Thing" in caplog.text
    assert "secret" not in caplog.text
