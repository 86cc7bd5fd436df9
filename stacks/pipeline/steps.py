"""The stages of a promotion in CodePipeline: looks, consent, deployment and gates."""

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import pipelines

from ...config.settings.pipeline import PipelineStage
from ...constructs.common.permission import allow
from ...constructs.delivery.approval_step import ApprovalStep
from ...constructs.delivery.build_steps import build_spec
from ...planning.delivery.pipeline_steps import INSTALL, Step
from .build import EXECUTION
from .parts import PipelineParts


class PromotionSteps:
    """Makes the pipeline's stages of the steps of a promotion."""

    def __init__(
        self, parts: PipelineParts, source: pipelines.CodePipelineSource, templates: pipelines.FileSet
    ) -> None:
        self._parts, self._source, self._templates = parts, source, templates

    def add(
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
                made[step.name] = self._read_step(step)
            elif step.kind == "approval":
                made[step.name] = self._approval(stage)
            else:
                continue
            for name in step.needs:
                if name in made:
                    made[step.name].add_step_dependency(made[name])
        # A wave deploys its environments side by side: what comes before it comes before all of them.
        wave.add_pre(*made.values())
        gates = {step.environment: self._gate(step) for step in steps if step.kind == "gate"}
        for name in stage.environments:
            wave.add_stage(deployed[name], post=[gates[name]])

    def _read_step(self, step: Step) -> pipelines.CodeBuildStep:
        """A step that reads the environment's account. The effects are those of the very templates that follow."""
        # Effects compares templates; the others read the account and need no assembly beside the source.
        if step.kind != "effects":
            return self._step(step, step.commands)
        return self._step(step, [f"{command} --assembly ../assembly" for command in step.commands], assembly=True)

    def _gate(self, step: Step) -> pipelines.CodeBuildStep:
        """The gates, and before them what the CDK CLI does after a deployment and CodePipeline does not."""
        name, evidence = str(step.environment), self._parts.evidence
        zip_key = f"deployed/{name}/project.zip"
        builder = self._parts.builder(name, step.role)
        allow(builder.allowed, ["s3:PutObject"], [evidence.arn_for_objects(zip_key)])
        # Drift is looked for with the files that were deployed, not with those that the branch has by then.
        keep = (
            "python -m zipfile -c /tmp/project.zip ./*",
            f'aws s3 cp --only-show-errors /tmp/project.zip "s3://$EVIDENCE_BUCKET/{zip_key}"',
        )
        commands = [f"podwright pipeline protect {name} --assembly ../assembly", *step.commands]
        return self._step(step, commands, before=keep, assembly=True)

    def _step(
        self, step: Step, commands: Sequence[str], *, before: Sequence[str] = (), assembly: bool = False
    ) -> pipelines.CodeBuildStep:
        """A build that runs `commands` in the environment's account.

        Args:
            step: The step of the promotion.
            commands: Its command lines.
            before: Commands that run with the build's own permissions.
            assembly: Whether the templates lie in ../assembly.
        """
        name = str(step.environment)
        spec = build_spec(commands, before=[INSTALL, *before])
        return pipelines.CodeBuildStep(
            step.name,
            input=self._source,
            additional_inputs={"../assembly": self._templates} if assembly else {},
            commands=spec["phases"]["build"]["commands"],
            partial_build_spec=codebuild.BuildSpec.from_object(
                {"version": "0.2", "phases": {"post_build": spec["phases"]["post_build"]}}
            ),
            env=self._parts.variables(name, step.role) | {"EXECUTION": EXECUTION},
            role=self._parts.builder(name, step.role).role,
            timeout=cdk.Duration.hours(8 if step.kind == "gate" else 1),
        )

    def _approval(self, stage: PipelineStage) -> ApprovalStep:
        region = self._parts.stack.region
        console = f"https://{region}.console.aws.amazon.com/s3/buckets/{self._parts.evidence.bucket_name}"
        return ApprovalStep(
            f"{stage.name}.approval",
            link=f"{console}?region={region}&prefix={EXECUTION}/",
            words=f"What changes in {', '.join(stage.environments)}, what it interrupts, costs and takes: effects.json "
            "in the folder of each environment. The log of each effects action says it in words.",
        )
