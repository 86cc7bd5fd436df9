"""Statements are flat enough to read once, and functions say what they do and return."""

import ast
from collections.abc import Iterator

from language import PACKAGES
from lint import At, Sample, file_rule
from sources import Source

LONG = 15
"""Lines of a function that needs a docstring."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def holds(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    """Whether an expression has one of some kinds inside it, functions aside."""
    parts = [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.Lambda)]
    return any(isinstance(part, kinds) or holds(part, kinds) for part in parts)


@file_rule(
    Sample({"config/a.py": "c = 1 if b else 2 if c else 3"}, "config/a.py:1"),
    Sample({"config/a.py": "\nd = [[x for x in y] for y in z]"}, "config/a.py:2"),
    Sample({"config/a.py": "e = [x for a in z for b in a for x in b]"}, "config/a.py:1"),
    Sample({"config/a.py": "a = [x for y in z for x in y]\nb = [1 if x else 2 for x in y]"}, None),
    Sample({"tests/a.py": "d = [[x for x in y] for y in z]"}, None),
)
def statements_have_one_level(source: Source) -> Iterator[At]:
    """Neither conditionals nor comprehensions lie inside one another."""
    if not source.is_python or source.folder not in PACKAGES:
        return
    for node in source.nodes(ast.IfExp):
        if holds(node, (ast.IfExp,)):
            yield At(node.lineno, "a conditional inside another")
    for node in source.nodes(*COMPREHENSIONS):
        if len(node.generators) > 2 or holds(node, COMPREHENSIONS):  # type: ignore[attr-defined]
            yield At(node.lineno, "a comprehension inside another, or with more than two loops")


@file_rule(
    Sample({"config/a.py": "def _f():\n" + "    x = 1\n" * LONG}, "config/a.py:1: _f"),
    Sample({"config/a.py": 'def _f():\n    """Set x."""\n' + "    x = 1\n" * LONG}, None),
    Sample({"config/a.py": "def _f():\n" + "    x = 1\n" * (LONG - 2)}, None),
)
def long_functions_say_what_they_do(source: Source) -> Iterator[At]:
    """A function of many lines has a docstring, private ones too; ruff asks public ones for it."""
    if not source.is_python or source.folder not in PACKAGES:
        return
    for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        if (node.end_lineno or 0) - node.lineno + 1 >= LONG and not ast.get_docstring(node):
            yield At(node.lineno, f"{node.name} is long and has no docstring")


def sort_keys(tree: ast.AST) -> set[str]:
    """Names that a parameter `key` of a call gets, itself or within a lambda: what they return is only compared."""
    keys = [keyword.value for keyword in ast.walk(tree) if isinstance(keyword, ast.keyword) and keyword.arg == "key"]
    return {node.id for key in keys for node in ast.walk(key) if isinstance(node, ast.Name)}


def is_positional(node: ast.AST) -> bool:
    """Whether a type is a tuple of three values or more, which have a place and no name."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return False
    return ast.unparse(node.value) == "tuple" and len(node.slice.elts) > 2


def types_in(annotation: ast.AST, tree: ast.Module) -> Iterator[ast.AST]:
    """The parts of a type, of one that stands between quotation marks, and of what the module calls by a name."""
    aliases = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(annotation):
        yield node
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from types_in(ast.parse(node.value, mode="eval"), tree)
        elif isinstance(node, ast.Name) and node.id in aliases:
            yield from ast.walk(aliases[node.id])


@file_rule(
    Sample({"config/a.py": "def three() -> list[tuple[int, str, str]]: ..."}, "three returns"),
    Sample({"config/a.py": "Named = list[tuple[int, str, str]]\ndef named() -> Named: ..."}, "named returns"),
    Sample({"config/a.py": "def quoted() -> 'list[tuple[int, str, str]]': ..."}, "quoted returns"),
    Sample({"config/a.py": "def pair() -> tuple[int, str]: ...\ndef any_length() -> tuple[int, ...]: ..."}, None),
    Sample(
        {
            "config/a.py": "def rank(item) -> tuple[int, str, str]: ...\n"
            "def none() -> 'None': sorted([], key=lambda item: rank(item))"
        },
        None,
    ),
)
def values_that_functions_return_together_have_names(source: Source) -> Iterator[At]:
    """No function returns a tuple of three values or more, but a key to sort by."""
    if not source.is_python or source.folder not in PACKAGES:
        return
    for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        returned = types_in(node.returns, source.tree) if node.returns else ()
        if any(map(is_positional, returned)) and node.name not in sort_keys(source.tree):
            yield At(node.lineno, f"{node.name} returns a tuple of three values; give them names")
