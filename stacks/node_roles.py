"""The roles of a cluster: that of nodes whose groups name none, and Karpenter's."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from ..config.settings.cluster import Cluster
from ..constructs.hyperpod.execution_role import ExecutionRole
from ..constructs.hyperpod.karpenter_role import KarpenterRole
from ..planning.node.permissions import volume_keys
from ..planning.resolved import ResolvedEnvironment
from .network import NetworkStack
from .storage import StorageStack


def imported_keys(stack: cdk.Stack, resolved: ResolvedEnvironment) -> list[kms.IKey]:
    """The KMS keys that volumes of groups name themselves."""
    arns = volume_keys(resolved.environment.groups.values())
    return [kms.Key.from_key_arn(stack, f"Key-{arn.rpartition('/')[2]}", arn) for arn in arns]


def karpenter_role(stack: cdk.Stack, settings: Cluster, keys: Sequence[kms.IKey]) -> iam.IRole | None:
    """The role with which HyperPod scales for Karpenter; None where it does not."""
    if settings.autoscaling != "karpenter":
        return None
    if settings.autoscaling_role:
        return iam.Role.from_role_arn(stack, "KarpenterRole", settings.autoscaling_role)
    return KarpenterRole(stack, "KarpenterRole", volume_keys=keys).role


def node_role(
    stack: cdk.Stack,
    *,
    resolved: ResolvedEnvironment,
    network: NetworkStack,
    storage: StorageStack,
    eks_cluster_arn: str | None,
    keys: Sequence[kms.IKey],
) -> iam.IRole | None:
    """The role, or None when every group names its own.

    Args:
        stack: Where it lies.
        resolved: The environment.
        network: Its network, whose key the role uses.
        storage: Its buckets and databases, which nodes read.
        eks_cluster_arn: ARN of its EKS cluster; None with Slurm.
        keys: The KMS keys of node volumes.
    """
    permissions, settings = resolved.node_permissions, resolved.environment.cluster
    if permissions is None:
        return None
    role = ExecutionRole(
        stack,
        "ExecutionRole",
        cluster_name=settings.name,
        eks_cluster_arn=eks_cluster_arn,
        vpc=network.network.vpc,
        security_groups=[network.network.node_security_group],
        volume_keys=keys,
        lustre=bool(storage.lustre),
    )
    role.grant_read(storage.lifecycle_bucket, settings.name, network.key)
    role.allow_groups(permissions, cluster_name=settings.name, bucket=storage.lifecycle_bucket, key=network.key)
    if storage.accounting:
        role.grant_secret(storage.accounting.secret_arn, storage.accounting.key)
    if settings.slurm.failover_topic:
        role.grant_publish(settings.slurm.failover_topic)
    return role.role
