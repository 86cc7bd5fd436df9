"""Network, EKS and HyperPod in three stacks with cross-stack references: what the real CDK CLI deploys in a test."""

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer

app = cdk.App()
environment = cdk.Environment(account="123456789012", region="us-west-2")

network = cdk.Stack(app, "Network", env=environment)
vpc = ec2.CfnVPC(network, "Vpc", cidr_block="10.0.0.0/16", enable_dns_hostnames=True, enable_dns_support=True)
table = ec2.CfnRouteTable(network, "Table", vpc_id=vpc.ref)
subnets = [
    ec2.CfnSubnet(network, f"Subnet{i}", vpc_id=vpc.ref, cidr_block=f"10.0.{i}.0/24", availability_zone_id=zone)
    for i, zone in enumerate(["usw2-az3", "usw2-az2"])
]
for i, subnet in enumerate(subnets):
    ec2.CfnSubnetRouteTableAssociation(network, f"Route{i}", subnet_id=subnet.ref, route_table_id=table.ref)
interface = ec2.Vpc.from_vpc_attributes(
    network,
    "Face",
    vpc_id=vpc.ref,
    availability_zones=["us-west-2c", "us-west-2b"],
    private_subnet_ids=[subnet.ref for subnet in subnets],
    private_subnet_route_table_ids=[table.ref, table.ref],
)
group = ec2.SecurityGroup(network, "Group", vpc=interface, allow_all_outbound=False)
group.add_ingress_rule(group, ec2.Port.all_traffic())
group.add_egress_rule(group, ec2.Port.all_traffic())

control = cdk.Stack(app, "Control", env=environment)
cluster = eks.Cluster(
    control,
    "Cluster",
    version=eks.KubernetesVersion.V1_34,
    vpc=interface,
    vpc_subnets=[ec2.SubnetSelection(subnets=interface.private_subnets)],
    default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
    default_capacity=0,
    kubectl_provider_options=eks.KubectlProviderOptions(kubectl_layer=KubectlV35Layer(control, "Kubectl")),
)
# What stands for the HyperPod chart, without which SageMaker refuses the cluster.
name = "deep-health-check-service-account"
cluster.add_manifest(
    "Dependencies",
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "aws-hyperpod"}},
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "aws-hyperpod"}},
)

training = cdk.Stack(app, "Training", env=environment)
role = iam.Role(
    training,
    "Role",
    assumed_by=cast(iam.IPrincipal, iam.ServicePrincipal("sagemaker.amazonaws.com")),
    managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name("AmazonSageMakerClusterInstanceRolePolicy")],
)
sagemaker.CfnCluster(
    training,
    "Cluster",
    cluster_name="demo",
    orchestrator=sagemaker.CfnCluster.OrchestratorProperty(
        eks=sagemaker.CfnCluster.ClusterOrchestratorEksConfigProperty(cluster_arn=cluster.cluster_arn)
    ),
    vpc_config=sagemaker.CfnCluster.VpcConfigProperty(
        security_group_ids=[group.security_group_id], subnets=[subnets[0].ref]
    ),
    instance_groups=[
        sagemaker.CfnCluster.ClusterInstanceGroupProperty(
            instance_group_name="gpu",
            instance_count=int(app.node.get_context("count")),
            instance_type="ml.g5.8xlarge",
            execution_role=role.role_arn,
            life_cycle_config=sagemaker.CfnCluster.ClusterLifeCycleConfigProperty(
                on_create="on_create.sh", source_s3_uri="s3://sagemaker-scripts/first"
            ),
        )
    ],
)
training.add_dependency(control)
app.synth()
