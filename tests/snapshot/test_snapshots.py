"""Every environment's templates and Kubernetes objects, whole, as they were reviewed. They protect refactoring; intent
is in tests/synth and tests/manifests.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.operations.kubernetes.rendered import placed, rendered
from podwright.planning.kubernetes.deployed_values import OUTPUT_DESCRIPTION, DeployedValues, known_values, value_paths
from synthesis import NAMES, ROOT, Synthesis, environment, synthesis

SNAPSHOTS = ROOT / "tests" / "snapshot" / "templates"
HASH = re.compile(r"\b[0-9a-f]{64}\b")
OBJECTS = ROOT / "tests" / "snapshot" / "objects"
APPLIED = "Custom::AWSCDK-EKS-KubernetesResource"
_PRUNE = "aws.cdk.eks/prune-"
Object = dict[str, Any]


def masked(template: dict[str, Any]) -> str:
    """The template as text, with the hashes of assets masked: they change with every line of a handler."""
    return HASH.sub("<asset>", json.dumps(template, indent=1, sort_keys=True)) + "\n"


@pytest.mark.parametrize("name", NAMES)
def test_templates_are_as_reviewed(
    name: str, pytestconfig: pytest.Config, reviewed: Callable[[Path, str], None]
) -> None:
    folder = SNAPSHOTS / name
    templates = synthesis(name).templates.items()
    observed = {f"{stack.removesuffix('.template.json')}.json": masked(template) for stack, template in templates}
    left = [file for file in folder.glob("*.json") if file.name not in observed]
    if pytestconfig.getoption("update_snapshots"):
        while left:
            left.pop().unlink()
    assert left == []
    for file, text in observed.items():
        reviewed(folder / file, text)


def test_no_snapshot_outlives_its_environment() -> None:
    assert {folder.name for folder in SNAPSHOTS.iterdir()} == set(NAMES)


def given(name: str) -> dict[str, str]:
    """A value for each that the environment has: what the file says, else text that tells one from another."""
    known = known_values(environment(name), "amazonaws.com")
    return {path: known.get(path, f"<{path}>") for path in value_paths(environment(name))}


def applied(actual: Synthesis, values: dict[str, str]) -> list[Object]:
    """The objects in the templates, with values in place of what CloudFormation fills in."""
    exports = {
        output["Export"]["Name"]: values[output["Description"].removeprefix(OUTPUT_DESCRIPTION)]
        for template in actual.templates.values()
        for output in template.get("Outputs", {}).values()
        if "Export" in output and output.get("Description", "").startswith(OUTPUT_DESCRIPTION)
    }
    handed_down = {
        name: exports[value["Fn::ImportValue"]]
        for resource in actual.resources("AWS::CloudFormation::Stack").values()
        for name, value in resource["Properties"].get("Parameters", {}).items()
        if value["Fn::ImportValue"] in exports
    }
    manifests = [resource["Properties"]["Manifest"] for resource in actual.resources(APPLIED).values()]
    return [unlabelled(item) for manifest in manifests for item in json.loads(text(manifest, exports | handed_down))]


def text(manifest: Any, values: dict[str, str]) -> str:
    if isinstance(manifest, str):
        return manifest
    _, parts = manifest["Fn::Join"]
    return "".join(
        part if isinstance(part, str) else values[part.get("Ref") or part["Fn::ImportValue"]] for part in parts
    )


def unlabelled(item: Object) -> Object:
    """An object without the label by which the CDK finds what to prune."""
    metadata = dict(item["metadata"])
    labels = {key: value for key, value in metadata.pop("labels", {}).items() if not key.startswith(_PRUNE)}
    return item | {"metadata": metadata | ({"labels": labels} if labels else {})}


def by_name(objects: list[Object]) -> dict[str, Object]:
    actual = {
        f"{item['kind']} {item['metadata'].get('namespace')} {item['metadata']['name']}": item for item in objects
    }
    assert len(actual) == len(objects)
    return actual


def objects_of(name: str) -> list[Object]:
    return list(rendered(environment(name), DeployedValues.parse(given(name)), {}))


@pytest.mark.parametrize("name", NAMES)
def test_a_deployment_applies_what_render_writes(name: str) -> None:
    assert by_name(applied(synthesis(name), given(name))) == by_name(objects_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_objects_are_as_reviewed(name: str, reviewed: Callable[[Path, str], None]) -> None:
    observed = json.dumps(placed(objects_of(name)), indent=1, sort_keys=True) + "\n"
    reviewed(OBJECTS / f"{name}.json", observed)


def test_no_snapshot_of_objects_outlives_its_environment() -> None:
    assert {file.stem for file in OBJECTS.iterdir()} == set(NAMES)
