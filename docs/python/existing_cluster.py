"""A HyperPod cluster in a VPC and on an EKS cluster that exist."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from podwright.constructs.library import (
    AdoptedEks,
    Eks,
    EksControlPlane,
    EnvironmentKey,
    HyperPodCluster,
    InstanceGroup,
    NodeSecurityGroup,
    Orchestrator,
    Storage,
)

ACCOUNT = "111122223333"
VPC = "vpc-0123456789abcdef0"
SUBNETS = {"usw2-az1": "subnet-0123456789abcdef1", "usw2-az2": "subnet-0123456789abcdef2"}
EKS_NAME = "platform"
EKS_SECURITY_GROUP = "sg-0123456789abcdef0"
KUBECTL_ROLE = "arn:aws:iam::111122223333:role/Kubectl"

app = cdk.App()
stack = cdk.Stack(app, "existing-cluster", env=cdk.Environment(account=ACCOUNT, region="us-west-2"))
subnets = {
    zone: ec2.Subnet.from_subnet_attributes(stack, zone, subnet_id=subnet, availability_zone=zone)
    for zone, subnet in SUBNETS.items()
}
vpc = ec2.Vpc.from_vpc_attributes(
    stack, "Vpc", vpc_id=VPC, availability_zones=list(SUBNETS), private_subnet_ids=list(SUBNETS.values())
)
key = EnvironmentKey(stack, "Key", settings=Storage(), protection="destroy").key
nodes = NodeSecurityGroup(stack, "Nodes", vpc=vpc)
control_plane = EksControlPlane(
    stack,
    "Eks",
    settings=Eks(existing=AdoptedEks(name=EKS_NAME, security_group=EKS_SECURITY_GROUP, kubectl_role=KUBECTL_ROLE)),
    vpc=vpc,
    control_plane_subnets=subnets,
    node_security_group=nodes.security_group,
    key=key,
)

cluster = HyperPodCluster(
    stack,
    "Cluster",
    cluster_name="platform",
    vpc=vpc,
    subnets=subnets,
    security_group=nodes.security_group,
    orchestrator=Orchestrator.eks(control_plane),
    key=key,
    instance_groups={
        "system": InstanceGroup(instance_type="ml.m5.4xlarge", count=2),
        "training": InstanceGroup(instance_type="ml.p5.48xlarge", count=2, zone="usw2-az2"),
    },
    protection="destroy",
)
researchers = iam.Role(stack, "Researchers", assumed_by=iam.AccountPrincipal(ACCOUNT))
cluster.grant_submit(researchers, namespaces=["research"])
app.synth()
