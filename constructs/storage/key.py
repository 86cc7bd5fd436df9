"""The KMS key of an environment."""

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ...config.settings.storage import Storage
from ...planning.rules import check
from ..common.arguments import checked
from ..common.protection import Protection, removal_policy


class EnvironmentKey(Construct):
    """One key for file systems, node volumes, buckets, Kubernetes secrets and log groups; or an existing one.

    Decided for you: yearly rotation, 30 days between the request to delete it and its end, no alias (an alias is a
    name that a second environment could not have). The key policy leaves access to IAM policies of the account, and
    lets CloudWatch Logs encrypt the log groups of this account and region. HyperPod, FSx and EKS work by grants that
    the calling role creates, so an execution role needs `kms:CreateGrant` and `kms:DescribeKey` in its own policy;
    there is no condition on an encryption context, because HyperPod passes none. The service-linked roles are not
    named, since a key policy cannot name a role before the service has made it. Source: SageMaker Developer Guide,
    "Customer managed AWS KMS key encryption for SageMaker HyperPod", and CloudWatch Logs User Guide, "Encrypt log data
    using KMS", 2026-11.

    An existing key (`kms_key`) keeps its policy, which has to allow the same.

    Example:
        EnvironmentKey(stack, "Key", settings=Storage(), protection="retain")
    """

    @checked
    def __init__(self, scope: Construct, construct_id: str, *, settings: Storage, protection: Protection) -> None:
        """Defines the key.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: Storage settings; only `kms_key` is read.
            protection: Whether the key survives its stack.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        if settings.kms_key is None:
            key = kms.Key(
                self,
                "Resource",
                description=f"Data at rest of {self.node.path}",
                enable_key_rotation=True,
                removal_policy=removal_policy(protection),
            )
            key.add_to_resource_policy(self._log_groups())
        else:
            key = kms.Key.from_key_arn(self, "Existing", settings.kms_key)

        self.key = cast(kms.IKey, key)
        """The key."""

    def _log_groups(self) -> iam.PolicyStatement:
        stack = cdk.Stack.of(self)
        groups = stack.format_arn(
            service="logs", resource="log-group", resource_name="*", arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME
        )
        return iam.PolicyStatement(
            sid="LogGroupsOfThisAccount",
            principals=[cast(iam.IPrincipal, iam.ServicePrincipal(f"logs.{stack.region}.amazonaws.com"))],
            actions=["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
            resources=["*"],
            conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
        )
