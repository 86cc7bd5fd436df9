"""CodeBuild projects in which a pipeline runs podwright's commands."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ...config.settings.pipeline import PipelinePackages
from ...planning.delivery.pipeline_steps import EVIDENCE
from ..common.permission import allow

IMAGE = codebuild.LinuxBuildImage.AMAZON_LINUX_2023_5
# CodeBuild User Guide, "Runtime versions", 2026-11: both are in that image. podwright brings a Node of its own; this
# one is for what the CDK's pipelines install from npm.
RUNTIMES = {"python": "3.12", "nodejs": "22"}
# botocore takes the role on with the build's own credentials, and again before the session ends.
_PROFILE = (
    "printf '[profile step]\\nrole_arn = %s\\ncredential_source = EcsContainer\\n' \"$STEP_ROLE\" > /tmp/step.config"
)
_AS_ROLE = "AWS_CONFIG_FILE=/tmp/step.config AWS_PROFILE=step"


def login(packages: PipelinePackages | None, account: str, region: str) -> list[str]:
    """Commands after which pip and npm install from CodeArtifact; none without one."""
    if packages is None:
        return []
    location = (
        f"--domain {packages.domain} --domain-owner {packages.owner or account} "
        f"--repository {packages.repository} --region {packages.region or region}"
    )
    return [f"aws codeartifact login --tool {tool} {location}" for tool in ("pip", "npm")]


def install_spec(packages: PipelinePackages | None, account: str, region: str) -> dict[str, Any]:
    """What every build begins with: fixed runtimes and, where there is one, the user's package repository."""
    install = {"runtime-versions": RUNTIMES, "commands": login(packages, account, region)}
    return {"version": "0.2", "phases": {"install": install}}


def build_spec(commands: Sequence[str], *, before: Sequence[str]) -> dict[str, Any]:
    """The build specification of a step, whose commands take on the role in STEP_ROLE.

    What they leave in `evidence/` goes to the bucket in EVIDENCE_BUCKET, under the id of the execution, also after a
    failure.

    Args:
        commands: Command lines of the step.
        before: Commands that come before them, with the build's own permissions.
    """
    # A command line may hold several commands, which all need the role.
    run = [f"{_AS_ROLE} bash -euo pipefail -c {shlex.quote(command)}" for command in commands]
    upload = f'test ! -d {EVIDENCE} || aws s3 cp --recursive --only-show-errors {EVIDENCE} "s3://$EVIDENCE_BUCKET/$EXECUTION/"'
    return {
        "version": "0.2",
        "phases": {"build": {"commands": [*before, _PROFILE, *run]}, "post_build": {"commands": [upload]}},
    }


class Builder(Construct):
    """The role of builds, with no more than every build needs.

    Decided for you: logs in one group of the pipeline, artifacts read with the pipeline's key, no reports. Whoever
    uses the role for a project hands over `role`, which the CDK cannot add permissions to.

    Example:
        key, logs_ = kms.Key(stack, "K"), logs.LogGroup(stack, "L")
        bucket = s3.Bucket.from_bucket_name(stack, "B", "acme-artifacts")
        Builder(stack, "Builder", name=None, log_group=logs_, artifacts=bucket, artifact_key=key, packages=None)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str | None,
        log_group: logs.ILogGroup,
        artifacts: s3.IBucket,
        artifact_key: kms.IKey,
        packages: PipelinePackages | None,
        writes_artifacts: bool = False,
    ) -> None:
        """Defines the role.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            name: Name of the role, where another account has to know it.
            log_group: Where builds write.
            artifacts: Bucket of the pipeline's artifacts.
            artifact_key: Key of that bucket.
            packages: Repository that builds install from.
            writes_artifacts: Whether builds hand something on to later steps.
        """
        super().__init__(scope, construct_id)

        service = cast(iam.IPrincipal, iam.ServicePrincipal("codebuild.amazonaws.com"))
        role = iam.Role(self, "Role", role_name=name, assumed_by=service, description="Runs steps of a promotion")
        self.allowed = cast(iam.IRole, role)
        """The role, for permissions."""
        self.role = role.without_policy_updates()
        """The role, for projects."""
        stack = cdk.Stack.of(self)
        allow(self.allowed, ["logs:CreateLogStream", "logs:PutLogEvents"], [log_group.log_group_arn])
        allow(
            self.allowed,
            ["s3:GetObject", "s3:GetObjectVersion", *(["s3:PutObject"] if writes_artifacts else [])],
            [artifacts.arn_for_objects("*")],
            because="CodePipeline chooses the keys of artifacts; the bucket holds nothing else.",
        )
        allow(self.allowed, ["s3:GetBucketAcl", "s3:GetBucketLocation"], [artifacts.bucket_arn])
        keys = ["kms:Decrypt", "kms:DescribeKey", *(["kms:Encrypt", "kms:GenerateDataKey"] if writes_artifacts else [])]
        allow(self.allowed, keys, [artifact_key.key_arn])
        if packages:
            allow_packages(self.allowed, packages, stack)

    def grant_assume(self, arn: str) -> None:
        """Let builds take on one role of an environment's account."""
        allow(self.allowed, ["sts:AssumeRole"], [arn])

    def grant_evidence(self, bucket: s3.IBucket, key: kms.IKey, environment: str) -> None:
        """Let builds add evidence about one environment."""
        allow(
            self.allowed,
            ["s3:PutObject"],
            [bucket.arn_for_objects(f"*/{environment}/*")],
            because="Evidence lies under the id of the execution, which CodePipeline chooses.",
        )
        allow(self.allowed, ["kms:Decrypt", "kms:GenerateDataKey"], [key.key_arn])


def allow_packages(role: iam.IRole, packages: PipelinePackages, stack: cdk.Stack) -> None:
    """Let a role install from CodeArtifact."""
    owner, region = packages.owner or stack.account, packages.region or stack.region
    location = f"arn:{stack.partition}:codeartifact:{region}:{owner}"
    repository = f"{location}:repository/{packages.domain}/{packages.repository}"
    allow(role, ["codeartifact:GetAuthorizationToken"], [f"{location}:domain/{packages.domain}"])
    allow(role, ["codeartifact:GetRepositoryEndpoint", "codeartifact:ReadFromRepository"], [repository])
    allow(
        role,
        ["sts:GetServiceBearerToken"],
        ["*"],
        only_if={"StringEquals": {"sts:AWSServiceName": "codeartifact.amazonaws.com"}},
        because="The call supports no resource; the service is named.",
    )


def plain(values: Mapping[str, str]) -> dict[str, codebuild.BuildEnvironmentVariable]:
    """Variables of a project."""
    return {name: codebuild.BuildEnvironmentVariable(value=value) for name, value in values.items()}
