"""What takes a node out of work in Kubernetes."""

from pathlib import Path

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from ....config.catalog.kubernetes_groups import NODE_MARKERS
from ....planning.kubernetes import api_tls, eks_token
from ....planning.node import quarantine
from ...common.custom_resource import HandlerFunction
from ...common.permission import allow
from ...hyperpod.nodes_ready.waiter import KubernetesApiAccess


class NodeQuarantine(Construct):
    """A function that puts a taint, a label and a reason on a node, so that no new pod comes to it.

    `ClusterEvents` calls it for a node that fails again and again. Decided for you: it runs in the VPC, where the
    Kubernetes API is; its role may describe the EKS cluster and, in Kubernetes, what the group `NODE_MARKERS` may,
    whose binding has to exist (`cdk8s_charts.node_readers.NodeMarkers`).

    Example:
        from podwright.constructs.hyperpod.nodes_ready.waiter import KubernetesApiAccess
        from podwright.constructs.observability.node_quarantine.construct import NodeQuarantine
        access = KubernetesApiAccess(eks_cluster=cluster, vpc=vpc, subnets=tuple(vpc.private_subnets),
                                     security_group=nodes, key=key)
        NodeQuarantine(stack, "Quarantine", api_access=access)
    """

    def __init__(self, scope: Construct, construct_id: str, *, api_access: KubernetesApiAccess) -> None:
        """Defines the function and its entry to the cluster.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            api_access: Where the Kubernetes API can be reached.
        """
        super().__init__(scope, construct_id)

        marker = HandlerFunction(
            self,
            "Mark",
            folder=Path(__file__).parent / "handler",
            description="Takes nodes that fail again and again out of work",
            timeout_seconds=40,
            key=api_access.key,
            vpc=api_access.vpc,
            subnets=list(api_access.subnets),
            security_groups=[api_access.security_group],
            planning_files=(api_tls.SHIPPED, eks_token.SHIPPED, quarantine.SHIPPED),
            runtime_files=("kubernetes.py",),
        )
        allow(marker.role, ["eks:DescribeCluster"], [api_access.eks_cluster.cluster_arn])
        eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=api_access.eks_cluster.cluster_name,
            principal_arn=marker.role.role_arn,
            kubernetes_groups=[NODE_MARKERS],
        )

        self.function = marker.function
        """The function. It takes `eks_cluster`, `instance`, `reason`, `by` and `since`."""
        self.eks_cluster = api_access.eks_cluster
        """The cluster whose nodes it marks."""
