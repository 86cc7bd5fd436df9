"""A place inside the VPC from which a command reaches a private Kubernetes API."""

from collections.abc import Sequence
from typing import Literal, cast

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from ...config.catalog.kubernetes_groups import NODE_READERS
from ..common.permission import allow

Access = Literal["view", "admin"]
_POLICIES: dict[Access, str] = {"view": "AmazonEKSViewPolicy", "admin": "AmazonEKSClusterAdminPolicy"}
_TOOLS = "$CODEBUILD_SRC_DIR_tools"
# The command is the caller's; whoever may start a build may run anything with the runner's role, and nothing more.
_BUILD = {
    "version": "0.2",
    "env": {"shell": "bash"},
    "phases": {
        "build": {
            "commands": [
                f'chmod +x "{_TOOLS}/kubectl/kubectl" "{_TOOLS}/helm/helm"',
                f'export PATH="{_TOOLS}/kubectl:{_TOOLS}/helm:$PATH"',
                'aws eks update-kubeconfig --name "$EKS_CLUSTER" > /dev/null',
                'bash -euo pipefail -c "$PODWRIGHT_COMMAND"',
            ]
        }
    },
}


class Runner(Construct):
    """A CodeBuild project in the control plane's subnets, for commands where a laptop cannot reach the API.

    Decided for you: an image of AWS's, no privileged mode, so no containers inside; kubectl and helm from the layer
    that the kubectl provider uses, so nothing is downloaded; logs kept three months; one hour for a command. By default
    the role sees what EKS's view policy shows (no secrets), and nodes.

    Example:
        from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer
        Runner(stack, "Runner", cluster=cluster, tools=KubectlV35Layer(stack, "Tools"), vpc=vpc,
               subnets=vpc.private_subnets, security_group=nodes, key=key)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        tools: lambda_.LayerVersion,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        security_group: ec2.ISecurityGroup,
        key: kms.IKey,
        access: Access = "view",
        rules: Sequence[cdk.CfnResource] = (),
    ) -> None:
        """Defines the project.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster: EKS cluster.
            tools: Lambda layer with kubectl and helm.
            vpc: VPC of the cluster.
            subnets: Subnets from which the Kubernetes API can be reached.
            security_group: A group that may reach it.
            key: Encrypts logs and what a build leaves.
            access: What the runner may do in Kubernetes: look, or everything.
            rules: Rules of the group, which come first.
        """
        super().__init__(scope, construct_id)

        log_group = logs.LogGroup(
            self,
            "Logs",
            retention=logs.RetentionDays.THREE_MONTHS,
            encryption_key=key,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        # The layer's archive is one of the CDK's assets: a build takes it as a second source and needs no internet for
        # tools.
        content = cast(lambda_.CfnLayerVersion, tools.node.default_child).content
        assert isinstance(content, lambda_.CfnLayerVersion.ContentProperty)
        archive = s3.Bucket.from_bucket_name(self, "Assets", content.s3_bucket)
        service = cast(iam.IPrincipal, iam.ServicePrincipal("codebuild.amazonaws.com"))
        role = iam.Role(self, "Role", assumed_by=service, description="Runs podwright's commands inside the VPC")
        log_group.grant_write(cast(iam.IGrantable, role))
        allow(cast(iam.IRole, role), ["eks:DescribeCluster"], [cluster.cluster_arn])
        allow(cast(iam.IRole, role), ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"], [key.key_arn])
        allow(cast(iam.IRole, role), ["s3:GetObject", "s3:GetObjectVersion"], [archive.arn_for_objects(content.s3_key)])
        allow(cast(iam.IRole, role), ["s3:GetBucketAcl", "s3:GetBucketLocation", "s3:ListBucket"], [archive.bucket_arn])
        self._allow_interfaces(cast(iam.IRole, role), subnets)
        project = codebuild.Project(
            self,
            "Project",
            description="Runs podwright's commands inside the VPC",
            # The CDK would let the role write every log group and report of the project.
            role=role.without_policy_updates(),
            vpc=vpc,
            subnet_selection=ec2.SubnetSelection(subnets=subnets),
            security_groups=[security_group],
            environment=codebuild.BuildEnvironment(
                build_image=codebuild.LinuxBuildImage.AMAZON_LINUX_2023_5, privileged=False
            ),
            environment_variables={
                "EKS_CLUSTER": codebuild.BuildEnvironmentVariable(value=cluster.cluster_name),
                "PODWRIGHT_COMMAND": codebuild.BuildEnvironmentVariable(value="kubectl get nodes"),
            },
            build_spec=codebuild.BuildSpec.from_object(_BUILD),
            secondary_sources=[codebuild.Source.s3(identifier="tools", bucket=archive, path=content.s3_key)],
            encryption_key=key,
            logging=codebuild.LoggingOptions(cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=log_group)),
            timeout=cdk.Duration.hours(1),
            queued_timeout=cdk.Duration.minutes(30),
        )
        # CodeBuild tries the role's permissions when the project is made.
        project.node.add_dependency(role, *(cast(IDependable, rule) for rule in rules))
        cdk.Validations.of(project.node.find_child("PolicyDocument")).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions::AwsSolutions-IAM5[Resource::*]",
                reason="The CDK makes this policy and does not attach it; it is in no template.",
            )
        )
        cdk.Validations.of(project).acknowledge(
            cdk.Acknowledgment(
                id="CloudFormation-Validate::E3050",
                reason="The project has the role's ARN; for a role with a path the validator takes it for the name.",
            )
        )
        entry = eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster.cluster_name,
            principal_arn=role.role_arn,
            kubernetes_groups=[NODE_READERS],
            access_policies=[
                eks.CfnAccessEntry.AccessPolicyProperty(
                    access_scope=eks.CfnAccessEntry.AccessScopeProperty(type="cluster"),
                    policy_arn=eks.AccessPolicyArn.of(_POLICIES[access]).policy_arn,
                )
            ],
        )

        self.project = project
        """The project. A build gets its command in the variable PODWRIGHT_COMMAND."""
        self.access_entry = entry
        self.log_group = log_group

    def _allow_interfaces(self, role: iam.IRole, subnets: Sequence[ec2.ISubnet]) -> None:
        """What CodeBuild needs in a VPC. Source: AWS CodeBuild User Guide, "Allow CodeBuild access to VPC", 2026-11."""
        stack = cdk.Stack.of(self)
        unknown = "Nobody knows the interfaces' ids before CodeBuild makes them"
        allow(
            role,
            [
                "ec2:CreateNetworkInterface",
                "ec2:DeleteNetworkInterface",
                "ec2:DescribeDhcpOptions",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSubnets",
                "ec2:DescribeVpcs",
            ],
            ["*"],
            because=f"{unknown}, and the Describe calls support no resource.",
        )
        allow(
            role,
            ["ec2:CreateNetworkInterfacePermission"],
            [stack.format_arn(service="ec2", resource="network-interface", resource_name="*")],
            only_if={
                "StringEquals": {
                    "ec2:AuthorizedService": "codebuild.amazonaws.com",
                    "ec2:Subnet": [
                        stack.format_arn(service="ec2", resource="subnet", resource_name=subnet.subnet_id)
                        for subnet in subnets
                    ],
                }
            },
            because=f"{unknown}; subnets and service are named.",
        )
