"""Where the pipeline's commits come from."""

from typing import cast

from aws_cdk import aws_codecommit as codecommit
from aws_cdk import aws_codepipeline_actions as actions
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import pipelines

from ...config.settings.pipeline import PipelineSource
from ...constructs.common.permission import allow
from ...planning.delivery.pipeline_steps import override_schedules
from .parts import PipelineParts


def source_step(parts: PipelineParts, source: PipelineSource) -> pipelines.CodePipelineSource:
    """The pipeline's source, by which an execution starts; dates of quotas start one, too."""
    _start_at_overrides(parts)
    if source.connection and source.repository:
        return pipelines.CodePipelineSource.connection(
            source.repository, source.branch, connection_arn=source.connection
        )
    if source.codecommit:
        repository = codecommit.Repository.from_repository_name(parts.stack, "Repository", source.codecommit)
        return pipelines.CodePipelineSource.code_commit(repository, source.branch)
    assert source.bucket is not None
    assert source.key is not None
    bucket = s3.Bucket.from_bucket_name(parts.stack, "Source", source.bucket)
    _start_on_upload(parts, source.bucket, source.key)
    return pipelines.CodePipelineSource.s3(bucket, source.key, trigger=actions.S3Trigger.NONE)


def _start_at_overrides(parts: PipelineParts) -> None:
    """Start an execution whenever quotas of `governance.overrides` begin or end: the build writes those in force."""
    schedules = override_schedules(parts.environments.values())
    if not schedules:
        return
    role = _starter(parts, "OverrideStarter")
    for schedule in schedules:
        # The time is the id: another date is another rule, and the others stay.
        name = "".join(character for character in schedule if character.isalnum() or character == " ")
        id = f"Override-{'-'.join(name.removeprefix('cron').split())}"
        target = events.CfnRule.TargetProperty(id="Line", arn=parts.line.pipeline_arn, role_arn=role.role_arn)
        events.CfnRule(parts.stack, id, schedule_expression=schedule, state="ENABLED", targets=[target])


def _starter(parts: PipelineParts, id: str) -> iam.Role:
    """The role by which EventBridge starts an execution."""
    principal = cast(iam.IPrincipal, iam.ServicePrincipal("events.amazonaws.com"))
    starter = iam.Role(parts.stack, id, assumed_by=principal)
    allow(cast(iam.IRole, starter), ["codepipeline:StartPipelineExecution"], [parts.line.pipeline_arn])
    return starter


def _start_on_upload(parts: PipelineParts, bucket: str, key: str) -> None:
    """Start an execution when somebody uploads the archive; the bucket reports to EventBridge."""
    uploaded = {"bucket": {"name": [bucket]}, "object": {"key": [key]}}
    rule = events.Rule(
        parts.stack,
        "Uploaded",
        event_pattern=events.EventPattern(source=["aws.s3"], detail_type=["Object Created"], detail=uploaded),
    )
    starter, arn = _starter(parts, "Starter"), parts.line.pipeline_arn
    cast(events.CfnRule, rule.node.default_child).targets = [
        events.CfnRule.TargetProperty(id="Line", arn=arn, role_arn=starter.role_arn)
    ]


def allow_connection(parts: PipelineParts, source: PipelineSource) -> None:
    """CodePipeline checks the action by the name that the connection's ARN has; the CDK allows the older alone."""
    if source.connection is None:
        return
    for child in parts.line.node.find_child("Source").node.find_all():
        if isinstance(child, iam.Role):
            allow(cast(iam.IRole, child), ["codeconnections:UseConnection"], [source.connection])
