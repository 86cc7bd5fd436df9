"""Custom resources: our kind of handler runs for real, in a process of its own, and answers to the response URL."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox_stacks import StackUnderTest

Aws = Callable[[str], Any]

HANDLER = """
import json, os, urllib.request
import boto3

def answer(event, **fields):
    named = {key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")}
    body = {"Status": "SUCCESS", **named, **fields}
    request = urllib.request.Request(event["ResponseURL"], data=json.dumps(body).encode(), method="PUT",
                                     headers={"Content-Type": ""})
    urllib.request.urlopen(request).close()

def handler(event, context):
    properties = event["ResourceProperties"]
    role = boto3.client("sts").get_caller_identity()["Arn"]
    boto3.client("s3").put_object(Bucket=properties["Bucket"], Key=f"{event['RequestType']}-{event['RequestId']}",
                                  Body=json.dumps(event))
    print("said by the handler", event["RequestType"])
    if properties.get("Fail") == event["RequestType"]:
        answer(event, Status="FAILED", Reason="because it must", PhysicalResourceId="failed-one")
        return
    if properties.get("Silent") == "true":
        return
    if properties.get("Crash") == "true" and not boto3.client("s3").list_objects_v2(
            Bucket=properties["Bucket"], Prefix="crashed")["KeyCount"]:
        boto3.client("s3").put_object(Bucket=properties["Bucket"], Key="crashed")
        raise RuntimeError("the first attempt")
    left = str(context.get_remaining_time_in_millis() > 0)
    answer(event, PhysicalResourceId=f"thing-{properties['Name']}", Data={
        "Role": role, "Given": properties["Count"], "Environment": os.environ["GREETING"], "Left": left})
"""


@pytest.fixture
def bucket(aws: Aws) -> Iterator[str]:
    s3, name = aws("s3"), "handler-code"
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("deep/inside/index.py", HANDLER)
    s3.put_object(Bucket=name, Key="code.zip", Body=content.getvalue())
    yield name
    for item in s3.list_objects_v2(Bucket=name)["Contents"]:
        s3.delete_object(Bucket=name, Key=item["Key"])
    s3.delete_bucket(Bucket=name)


def resources(bucket: str, runtime: str = "python3.14", **properties: Any) -> dict[str, Any]:
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}
    return {
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {
                "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
                "Policies": [
                    {
                        "PolicyName": "Bucket",
                        "PolicyDocument": {
                            "Version": "2012-10-17",
                            "Statement": [
                                {"Effect": "Allow", "Action": ["s3:PutObject", "s3:ListBucket"], "Resource": "*"}
                            ],
                        },
                    }
                ],
            },
        },
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Runtime": runtime,
                "Handler": "deep/inside/index.handler",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Code": {"S3Bucket": bucket, "S3Key": "code.zip"},
                "Environment": {"Variables": {"GREETING": "hello"}},
                "Timeout": 60,
            },
        },
        "Thing": {
            "Type": "Custom::Thing",
            "Properties": {
                "ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]},
                "Bucket": bucket,
                "Name": "one",
                "Count": 3,
                **properties,
            },
        },
    }


OUTPUTS = {name: {"Value": {"Fn::GetAtt": ["Thing", name]}} for name in ("Role", "Given", "Environment", "Left")}


def requests(aws: Aws, bucket: str, kind: str) -> list[dict[str, Any]]:
    actual = aws("s3").list_objects_v2(Bucket=bucket, Prefix=f"{kind}-").get("Contents", [])
    return [json.load(aws("s3").get_object(Bucket=bucket, Key=item["Key"])["Body"]) for item in actual]


def test_life_of_a_custom_resource(stack: StackUnderTest, aws: Aws, bucket: str) -> None:
    assert stack.create(resources(bucket), Outputs=OUTPUTS) == "CREATE_COMPLETE", stack.reasons("Thing")
    outputs = stack.outputs()
    assert f":assumed-role/{stack.physical_id('Role')}/" in outputs.pop("Role")
    assert outputs == {"Given": "3", "Environment": "hello", "Left": "True"}
    assert stack.physical_id("Thing") == "thing-one"
    [created] = requests(aws, bucket, "Create")
    assert created["ResourceProperties"]["Count"] == "3"
    assert "PhysicalResourceId" not in created

    assert stack.update(resources(bucket, Count=4), Outputs=OUTPUTS) == "UPDATE_COMPLETE"
    [updated] = requests(aws, bucket, "Update")
    assert (updated["OldResourceProperties"]["Count"], updated["ResourceProperties"]["Count"]) == ("3", "4")
    assert requests(aws, bucket, "Delete") == []

    assert stack.update(resources(bucket, Name="two"), Outputs=OUTPUTS) == "UPDATE_COMPLETE"
    assert stack.physical_id("Thing") == "thing-two"
    [replaced] = requests(aws, bucket, "Delete")
    assert (replaced["PhysicalResourceId"], replaced["ResourceProperties"]["Name"]) == ("thing-one", "one")

    logs = aws("logs").filter_log_events(logGroupName=f"/aws/lambda/{stack.physical_id('Function')}")["events"]
    assert {"said by the handler Create", "said by the handler Update"} <= {event["message"] for event in logs}
    stack.delete()
    assert {item["PhysicalResourceId"] for item in requests(aws, bucket, "Delete")} == {"thing-one", "thing-two"}


def test_a_failure_is_told_and_rolled_back(stack: StackUnderTest, aws: Aws, bucket: str) -> None:
    assert stack.create(resources(bucket, Fail="Create")) == "ROLLBACK_COMPLETE"
    words = "Received response status [FAILED] from custom resource. Message returned: because it must (RequestId: "
    assert words in stack.reasons("Thing")
    assert [item["PhysicalResourceId"] for item in requests(aws, bucket, "Delete")] == ["failed-one"]


def test_a_rollback_that_fails_can_go_on(stack: StackUnderTest, bucket: str) -> None:
    stack.create(resources(bucket, Fail="Update"))
    bad = {"Type": "AWS::SQS::Queue", "Properties": {"Wrong": 1}, "DependsOn": "Thing"}
    assert stack.update(resources(bucket) | {"Bad": bad}) == "UPDATE_ROLLBACK_FAILED"
    stack.client.continue_update_rollback(StackName=stack.name)
    assert stack.wait() == "UPDATE_ROLLBACK_FAILED"
    stack.client.continue_update_rollback(StackName=stack.name, ResourcesToSkip=["Thing"])
    assert stack.wait() == "UPDATE_ROLLBACK_COMPLETE"
    assert stack.update(resources(bucket)) == "UPDATE_COMPLETE"


def test_a_handler_that_never_answers(stack: StackUnderTest, bucket: str) -> None:
    assert stack.create(resources(bucket, Silent="true")) == "ROLLBACK_FAILED"
    assert "ended without an answer" in stack.reasons("Thing")


def test_a_crashed_handler_is_run_again(stack: StackUnderTest, aws: Aws, bucket: str) -> None:
    assert stack.create(resources(bucket, Crash="true")) == "CREATE_COMPLETE", stack.reasons("Thing")
    assert len(requests(aws, bucket, "Create")) == 1  # both attempts carry the same request id


def test_other_runtimes_are_refused(stack: StackUnderTest, bucket: str) -> None:
    assert stack.create(resources(bucket, runtime="nodejs24.x")) == "ROLLBACK_COMPLETE"
    assert "runs on nodejs24.x; the sandbox runs Python handlers only (sandbox)" in stack.reasons("Thing")


def test_a_function_finds_nothing_of_this_machine(aws: Aws, stack: StackUnderTest) -> None:
    code = "import importlib.util, os\ndef handler(event, context):\n"
    code += "    names = ('boto3', 'aws_cdk', 'moto', 'podwright')\n"
    code += "    found = [name for name in names if importlib.util.find_spec(name)]\n"
    code += "    return {'found': found, 'home': os.environ.get('HOME')}"
    actual = resources("none")
    actual.pop("Thing")
    actual["Function"]["Properties"] |= {"Code": {"ZipFile": code}, "Handler": "index.handler"}
    stack.create(actual)
    answer = aws("lambda").invoke(FunctionName=stack.physical_id("Function"))
    assert json.load(answer["Payload"]) == {"found": ["boto3"], "home": None}


def test_a_function_is_stopped_at_its_timeout(aws: Aws, stack: StackUnderTest) -> None:
    actual = resources("none")
    actual.pop("Thing")
    code = "def handler(event, context):\n    while True: pass"
    actual["Function"]["Properties"] |= {"Code": {"ZipFile": code}, "Handler": "index.handler", "Timeout": 1}
    stack.create(actual)
    answer = aws("lambda").invoke(FunctionName=stack.physical_id("Function"))
    assert "Task timed out after 1.00 seconds" in json.load(answer["Payload"])["errorMessage"]
    assert answer["FunctionError"] == "Unhandled"
