"""What every HyperPod cluster offers, whether it is made here or somewhere else."""

from collections.abc import Sequence
from typing import Protocol, cast

import aws_cdk as cdk
import jsii
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from ...config.catalog.names import cluster_log_group
from ..common.arguments import checked
from ..common.permission import allow

_READ_ACTIONS = ["sagemaker:DescribeCluster", "sagemaker:DescribeClusterNode", "sagemaker:ListClusterNodes"]


class IHyperPodCluster(Protocol):
    """A HyperPod cluster: a `HyperPodCluster`, or one that `HyperPodCluster.from_cluster_attributes` names."""

    cluster_name: str
    """Name."""
    cluster_arn: str
    """ARN; its last part is the cluster's id."""
    eks_cluster: eks.ICluster | None
    """The EKS cluster that orchestrates it; None with Slurm."""

    @property
    def connections(self) -> ec2.Connections:
        """Security groups of its nodes."""
        ...

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """What its nodes may do is given to this."""
        ...

    @property
    def log_group_name(self) -> str:
        """The log group that HyperPod makes for it."""
        ...

    def grant_connect(self, role: iam.IRole) -> None:
        """Let a role open sessions on its nodes."""
        ...

    def grant_submit(self, role: iam.IRole, *, namespaces: Sequence[str] = ()) -> None:
        """Let a role submit work."""
        ...

    def metric_log_events(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Lines that its nodes log."""
        ...

    def metric_log_bytes(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Bytes that its nodes log."""
        ...


class ClusterAccess:
    """Grants, connections and metrics of a cluster, from its name, ARN and security groups.

    HyperPod itself publishes no metric of a cluster to CloudWatch. What it does there is log, and CloudWatch Logs
    counts that; metrics of nodes, GPUs and quotas are in Prometheus (see `docs/metrics.md`).
    """

    cluster_name: str
    cluster_arn: str
    eks_cluster: eks.ICluster | None
    security_groups: Sequence[ec2.ISecurityGroup]

    @property
    def connections(self) -> ec2.Connections:
        """Security groups of its nodes. Rules that are added are for what nodes talk to beside each other."""
        return ec2.Connections(security_groups=list(self.security_groups))

    @property
    def execution_role(self) -> iam.IRole | None:
        """Role of the groups that name none; None where all name one, and where nobody said which it is."""
        return None

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The execution role: `bucket.grant_read(cluster)` lets its nodes read, and pods that have no role.

        Groups that name a role are not meant. Where there is no execution role, the CDK warns or refuses, as for
        whatever is imported without its role.
        """
        if self.execution_role is None:
            return cast(iam.IPrincipal, iam.UnknownPrincipal(resource=cast(Construct, self)))
        return self.execution_role.grant_principal

    @property
    def log_group_name(self) -> str:
        """The log group that HyperPod makes for it, which nodes log their set-up and their faults to."""
        return cluster_log_group(self.cluster_name, cdk.Fn.select(1, cdk.Fn.split("/", self.cluster_arn)))

    def grant_connect(self, role: iam.IRole) -> None:
        """Let a role open sessions on nodes through Systems Manager, as `podwright connect` and `ssh` by it do.

        Source: SageMaker Developer Guide, "AWS Identity and Access Management for SageMaker HyperPod", 2026-11, whose
        policy for people names no narrower resource for the start of a session.
        """
        stack = cdk.Stack.of(cast(Construct, self))
        allow(role, _READ_ACTIONS, [self.cluster_arn])
        reason = "HyperPod's guide documents no ARN of a node that a session could be bound to."
        allow(role, ["ssm:StartSession"], ["*"], because=reason)
        # Session Manager names a session after the one who started it.
        own = stack.format_arn(service="ssm", resource="session", resource_name="${aws:userid}-*")
        allow(role, ["ssm:TerminateSession"], [own], because="The name of a session ends with a number of its own.")

    def grant_submit(self, role: iam.IRole, *, namespaces: Sequence[str] = ()) -> None:
        """Let a role submit work.

        On EKS it may find the cluster and, by an access entry, edit what is in the namespaces; in all of them when
        none is named. With Slurm work is submitted on a login node, so it is what `grant_connect` gives.
        """
        if self.eks_cluster is None:
            self.grant_connect(role)
            return
        allow(role, _READ_ACTIONS, [self.cluster_arn])
        allow(role, ["eks:DescribeCluster"], [self.eks_cluster.cluster_arn])
        scope = eks.CfnAccessEntry.AccessScopeProperty(
            type="namespace" if namespaces else "cluster", namespaces=sorted(namespaces) or None
        )
        partition = cdk.Stack.of(cast(Construct, self)).partition
        policy = eks.CfnAccessEntry.AccessPolicyProperty(
            policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/AmazonEKSEditPolicy", access_scope=scope
        )
        eks.CfnAccessEntry(
            cast(Construct, self),
            f"Submits-{role.node.id}",
            cluster_name=self.eks_cluster.cluster_name,
            principal_arn=role.role_arn,
            access_policies=[policy],
        )

    def metric_log_events(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Lines that nodes log: set-up, faults that the health agent sees, results of deep health checks.

        Source: CloudWatch Logs User Guide, "Monitoring usage with CloudWatch metrics", 2026-11.
        """
        return self._metric("IncomingLogEvents", period)

    def metric_log_bytes(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Bytes that nodes log, which is what logs cost by."""
        return self._metric("IncomingBytes", period)

    def _metric(self, name: str, period: cdk.Duration | None) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace="AWS/Logs",
            metric_name=name,
            dimensions_map={"LogGroupName": self.log_group_name},
            statistic="Sum",
            period=period,
        )


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class ImportedCluster(ClusterAccess, Construct):
    """A cluster that is made elsewhere. `HyperPodCluster.from_cluster_attributes` makes one.

    Example:
        ImportedCluster(stack, "Imported", cluster_name="prod", cluster_arn=arn, security_groups=[group],
                        eks_cluster=cluster).grant_connect(iam.Role(stack, "Person", assumed_by=iam.AnyPrincipal()))
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster_arn: str,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        eks_cluster: eks.ICluster | None = None,
        execution_role: iam.IRole | None = None,
    ) -> None:
        """Defines nothing: it only names.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster_name: Its name.
            cluster_arn: Its ARN.
            security_groups: Those of its nodes, for `connections`.
            eks_cluster: The EKS cluster that orchestrates it; None with Slurm.
            execution_role: That of its nodes, which is what the cluster is granted.
        """
        super().__init__(scope, construct_id)
        self.cluster_name = cluster_name
        self.cluster_arn = cluster_arn
        self.security_groups = list(security_groups)
        self.eks_cluster = eks_cluster
        self._execution_role = execution_role

    @property
    def execution_role(self) -> iam.IRole | None:
        """Role of its nodes; None where nobody said which it is."""
        return self._execution_role
