"""A role that pods of one service account get by EKS Pod Identity."""

from typing import cast

import jsii
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct


@jsii.implements(iam.IGrantable)
class PodRole(Construct):
    """A role for the pods of one service account, with the association that gives it to them.

    The association is a resource of its own, and what starts the pods depends on it: the inline form of an add-on
    breaks when a version of the add-on changes what it says it requires.

    Example:
        from podwright.constructs.eks.pod_role import PodRole
        PodRole(stack, "Operator", cluster_name="prod", namespace="aws-hyperpod", service_account="operator",
                description="Operator of jobs")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        namespace: str,
        service_account: str,
        description: str,
    ) -> None:
        """Defines role and association.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster_name: Name of the EKS cluster.
            namespace: Namespace of the service account.
            service_account: Its name.
            description: What the role is for.
        """
        super().__init__(scope, construct_id)
        # Sessions carry tags of cluster, namespace and account, by which AWS's managed policies tell clusters apart.
        pods = cast(iam.IPrincipal, iam.ServicePrincipal("pods.eks.amazonaws.com"))
        role = iam.Role(
            self, "Role", assumed_by=cast(iam.IPrincipal, iam.SessionTagsPrincipal(pods)), description=description
        )

        self.role = cast(iam.IRole, role)
        """The role."""
        self.association = eks.CfnPodIdentityAssociation(
            self,
            "Identity",
            cluster_name=cluster_name,
            namespace=namespace,
            service_account=service_account,
            role_arn=role.role_arn,
        )
        """What gives the role to the pods, with its policies; what starts them depends on it."""
        self.association.node.add_dependency(role)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role, as what takes permissions knows it."""
        return self.role.grant_principal
