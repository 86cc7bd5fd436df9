"""A resource that exists once the nodes of an instance group are ready."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ....config.catalog.kubernetes_groups import NODE_READERS
from .waiter import KubernetesApiAccess, wait


class NodesReady(Construct):
    """Waits until an instance group has `count` nodes, running for SageMaker and Ready for Kubernetes.

    What needs nodes depends on this, because in continuous mode a HyperPod cluster is InService before any node exists.
    When they do not come in time, the deployment fails with the nodes' states and what SageMaker says about the group.
    CloudFormation waits for a custom resource an hour at most, so this is for the small group that runs the system's
    pods, not for accelerated capacity that may take days.

    Decided for you: the handler runs in the control plane's subnets; its role may see this cluster's nodes and events
    and, through the Kubernetes group `NODE_READERS`, Kubernetes nodes and nothing else. The binding of that group has
    to exist (`cdk8s_charts.node_readers`). Needs endpoints or routes for EKS, SageMaker's API, Lambda and S3.

    Example:
        NodesReady(stack, "SystemNodes", cluster_name="prod", eks_cluster=cluster, group="system", count=2,
                   cluster_arn="arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl",
                   vpc=vpc, subnets=vpc.private_subnets, security_group=nodes, key=key)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster_arn: str,
        eks_cluster: eks.ICluster,
        group: str,
        count: int,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        security_group: ec2.ISecurityGroup,
        key: kms.IKey,
        timeout: cdk.Duration | None = None,
    ) -> None:
        """Defines the handler and the resource.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster_name: Name of the HyperPod cluster.
            cluster_arn: Its ARN.
            eks_cluster: EKS cluster that orchestrates it.
            group: Instance group to wait for.
            count: Nodes that have to be there.
            vpc: VPC of the cluster.
            subnets: Subnets from which the Kubernetes API can be reached.
            security_group: A group that may reach it.
            key: Encrypts the logs.
            timeout: How long to wait; 55 minutes when absent, an hour at most.

        Raises:
            ValueError: a timeout of more than an hour, or nothing to wait for.
        """
        super().__init__(scope, construct_id)
        if count < 1:
            raise ValueError(f"count is {count}; there are no nodes to wait for")

        function, resource = wait(
            self,
            "Nodes",
            api_access=KubernetesApiAccess(eks_cluster, vpc, tuple(subnets), security_group, key),
            description=f"Waits for the nodes of {group}",
            group=NODE_READERS,
            resource_type="Custom::PodwrightNodesReady",
            properties={"ClusterName": cluster_name, "InstanceGroup": group, "Count": count},
            timeout=timeout,
        )
        function.role.add_to_principal_policy(
            iam.PolicyStatement(
                actions=["sagemaker:DescribeCluster", "sagemaker:ListClusterEvents", "sagemaker:ListClusterNodes"],
                resources=[cluster_arn],
            )
        )

        self.function = function
        self.resource = resource
        """What needs nodes depends on this."""
