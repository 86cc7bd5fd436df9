"""The pipeline that promotes commits from one environment to the next: a CDK pipeline on CodePipeline."""

from collections.abc import Mapping, Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codecommit as codecommit
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_codepipeline_actions as actions
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import pipelines
from constructs import Construct

from ..config.catalog.regions import region
from ..config.settings.environment import Environment
from ..config.settings.pipeline import Pipeline, PipelineSource, PipelineStage
from ..config.settings.storage import Storage
from ..constructs.common.permission import allow
from ..constructs.delivery.approval_step import ApprovalStep
from ..constructs.delivery.build_steps import IMAGE, Builder, build_spec, install_phase, login
from ..constructs.delivery.drift_look import DriftLook
from ..constructs.delivery.promotion_notices import PromotionNotices
from ..constructs.storage.buckets import PrivateBucket
from ..constructs.storage.key import EnvironmentKey
from ..planning.delivery.pipeline_steps import ASSEMBLY, INSTALL, Place, Step
from ..planning.delivery.promotion_roles import builder_name, role_arn, role_name
from .pipeline_findings import acknowledge
from .pipeline_notices import notices

# What a build of the CDK's own installs from npm. The CLI is the one that podwright installs from PyPI.
CLI_VERSION = "2.1146.1"
ASSETS_VERSION = "4.7.3"
# npm's name for CodePipeline's variable, which a build gets as the value of a variable of its own.
_EXECUTION = "#{codepipeline.PipelineExecutionId}"
_BUILD = "build"
# Output of the build with the templates alone.
_TEMPLATES = "templates"


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
        """Defines the stack.

        Args:
            scope: The app.
            construct_id: Id of the stack.
            settings: What `pipeline:` says; it has account and region.
            source: Where commits come from.
            stages: The stages in their order.
            steps: All steps (see `config.pipeline_steps`).
            drift: The steps of the look for drift.
            environments: The environments by name.
            deployed: Their stages by name.
            access: The stages of their roles by name.
        """
        boundary = settings.permissions_boundary
        super().__init__(
            scope,
            construct_id,
            stack_name=f"{settings.name}-pipeline",
            env=cdk.Environment(account=settings.account, region=settings.region),
            description="Promotes commits from one environment to the next",
            termination_protection=True,
            permissions_boundary=cdk.PermissionsBoundary.from_arn(boundary) if boundary else None,
        )
        self._settings, self._environments = settings, environments
        self._key = EnvironmentKey(self, "Key", settings=Storage(), protection="retain").key
        self._logs = logs.LogGroup(
            self,
            "Logs",
            retention=logs.RetentionDays.SIX_MONTHS,
            encryption_key=self._key,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self._evidence = PrivateBucket(self, "Evidence", name=None, key=self._key, protection="retain").bucket
        cdk.CfnOutput(self, "EvidenceBucket", value=self._evidence.bucket_name, description="Evidence and archives")
        line = codepipeline.Pipeline(
            self,
            "Line",
            pipeline_name=settings.name,
            pipeline_type=codepipeline.PipelineType.V2,
            execution_mode=codepipeline.ExecutionMode.QUEUED,
            restart_execution_on_update=True,
            cross_account_keys=True,
            enable_key_rotation=True,
        )
        cast(s3.Bucket, line.artifact_bucket).add_lifecycle_rule(expiration=cdk.Duration.days(90))
        self._line = line
        self._builders: dict[tuple[str, Place], Builder] = {}
        self._source = self._source_of(source)
        before = [step for step in steps if step.stage is None]
        self._synth = self._build(before)
        pipeline = pipelines.CodePipeline(
            self,
            "Promotion",
            code_pipeline=line,
            synth=self._synth,
            self_mutation=True,
            cli_version=CLI_VERSION,
            cdk_assets_cli_version=ASSETS_VERSION,
            publish_assets_in_parallel=False,
            code_build_defaults=pipelines.CodeBuildOptions(
                build_environment=codebuild.BuildEnvironment(build_image=IMAGE, privileged=False),
                logging=codebuild.LoggingOptions(cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=self._logs)),
                partial_build_spec=codebuild.BuildSpec.from_object(
                    {
                        "version": "0.2",
                        "phases": {"install": install_phase(settings.packages, self.account, self.region)},
                    }
                ),
            ),
        )
        roles = pipeline.add_wave("roles")
        for stage in access.values():
            roles.add_stage(stage)
        for stage in stages:
            self._add(pipeline, stage, [step for step in steps if step.stage == stage.name], deployed)
        pipeline.build_pipeline()
        self._deploy_from_templates()

        looks = self._drift(drift) if settings.drift.schedule != "off" else []
        if settings.notify:
            PromotionNotices(
                self,
                "Notices",
                emails=settings.notify,
                notices=notices(settings.name, [look.project.project_name for look in looks]),
                key=self._key,
            )
        self._allow_connection(source)
        acknowledge(self)

    def _source_of(self, source: PipelineSource) -> pipelines.CodePipelineSource:
        if source.connection and source.repository:
            return pipelines.CodePipelineSource.connection(
                source.repository, source.branch, connection_arn=source.connection
            )
        if source.codecommit:
            repository = codecommit.Repository.from_repository_name(self, "Repository", source.codecommit)
            return pipelines.CodePipelineSource.code_commit(repository, source.branch)
        assert source.bucket is not None
        assert source.key is not None
        bucket = s3.Bucket.from_bucket_name(self, "Source", source.bucket)
        uploaded = {"bucket": {"name": [source.bucket]}, "object": {"key": [source.key]}}
        rule = events.Rule(
            self,
            "Uploaded",
            event_pattern=events.EventPattern(source=["aws.s3"], detail_type=["Object Created"], detail=uploaded),
        )
        starter = iam.Role(
            self, "Starter", assumed_by=cast(iam.IPrincipal, iam.ServicePrincipal("events.amazonaws.com"))
        )
        allow(cast(iam.IRole, starter), ["codepipeline:StartPipelineExecution"], [self._line.pipeline_arn])
        cast(events.CfnRule, rule.node.default_child).targets = [
            events.CfnRule.TargetProperty(id="Line", arn=self._line.pipeline_arn, role_arn=starter.role_arn)
        ]
        return pipelines.CodePipelineSource.s3(bucket, source.key, trigger=actions.S3Trigger.NONE)

    def _allow_connection(self, source: PipelineSource) -> None:
        """CodePipeline checks the action by the name that the connection's ARN has; the CDK allows the older alone."""
        if source.connection is None:
            return
        for child in self._line.node.find_child("Source").node.find_all():
            if isinstance(child, iam.Role):
                allow(cast(iam.IRole, child), ["codeconnections:UseConnection"], [source.connection])

    def _build(self, before: Sequence[Step]) -> pipelines.CodeBuildStep:
        """The build: everything that needs no account, and the wait for earlier executions where it is needed."""
        builder = self._builder("build", None, writes=True)
        name = self._settings.name
        allow(
            builder.allowed,
            ["codepipeline:ListPipelineExecutions"],
            [self.format_arn(service="codepipeline", resource=name)],
        )
        stack = self.format_arn(service="cloudformation", resource="stack", resource_name=f"{self.stack_name}/*")
        allow(
            builder.allowed,
            ["cloudformation:GetTemplate", "cloudformation:DescribeStacks"],
            [stack],
            because="CloudFormation ends the ARN of a stack with an id of its own.",
        )
        allow(
            builder.allowed,
            ["s3:GetObject"],
            [self._evidence.arn_for_objects("artifacts/*")],
            because="artifacts.lock says which archives there are, and their digests are compared.",
        )
        allow(builder.allowed, ["s3:ListBucket"], [self._evidence.bucket_arn])
        allow(builder.allowed, ["kms:Decrypt"], [self._key.key_arn])
        fetch = 'aws s3 sync --only-show-errors "s3://$EVIDENCE_BUCKET/artifacts" .podwright/artifacts'
        step = pipelines.CodeBuildStep(
            _BUILD,
            input=self._source,
            install_commands=[INSTALL, fetch],
            commands=[
                *(command for step in before for command in step.commands),
                f"mkdir -p {_TEMPLATES}",
                f"cd {ASSEMBLY}",
                "find . '(' -name '*.json' -o -name cdk.out ')' -not -path './asset.*' "
                f"-exec cp --parents '{{}}' ../{_TEMPLATES} ';'",
                "cd ..",
                'podwright pipeline wait --execution "$EXECUTION"',
            ],
            env={"EXECUTION": _EXECUTION, "EVIDENCE_BUCKET": self._evidence.bucket_name},
            primary_output_directory=ASSEMBLY,
            role=builder.role,
            timeout=cdk.Duration.hours(8),
        )
        self._templates = step.add_output_directory(_TEMPLATES)
        return step

    def _deploy_from_templates(self) -> None:
        """Let CloudFormation's actions read the output without assets.

        They take 256 MB of input, and what nodes install from, which the assembly holds too, is more. Source:
        CodePipeline User Guide, "Quotas", 2026-11. The CDK knows one output for both, so this changes what it made.
        """
        resource = cast(codepipeline.CfnPipeline, self._line.node.default_child)
        for number, stage in enumerate(self.resolve(resource.stages)):
            for position, action in enumerate(stage["actions"]):
                if action["actionTypeId"]["provider"] != "CloudFormation" or not action.get("inputArtifacts"):
                    continue
                place = f"Stages.{number}.Actions.{position}"
                resource.add_property_override(f"{place}.InputArtifacts", [{"Name": f"{_BUILD}_{_TEMPLATES}"}])
                for key, value in action["configuration"].items():
                    _, whole, file = str(value).partition(f"{_BUILD}_Output::")
                    if whole:
                        part = f"{_BUILD}_{_TEMPLATES}::{file}"
                        resource.add_property_override(f"{place}.Configuration.{key}", part)

    def _add(
        self,
        pipeline: pipelines.CodePipeline,
        stage: PipelineStage,
        steps: Sequence[Step],
        deployed: Mapping[str, cdk.Stage],
    ) -> None:
        """One stage of the file as a wave: what comes before it, its environments, and after each its gates."""
        wave = pipeline.add_wave(stage.name)
        made: dict[str, pipelines.Step] = {}
        for step in steps:
            if step.kind in ("preflight", "effects"):
                made[step.name] = self._look(step)
            elif step.kind == "approval":
                made[step.name] = self._approval(stage)
            else:
                continue
            for name in step.needs:
                if name in made:
                    made[step.name].add_step_dependency(made[name])
        wave.add_pre(*made.values())
        gates = {step.environment: self._gate(step) for step in steps if step.kind == "gate"}
        for name in stage.environments:
            wave.add_stage(deployed[name], post=[gates[name]])

    def _look(self, step: Step) -> pipelines.CodeBuildStep:
        """A step that reads the environment's account. The effects are those of the very templates that follow."""
        written = " --assembly ../assembly" if step.kind == "effects" else ""
        assembly = {"../assembly": self._templates} if step.kind == "effects" else {}
        return self._step(step, [f"{command}{written}" for command in step.commands], additional_inputs=assembly)

    def _gate(self, step: Step) -> pipelines.CodeBuildStep:
        """The gates, and before them what the CDK CLI does after a deployment and CodePipeline does not."""
        name = str(step.environment)
        self._builders.setdefault((name, step.place), self._builder(name, step.place))
        allow(
            self._builders[name, step.place].allowed,
            ["s3:PutObject"],
            [self._evidence.arn_for_objects(f"deployed/{name}/project.zip")],
        )
        keep = (
            "python -m zipfile -c /tmp/project.zip ./*",
            f'aws s3 cp --only-show-errors /tmp/project.zip "s3://$EVIDENCE_BUCKET/deployed/{name}/project.zip"',
        )
        commands = [f"podwright pipeline protect {name} --assembly ../assembly", *step.commands]
        return self._step(step, commands, before=keep, additional_inputs={"../assembly": self._templates})

    def _step(
        self,
        step: Step,
        commands: Sequence[str],
        *,
        before: Sequence[str] = (),
        additional_inputs: Mapping[str, pipelines.IFileSetProducer],
    ) -> pipelines.CodeBuildStep:
        name = str(step.environment)
        if (name, step.place) not in self._builders:
            self._builders[name, step.place] = self._builder(name, step.place)
        spec = build_spec(commands, before=[INSTALL, *before], as_role=True)
        return pipelines.CodeBuildStep(
            step.name,
            input=self._source,
            additional_inputs=dict(additional_inputs),
            commands=spec["phases"]["build"]["commands"],
            partial_build_spec=codebuild.BuildSpec.from_object(
                {"version": "0.2", "phases": {"post_build": spec["phases"]["post_build"]}}
            ),
            env=self._variables(name, step.place) | {"EXECUTION": _EXECUTION},
            role=self._builders[name, step.place].role,
            timeout=cdk.Duration.hours(8 if step.kind == "gate" else 1),
        )

    def _approval(self, stage: PipelineStage) -> ApprovalStep:
        console = f"https://{self.region}.console.aws.amazon.com/s3/buckets/{self._evidence.bucket_name}"
        return ApprovalStep(
            f"{stage.name}.approval",
            link=f"{console}?region={self.region}&prefix={_EXECUTION}/",
            words=f"What changes in {', '.join(stage.environments)}, what it interrupts, costs and takes: effects.json "
            "in the folder of each environment. The log of each effects action says it in words.",
        )

    def _variables(self, name: str, place: Place) -> dict[str, str]:
        environment = self._environments[name]
        partition = region(environment.region).partition
        role = role_name(self._settings.name, name, place)
        arn = role_arn(partition, environment.account, environment.iam.role_path, role)
        return {"STEP_ROLE": arn, "EVIDENCE_BUCKET": self._evidence.bucket_name}

    def _builder(self, name: str, place: Place | None, *, writes: bool = False) -> Builder:
        """The role of builds for one thing in one environment: it may take on that role there and no other."""
        settings = self._settings
        key = self._line.artifact_bucket.encryption_key
        assert key is not None
        builder = Builder(
            self,
            f"Builder-{name}-{place}" if place else "Builder",
            name=builder_name(settings.name, name, place) if place else None,
            log_group=self._logs,
            artifacts=self._line.artifact_bucket,
            artifact_key=key,
            packages=settings.packages,
            writes_artifacts=writes,
        )
        if place:
            builder.grant_assume(self._variables(name, place)["STEP_ROLE"])
            builder.grant_evidence(self._evidence, self._key, name)
        return builder

    def _drift(self, steps: Sequence[Step]) -> list[DriftLook]:
        return [
            DriftLook(
                self,
                f"Drift-{step.environment}",
                commands=step.commands,
                builder=self._builders[str(step.environment), step.place],
                schedule=self._settings.drift.schedule,
                project_zip=f"deployed/{step.environment}/project.zip",
                bucket=self._evidence,
                key=self._key,
                log_group=self._logs,
                variables=self._variables(str(step.environment), step.place) | {"EXECUTION": "drift"},
                login=login(self._settings.packages, self.account, self.region),
            )
            for step in steps
        ]
