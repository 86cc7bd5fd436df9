"""Tags of everything that SageMaker's API makes in the sandbox."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from governed_cluster import GovernedCluster, quota
from sandbox_network import surroundings
from sandbox_stacks import StackUnderTest

Aws = Callable[[str], Any]
FIRST = [{"Key": "team", "Value": "a"}, {"Key": "cost", "Value": "b"}]
POLICY = {"FairShare": "Enabled"}


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
def test_what_is_made_with_tags_has_them_until_they_change(aws: Aws, governed: GovernedCluster, kind: str) -> None:
    sagemaker, arn = aws("sagemaker"), MAKERS[kind](aws, governed)
    assert f":{kind}/" in arn
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == FIRST
    # A key that is there has another value from now on, and stands once.
    changed = [{"Key": "team", "Value": "c"}, {"Key": "cost", "Value": "b"}, {"Key": "new", "Value": ""}]
    added = [{"Key": "team", "Value": "c"}, {"Key": "new", "Value": ""}]
    assert sagemaker.add_tags(ResourceArn=arn, Tags=added)["Tags"] == changed
    sagemaker.delete_tags(ResourceArn=arn, TagKeys=["team", "absent"])
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == changed[1:]
    for operation, values in (("list_tags", {}), ("add_tags", {"Tags": added}), ("delete_tags", {"TagKeys": ["team"]})):
        with pytest.raises(ClientError, match=rf"\(ValidationException\).*{arn}x does not exist"):
            getattr(sagemaker, operation)(ResourceArn=f"{arn}x", **values)


def test_tags_change_with_their_stack(aws: Aws, governed: GovernedCluster, stack: StackUnderTest) -> None:
    def team(**tags: str) -> dict[str, Any]:
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        properties = {"Name": "stacked", "ClusterArn": governed.arn, **quota("stacked"), "Tags": listed}
        return {"Team": {"Type": "AWS::SageMaker::ComputeQuota", "Properties": properties}}

    def shown() -> dict[str, str]:
        [team] = aws("sagemaker").list_compute_quotas(NameContains="stacked")["ComputeQuotaSummaries"]
        tags = aws("sagemaker").list_tags(ResourceArn=team["ComputeQuotaArn"])["Tags"]
        return {tag["Key"]: tag["Value"] for tag in tags if not tag["Key"].startswith("aws:")}

    assert stack.create(team(a="1", b="2")) == "CREATE_COMPLETE", stack.log()
    assert shown() == {"a": "1", "b": "2"}
    assert stack.update(team(b="3", c="4")) == "UPDATE_COMPLETE", stack.log()
    assert shown() == {"b": "3", "c": "4"}
    stack.delete()
