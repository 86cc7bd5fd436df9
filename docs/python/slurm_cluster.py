"""A HyperPod cluster with Slurm in a network of its own."""

import aws_cdk as cdk

from podwright.constructs.library import (
    EnvironmentKey,
    EnvironmentNetwork,
    HyperPodCluster,
    InstanceGroup,
    Network,
    Orchestrator,
    Storage,
)

ACCOUNT = "111122223333"

app = cdk.App()
stack = cdk.Stack(app, "slurm-cluster", env=cdk.Environment(account=ACCOUNT, region="us-west-2"))
key = EnvironmentKey(stack, "Key", settings=Storage(), protection="destroy").key
network = EnvironmentNetwork(
    stack,
    "Network",
    settings=Network(zones=("usw2-az1",), nat="single"),
    features={"slurm_nodes"},
    protection="destroy",
    key=key,
)

cluster = HyperPodCluster(
    stack,
    "Cluster",
    cluster_name="slurm",
    vpc=network.vpc,
    subnets=network.node_subnets,
    security_group=network.node_security_group,
    orchestrator=Orchestrator.slurm(),
    key=key,
    instance_groups={
        "controller": InstanceGroup(instance_type="ml.m5.2xlarge", count=1),
        "login": InstanceGroup(instance_type="ml.m5.2xlarge", count=1),
    },
    protection="destroy",
)
cluster.add_instance_group("training", InstanceGroup(instance_type="ml.p5.48xlarge", count=2))
cdk.CfnOutput(stack, "LogGroup", value=cluster.log_group_name)
app.synth()
