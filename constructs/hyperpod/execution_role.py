"""The role of HyperPod nodes: everything that they, and HyperPod on their behalf, may do."""

from collections.abc import Sequence
from typing import cast

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ...config.catalog.names import benchmark_prefix, cluster_log_group, setup_prefix
from ...planning.node.permissions import NodePermissions, ScriptSource
from ..common.arguments import checked
from ..common.permission import allow

_DESCRIBE = [f"ec2:Describe{what}" for what in (
    "DhcpOptions", "Instances", "InstanceTypes", "NetworkInterfaces", "SecurityGroups", "Subnets", "Tags", "Vpcs",
)]  # fmt: skip
_INTERFACES = [f"ec2:{verb}" for verb in (
    "AssignPrivateIpAddresses", "AttachNetworkInterface", "CreateNetworkInterfacePermission", "DeleteNetworkInterface",
    "DeleteNetworkInterfacePermission", "DetachNetworkInterface", "ModifyNetworkInterfaceAttribute",
    "UnassignPrivateIpAddresses",
)]  # fmt: skip
_ATTACHMENT = ["ec2:AttachNetworkInterface", "ec2:DetachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"]
_SESSIONS = [f"ssmmessages:{verb}{kind}Channel" for verb in ("Create", "Open") for kind in ("Control", "Data")]
_PLAIN = cdk.ArnFormat.NO_RESOURCE_NAME
_NO_RESOURCES = "The action supports no resources."


