"""Execution roles of SageMaker training jobs, one for each team."""

from collections.abc import Iterable
from typing import Final, cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ..common.permission import allow

_READ: Final = ("s3:GetObject",)
_WRITE: Final = (*_READ, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_PULL: Final = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
_LOG: Final = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents")


class TrainingRole(Construct):
    """What the training jobs of a team may do: no more than to read what they name, and to write below the team's name.

    Decided for you: SageMaker takes the role for this account alone. Objects lie under `TEAM/` of the bucket for
    checkpoints; images come from this account's registry; logs go to SageMaker's own group of training jobs. A job in a
    VPC needs a role of yours. Source: SageMaker Developer Guide, "CreateTrainingJob API: execution role permissions",
    2026-11.

    Example:
        from podwright.constructs.platform.training_roles import TrainingRole
        TrainingRole(stack, "Role", team="llm", bucket=bucket, key=key, inputs=["s3://acme-datasets/llm/"])
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        team: str,
        bucket: s3.IBucket,
        key: kms.IKey,
        inputs: Iterable[str] = (),
    ) -> None:
        """Defines the role.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            team: The team.
            bucket: The environment's bucket for checkpoints.
            key: The key with which it is encrypted.
            inputs: S3 prefixes that the team's jobs read.
        """
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)

        service = iam.ServicePrincipal(
            "sagemaker.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
        )
        role = iam.Role(self, "Role", assumed_by=cast(iam.IPrincipal, service), description=f"Training jobs of {team}")
        made = cast(iam.IRole, role)
        because = "Jobs name the objects below the prefix."
        allow(made, _WRITE, [bucket.arn_for_objects(f"{team}/*")], because=because)
        allow(made, ["s3:ListBucket"], [bucket.bucket_arn], only_if={"StringLike": {"s3:prefix": [f"{team}/*"]}})
        allow(made, ["kms:Decrypt", "kms:GenerateDataKey"], [key.key_arn])
        for uri in sorted(set(inputs)):
            name, _, prefix = uri.removeprefix("s3://").partition("/")
            below = f"{prefix.rstrip('/')}/*" if prefix.rstrip("/") else "*"
            arn = f"arn:{stack.partition}:s3:::{name}"
            allow(made, _READ, [f"{arn}/{below}"], because=because)
            allow(made, ["s3:ListBucket"], [arn], only_if={"StringLike": {"s3:prefix": [below]}})
        images = stack.format_arn(service="ecr", resource="repository", resource_name="*")
        allow(made, _PULL, [images], because="Jobs name repositories of the account.")
        allow(made, ["ecr:GetAuthorizationToken"], ["*"], because="The call knows no resource.")
        group = "log-group:/aws/sagemaker/TrainingJobs"
        logs = stack.format_arn(service="logs", resource=f"{group}*", arn_format=cdk.ArnFormat.NO_RESOURCE_NAME)
        allow(made, _LOG, [logs], because="SageMaker names a stream by each instance of a job.")
        allow(
            made,
            ["cloudwatch:PutMetricData"],
            ["*"],
            because="The call knows no resource; its condition is the namespace.",
            only_if={"StringEquals": {"cloudwatch:namespace": "/aws/sagemaker/TrainingJobs"}},
        )

        self.role: iam.IRole = made
        """The role."""
