"""Synthesizing environments inside the tests: each file of `environments/` once a run, whichever worker asks first."""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from filelock import FileLock

from podwright.config.loading.load import environment_from
from podwright.config.loading.project import Project
from podwright.config.loading.source import parse_source
from podwright.config.settings.environment import Environment
from podwright.operations.artifacts.stand_ins import stand_ins
from podwright.planning.resolved import resolve
from podwright.sandbox.cloudformation.schemas import changed_create_only
from podwright.stacks.feature_flags import FEATURE_FLAGS
from podwright.stacks.stage import TrainingStage

ROOT = Path(__file__).parents[2]
NAMES = Project.at(ROOT).names
Template = dict[str, Any]
_REGION = "us-west-2"
# What holds data or nodes, by resource type.
STATEFUL = {
    "AWS::APS::Workspace": "workspace",
    "AWS::EC2::VPC": "vpc",
    "AWS::EC2::Subnet": "subnet",
    "AWS::EKS::Cluster": "eks",
    "AWS::FSx::FileSystem": "file system",
    "AWS::KMS::Key": "key",
    "AWS::RDS::DBCluster": "database",
    "AWS::S3::Bucket": "bucket",
    "AWS::SageMaker::Cluster": "cluster",
    "AWS::SecretsManager::Secret": "secret",
}


@dataclass(frozen=True)
class Synthesis:
    """The templates of one environment by stack id (network, storage, …), and the assembly that holds them.

    A nested stack goes by the name of its file.
    """

    directory: Path
    templates: dict[str, Template]
    stack_names: set[str]

    def resources(self, resource_type: str) -> dict[str, dict[str, Any]]:
        """All resources of a type, by `stack/LogicalId`."""
        return {
            f"{stack}/{logical_id}": resource
            for stack, template in self.templates.items()
            for logical_id, resource in template["Resources"].items()
            if resource["Type"] == resource_type
        }

    def whole(self, stack: str) -> dict[str, dict[str, Any]]:
        """The resources of a stack and of those nested in it by logical id, ordered by DependsOn as if it were one.

        Those of a nested stack have its logical id before their own.
        """
        actual = dict(self.templates[stack]["Resources"])
        for name, resource in self.templates[stack]["Resources"].items():
            if resource["Type"] == "AWS::CloudFormation::Stack":
                inner = self.templates[self._file(str(resource["Properties"]["TemplateURL"]))]["Resources"]
                before = resource.get("DependsOn", [])
                for key, item in inner.items():
                    within = [f"{name}/{other}" for other in item.get("DependsOn", [])]
                    actual[f"{name}/{key}"] = item | {"DependsOn": [*within, *before]}
                actual[name] = resource | {"DependsOn": [*before, *(f"{name}/{key}" for key in inner)]}
        return actual

    def earlier_stacks(self, stack: str) -> set[str]:
        """The stacks that are deployed before one, by stack id."""
        artifacts = json.loads((self.directory / "manifest.json").read_text())["artifacts"]
        ids = {
            key: item["displayName"].rpartition("/")[2]
            for key, item in artifacts.items()
            if item["type"] == "aws:cloudformation:stack"
        }
        left = [key for key, name in ids.items() if name == stack]
        earlier = set[str]()
        while left:
            earlier |= (more := {*artifacts[left.pop()].get("dependencies", ())} & ids.keys() - earlier)
            left += more
        return {ids[key] for key in earlier}

    def _file(self, url: str) -> str:
        """The name of the template at a URL, which holds the digest that the list of assets knows it by."""
        lists = (json.loads(file.read_text())["files"] for file in self.directory.glob("*.assets.json"))
        return next(asset["source"]["path"] for files in lists for key, asset in files.items() if key in url)


def assembly_folder() -> str:
    """A folder for an assembly, which goes with those of all workers when the run ends."""
    return tempfile.mkdtemp(dir=os.environ["PODWRIGHT_TEST_ASSEMBLIES"])


def stage_of(environment: Environment, app: cdk.App) -> TrainingStage:
    """The stage that `bin/app.py` would make of an environment with stand-ins for its charts."""
    resolved = resolve(environment, charts=stand_ins(environment))
    return TrainingStage(app, environment.name, resolved=resolved)


def synthesize(environment: Environment) -> Synthesis:
    """Synthesize one environment in this process."""
    return _read(*_write(environment, assembly_folder()))


def _write(environment: Environment, outdir: str) -> tuple[Path, dict[str, str]]:
    """The folder of an environment's assembly, and the names of its stacks by id."""
    app = cdk.App(outdir=outdir, context=FEATURE_FLAGS)
    stage = stage_of(environment, app)
    app.synth()
    stacks = [stack for stack in stage.node.children if isinstance(stack, cdk.Stack)]
    return Path(outdir) / f"assembly-{environment.name}", {stack.node.id: stack.stack_name for stack in stacks}


def _read(directory: Path, stacks: dict[str, str]) -> Synthesis:
    manifest = json.loads((directory / "manifest.json").read_text())["artifacts"]
    files = {
        actual["properties"].get("stackName", id): actual["properties"]["templateFile"]
        for id, actual in manifest.items()
        if actual["type"] == "aws:cloudformation:stack"
    }
    templates = {id: json.loads((directory / files[name]).read_text()) for id, name in stacks.items()}
    nested = sorted(directory.glob("*.nested.template.json"))
    return Synthesis(
        directory, templates | {file.name: json.loads(file.read_text()) for file in nested}, {*stacks.values()}
    )


@cache
def environment(name: str) -> Environment:
    """The environment in `environments/NAME.yaml`."""
    return Project.at(ROOT).load(name).environment


@cache
def synthesis(name: str) -> Synthesis:
    """The synthesis of `environments/NAME.yaml`."""
    shared = Path(os.environ["PODWRIGHT_TEST_ASSEMBLIES"])
    done = shared / f"{name}.json"
    with FileLock(shared / f"{name}.lock"):
        if not done.exists():
            done.write_text(json.dumps(_write(environment(name), assembly_folder()), default=str))
    directory, stacks = json.loads(done.read_text())
    return _read(Path(directory), stacks)


def environment_of(text: str, name: str = "test") -> Environment:
    """The environment that YAML text describes."""
    return environment_from(parse_source(text, f"{name}.yaml"), name).environment


def effects(before: Synthesis, after: Synthesis) -> set[str]:
    """The stateful resources that are touched, and how: `+` made, `-` removed, `~` updated in place, `!` replaced."""
    actual = set()
    for stack in before.templates.keys() | after.templates.keys():
        old = before.templates.get(stack, {}).get("Resources", {})
        new = after.templates.get(stack, {}).get("Resources", {})
        for logical_id in old.keys() | new.keys():
            was, now = old.get(logical_id), new.get(logical_id)
            kind = STATEFUL.get((was or now)["Type"])
            if kind and was != now:
                actual.add(f"{_sign(was, now)} {kind}")
    return actual


def _sign(was: dict[str, Any] | None, now: dict[str, Any] | None) -> str:
    if was is None or now is None:
        return "+" if was is None else "-"
    return "!" if changed_create_only(was["Type"], _REGION, was["Properties"], now["Properties"]) else "~"


def value_paths(node: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths of all values, whatever their position in a list, each with the type of its value."""
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else (("*", item) for item in node):
            yield from value_paths(value, (*path, key))
    else:
        yield (*path, type(node).__name__)
