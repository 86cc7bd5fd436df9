"""On which resources CloudFormation's role calls what the handlers of a type need."""

from typing import Any

import pytest

from podwright.sandbox.authorization.resource_arns import Location, Touching, arns, kinds

LOCATION = Location("us-west-2", "111122223333")
IN = "us-west-2:111122223333"
ALIAS = f"arn:aws:kms:{IN}:alias/a"


def touching(resource_type: str, identifier: str, **properties: Any) -> Touching:
    service, _, kind = resource_type.lower().partition("::")
    return Touching(service, kind, identifier, properties)


@pytest.mark.parametrize(
    ("action", "resource", "expected"),
    [
        ("logs:CreateLogGroup", touching("Logs::LogGroup", "/own/a"), [f"arn:aws:logs:{IN}:log-group:/own/a"]),
        ("ssm:PutParameter", touching("SSM::Parameter", "/a/b"), [f"arn:aws:ssm:{IN}:parameter/a/b"]),
        ("s3:PutBucketPolicy", touching("S3::BucketPolicy", "b", Bucket="b"), ["arn:aws:s3:::b"]),
        ("sns:TagResource", touching("SNS::Topic", f"arn:aws:sns:{IN}:t"), [f"arn:aws:sns:{IN}:t"]),
        # An add-on's ARN ends with a part that the service makes.
        ("eks:DescribeAddon", touching("EKS::Addon", "c|vpc-cni", ClusterName="c", AddonName="vpc-cni"), []),
        ("eks:CreateAddon", touching("EKS::Addon", "c|vpc-cni", ClusterName="c"), [f"arn:aws:eks:{IN}:cluster/c"]),
        # Two kinds, and each counts.
        (
            "ec2:CreateSubnet",
            touching("EC2::Subnet", "subnet-1", VpcId="vpc-1"),
            [f"arn:aws:ec2:{IN}:subnet/subnet-1", f"arn:aws:ec2:{IN}:vpc/vpc-1"],
        ),
        # Another service's cluster has the same word for its name.
        (
            "eks:DescribeCluster",
            touching("SageMaker::Cluster", "c", ClusterName="c", Eks={"ClusterArn": f"arn:aws:eks:{IN}:cluster/e"}),
            [f"arn:aws:eks:{IN}:cluster/e"],
        ),
        # Tags and policies speak of other things.
        ("kms:CreateAlias", touching("KMS::Alias", "alias/a", Tags=[{"Key": "x", "Value": "y"}]), [ALIAS]),
        (
            "s3:GetBucketPolicy",
            touching("S3::Bucket", "b", Policy={"Statement": [{"Resource": "arn:aws:s3:::other"}]}),
            ["arn:aws:s3:::b"],
        ),
        # What nobody names.
        ("kms:Decrypt", touching("SNS::Topic", "t"), []),
    ],
)
def test_what_a_resource_touches(action: str, resource: Touching, expected: list[str]) -> None:
    assert arns(action, resource, LOCATION) == expected


def test_actions_without_resources_have_no_kinds() -> None:
    assert kinds("ec2:DescribeVpcs") == ()
    assert [kind.name for kind in kinds("logs:DeleteLogGroup")] == ["loggroup"]
