"""A whole environment, as its file says it, as a stage of a pipeline that somebody has."""

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codecommit as codecommit
from aws_cdk import pipelines

from podwright.constructs.library import Project, chart_archives, resolve
from podwright.stacks.stage import TrainingStage

ACCOUNT = "111122223333"
ENVIRONMENT = "sandbox"

app = cdk.App()
stack = cdk.Stack(app, "delivery", env=cdk.Environment(account=ACCOUNT, region="us-west-2"))
repository = codecommit.Repository.from_repository_name(stack, "Repository", "clusters")
pipeline = pipelines.CodePipeline(
    stack,
    "Pipeline",
    synth=pipelines.ShellStep(
        "Synth",
        input=pipelines.CodePipelineSource.code_commit(repository, "main"),
        commands=["pip install podwright", "podwright chart fetch", "npx cdk synth"],
    ),
)

environment = Project.at(Path()).load(ENVIRONMENT).environment
pipeline.add_stage(
    TrainingStage(app, ENVIRONMENT, resolved=resolve(environment, charts=chart_archives(Path(), environment))),
    pre=[pipelines.ManualApprovalStep("Capacity is there")],
)
app.synth()
