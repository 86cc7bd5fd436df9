"""Only a Lustre file system that serves EFA, for clients that exist, with an alarm before it is full."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2

from podwright.constructs.library import Lustre, LustreFileSystem

ACCOUNT = "111122223333"
VPC = "vpc-0123456789abcdef0"
SUBNET = "subnet-0123456789abcdef1"
CLIENTS = "sg-0123456789abcdef0"

app = cdk.App()
stack = cdk.Stack(app, "scratch", env=cdk.Environment(account=ACCOUNT, region="us-west-2"))
vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id=VPC, availability_zones=["usw2-az1"])

# The capacity follows from throughput and EFA: 9600 GiB is the smallest that FSx takes.
settings = Lustre(zone="usw2-az1", throughput=500, efa=True)
scratch = LustreFileSystem(
    stack,
    "Scratch",
    settings=settings,
    vpc=vpc,
    subnet=ec2.Subnet.from_subnet_id(stack, "Subnet", SUBNET),
    clients=ec2.SecurityGroup.from_security_group_id(stack, "Clients", CLIENTS),
    protection="destroy",
)
scratch.metric_free_storage().create_alarm(
    stack,
    "AlmostFull",
    threshold=(settings.capacity_gib or 0) * 1024**3 * 0.05,
    comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
    evaluation_periods=3,
)
cdk.CfnOutput(stack, "Mount", value=f"{scratch.dns_name}@tcp:/{scratch.mount_name}")
app.synth()
