"""The role with which HyperPod's managed Karpenter adds and removes nodes."""

from collections.abc import Sequence
from typing import cast

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ..common.arguments import checked
from ..common.permission import allow

# What HyperPod may do with a volume key by grant. Source: SageMaker Developer Guide, "Create an IAM role for HyperPod
# autoscaling with Karpenter", 2026-11.
_GRANTED = (
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptTo",
    "ReEncryptFrom",
    "RetireGrant",
)


@jsii.implements(iam.IGrantable)
class KarpenterRole(Construct):
    """`ClusterRole` of a HyperPod cluster that scales with Karpenter.

    HyperPod assumes it to add and remove nodes of this account's clusters, and to encrypt the volumes of new nodes.
    Source: SageMaker Developer Guide, "Create an IAM role for HyperPod autoscaling with Karpenter", 2026-11.

    Example:
        from podwright.constructs.hyperpod.karpenter_role import KarpenterRole
        KarpenterRole(stack, "Karpenter", volume_keys=[key])
    """

    @checked
    def __init__(self, scope: Construct, construct_id: str, *, volume_keys: Sequence[kms.IKey] = ()) -> None:
        """Defines the role.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            volume_keys: Customer-managed KMS keys of node volumes.
        """
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)

        service = cast(iam.IPrincipal, iam.ServicePrincipal("hyperpod.sagemaker.amazonaws.com"))
        role = iam.Role(self, "Resource", assumed_by=service, description="Karpenter of a HyperPod cluster")
        self.role = cast(iam.IRole, role)
        """The role."""
        allow(
            self.role,
            ["sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"],
            [stack.format_arn(service="sagemaker", resource="cluster", resource_name="*")],
            because="SageMaker gives the cluster its id when it creates it, and wants this role before that.",
        )
        through = {"StringEquals": {"kms:ViaService": f"sagemaker.{stack.region}.amazonaws.com"}}
        for key in volume_keys:
            allow(self.role, ["kms:DescribeKey"], [key.key_arn], only_if=through)
            allow(
                self.role,
                ["kms:CreateGrant"],
                [key.key_arn],
                only_if=through
                | {
                    "Bool": {"kms:GrantIsForAWSResource": "true"},
                    "ForAllValues:StringEquals": {"kms:GrantOperations": list(_GRANTED)},
                },
            )

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role, as what takes permissions knows it."""
        return self.role.grant_principal
