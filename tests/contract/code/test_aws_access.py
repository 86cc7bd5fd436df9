"""One layer asks AWS: everything else goes through `operations/aws`."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LAYER = ROOT / "operations" / "aws"


def touched(file: Path) -> Iterator[str]:
    """How a module gets at boto3 itself: its clients, its paginators, its sessions."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (name for name in names if name.split(".")[0] == "boto3")
        elif isinstance(node, ast.Attribute) and node.attr in ("client", "get_paginator", "get_waiter"):
            yield node.attr


def test_only_the_layer_makes_clients_and_pages() -> None:
    actual = {
        file.relative_to(ROOT).as_posix(): names
        for file in sorted((ROOT / "operations").rglob("*.py"))
        if not file.is_relative_to(LAYER) and (names := set(touched(file)))
    }
    assert actual == {}, "ask through operations/aws"


def test_nodes_are_listed_in_one_place() -> None:
    listing = [file for file in sorted(ROOT.glob("operations/**/*.py")) if "list_cluster_nodes" in file.read_text()]
    # The bundle of `podwright collect` keeps AWS's answers as they are.
    assert [file.name for file in listing] == ["clusters.py", "collect.py"]
