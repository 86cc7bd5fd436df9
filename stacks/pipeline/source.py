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
from .parts import PipelineParts


def source_step(parts: PipelineParts, source: PipelineSource) -> pipelines.CodePipelineSource:
    """The pipeline's source, by which an execution starts."""
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


def _start_on_upload(parts: PipelineParts, bucket: str, key: str) -> None:
    """Start an execution when somebody uploads the archive; the bucket reports to EventBridge."""
    uploaded = {"bucket": {"name": [bucket]}, "object": {"key": [key]}}
    rule = events.Rule(
        parts.stack,
        "Uploaded",
        event_pattern=events.EventPattern(source=["aws.s3"], detail_type=["Object Created"], detail=uploaded),
    )
    principal = cast(iam.IPrincipal, iam.ServicePrincipal("events.amazonaws.com"))
    starter = iam.Role(parts.stack, "Starter", assumed_by=principal)
    arn = parts.line.pipeline_arn
    allow(cast(iam.IRole, starter), ["codepipeline:StartPipelineExecution"], [arn])
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
