"""The handler that keeps logs of other services, against a stubbed CloudWatch Logs."""

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from podwright.constructs.observability.service_logs.handler import index

CLIENT = boto3.Session("key", "secret", region_name="us-west-2").client("logs")
GROUP = "/aws/sagemaker/Clusters/prod/abcdefghijkl"
KEY = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
PROPERTIES = {"LogGroup": GROUP, "RetentionDays": "90", "KmsKeyArn": KEY}
MADE = {"logGroupName": GROUP, "kmsKeyId": KEY}


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stubber:
    monkeypatch.setattr(index.boto3, "Session", lambda: type("Session", (), {"client": lambda *_, **__: CLIENT})())
    return Stubber(CLIENT)


def run(stub: Stubber, request: str, properties: dict[str, str] = PROPERTIES) -> str:
    event: dict[str, Any] = {"RequestType": request, "ResourceProperties": properties, "PhysicalResourceId": GROUP}
    with stub:
        answer = index.handle(event, None)
    stub.assert_no_pending_responses()
    return answer.physical_id


def test_a_group_that_its_service_has_not_made_yet_is_made(stub: Stubber) -> None:
    stub.add_response("create_log_group", {}, MADE)
    stub.add_response("put_retention_policy", {}, {"logGroupName": GROUP, "retentionInDays": 90})
    assert run(stub, "Create") == GROUP


def test_one_that_is_there_gets_key_and_retention(stub: Stubber) -> None:
    stub.add_client_error("create_log_group", "ResourceAlreadyExistsException", expected_params=MADE)
    stub.add_response("associate_kms_key", {}, MADE)
    stub.add_response("put_retention_policy", {}, {"logGroupName": GROUP, "retentionInDays": 90})
    assert run(stub, "Update") == GROUP


def test_what_was_logged_stays_when_the_resource_goes(stub: Stubber) -> None:
    assert run(stub, "Delete") == GROUP


def test_a_group_that_outlives_our_key_has_the_service_s_own(stub: Stubber) -> None:
    own = {"LogGroup": GROUP, "RetentionDays": "90"}
    stub.add_response("create_log_group", {}, {"logGroupName": GROUP})
    stub.add_response("put_retention_policy", {}, {"logGroupName": GROUP, "retentionInDays": 90})
    assert run(stub, "Create", own) == GROUP
    stub.add_client_error("create_log_group", "ResourceAlreadyExistsException", expected_params={"logGroupName": GROUP})
    stub.add_response("disassociate_kms_key", {}, {"logGroupName": GROUP})
    stub.add_response("put_retention_policy", {}, {"logGroupName": GROUP, "retentionInDays": 90})
    assert run(stub, "Update", own) == GROUP
