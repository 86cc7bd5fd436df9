"""What everything in the pipeline's stack stands on: key, logs, evidence and the line itself, and roles of builds."""

from collections.abc import Mapping
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3

from ...config.settings.environment import Environment
from ...config.settings.pipeline import Pipeline
from ...config.settings.storage import Storage
from ...constructs.delivery.build_steps import Builder
from ...constructs.storage.buckets import PrivateBucket
from ...constructs.storage.key import EnvironmentKey
from ...planning.delivery.pipeline_steps import ExecutionRole
from ...planning.delivery.promotion_roles import builder_name, step_role_arn


class PipelineParts:
    """The shared parts of one pipeline, and the roles of its builds, each made when a step first asks for it."""

    def __init__(self, stack: cdk.Stack, settings: Pipeline, environments: Mapping[str, Environment]) -> None:
        """Defines the parts in `stack`: those of `settings`, for the environments by name."""
        self.stack, self.settings, self.environments = stack, settings, environments
        self.key: kms.IKey = EnvironmentKey(stack, "Key", settings=Storage(), protection="retain").key
        """Encrypts logs and evidence."""
        self.log_group = logs.LogGroup(
            stack,
            "Logs",
            retention=logs.RetentionDays.SIX_MONTHS,
            encryption_key=self.key,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        """Logs of all builds."""
        self.evidence: s3.IBucket = PrivateBucket(
            stack, "Evidence", name=None, key=self.key, protection="retain"
        ).bucket
        """What steps leave behind, and archives that nodes install from."""
        cdk.CfnOutput(stack, "EvidenceBucket", value=self.evidence.bucket_name, description="Evidence and archives")
        self.line = codepipeline.Pipeline(
            stack,
            "Line",
            pipeline_name=settings.name,
            pipeline_type=codepipeline.PipelineType.V2,
            execution_mode=codepipeline.ExecutionMode.QUEUED,
            restart_execution_on_update=True,
            cross_account_keys=True,
            enable_key_rotation=True,
        )
        """The pipeline of CodePipeline."""
        cast(s3.Bucket, self.line.artifact_bucket).add_lifecycle_rule(expiration=cdk.Duration.days(90))
        self._builders: dict[tuple[str, ExecutionRole], Builder] = {}

    def build_role(self) -> Builder:
        """The role of the build, which alone writes artifacts and takes on no other role."""
        return self._new_builder("Builder", name=None, writes_artifacts=True)

    def builder(self, environment: str, role: ExecutionRole) -> Builder:
        """The role of builds for one thing in one environment: it may take on that role there and no other."""
        key = (environment, role)
        if key not in self._builders:
            name = builder_name(self.settings.name, environment, role)
            builder = self._new_builder(f"Builder-{environment}-{role}", name=name, writes_artifacts=False)
            builder.grant_assume(self.variables(environment, role)["STEP_ROLE"])
            builder.grant_evidence(self.evidence, self.key, environment)
            self._builders[key] = builder
        return self._builders[key]

    def variables(self, environment: str, execution_role: ExecutionRole) -> dict[str, str]:
        """Variables of every step for one thing in one environment."""
        role = step_role_arn(self.settings.name, self.environments[environment], execution_role)
        return {"STEP_ROLE": role, "EVIDENCE_BUCKET": self.evidence.bucket_name}

    def _new_builder(self, construct_id: str, *, name: str | None, writes_artifacts: bool) -> Builder:
        key = self.line.artifact_bucket.encryption_key
        assert key is not None
        return Builder(
            self.stack,
            construct_id,
            name=name,
            log_group=self.log_group,
            artifacts=self.line.artifact_bucket,
            artifact_key=key,
            packages=self.settings.packages,
            writes_artifacts=writes_artifacts,
        )
