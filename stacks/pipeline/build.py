"""The pipeline's build: everything that needs no account, and the assembly that all later stages deploy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import aws_cdk as cdk
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import pipelines

from ...constructs.common.permission import allow
from ...constructs.delivery.build_steps import Builder
from ...planning.delivery.pipeline_steps import ASSEMBLY, INSTALL, Step
from .parts import PipelineParts

# npm's name for CodePipeline's variable, which a build gets as the value of a variable of its own.
EXECUTION: Final = "#{codepipeline.PipelineExecutionId}"
_BUILD = "build"
# Output of the build with the templates alone.
_TEMPLATES = "templates"
_FETCH = 'aws s3 sync --only-show-errors "s3://$EVIDENCE_BUCKET/artifacts" .podwright/artifacts'
_COPY_TEMPLATES = (
    f"mkdir -p {_TEMPLATES}",
    f"cd {ASSEMBLY}",
    "find . '(' -name '*.json' -o -name cdk.out ')' -not -path './asset.*' "
    f"-exec cp --parents '{{}}' ../{_TEMPLATES} ';'",
    "cd ..",
)
_WAIT = 'podwright pipeline wait --execution "$EXECUTION"'


@dataclass(frozen=True)
class Build:
    """The build and what it hands on."""

    step: pipelines.CodeBuildStep
    """Its output is the assembly."""
    templates: pipelines.FileSet
    """The templates alone, without assets."""


def build(parts: PipelineParts, source: pipelines.CodePipelineSource, before: Sequence[Step]) -> Build:
    """The build, with the wait for earlier executions where it is needed.

    Args:
        parts: The pipeline.
        source: Where commits come from.
        before: The steps of a promotion that come before all stages.
    """
    builder = parts.build_role()
    _allow(parts, builder)
    step = pipelines.CodeBuildStep(
        _BUILD,
        input=source,
        install_commands=[INSTALL, _FETCH],
        commands=[*(command for step in before for command in step.commands), *_COPY_TEMPLATES, _WAIT],
        env={"EXECUTION": EXECUTION, "EVIDENCE_BUCKET": parts.evidence.bucket_name},
        primary_output_directory=ASSEMBLY,
        role=builder.role,
        timeout=cdk.Duration.hours(8),
    )
    return Build(step, step.add_output_directory(_TEMPLATES))


def _allow(parts: PipelineParts, builder: Builder) -> None:
    """Let the build wait for other executions, compare the pipeline's template and fetch archives."""
    stack = parts.stack
    line = stack.format_arn(service="codepipeline", resource=parts.settings.name)
    allow(builder.allowed, ["codepipeline:ListPipelineExecutions"], [line])
    own = stack.format_arn(service="cloudformation", resource="stack", resource_name=f"{stack.stack_name}/*")
    allow(
        builder.allowed,
        ["cloudformation:GetTemplate", "cloudformation:DescribeStacks"],
        [own],
        because="CloudFormation ends the ARN of a stack with an id of its own.",
    )
    allow(
        builder.allowed,
        ["s3:GetObject"],
        [parts.evidence.arn_for_objects("artifacts/*")],
        because="artifacts.lock says which archives there are, and their digests are compared.",
    )
    allow(builder.allowed, ["s3:ListBucket"], [parts.evidence.bucket_arn])
    allow(builder.allowed, ["kms:Decrypt"], [parts.key.key_arn])


def deploy_from_templates(parts: PipelineParts) -> None:
    """Let CloudFormation's actions read the output without assets.

    They take 256 MB of input, and what nodes install from, which the assembly holds too, is more. Source:
    CodePipeline User Guide, "Quotas", 2026-11. The CDK knows one output for both, so this changes what it made.
    """
    resource = cast(codepipeline.CfnPipeline, parts.line.node.default_child)
    for number, stage in enumerate(parts.stack.resolve(resource.stages)):
        for position, action in enumerate(stage["actions"]):
            if action["actionTypeId"]["provider"] != "CloudFormation" or not action.get("inputArtifacts"):
                continue
            role = f"Stages.{number}.Actions.{position}"
            resource.add_property_override(f"{role}.InputArtifacts", [{"Name": f"{_BUILD}_{_TEMPLATES}"}])
            for key, value in action["configuration"].items():
                _, whole, file = str(value).partition(f"{_BUILD}_Output::")
                if whole:
                    part = f"{_BUILD}_{_TEMPLATES}::{file}"
                    resource.add_property_override(f"{role}.Configuration.{key}", part)
