"""Every exception of podwright's own derives from one base, and stands in the drawing of the tree."""

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

import podwright.config.errors as errors

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("config", "planning", "constructs", "cdk8s_charts", "stacks", "operations", "bin")
ELSEWHERE = ("handler", "purchase")
"""Folders whose code ships without `config`: Lambda handlers, and the purchase engine, which goes along with one."""


def classes() -> Iterator[tuple[str, list[str]]]:
    """The name and the bases of each class of product code."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if not any(part.startswith(ELSEWHERE) for part in file.relative_to(ROOT).parts[1:-1]):
                for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.ClassDef):
                        yield node.name, [ast.unparse(base) for base in node.bases]


def exceptions() -> dict[str, list[str]]:
    """The bases of each exception by its name; a name twice would hide one of the two."""
    known = {name for name, item in vars(builtins).items() if isinstance(item, type) and issubclass(item, Exception)}
    actual: dict[str, list[str]] = {}
    left = list(classes())
    while more := [(name, bases) for name, bases in left if known & set(bases)]:
        for name, bases in more:
            assert name not in actual, f"two exceptions are called {name}"
            actual[name] = bases
            known.add(name)
        left = [item for item in left if item not in more]
    return actual


def drawn() -> dict[str, str]:
    """The parent of each exception in the drawing."""
    lines = [line for line in (errors.__doc__ or "").splitlines() if line.startswith("    ")]
    actual: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in lines:
        text = line.lstrip(" │├└─")
        depth, name = len(line) - len(text), text.split()[0]
        path = [item for item in path if item[0] < depth]
        actual[name] = path[-1][1] if path else "Exception"
        path.append((depth, name))
    return actual


def test_the_drawing_is_the_tree() -> None:
    # The first base says where it belongs; a second one lets callers catch it as what it also is.
    assert {name: bases[0] for name, bases in exceptions().items()} == drawn()