@jsii.implements(iam.IGrantable)
class ExecutionRole(Construct):
    """Execution role of instance groups, on EKS or with Slurm.

    It allows what the managed policies AmazonSageMakerClusterInstanceRolePolicy (2023-11-29) and AmazonEKS_CNI_Policy
    allow, which AWS documents for HyperPod on EKS, and attaches neither: the first lets every node read every bucket of
    the account whose name begins with sagemaker-, SageMaker's own default bucket among them. Here each action is bound
    to this cluster's logs, scripts, VPC and keys wherever the service supports that. A test compares the actions with
    the managed policies. Sources: these policies; SageMaker Developer Guide, "IAM for HyperPod" and "Customer managed
    AWS KMS key encryption for SageMaker HyperPod"; Service Authorization Reference; all read 2026-11.

    Example:
        from podwright.constructs.hyperpod.execution_role import ExecutionRole
        role = ExecutionRole(stack, "Role", cluster_name="prod", vpc=vpc, security_groups=[group],
                             eks_cluster_arn=cluster.cluster_arn)
        role.grant_read(bucket, "prod", key)
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        eks_cluster_arn: str | None = None,
        vpc: ec2.IVpc,
        security_groups: Sequence[ec2.ISecurityGroup],
        volume_keys: Sequence[kms.IKey] = (),
        lustre: bool = False,
    ) -> None:
        """Defines the role.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster_name: Name of the HyperPod cluster; its log groups carry it.
            eks_cluster_arn: ARN of the EKS cluster, whose pod identities the nodes hand out; None with Slurm.
            vpc: The VPC of the nodes, in whose subnets interfaces are made.
            security_groups: Security groups that such interfaces may have.
            volume_keys: Customer-managed KMS keys of node volumes.
            lustre: Whether nodes look up Lustre file systems to mount them over EFA.
        """
        super().__init__(scope, construct_id)
        self._stack = cdk.Stack.of(self)

        service = cast(iam.IPrincipal, iam.ServicePrincipal("sagemaker.amazonaws.com"))
        role = iam.Role(self, "Resource", assumed_by=service, description=f"Nodes of HyperPod cluster {cluster_name}")
        self.role = cast(iam.IRole, role)
        """The role."""
        self._allow_logs_and_sessions(cluster_name)
        self._allow_images()
        if eks_cluster_arn:
            self._allow_kubernetes(eks_cluster_arn)
        self._allow_interfaces(vpc, security_groups)
        for key in volume_keys:
            self.grant_volumes(key)
        if lustre:
            allow(self.role, ["fsx:DescribeFileSystems"], ["*"], because=_NO_RESOURCES)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role, as what takes permissions knows it."""
        return self.role.grant_principal

    def grant_read(self, bucket: s3.IBucket, prefix: str, key: kms.IKey | None = None) -> None:
        """Let nodes read what lies below `prefix` of `bucket`, encrypted with `key`, and list the bucket."""
        reason = "Names below the prefix carry a digest that only a deployment knows."
        allow(self.role, ["s3:GetObject"], [bucket.arn_for_objects(f"{prefix}/*")], because=reason)
        # Of the whole bucket: which prefixes HyperPod asks for when it downloads scripts is not documented.
        allow(self.role, ["s3:ListBucket"], [bucket.bucket_arn])
        if key is not None:
            allow(self.role, ["kms:Decrypt"], [key.key_arn], only_if=self._through("s3"))

    def grant_results(self, bucket: s3.IBucket, prefix: str, key: kms.IKey | None = None) -> None:
        """Let nodes write benchmark results below `prefix` of `bucket`, and ask SageMaker whether they are new.

        Reading them, which conditional writes need as well, comes with `grant_read` of a prefix above.
        """
        reason = "The names of results carry the ids of instances."
        allow(self.role, ["s3:PutObject"], [bucket.arn_for_objects(f"{prefix}/*")], because=reason)
        if key is not None:
            allow(self.role, ["kms:GenerateDataKey"], [key.key_arn], only_if=self._through("s3"))
        reason = "SageMaker gives the cluster its id when it creates it, and wants this role before that."
        allow(self.role, ["sagemaker:DescribeClusterNode"], [self._arn("sagemaker", "cluster/*")], because=reason)

    def grant_verdicts(self, bucket: s3.IBucket, prefix: str, key: kms.IKey | None = None) -> None:
        """Let nodes write what came of their set-up below `prefix` of `bucket`, encrypted with `key`."""
        reason = "The names of verdicts carry the ids of instances."
        allow(self.role, ["s3:PutObject"], [bucket.arn_for_objects(f"{prefix}/*")], because=reason)
        if key is not None:
            allow(self.role, ["kms:GenerateDataKey"], [key.key_arn], only_if=self._through("s3"))

    def grant_secret(self, secret_arn: str, key: kms.IKey | None = None) -> None:
        """Let nodes read a secret, encrypted with `key`."""
        allow(self.role, ["secretsmanager:GetSecretValue"], [secret_arn])
        if key is not None:
            allow(self.role, ["kms:Decrypt"], [key.key_arn], only_if=self._through("secretsmanager"))

    def grant_publish(self, topic_arn: str) -> None:
        """Let nodes publish to an SNS topic."""
        allow(self.role, ["sns:Publish"], [topic_arn])

    def grant_volumes(self, key: kms.IKey) -> None:
        """Let HyperPod encrypt volumes of nodes with a key."""
        # The key works through SageMaker alone: a process on a node that takes the role cannot use it.
        through = self._through("sagemaker")
        allow(self.role, ["kms:DescribeKey"], [key.key_arn], only_if=through)
        # EBS uses a volume's key through a grant. This condition leaves out grants to anyone who is no AWS service.
        for_aws = through | {"Bool": {"kms:GrantIsForAWSResource": "true"}}
        allow(self.role, ["kms:CreateGrant"], [key.key_arn], only_if=for_aws)

    def allow_groups(
        self, needs: NodePermissions, *, cluster_name: str, bucket: s3.IBucket, key: kms.IKey | None = None
    ) -> None:
        """Let nodes do what some groups need beyond what all do: their alarms, what they write, and own scripts.

        Args:
            needs: What they need, see `node_permissions`.
            cluster_name: Name of the HyperPod cluster, below which results lie.
            bucket: The bucket of scripts and results.
            key: Encrypts that bucket.
        """
        if needs.alarms:
            self.grant_alarms(needs.alarms)
        if needs.writes_results:
            self.grant_results(bucket, benchmark_prefix(cluster_name), key)
        if needs.writes_verdicts:
            self.grant_verdicts(bucket, setup_prefix(cluster_name), key)
        for source in needs.script_sources:
            # Groups may share a source: its bucket is imported once, and one statement serves them.
            construct_id = f"Scripts-{source.bucket}-{source.prefix}"
            if self.node.try_find_child(construct_id) is None:
                own = s3.Bucket.from_bucket_name(self, construct_id, source.bucket)
                self.grant_read(own, source.prefix.rstrip("/"))

        for source in needs.reads:
            self._grant_prefix(source, ["s3:GetObject"])
        for source in needs.writes:
            self._grant_prefix(source, ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"])

    def _grant_prefix(self, source: ScriptSource, actions: Sequence[str]) -> None:
        """Let jobs of restricted groups use a prefix of somebody else's bucket."""
        bucket = self._stack.format_arn(service="s3", region="", account="", resource=source.bucket, arn_format=_PLAIN)
        prefix = source.prefix.strip("/")
        reason = "Jobs choose the names of what they read and write below the prefix."
        allow(self.role, actions, [f"{bucket}/{prefix}/*" if prefix else f"{bucket}/*"], because=reason)
        allow(self.role, ["s3:ListBucket"], [bucket])

    def grant_alarms(self, alarms: Sequence[str]) -> None:
        """Let HyperPod look at the alarms, by name, that turn updates back."""
        names = [self._arn("cloudwatch", f"alarm:{alarm}") for alarm in sorted(set(alarms))]
        allow(self.role, ["cloudwatch:DescribeAlarms"], names)

    def _through(self, service: str) -> dict[str, dict[str, str]]:
        """The condition that a key is used by a service on the role's behalf, and never by itself."""
        return {"StringEquals": {"kms:ViaService": f"{service}.{self._stack.region}.amazonaws.com"}}

    def _arn(self, service: str, resource: str, *, region: str | None = None, account: str | None = None) -> str:
        form = cdk.ArnFormat.NO_RESOURCE_NAME
        return self._stack.format_arn(
            service=service, region=region, account=account, resource=resource, arn_format=form
        )

    def _allow_logs_and_sessions(self, cluster_name: str) -> None:
        group = self._arn("logs", f"log-group:{cluster_log_group(cluster_name)}")
        reason = "The name of the log group ends with the cluster's id, and streams carry those of instances."
        allow(self.role, ["logs:CreateLogGroup"], [group], because=reason)
        stream = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
        allow(self.role, stream, [f"{group}:log-stream:*"], because=reason)
        # Without resources, the namespace is all that keeps a node from writing the metrics of others.
        own_metrics = {"StringEquals": {"cloudwatch:namespace": "/aws/sagemaker/Clusters"}}
        allow(self.role, ["cloudwatch:PutMetricData"], ["*"], only_if=own_metrics, because=_NO_RESOURCES)
        allow(self.role, _SESSIONS, ["*"], because=_NO_RESOURCES)

    def _allow_kubernetes(self, eks_cluster_arn: str) -> None:
        allow(self.role, ["eks-auth:AssumeRoleForPodIdentity"], [eks_cluster_arn])
        reason = "SageMaker gives the cluster its id when it creates it, and wants this role before that."
        clusters = [self._arn("sagemaker", "cluster/*")]
        allow(self.role, ["sagemaker:AttachClusterNodeNetworkInterface"], clusters, because=reason)

    def _allow_images(self) -> None:
        allow(self.role, ["ecr:GetAuthorizationToken"], ["*"], because=_NO_RESOURCES)
        allow(
            self.role,
            ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            [self._arn("ecr", "repository/*", region="*", account="*")],
            because="Add-ons and training images lie in repositories of AWS and of other accounts, whose own policies "
            "decide who pulls.",
        )

    def _allow_interfaces(self, vpc: ec2.IVpc, security_groups: Sequence[ec2.ISecurityGroup]) -> None:
        """What HyperPod does with the role to attach nodes to the VPC, as narrow as EC2's actions can be."""
        # A shared VPC belongs to another account, and so do the instances of HyperPod.
        interfaces = self._arn("ec2", "network-interface/*", account="*")
        instances = self._arn("ec2", "instance/*", account="*")
        groups = [self._arn("ec2", f"security-group/{one.security_group_id}", account="*") for one in security_groups]
        in_vpc = {"ArnLike": {"ec2:Vpc": self._arn("ec2", f"vpc/{vpc.vpc_id}", account="*")}}
        reason = (
            "EC2 gives interfaces their ids, any subnet of the VPC may hold nodes, and the VPC may be a shared one."
        )
        allow(self.role, _DESCRIBE, ["*"], because=_NO_RESOURCES)
        create = ["ec2:CreateNetworkInterface"]
        allow(self.role, create, [interfaces, *groups], because=reason)
        allow(self.role, create, [self._arn("ec2", "subnet/*", account="*")], only_if=in_vpc, because=reason)
        allow(self.role, _INTERFACES, [interfaces], only_if=in_vpc, because=reason)
        allow(self.role, ["ec2:CreateTags"], [interfaces], because=reason)
        reason = "The instances of HyperPod belong to an account of the service, and a shared VPC to another."
        allow(self.role, _ATTACHMENT, [instances, *groups], because=reason)
