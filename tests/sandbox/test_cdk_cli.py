"""The real CDK CLI against the sandbox: bootstrap, deploy, deploy again, diff, update, destroy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

APP = "three_stacks.py"
ACCOUNT = "aws://123456789012/us-west-2"
DEPLOY = ("deploy", "--all", "--require-approval", "never")


def test_life_of_an_app(cdk: Callable[..., str], synthesized: Callable[..., Path], aws: Callable[[str], Any]) -> None:
    two, four = synthesized(APP, count="2"), synthesized(APP, count="4")
    assert "bootstrapped" in cdk(two, "bootstrap", ACCOUNT)
    aws("s3").create_bucket(Bucket="sagemaker-scripts", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    aws("s3").put_object(Bucket="sagemaker-scripts", Key="first/on_create.sh", Body=b"#!/bin/bash")

    output = cdk(two, *DEPLOY)
    assert all(f"✅  {stack}" in output for stack in ("Network", "Control", "Training"))
    nodes = aws("sagemaker").list_cluster_nodes(ClusterName="demo")["ClusterNodeSummaries"]
    assert [node["InstanceStatus"]["Status"] for node in nodes] == ["Running", "Running"]
    subnets = aws("ec2").describe_subnets(Filters=[{"Name": "cidr-block", "Values": ["10.0.0.0/24"]}])["Subnets"]
    assert [subnet["AvailabilityZoneId"] for subnet in subnets] == ["usw2-az3"]

    assert cdk(two, *DEPLOY).count("(no changes)") == 3
    output = cdk(four, "diff")
    assert "Number of stacks with differences: 1" in output
    assert '[+] "InstanceCount": 4' in output
    assert "requires replacement" not in output
    cdk(four, "deploy", "Training", "--exclusively", "--method=direct", "--require-approval", "never")
    updated = aws("sagemaker").list_cluster_nodes(ClusterName="demo")["ClusterNodeSummaries"]
    assert len(updated) == 4
    assert {node["InstanceId"] for node in nodes} < {node["InstanceId"] for node in updated}

    assert cdk(four, "destroy", "--all", "--force").count("destroyed") == 3
    # Other tests of the same server leave clusters and networks of their own.
    assert aws("sagemaker").list_clusters(NameContains="demo")["ClusterSummaries"] == []
    ids = [subnet["SubnetId"] for subnet in subnets]
    assert aws("ec2").describe_subnets(Filters=[{"Name": "subnet-id", "Values": ids}])["Subnets"] == []
