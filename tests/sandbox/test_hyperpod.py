"""HyperPod in the sandbox: nodes boot, groups scale, zones run out of capacity, and what the service refuses."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from podwright.operations.aws.sandbox_server import Running
from sandbox_network import Surroundings, eks_cluster, surroundings
from sandbox_stacks import StackUnderTest, turn
from waiting import becomes, until

Aws = Callable[[str], Any]
NO_CAPACITY = "We currently do not have sufficient capacity for the requested instance type(s). Please try again."


@pytest.fixture(scope="module")
def around(aws: Aws) -> Surroundings:
    return surroundings(aws)


@pytest.fixture
def without_capacity(sandbox: Running) -> Iterator[Callable[..., None]]:
    def missing(*items: dict[str, str]) -> None:
        turn(sandbox.endpoint, "capacity", items)

    yield missing
    missing()


def group(around: Surroundings, name: str = "gpu", count: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "InstanceGroupName": name,
        "InstanceType": "ml.p5en.48xlarge",
        "InstanceCount": count,
        "ExecutionRole": around.role,
        "LifeCycleConfig": {"SourceS3Uri": around.scripts, "OnCreate": "on_create.sh"},
        **more,
    }


def cluster(around: Surroundings, name: str, *groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    vpc = {"Subnets": around.subnets[:1], "SecurityGroupIds": [around.security_group]}
    return {"ClusterName": name, "VpcConfig": vpc, "InstanceGroups": list(groups or [group(around)]), **more}


def wait(aws: Aws, name: str, status: str = "InService") -> dict[str, Any]:
    answers = list[dict[str, Any]]()

    def has_status() -> bool:
        answers[:] = [aws("sagemaker").describe_cluster(ClusterName=name)]
        return answers[0]["ClusterStatus"] == status

    until(has_status, lambda: answers[0]["ClusterStatus"])
    return answers[0]


def nodes(aws: Aws, name: str) -> dict[str, str]:
    cluster_node_summaries = aws("sagemaker").list_cluster_nodes(ClusterName=name)["ClusterNodeSummaries"]
    return {node["InstanceId"]: node["InstanceStatus"]["Status"] for node in cluster_node_summaries}


def running(aws: Aws, name: str, count: int) -> set[str]:
    becomes(["Running"] * count, lambda: list(nodes(aws, name).values()))
    return set(nodes(aws, name))


def test_nodes_boot_scale_and_go(aws: Aws, around: Surroundings) -> None:
    sagemaker = aws("sagemaker")
    sagemaker.create_cluster(**cluster(around, "life", group(around, OnStartDeepHealthChecks=["InstanceStress"])))
    # A busy machine may look at them only when they run.
    assert set(nodes(aws, "life").values()) <= {"Pending", "DeepHealthCheckInProgress", "Running"}
    actual = wait(aws, "life")
    first = running(aws, "life", 2)
    assert all(name.startswith("i-") and len(name) == 19 for name in first)
    assert (actual["InstanceGroups"][0]["CurrentCount"], actual["InstanceGroups"][0]["TargetCount"]) == (2, 2)

    details = sagemaker.describe_cluster_node(ClusterName="life", NodeId=min(first))["NodeDetails"]
    assert details["Placement"]["AvailabilityZoneId"] == "usw2-az1"

    sagemaker.update_cluster(ClusterName="life", InstanceGroups=[group(around, count=3), group(around, "more", 1)])
    assert wait(aws, "life")["InstanceGroups"][1]["CurrentCount"] == 1
    assert first < running(aws, "life", 4)
    sagemaker.update_cluster(
        ClusterName="life", InstanceGroups=[group(around, count=1)], InstanceGroupsToDelete=["more"]
    )
    wait(aws, "life")
    assert len(running(aws, "life", 1) & first) == 1
    sagemaker.delete_cluster(ClusterName="life")
    # Other tests of this server have clusters, too.
    becomes([], lambda: sagemaker.list_clusters(NameContains="life")["ClusterSummaries"])
    with pytest.raises(ClientError, match="ResourceNotFound"):
        sagemaker.describe_cluster(ClusterName="life")


def test_a_new_cluster_in_a_zone_without_capacity_fails(
    aws: Aws, around: Surroundings, stack: StackUnderTest, without_capacity: Callable[..., None]
) -> None:
    without_capacity({"zone_id": "usw2-az1", "instance_type": "ml.p5en.48xlarge"})
    resource = {"Type": "AWS::SageMaker::Cluster", "Properties": cluster(around, "short")}
    assert stack.create({"Cluster": resource}) == "ROLLBACK_COMPLETE"
    assert NO_CAPACITY in stack.reasons("Cluster")
    assert aws("sagemaker").list_clusters(NameContains="short")["ClusterSummaries"] == []


def test_nodes_fail_without_their_lifecycle_script(aws: Aws, around: Surroundings) -> None:
    lifecycle = {"SourceS3Uri": around.scripts, "OnCreate": "no_such.sh"}
    aws("sagemaker").create_cluster(**cluster(around, "scriptless", group(around, LifeCycleConfig=lifecycle)))
    assert "Lifecycle scripts did not run successfully. Ensure" in wait(aws, "scriptless", "Failed")["FailureMessage"]


def test_efa_needs_a_security_group_open_to_itself(aws: Aws, around: Surroundings) -> None:
    ec2 = aws("ec2")
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": around.security_group}]}]
    ec2.revoke_security_group_egress(GroupId=around.security_group, IpPermissions=itself)
    sagemaker = aws("sagemaker")
    sagemaker.create_cluster(**cluster(around, "closed-efa"))
    sagemaker.create_cluster(**cluster(around, "closed-cpu", group(around, InstanceType="ml.m5.xlarge")))
    assert "EFA health checks did not run" in wait(aws, "closed-efa", "Failed")["FailureMessage"]
    wait(aws, "closed-cpu")
    ec2.authorize_security_group_egress(GroupId=around.security_group, IpPermissions=itself)
    sagemaker.create_cluster(**cluster(around, "open-efa"))
    wait(aws, "open-efa")


def test_growing_without_capacity_leaves_the_cluster_as_it_was(
    aws: Aws, around: Surroundings, stack: StackUnderTest, without_capacity: Callable[..., None]
) -> None:
    def resources(count: int) -> dict[str, Any]:
        properties = cluster(around, "grown", group(around, count=count))
        return {"Cluster": {"Type": "AWS::SageMaker::Cluster", "Properties": properties}}

    stack.create(resources(1))
    before = running(aws, "grown", 1)
    without_capacity({"zone_id": "usw2-az1"})
    assert stack.update(resources(3)) == "UPDATE_ROLLBACK_COMPLETE"
    assert NO_CAPACITY in stack.reasons("Cluster")
    assert running(aws, "grown", 1) == before
    without_capacity()
    assert stack.update(resources(3)) == "UPDATE_COMPLETE"
    assert before < running(aws, "grown", 3)


def test_continuous_provisioning_goes_on_when_capacity_comes(
    aws: Aws, around: Surroundings, without_capacity: Callable[..., None]
) -> None:
    sagemaker = aws("sagemaker")
    without_capacity({"zone_id": "usw2-az1"})
    other = {"Subnets": around.subnets[1:], "SecurityGroupIds": [around.security_group]}
    groups = [group(around, count=2), group(around, "elsewhere", 1, OverrideVpcConfig=other)]
    sagemaker.create_cluster(**cluster(around, "steady", *groups, NodeProvisioningMode="Continuous"))
    wait(aws, "steady")
    running(aws, "steady", 1)
    actual = {item["InstanceGroupName"]: item for item in wait(aws, "steady")["InstanceGroups"]}
    assert {name: (item["CurrentCount"], item["TargetCount"], item["Status"]) for name, item in actual.items()} == {
        "gpu": (0, 2, "Degraded"),
        "elsewhere": (1, 1, "InService"),
    }
    errors = [
        item for item in sagemaker.list_cluster_events(ClusterName="steady")["Events"] if item["EventLevel"] == "Error"
    ]
    detail = sagemaker.describe_cluster_event(ClusterName="steady", EventId=errors[0]["EventId"])["EventDetails"]
    assert detail["EventDetails"]["EventMetadata"]["InstanceGroupScaling"]["FailureMessage"] == NO_CAPACITY

    without_capacity()
    running(aws, "steady", 3)


def test_batch_operations(aws: Aws, around: Surroundings) -> None:
    sagemaker = aws("sagemaker")
    sagemaker.create_cluster(**cluster(around, "batch", NodeProvisioningMode="Continuous"))
    wait(aws, "batch")
    first = running(aws, "batch", 2)
    expected = [{"InstanceGroupName": name, "IncrementTargetCountBy": 1} for name in ("gpu", "nothing")]
    added = sagemaker.batch_add_cluster_nodes(ClusterName="batch", NodesToAdd=expected)
    assert [item["InstanceGroupName"] for item in added["Successful"]] == ["gpu"]
    assert [item["ErrorCode"] for item in added["Failed"]] == ["InstanceGroupNotFound"]
    three = running(aws, "batch", 3)
    deleted, other = min(three), max(three)
    answer = sagemaker.batch_delete_cluster_nodes(ClusterName="batch", NodeIds=[deleted, "i-00000000000000000"])
    assert (answer["Successful"], [item["Code"] for item in answer["Failed"]]) == ([deleted], ["NodeIdNotFound"])
    again = sagemaker.batch_delete_cluster_nodes(ClusterName="batch", NodeIds=[deleted])
    assert [item["Code"] for item in again["Failed"]] in (["InvalidNodeStatus"], ["NodeIdNotFound"]), "it is going"
    assert "Successful" not in again
    assert deleted not in running(aws, "batch", 2)
    sagemaker.batch_replace_cluster_nodes(ClusterName="batch", NodeIds=[other])
    assert other not in running(aws, "batch", 2)
    assert first != running(aws, "batch", 2)
    with pytest.raises(ClientError, match=r"ValidationException.*NodeIds or NodeLogicalIds"):
        sagemaker.batch_delete_cluster_nodes(ClusterName="batch")
    names = [
        node["NodeLogicalId"] for node in sagemaker.list_cluster_nodes(ClusterName="batch")["ClusterNodeSummaries"]
    ]
    answer = sagemaker.batch_delete_cluster_nodes(ClusterName="batch", NodeLogicalIds=[names[-1], "node-none"])
    assert answer["SuccessfulNodeLogicalIds"] == names[-1:]
    assert [item["NodeLogicalId"] for item in answer["FailedNodeLogicalIds"]] == ["node-none"]
    [group] = sagemaker.describe_cluster(ClusterName="batch")["InstanceGroups"]
    assert group["TargetCount"] == 1


def test_events_need_continuous_provisioning(aws: Aws, around: Surroundings) -> None:
    aws("sagemaker").create_cluster(**cluster(around, "plain"))
    with pytest.raises(ClientError, match=r"ValidationException.*Continuous"):
        aws("sagemaker").list_cluster_events(ClusterName="plain")


def test_what_the_service_refuses(aws: Aws, around: Surroundings) -> None:
    create = aws("sagemaker").create_cluster
    create(**cluster(around, "taken"))
    with pytest.raises(ClientError, match="ResourceInUse"):
        create(**cluster(around, "taken"))
    with pytest.raises(ClientError, match="failed to satisfy constraint: Member must satisfy enum value set"):
        create(**cluster(around, "typo", group(around, InstanceType="ml.p5.96xlarge")))
    lifecycle = {"SourceS3Uri": "s3://mine/y", "OnCreate": "on_create.sh"}
    with pytest.raises(ClientError, match="does not start with 's3://sagemaker'"):
        create(**cluster(around, "bucket", group(around, LifeCycleConfig=lifecycle)))
    with pytest.raises(ClientError, match="used more than once"):
        create(**cluster(around, "twice", group(around), group(around)))
    absent = {"Subnets": around.subnets[:1], "SecurityGroupIds": ["sg-0123456789abcdef0"]}
    with pytest.raises(ClientError, match="sg-0123456789abcdef0"):
        create(**cluster(around, "absent", VpcConfig=absent))
    with pytest.raises(ClientError, match="ResourceNotFound"):
        aws("sagemaker").describe_cluster(ClusterName="absent")


def test_what_an_eks_cluster_needs(aws: Aws, around: Surroundings) -> None:
    def orchestrated(name: str, eks: dict[str, Any]) -> dict[str, Any]:
        return cluster(around, name, Orchestrator={"Eks": {"ClusterArn": eks["arn"]}})

    create = aws("sagemaker").create_cluster
    old = eks_cluster(aws, around, "config-map", mode="CONFIG_MAP")
    with pytest.raises(ClientError, match="must be API or API_AND_CONFIG_MAP"):
        create(**orchestrated("a", old))
    with pytest.raises(ClientError, match="does not exist"):
        create(**orchestrated("b", {"arn": old["arn"] + "x"}))
    bare = eks_cluster(aws, around, "bare")
    with pytest.raises(ClientError, match="Amazon EKS orchestrator cluster is missing required dependencies"):
        create(**orchestrated("c", bare))
