"""What preflight reads of an account in the sandbox: quotas, simulated permissions, cost tags, versions and types."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from podwright.operations.aws.sandbox_server import Running
from sandbox_network import surroundings
from sandbox_stacks import StackUnderTest, turn
from waiting import becomes

Aws = Callable[[str], Any]


def policy(effect: str, *actions: str, resource: str = "*") -> str:
    statement = {"Effect": effect, "Action": list(actions), "Resource": resource}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@pytest.fixture
def quotas(sandbox: Running) -> Iterator[Callable[[Any], None]]:
    def put(values: Any) -> None:
        turn(sandbox.endpoint, "quotas", values)

    yield put
    put({})


def test_quotas_are_plenty_until_somebody_says_otherwise(aws: Aws, quotas: Callable[[Any], None]) -> None:
    name = "ml.p5.48xlarge for cluster usage"

    def value() -> float:
        pages = aws("service-quotas").get_paginator("list_service_quotas").paginate(ServiceCode="sagemaker")
        [actual] = [quota for page in pages for quota in page["Quotas"] if quota["QuotaName"] == name]
        return actual["Value"]

    assert value() > 10_000
    quotas({"sagemaker": {name: 8}})
    assert value() == 8
    client = aws("service-quotas")
    code = next(
        quota["QuotaCode"]
        for quota in client.list_aws_default_service_quotas(ServiceCode="sagemaker", MaxResults=100)["Quotas"]
    )
    by_code = {"ServiceCode": "sagemaker", "QuotaCode": code}
    assert client.get_service_quota(**by_code)["Quota"] == client.get_aws_default_service_quota(**by_code)["Quota"]
    with pytest.raises(ClientError, match="NoSuchResourceException"):
        client.get_service_quota(ServiceCode="sagemaker", QuotaCode="L-0")
    with pytest.raises(urllib.error.HTTPError, match="400"):
        quotas({"sagemaker": {name: -1}})
    with pytest.raises(ClientError, match="NoSuchResourceException"):
        client.list_service_quotas(ServiceCode="athena")


def test_hyperpod_keeps_to_the_quotas_that_were_set(aws: Aws, quotas: Callable[[Any], None]) -> None:
    around, sagemaker, name = surroundings(aws), aws("sagemaker"), "ml.g6e.48xlarge for cluster usage"

    def cluster(count: int) -> dict[str, Any]:
        group: dict[str, Any] = {"InstanceGroupName": "gpu", "InstanceType": "ml.g6e.48xlarge", "InstanceCount": count}
        return {"ClusterName": "within", "InstanceGroups": [group | {"ExecutionRole": around.role}]}

    vpc = {"Subnets": around.subnets[:1], "SecurityGroupIds": [around.security_group]}
    quotas({"sagemaker": {name: 3}})
    with pytest.raises(ClientError, match=f"'{name}' is 3 Instances.* utilization of 0 .* request delta of 4"):
        sagemaker.create_cluster(VpcConfig=vpc, **cluster(4))
    sagemaker.create_cluster(VpcConfig=vpc, NodeProvisioningMode="Continuous", **cluster(2))
    becomes("InService", lambda: sagemaker.describe_cluster(ClusterName="within")["ClusterStatus"])
    with pytest.raises(ClientError, match="current utilization of 2 Instances and a request delta of 2 Instances"):
        sagemaker.update_cluster(**cluster(4))
    sagemaker.update_cluster(**cluster(3))
    sagemaker.delete_cluster(ClusterName="within")
    becomes([], lambda: sagemaker.list_clusters(NameContains="within")["ClusterSummaries"])


def test_permissions_are_those_of_policies_and_boundary(aws: Aws) -> None:
    iam = aws("iam")
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    boundary = iam.create_policy(PolicyName="edge", PolicyDocument=policy("Allow", "s3:*", "ec2:*"))["Policy"]["Arn"]
    role = iam.create_role(
        RoleName="reader", Path="/teams/", AssumeRolePolicyDocument=trust, PermissionsBoundary=boundary
    )["Role"]["Arn"]
    iam.put_role_policy(
        RoleName="reader", PolicyName="inline", PolicyDocument=policy("Allow", "s3:Get*", "ec2:*", "kms:*")
    )
    iam.put_role_policy(RoleName="reader", PolicyName="never", PolicyDocument=policy("Deny", "ec2:RunInstances"))
    iam.attach_role_policy(RoleName="reader", PolicyArn="arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess")
    actions = ["s3:GetObject", "s3:ListBucket", "s3:PutObject", "ec2:RunInstances", "kms:Decrypt"]
    answer = iam.simulate_principal_policy(PolicySourceArn=role, ActionNames=actions)
    assert [result["EvalDecision"] for result in answer["EvaluationResults"]] == [
        "allowed", "allowed", "implicitDeny", "explicitDeny", "implicitDeny",
    ]  # fmt: skip
    ours = aws("sts").get_caller_identity()["Arn"]
    [result] = iam.simulate_principal_policy(PolicySourceArn=ours, ActionNames=["iam:CreateRole"])["EvaluationResults"]
    assert result["EvalDecision"] == "allowed"
    with pytest.raises(ClientError, match="NoSuchEntity"):
        iam.simulate_principal_policy(PolicySourceArn=f"{role}-2", ActionNames=actions)


def test_billing_sees_the_tags_of_stacks_and_they_are_activated(aws: Aws, stack: StackUnderTest) -> None:
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"Tags": [{"Key": "of-topic", "Value": "x"}]}}
    body = json.dumps({"Resources": {"Topic": topic}})
    aws("cloudformation").create_stack(
        StackName=stack.name, TemplateBody=body, Tags=[{"Key": "cost-of", "Value": "a team"}]
    )
    waiter = aws("cloudformation").get_waiter("stack_create_complete")
    waiter.wait(StackName=stack.name, WaiterConfig={"Delay": 1})
    ce, keys = aws("ce"), ["cost-of", "nowhere"]
    assert ce.list_cost_allocation_tags(TagKeys=["of-topic"])["CostAllocationTags"][0]["Status"] == "Inactive"
    cost_allocation_tags = ce.list_cost_allocation_tags(TagKeys=keys)["CostAllocationTags"]
    assert [(tag["TagKey"], tag["Status"]) for tag in cost_allocation_tags] == [("cost-of", "Inactive")]
    changes = [{"TagKey": key, "Status": "Active"} for key in keys]
    [error] = ce.update_cost_allocation_tags_status(CostAllocationTagsStatus=changes)["Errors"]
    assert error["TagKey"] == "nowhere"
    assert ce.list_cost_allocation_tags(TagKeys=keys, Status="Active")["CostAllocationTags"][0]["TagKey"] == "cost-of"


def test_eks_tells_its_versions_and_those_of_add_ons(aws: Aws) -> None:
    eks = aws("eks")
    [version] = eks.describe_cluster_versions(clusterVersions=["1.35"])["clusterVersions"]
    assert (version["endOfStandardSupportDate"].isoformat()[:10], version["clusterType"]) == ("2027-03-27", "eks")
    assert "1.28" not in {row["clusterVersion"] for row in eks.describe_cluster_versions()["clusterVersions"]}
    request = {"addonName": "vpc-cni", "kubernetesVersion": "1.34"}
    [addon] = eks.describe_addon_versions(**request)["addons"]
    assert [row["addonVersion"] for row in addon["addonVersions"]] == ["v1.21.1-eksbuild.7"]
    [driver] = eks.describe_addon_versions(addonName="aws-fsx-csi-driver", kubernetesVersion="1.34")["addons"]
    assert driver["addonVersions"]
    # Which others EKS has nobody publishes: the sandbox has what is asked for by name, and lists what podwright knows.
    [other] = eks.describe_addon_versions(addonName="eks-node-monitoring-agent", kubernetesVersion="1.34")["addons"]
    assert other["addonVersions"]
    assert "eks-node-monitoring-agent" not in {row["addonName"] for row in eks.describe_addon_versions()["addons"]}


def test_cloudformation_tells_which_types_a_region_has(aws: Aws) -> None:
    cloudformation = aws("cloudformation")
    assert cloudformation.describe_type(Type="RESOURCE", TypeName="AWS::SageMaker::Cluster")["Visibility"] == "PUBLIC"
    with pytest.raises(ClientError, match="TypeNotFoundException"):
        cloudformation.describe_type(Type="RESOURCE", TypeName="AWS::Nothing::Here")


def test_ec2_tells_in_which_zones_an_endpoint_service_is(aws: Aws) -> None:
    desired = [f"com.amazonaws.us-west-2.{name}" for name in ("ecr.api", "nothing", "s3")]
    answer = aws("ec2").describe_vpc_endpoint_services(Filters=[{"Name": "service-name", "Values": desired}])
    assert answer["ServiceNames"] == [desired[0], desired[2]]
    interface, gateway = answer["ServiceDetails"]
    kinds = [each["ServiceType"][0]["ServiceType"] for each in (interface, gateway)]
    assert kinds == ["Interface", "Gateway"]
    assert {"usw2-az1", "usw2-az2"} <= set(interface["AvailabilityZoneIds"])


def test_eks_tells_what_configuration_an_add_on_takes(aws: Aws) -> None:
    eks, known = aws("eks"), {"addonName": "vpc-cni", "addonVersion": "v1.21.1-eksbuild.7"}
    assert json.loads(eks.describe_addon_configuration(**known)["configurationSchema"])["type"] == "object"
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        eks.describe_addon_configuration(**known | {"addonVersion": "v0.0.1-eksbuild.1"})


def test_identity_center_has_an_instance(aws: Aws) -> None:
    (instance,) = aws("sso-admin").list_instances()["Instances"]
    assert instance["InstanceArn"].startswith("arn:aws:sso:::instance/")


def test_peerings_are_filtered_by_the_vpcs_at_their_ends(aws: Callable[[str], Any]) -> None:
    """A peering of other VPCs must not keep a VPC from being deleted."""
    ec2 = aws("ec2")
    one, two, three = (ec2.create_vpc(CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"] for number in (61, 62, 63))
    peering = ec2.create_vpc_peering_connection(VpcId=one, PeerVpcId=two)["VpcPeeringConnection"]

    def ids(name: str, value: str) -> list[str]:
        filters = [{"Name": name, "Values": [value]}]
        answer = ec2.describe_vpc_peering_connections(Filters=filters)["VpcPeeringConnections"]
        return [item["VpcPeeringConnectionId"] for item in answer]

    expected = [peering["VpcPeeringConnectionId"]]
    assert ids("requester-vpc-info.vpc-id", one) == ids("accepter-vpc-info.vpc-id", two) == expected
    assert ids("requester-vpc-info.vpc-id", two) == ids("accepter-vpc-info.vpc-id", three) == []
    with pytest.raises(ClientError, match="The filter 'no-such' is invalid"):
        ids("no-such", one)
