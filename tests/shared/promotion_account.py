"""The synthesis of a project that promotes, with light stages in place of environments."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_s3_assets

from podwright.config.loading.project import Project
from podwright.stacks.feature_flags import FEATURE_FLAGS
from podwright.stacks.promotion import add_promotion
from promotion_project import PIPELINE, POSITIONS, write_project
from synthesis import ROOT, assembly_folder


def app_of(project: Project, outdir: str) -> cdk.App:
    """The app that promotes the project; its environments have two small stacks, one with an asset."""
    app = cdk.App(outdir=outdir, context=FEATURE_FLAGS)
    environments = [project.load(name).environment for name in POSITIONS]
    for environment in environments:
        env = cdk.Environment(account=environment.account, region=environment.region)
        stage = cdk.Stage(app, environment.name, env=env)
        first = cdk.Stack(stage, "network", termination_protection=True)
        second = cdk.Stack(stage, "storage")
        for stack in (first, second):
            cdk.CfnResource(stack, "Nothing", type="AWS::CloudFormation::WaitConditionHandle")
        second.add_stack_dependency(first)
        aws_s3_assets.Asset(second, "Asset", path=str(ROOT / "cdk.json"))
        cdk.Tags.of(stage).add("podwright:environment", environment.name)
    add_promotion(app, project, environments)
    return app


@dataclass(frozen=True)
class Promotion:
    """What was synthesized."""

    directory: Path

    def template(self, pattern: str) -> dict[str, Any]:
        """The only template whose file fits."""
        [file] = self.directory.glob(pattern)
        return json.loads(file.read_text())

    @property
    def pipeline(self) -> dict[str, Any]:
        """The template of the pipeline."""
        return self.template("pipeline.template.json")

    def access(self, name: str) -> dict[str, Any]:
        """The template of an environment's roles."""
        return self.template(f"assembly-podwright-{name}/*.template.json")


@cache
def promotion(text: str = PIPELINE, more: str = "") -> Promotion:
    """The synthesis of the project with this `podwright.yaml`, and more in the file of each environment."""
    folder = Path(assembly_folder())
    app_of(write_project(folder / "project", text, more), str(folder / "out")).synth()
    return Promotion(folder / "out")


def of_type(template: dict[str, Any], resource_type: str) -> dict[str, dict[str, Any]]:
    """Properties of all resources of a type, by logical id."""
    items = template["Resources"].items()
    return {name: item["Properties"] for name, item in items if item["Type"] == resource_type}


def statements(template: dict[str, Any], role: str) -> list[dict[str, Any]]:
    """The statements of the policies of the role whose logical id begins so."""
    return [
        statement
        for policy in of_type(template, "AWS::IAM::Policy").values()
        if any(item.get("Ref", "").startswith(role) for item in policy["Roles"])
        for statement in policy["PolicyDocument"]["Statement"]
    ]
