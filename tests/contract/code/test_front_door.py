"""The app and the stacks stay short, and what a synthesis imports stands at the top of its modules."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SYNTHESIS = ("bin", "config", "planning", "constructs", "cdk8s_charts", "stacks")

LATE = {
    "operations": {"boto3", "botocore", "cdk8s", "filelock", "plotly", "rich", "urllib"},
    "sandbox": {"kubernetes", "moto"},
}
"""Libraries that may be imported within functions: they take longer to load than most commands, or are an extra."""

OWN_LATE = {
    ("operations/cli.py", "config.errors"): "the dispatch: `--help` and `--version` print no errors",
    ("operations/cli.py", "operations.output.console"): "the dispatch, as above",
    ("operations/command_help.py", "config.errors"): "only a wrong command line prints them",
    ("operations/command_help.py", "operations.output.console"): "as above",
    ("operations/agents/command.py", "operations.agents.server"): "needs the SDK, which is an extra",
    ("operations/environments/sizes.py", "cdk8s_charts.compute_domain"): "is made of cdk8s, which starts Node",
    ("operations/kubernetes/rendered.py", "cdk8s_charts.benchmark_labels.chart"): "is made of cdk8s",
    ("operations/kubernetes/rendered.py", "cdk8s_charts.device_plugins"): "is made of cdk8s",
    ("operations/kubernetes/rendered.py", "cdk8s_charts.node_readers"): "is made of cdk8s",
}
"""Modules of ours that are imported within functions, with the file that does, and why."""

LATE_IN_SYNTHESIS = {"stacks/promotion.py": "CodePipeline, which only what is promoted needs, is slow to import"}
"""The same of what a synthesis imports, where all else stands at the top."""


def lines(file: Path) -> int:
    return len(file.read_text().splitlines())


def inside_functions(source: str) -> set[ast.Import | ast.ImportFrom]:
    """The imports that stand inside functions."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    inside = {node for function in functions for node in ast.walk(function)}
    return {node for node in inside if isinstance(node, ast.Import | ast.ImportFrom)}


def nested_imports(source: str) -> list[int]:
    """Their lines."""
    return sorted(node.lineno for node in inside_functions(source))


def nested_libraries(source: str) -> set[str]:
    """The libraries among them, by the first part of their names."""
    modules = {node for node in inside_functions(source) if isinstance(node, ast.ImportFrom) and not node.level}
    names = [node.module or "" for node in modules]
    names += [alias.name for node in inside_functions(source) if isinstance(node, ast.Import) for alias in node.names]
    return {name.partition(".")[0] for name in names}


def nested_modules(source: str, file: Path) -> set[tuple[str, str]]:
    """The modules of ours among them, with the file that they stand in."""
    relative = {node for node in inside_functions(source) if isinstance(node, ast.ImportFrom) and node.level}
    return {
        (file.as_posix(), ".".join((*file.parts[: len(file.parts) - node.level], node.module or "")))
        for node in relative
    }


def test_the_app_is_read_in_a_minute() -> None:
    assert lines(ROOT / "bin/app.py") <= 60


def test_stacks_are_thin() -> None:
    assert {file.name: lines(file) for file in (ROOT / "stacks").rglob("*.py") if lines(file) > 120} == {}


@pytest.mark.parametrize("folder", SYNTHESIS)
def test_imports_stand_at_the_top(folder: str) -> None:
    files = [file for file in (ROOT / folder).rglob("*.py") if "handler" not in file.parts]
    late = {file.relative_to(ROOT).as_posix() for file in files if nested_imports(file.read_text())}
    assert late == {file for file in LATE_IN_SYNTHESIS if file.startswith(f"{folder}/")}


def test_our_own_modules_are_imported_late_for_a_reason() -> None:
    late = {
        entry
        for folder in LATE
        for file in (ROOT / folder).rglob("*.py")
        for entry in nested_modules(file.read_text(), file.relative_to(ROOT))
    }
    assert late == OWN_LATE.keys()


@pytest.mark.parametrize("folder", LATE)
def test_only_heavy_libraries_are_imported_late(folder: str) -> None:
    late = {
        library
        for file in (ROOT / folder).rglob("*.py")
        for library in nested_libraries(file.read_text())
        if file.relative_to(ROOT).as_posix() != "operations/cli.py"
    }
    assert late <= LATE[folder]


def test_an_import_inside_a_function_is_seen() -> None:
    source = "import os\n\ndef f():\n    if True:\n        from a.c import b\n        from .d import e\n"
    assert nested_imports(source) == [5, 6]
    assert nested_libraries(source) == {"a"}
    assert nested_modules(source, Path("operations/live/c.py")) == {("operations/live/c.py", "operations.live.d")}
