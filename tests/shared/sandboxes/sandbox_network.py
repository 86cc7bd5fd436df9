"""What an EKS or HyperPod cluster needs around it in the sandbox, made through the APIs."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Aws = Callable[[str], Any]
_numbers = itertools.count(100)


@dataclass(frozen=True)
class Surroundings:
    """A VPC with a subnet in two zones, a security group that EFA works in, a role and a bucket with a script."""

    subnets: list[str]
    security_group: str
    role: str
    scripts: str


def surroundings(aws: Aws, zones: tuple[str, str] = ("usw2-az1", "usw2-az2")) -> Surroundings:
    """Make them."""
    ec2, number = aws("ec2"), next(_numbers)
    vpc = ec2.create_vpc(CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.{number}.{i}.0/24", AvailabilityZoneId=zone)["Subnet"]["SubnetId"]
        for i, zone in enumerate(zones)
    ]
    group = ec2.create_security_group(GroupName="nodes", Description="of the nodes", VpcId=vpc)["GroupId"]
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself)
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=itself)
    s3, bucket = aws("s3"), f"sagemaker-{number}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket=bucket, Key="scripts/on_create.sh", Body=b"#!/bin/bash")
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "sagemaker.amazonaws.com"}}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = aws("iam").create_role(RoleName=f"role-{number}", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    return Surroundings(subnets, group, role, f"s3://{bucket}/scripts/")


def eks_cluster(aws: Aws, around: Surroundings, name: str, mode: str = "API") -> dict[str, Any]:
    """An EKS cluster."""
    return aws("eks").create_cluster(
        name=name,
        version="1.34",
        roleArn=around.role,
        resourcesVpcConfig={"subnetIds": around.subnets},
        accessConfig={"authenticationMode": mode},
    )["cluster"]
