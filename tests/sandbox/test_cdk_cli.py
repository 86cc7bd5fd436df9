"""The real CDK CLI against the sandbox: bootstrap, deploy, deploy again, diff, update, destroy."""

from collections.abc import Callable
from typing import Any

from podwright.operations.sandbox.server import Running

APP = "three_stacks.py"
DEPLOY = ("deploy", "--all", "--require-approval", "never", "--concurrency", "2")


def test_life_of_an_app(sandbox: Running, cdk: Callable[..., str], aws: Callable[[str], Any]) -> None:
    assert "bootstrapped" in cdk(APP, "bootstrap", "aws://123456789012/us-west-2", "-c", "count=2")

    aws("s3").create_bucket(Bucket="sagemaker-scripts", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    aws("s3").put_object(Bucket="sagemaker-scripts", Key="first/on_create.sh", Body=b"#!/bin/bash")
    output = cdk(APP, *DEPLOY, "-c", "count=2")
    assert all(f"✅  {stack}" in output for stack in ("Network", "Control", "Training"))
    nodes = aws("sagemaker").list_cluster_nodes(ClusterName="demo")["ClusterNodeSummaries"]
    assert [node["InstanceStatus"]["Status"] for node in nodes] == ["Running", "Running"]
    subnets = aws("ec2").describe_subnets(Filters=[{"Name": "cidr-block", "Values": ["10.0.0.0/24"]}])["Subnets"]
    assert [subnet["AvailabilityZoneId"] for subnet in subnets] == ["usw2-az3"]
    assert aws("eks").list_clusters()["clusters"] != []

    output = cdk(APP, *DEPLOY, "-c", "count=2")
    assert output.count("(no changes)") == 3
    assert "Number of stacks with differences: 0" in cdk(APP, "diff", "-c", "count=2")

    output = cdk(APP, "diff", "Training", "-c", "count=4")
    assert '[+] "InstanceCount": 4' in output
    assert "requires replacement" not in output
    cdk(APP, "deploy", "Training", "--method=direct", "--require-approval", "never", "-c", "count=4")
    updated = aws("sagemaker").list_cluster_nodes(ClusterName="demo")["ClusterNodeSummaries"]
    assert len(updated) == 4
    assert {node["InstanceId"] for node in nodes} < {node["InstanceId"] for node in updated}

    output = cdk(APP, "destroy", "--all", "--force", "-c", "count=2")
    assert output.count("destroyed") == 3
    assert aws("sagemaker").list_clusters()["ClusterSummaries"] == []
    assert aws("ec2").describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.0.0.0/16"]}])["Vpcs"] == []
