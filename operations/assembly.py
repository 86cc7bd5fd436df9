"""Reading what a synthesis wrote: the stacks of an environment."""

import json
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple


class Stack(NamedTuple):
    """A stack by its path in the app, which selects it on the CDK CLI, and by its name in CloudFormation."""

    path: str
    name: str


def stacks(assembly: Path) -> list[Stack]:
    """All stacks of a cloud assembly and those nested in it, each after the ones that it depends on.

    Source: manifest.json of the cloud assembly schema 55, artifacts of types aws:cloudformation:stack and
    cdk:cloud-assembly.
    """
    artifacts = json.loads((assembly / "manifest.json").read_text(encoding="utf-8")).get("artifacts", {})
    found = [
        nested
        for artifact in artifacts.values()
        if artifact["type"] == "cdk:cloud-assembly"
        for nested in stacks(assembly / artifact["properties"]["directoryName"])
    ]
    own = {name: item for name, item in artifacts.items() if item["type"] == "aws:cloudformation:stack"}
    order = TopologicalSorter({name: own.keys() & item.get("dependencies", ()) for name, item in own.items()})
    return [*found, *(_stack(own[name]) for name in order.static_order())]


def _stack(artifact: dict[str, Any]) -> Stack:
    return Stack(artifact["displayName"].partition(" ")[0], artifact["properties"]["stackName"])
