"""AWS's own command lines against the sandbox: answers and refusals as AWS words them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.operations.aws.sandbox_server import Running
from sandbox_network import surroundings

Aws = Callable[[str], Any]
AWS = Path(sys.executable).parent / "aws"
REGION = "us-west-2"


@pytest.fixture
def command(sandbox: Running) -> Callable[..., Any]:
    """The AWS CLI: its answer, or the text of its refusal."""

    def run(*arguments: str) -> Any:
        result = subprocess.run(
            [AWS, *arguments, "--output", "json"],
            env=os.environ | sandbox.environment(REGION),
            capture_output=True,
            text=True,
        )
        return result.stderr if result.returncode else json.loads(result.stdout)

    return run


def test_the_tags_of_a_cluster(aws: Aws, command: Callable[..., Any]) -> None:
    around = surroundings(aws)
    tags = [{"Key": "team", "Value": "a"}]
    group = {"InstanceGroupName": "g", "InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "ExecutionRole": around.role}
    vpc = {"Subnets": around.subnets, "SecurityGroupIds": [around.security_group]}
    arn = aws("sagemaker").create_cluster(
        ClusterName="tagged", VpcConfig=vpc, InstanceGroups=[group], Tags=tags
    )["ClusterArn"]  # fmt: skip
    assert command("sagemaker", "list-tags", "--resource-arn", arn)["Tags"] == tags
    for other in (f"{arn}x", arn.replace("cluster/", "training-plan/"), arn.replace("cluster/", "")):
        refused = command("sagemaker", "list-tags", "--resource-arn", other)
        assert f"(ValidationException) when calling the ListTags operation: {other} does not exist" in refused


def test_the_encryption_of_a_bucket(aws: Aws, command: Callable[..., Any]) -> None:
    """A bucket has S3's own keys unless somebody chose others, and again when the choice is taken back."""
    s3 = aws("s3")
    s3.create_bucket(Bucket="encrypted-bucket", CreateBucketConfiguration={"LocationConstraint": REGION})

    def algorithm() -> str:
        answer = command("s3api", "get-bucket-encryption", "--bucket", "encrypted-bucket")
        [rule] = answer["ServerSideEncryptionConfiguration"]["Rules"]
        return rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"]

    assert algorithm() == "AES256"
    rules = [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}]
    s3.put_bucket_encryption(Bucket="encrypted-bucket", ServerSideEncryptionConfiguration={"Rules": rules})
    assert algorithm() == "aws:kms"
    s3.delete_bucket_encryption(Bucket="encrypted-bucket")
    assert algorithm() == "AES256"
    assert "(NoSuchBucket)" in command("s3api", "get-bucket-encryption", "--bucket", "no-such-bucket-here")


def test_the_identity_of_a_key(command: Callable[..., Any]) -> None:
    """As EKS of the sandbox knows it: an account's own key is its root's, which has no access entry of its own."""
    identity = command("sts", "get-caller-identity")
    assert identity["Arn"] == f"arn:aws:iam::{identity['Account']}:root"
