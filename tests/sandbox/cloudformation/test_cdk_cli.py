"""The real CDK CLI by itself against the sandbox. `test_deploy.py` runs it through podwright, with every edit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

ACCOUNT = "aws://123456789012/us-west-2"


def test_life_of_an_app(cdk: Callable[..., str], synthesized: Callable[..., Path], aws: Callable[[str], Any]) -> None:
    app = synthesized("three_stacks.py", count="2")
    assert "bootstrapped" in cdk(app, "bootstrap", ACCOUNT)
    aws("s3").create_bucket(Bucket="sagemaker-scripts", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    aws("s3").put_object(Bucket="sagemaker-scripts", Key="first/on_create.sh", Body=b"#!/bin/bash")

    output = cdk(app, "deploy", "--all", "--require-approval", "never")
    assert all(f"✅  {stack}" in output for stack in ("Network", "Control", "Training"))
    nodes = aws("sagemaker").list_cluster_nodes(ClusterName="demo")["ClusterNodeSummaries"]
    assert [node["InstanceStatus"]["Status"] for node in nodes] == ["Running", "Running"]
    subnets = aws("ec2").describe_subnets(Filters=[{"Name": "cidr-block", "Values": ["10.0.0.0/24"]}])["Subnets"]
    assert [subnet["AvailabilityZoneId"] for subnet in subnets] == ["usw2-az3"]

    assert cdk(app, "destroy", "--all", "--force").count("destroyed") == 3
    # Other tests of the same server leave clusters and networks of their own.
    assert aws("sagemaker").list_clusters(NameContains="demo")["ClusterSummaries"] == []
    ids = [subnet["SubnetId"] for subnet in subnets]
    assert aws("ec2").describe_subnets(Filters=[{"Name": "subnet-id", "Values": ids}])["Subnets"] == []
