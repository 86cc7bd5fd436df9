"""The app and the stacks stay short, and what a synthesis imports stands at the top of its modules."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SYNTHESIS = ("bin", "config", "planning", "constructs", "cdk8s_charts", "stacks")


def lines(file: Path) -> int:
    return len(file.read_text().splitlines())


def nested_imports(source: str) -> list[int]:
    """Lines of the imports that stand inside functions."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    inside = {node for function in functions for node in ast.walk(function)}
    return sorted(node.lineno for node in inside if isinstance(node, ast.Import | ast.ImportFrom))


def test_the_app_is_read_in_a_minute() -> None:
    assert lines(ROOT / "bin/app.py") <= 60


def test_stacks_are_thin() -> None:
    assert {file.name: lines(file) for file in (ROOT / "stacks").rglob("*.py") if lines(file) > 120} == {}


@pytest.mark.parametrize("folder", SYNTHESIS)
def test_imports_stand_at_the_top(folder: str) -> None:
    files = [file for file in (ROOT / folder).rglob("*.py") if "handler" not in file.parts]
    assert {str(file): actual for file in files if (actual := nested_imports(file.read_text()))} == {}


def test_an_import_inside_a_function_is_seen() -> None:
    assert nested_imports("import os\n\ndef f():\n    if True:\n        from a import b\n") == [5]
