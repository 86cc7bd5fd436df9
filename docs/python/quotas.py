"""Quotas of teams on a HyperPod cluster that exists, kept by its task-governance add-on."""

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks

from podwright.constructs.library import Governance, HyperPodCluster, InstanceGroup, Team, TeamQuotas

ACCOUNT = "111122223333"
CLUSTER = "platform"
CLUSTER_ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
EKS_NAME = "platform"

app = cdk.App()
stack = cdk.Stack(app, "quotas", env=cdk.Environment(account=ACCOUNT, region="us-west-2"))
cluster = HyperPodCluster.from_cluster_attributes(
    stack,
    "Cluster",
    cluster_name=CLUSTER,
    cluster_arn=CLUSTER_ARN,
    eks_cluster=eks.Cluster.from_cluster_attributes(stack, "Eks", cluster_name=EKS_NAME),
)

TeamQuotas(
    stack,
    "Quotas",
    cluster=cluster,
    # What a quota of instances comes to in GPUs depends on the groups.
    instance_groups={
        "system": InstanceGroup(instance_type="ml.m5.4xlarge", count=2),
        "training": InstanceGroup(instance_type="ml.p5.48xlarge", count=2),
    },
    governance=Governance(
        priorities={"training": 70, "experimentation": 50},
        teams={"research": Team(quota={"training": 1}), "product": Team(quota={"training": 1}, share="lend")},
    ),
)
app.synth()
