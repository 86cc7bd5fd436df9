"""The pipeline that promotes commits from one environment to the next: a CDK pipeline on CodePipeline."""

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import pipelines
from constructs import Construct

from ...config.catalog.regions import region
from ...config.settings.environment import Environment
from ...config.settings.pipeline import Pipeline, PipelineSource, PipelineStage
from ...constructs.delivery.build_steps import IMAGE, install_spec, login
from ...constructs.delivery.drift_check import DriftCheck
from ...constructs.delivery.promotion_notices import PromotionNotices
from ...planning.delivery.pipeline_steps import Step
from .build import build, deploy_from_templates
from .findings import acknowledge
from .notices import notices
from .parts import PipelineParts
from .source import allow_connection, source_step
from .steps import PromotionSteps

# What a build of the CDK's own installs from npm. The CLI is the one that podwright installs from PyPI.
CLI_VERSION = "2.1146.1"
ASSETS_VERSION = "4.7.3"


class PipelineStack(cdk.Stack):
    """Source, build, self-update, roles, and then a stage for each of the file's: looks, consent, deployment, gates.

    Executions queue: none overtakes another, and one that would change the pipeline waits until those before it are
    through, because CodePipeline cancels an execution whose pipeline changes (`podwright pipeline wait`).
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Pipeline,
        source: PipelineSource,
        stages: Sequence[PipelineStage],
        steps: Sequence[Step],
        drift: Sequence[Step],
        environments: Mapping[str, Environment],
        deployed: Mapping[str, cdk.Stage],
        access: Mapping[str, cdk.Stage],
    ) -> None:
        """Defines the stack of `settings`, which have account and region, with commits from `source`.

        The stages, all steps of a promotion and those of the look for drift come from `planning.delivery`. The
        environments, their stages and the stages of their roles are by name.
        """
        assert settings.region is not None
        super().__init__(
            scope,
            construct_id,
            stack_name=f"{settings.name}-pipeline",
            env=cdk.Environment(account=settings.account, region=settings.region),
            description="Promotes commits from one environment to the next",
            termination_protection=True,
            permissions_boundary=cdk.PermissionsBoundary.from_arn(settings.boundary(region(settings.region).partition)),
        )
        self._parts = PipelineParts(self, settings, environments)
        commits = source_step(self._parts, source)
        built = build(self._parts, commits, [step for step in steps if step.stage is None])
        pipeline = self._promotion(settings, built.step)
        roles = pipeline.add_wave("roles")
        for stage in access.values():
            roles.add_stage(stage)
        promotion = PromotionSteps(self._parts, commits, built.templates)
        for stage in stages:
            promotion.add(pipeline, stage, [step for step in steps if step.stage == stage.name], deployed)
        pipeline.build_pipeline()
        deploy_from_templates(self._parts)
        reads = [self._drift(step) for step in drift] if settings.drift.schedule != "off" else []
        if settings.notify:
            messages = notices(settings.name, [attempt.project.project_name for attempt in reads])
            PromotionNotices(self, "Notices", emails=settings.notify, notices=messages, key=self._parts.key)
        allow_connection(self._parts, source)
        acknowledge(self)

    def _promotion(self, settings: Pipeline, synth: pipelines.CodeBuildStep) -> pipelines.CodePipeline:
        """The CDK's pipeline, which updates itself and publishes assets before the stages."""
        install = install_spec(settings.packages, self.account, self.region)
        logging = codebuild.CloudWatchLoggingOptions(log_group=self._parts.log_group)
        return pipelines.CodePipeline(
            self,
            "Promotion",
            code_pipeline=self._parts.line,
            synth=synth,
            self_mutation=True,
            cli_version=CLI_VERSION,
            cdk_assets_cli_version=ASSETS_VERSION,
            # One project that publishes all assets; in parallel the CDK makes a CodeBuild project for each.
            publish_assets_in_parallel=False,
            code_build_defaults=pipelines.CodeBuildOptions(
                build_environment=codebuild.BuildEnvironment(build_image=IMAGE, privileged=False),
                logging=codebuild.LoggingOptions(cloud_watch=logging),
                partial_build_spec=codebuild.BuildSpec.from_object(install),
            ),
        )

    def _drift(self, step: Step) -> DriftCheck:
        """The scheduled check of one environment, with the files that were deployed last."""
        name, parts = str(step.environment), self._parts
        return DriftCheck(
            self,
            f"Drift-{name}",
            commands=step.commands,
            builder=parts.builder(name, step.role),
            schedule=parts.settings.drift.schedule,
            project_zip=f"deployed/{name}/project.zip",
            bucket=parts.evidence,
            key=parts.key,
            log_group=parts.log_group,
            variables=parts.variables(name, step.role) | {"EXECUTION": "drift"},
            login=login(parts.settings.packages, self.account, self.region),
        )
