"""The scheduled check for what was changed behind the files' back."""

from collections.abc import Mapping, Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ...planning.delivery.pipeline_steps import INSTALL
from ..common.permission import allow
from .build_steps import IMAGE, Builder, build_spec, plain


class DriftCheck(Construct):
    """A CodeBuild project that compares one environment with the files it was last deployed from, on a schedule.

    Decided for you: the files are the zip that the promotion left after its deployment, not the newest commit, which
    may not have come so far; an hour; the read role of the environment and nothing more.

    Example:
        key, groups = kms.Key(stack, "K"), logs.LogGroup(stack, "L")
        bucket = s3.Bucket.from_bucket_name(stack, "B", "acme-evidence")
        common = {"log_group": groups, "artifact_key": key, "packages": None}
        builder = Builder(stack, "Builder", name=None, artifacts=bucket, **common)
        DriftCheck(stack, "Drift", commands=["podwright drift dev"], builder=builder, schedule="cron(0 6 * * ? *)",
                  project_zip="deployed/dev/project.zip", bucket=bucket, key=key, log_group=groups, variables={})
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        commands: Sequence[str],
        builder: Builder,
        schedule: str,
        project_zip: str,
        bucket: s3.IBucket,
        key: kms.IKey,
        log_group: logs.ILogGroup,
        variables: Mapping[str, str],
        login: Sequence[str] = (),
    ) -> None:
        """Defines project and schedule.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            commands: Command lines that look.
            builder: Whose role the build has; it is allowed to read the zip here.
            schedule: When, as EventBridge cron in UTC.
            project_zip: Key of the project's zip.
            bucket: Bucket of the zip.
            key: Key of the bucket.
            log_group: Where the build writes.
            variables: Variables of the commands.
            login: Commands that come before anything is installed.
        """
        super().__init__(scope, construct_id)

        allow(builder.allowed, ["s3:GetObject", "s3:GetObjectVersion"], [bucket.arn_for_objects(project_zip)])
        allow(builder.allowed, ["s3:GetBucketAcl", "s3:GetBucketLocation", "s3:ListBucket"], [bucket.bucket_arn])
        spec = build_spec(commands, before=[*login, INSTALL])
        project = codebuild.Project(
            self,
            "Project",
            description="Compares an environment with the files that it was deployed from",
            role=builder.role,
            source=codebuild.Source.s3(bucket=bucket, path=project_zip),
            environment=codebuild.BuildEnvironment(build_image=IMAGE, privileged=False),
            environment_variables=plain(variables),
            build_spec=codebuild.BuildSpec.from_object(spec),
            encryption_key=key,
            logging=codebuild.LoggingOptions(cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=log_group)),
            timeout=cdk.Duration.hours(1),
            queued_timeout=cdk.Duration.hours(8),
        )
        starter = iam.Role(
            self,
            "Starter",
            assumed_by=cast(iam.IPrincipal, iam.ServicePrincipal("events.amazonaws.com")),
            description="Starts the look for drift",
        )
        allow(cast(iam.IRole, starter), ["codebuild:StartBuild"], [project.project_arn])
        target = events.CfnRule.TargetProperty(id="Project", arn=project.project_arn, role_arn=starter.role_arn)
        events.CfnRule(self, "Schedule", schedule_expression=schedule, state="ENABLED", targets=[target])

        self.project = project
        """The project."""
