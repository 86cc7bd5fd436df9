"""Tags of everything that SageMaker's API makes in the sandbox, as AWS's own command line asks for them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from governed_cluster import GovernedCluster, quota
from podwright.operations.aws.sandbox_server import Running
from sandbox_network import surroundings
from sandbox_stacks import StackUnderTest

Aws = Callable[[str], Any]
AWS = Path(sys.executable).parent / "aws"
REGION = "us-west-2"
FIRST = [{"Key": "team", "Value": "a"}, {"Key": "cost", "Value": "b"}]
POLICY = {"FairShare": "Enabled"}


@pytest.fixture
def command(sandbox: Running) -> Callable[..., Any]:
    """The AWS CLI's `sagemaker`: its answer, or the text of its refusal."""

    def run(operation: str, arn: str, *arguments: str) -> Any:
        result = subprocess.run(
            [AWS, "sagemaker", operation, "--resource-arn", arn, *arguments, "--output", "json"],
            env=os.environ | sandbox.environment(REGION),
            capture_output=True,
            text=True,
        )
        return result.stderr if result.returncode else json.loads(result.stdout or "{}")

    return run


@pytest.fixture(scope="module")
def governed(aws: Aws) -> GovernedCluster:
    return GovernedCluster(aws, "governed-and-tagged")


def slurm(aws: Aws, name: str) -> str:
    around = surroundings(aws)
    node = {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "ExecutionRole": around.role}
    groups = [
        {"InstanceGroupName": kind.lower(), "SlurmConfig": {"NodeType": kind}, **node}
        for kind in ("Controller", "Login")
    ]
    vpc = {"Subnets": around.subnets[:1], "SecurityGroupIds": [around.security_group]}
    made = aws("sagemaker").create_cluster(
        ClusterName=name,
        VpcConfig=vpc,
        InstanceGroups=groups,
        NodeProvisioningMode="Continuous",
        Orchestrator={"Slurm": {}},
        Tags=FIRST,
    )
    return made["ClusterArn"]


def extension(aws: Aws) -> str:
    sagemaker, cluster = aws("sagemaker"), slurm(aws, "extended-and-tagged")
    named = {"ClusterArn": cluster, "ExtensionName": "sagemaker-observability"}
    return sagemaker.create_cluster_extension(**named, Tags=FIRST)["ExtensionArn"]


def plan(aws: Aws) -> str:
    sagemaker = aws("sagemaker")
    [offering, *_] = sagemaker.search_training_plan_offerings(
        InstanceType="ml.p5.48xlarge", InstanceCount=1, DurationHours=48, TargetResources=["hyperpod-cluster"]
    )["TrainingPlanOfferings"]
    identifier = offering["TrainingPlanOfferingId"]
    return sagemaker.create_training_plan(TrainingPlanName="tagged", TrainingPlanOfferingId=identifier, Tags=FIRST)[
        "TrainingPlanArn"
    ]


MAKERS: dict[str, Callable[[Aws, GovernedCluster], str]] = {
    "cluster": lambda aws, governed: slurm(aws, "tagged"),
    "extension": lambda aws, governed: extension(aws),
    "compute-quota": lambda aws, governed: aws("sagemaker").create_compute_quota(
        Name="tagged", ClusterArn=governed.arn, **quota("tagged"), Tags=FIRST
    )["ComputeQuotaArn"],
    "cluster-scheduler-config": lambda aws, governed: aws("sagemaker").create_cluster_scheduler_config(
        Name="tagged", ClusterArn=governed.arn, SchedulerConfig=POLICY, Tags=FIRST
    )["ClusterSchedulerConfigArn"],
    "training-plan": lambda aws, governed: plan(aws),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_made_with_tags_has_them_until_they_change(
    aws: Aws, governed: GovernedCluster, command: Callable[..., Any], kind: str
) -> None:
    arn = MAKERS[kind](aws, governed)
    assert f":{kind}/" in arn
    assert command("list-tags", arn)["Tags"] == FIRST
    # A key that is there has another value from now on, and stands once.
    changed = [{"Key": "team", "Value": "c"}, {"Key": "cost", "Value": "b"}, {"Key": "new", "Value": ""}]
    assert command("add-tags", arn, "--tags", "Key=team,Value=c", "Key=new,Value=")["Tags"] == changed
    assert command("delete-tags", arn, "--tag-keys", "team", "absent") == {}
    assert command("list-tags", arn)["Tags"] == changed[1:]
    refused = f"(ValidationException) when calling the {{}} operation: {arn}x does not exist"
    assert refused.format("ListTags") in command("list-tags", f"{arn}x")
    assert refused.format("AddTags") in command("add-tags", f"{arn}x", "--tags", "Key=a,Value=b")
    assert refused.format("DeleteTags") in command("delete-tags", f"{arn}x", "--tag-keys", "a")


def test_tags_change_with_their_stack(
    aws: Aws, governed: GovernedCluster, command: Callable[..., Any], stack: StackUnderTest
) -> None:
    def team(**tags: str) -> dict[str, Any]:
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        properties = {"Name": "stacked", "ClusterArn": governed.arn, **quota("stacked"), "Tags": listed}
        return {"Team": {"Type": "AWS::SageMaker::ComputeQuota", "Properties": properties}}

    def shown() -> dict[str, str]:
        [team] = aws("sagemaker").list_compute_quotas(NameContains="stacked")["ComputeQuotaSummaries"]
        tags = command("list-tags", team["ComputeQuotaArn"])["Tags"]
        return {tag["Key"]: tag["Value"] for tag in tags if not tag["Key"].startswith("aws:")}

    assert stack.create(team(a="1", b="2")) == "CREATE_COMPLETE", stack.log()
    assert shown() == {"a": "1", "b": "2"}
    assert stack.update(team(b="3", c="4")) == "UPDATE_COMPLETE", stack.log()
    assert shown() == {"b": "3", "c": "4"}
    stack.delete()
