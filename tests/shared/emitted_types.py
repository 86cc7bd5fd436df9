"""CloudFormation types that our constructs can emit, whatever an environment says: read from their source."""

import ast
import importlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def emitted_types() -> frozenset[str]:
    """The types of all level 1 classes that constructs and stacks use, and those in the environments' templates."""
    files = [file for room in ("constructs", "stacks") for file in sorted((ROOT / room).rglob("*.py"))]
    return frozenset(kind for file in files for kind in _types_of(file)) | in_environments()


@cache
def in_environments() -> frozenset[str]:
    """The types in the snapshots of `environments/`, which other tests deploy."""
    templates = (json.loads(file.read_text()) for file in (ROOT / "tests/snapshot/templates").rglob("*.json"))
    return frozenset(item["Type"] for template in templates for item in template.get("Resources", {}).values())


def _types_of(file: Path) -> Iterator[str]:
    """Types of the classes `alias.CfnName` in a module that imports `from aws_cdk import aws_name as alias`."""
    tree = ast.parse(file.read_text())
    aliases = {
        name.asname or name.name: name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "aws_cdk"
        for name in node.names
        if name.name.startswith("aws_")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            module = importlib.import_module(f"aws_cdk.{aliases[node.value.id]}")
            kind = getattr(getattr(module, node.attr), "CFN_RESOURCE_TYPE_NAME", None)
            if kind:
                yield kind
