"""The reference of the public Python module, made of signatures and docstrings; nothing is imported for it."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import setting_pages

ROOT: Final = Path(__file__).resolve().parents[2]
LIBRARY: Final = ROOT / "constructs/library.py"
PAGE: Final = "reference/constructs.md"

Function = ast.FunctionDef


@dataclass(frozen=True)
class Name:
    """A public name and what it stands for."""

    name: str
    module: Path
    definition: ast.ClassDef | ast.FunctionDef

    @property
    def bases(self) -> list[str]:
        """The names of the classes that it builds on."""
        bases = self.definition.bases if isinstance(self.definition, ast.ClassDef) else []
        return [ast.unparse(base).rpartition(".")[2] for base in bases]


@cache
def _tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def _imported(module: Path) -> dict[str, Path]:
    """The module of ours that each imported name comes from."""
    found = {}
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and node.level and node.module:
            file = module.parents[node.level - 1].joinpath(*node.module.split(".")).with_suffix(".py")
            found |= {alias.asname or alias.name: file for alias in node.names}
    return found


def _find(name: str, module: Path) -> Name | None:
    """The class or function of that name that `module` defines or imports from another module of ours."""
    for node in _tree(module).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return Name(name, module, node)
    origin = _imported(module).get(name)
    return _find(name, origin) if origin is not None and origin.is_file() else None


def names() -> list[Name]:
    """The public names, in their order."""
    (exported,) = (
        node.value
        for node in _tree(LIBRARY).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    found = [_find(name, LIBRARY) for name in ast.literal_eval(exported)]
    return [item for item in found if item is not None]


def _ancestors(item: Name) -> Iterator[Name]:
    """The class and those of ours that it builds on."""
    yield item
    for base in item.bases:
        below = _find(base, item.module)
        if below is not None:
            yield from _ancestors(below)


def _is(item: Name, base: str) -> bool:
    return any(base in each.bases for each in _ancestors(item))


def _said(node: ast.ClassDef | ast.FunctionDef) -> str:
    return ast.get_docstring(node) or ""


def _arguments(function: Function) -> Iterator[tuple[str, str, str]]:
    """Name, type and default of each argument that a caller gives."""
    positional = [argument for argument in function.args.args if argument.arg not in ("self", "cls")]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(function.args.defaults))
    pairs = [
        *zip(positional, [*defaults, *function.args.defaults], strict=True),
        *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True),
    ]
    for argument, default in pairs:
        kind = ast.unparse(argument.annotation) if argument.annotation else ""
        yield argument.arg, kind, ast.unparse(default) if default is not None else "**required**"


def _meanings(function: Function) -> dict[str, str]:
    """What the docstring of a function says of each argument."""
    _, _, block = _said(function).partition("\nArgs:\n")
    block = re.split(r"\n\n", block, maxsplit=1)[0]
    found: dict[str, str] = {}
    for match in re.finditer(r"^    (\w+): (.*(?:\n        .*)*)", block, re.MULTILINE):
        found[match[1]] = " ".join(match[2].split())
    return found


def _default(text: str) -> str:
    return text if text.startswith("*") else f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def _table(function: Function) -> list[str]:
    """The arguments as a table; without meanings where the sentence of a short method names them all."""
    meanings = _meanings(function)
    if not meanings:
        rows = [f"| `{name}` | `{_cell(kind)}` | {_default(default)} |" for name, kind, default in _arguments(function)]
        return ["| Argument | Type | Default |", "|---|---|---|", *rows, ""] if rows else []
    rows = [
        f"| `{name}` | `{_cell(kind)}` | {_default(default)} | {_cell(meanings.get(name, ''))} |"
        for name, kind, default in _arguments(function)
    ]
    return ["| Argument | Type | Default | Meaning |", "|---|---|---|---|", *rows, ""] if rows else []


def _methods(item: Name) -> dict[str, Function]:
    """The public methods and properties, those of classes that it builds on included."""
    found: dict[str, Function] = {}
    for each in _ancestors(item):
        body = each.definition.body if isinstance(each.definition, ast.ClassDef) else []
        for node in body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                found.setdefault(node.name, node)
    return dict(sorted(found.items()))


def _attributes(item: Name) -> dict[str, str]:
    """The public attributes with what is said below each."""
    found: dict[str, str] = {}
    for each in _ancestors(item):
        for node in ast.walk(each.definition):
            body = node.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.If) else []
            for statement, after in pairwise(body):
                target = _target(statement)
                if target and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                    found.setdefault(target, inspect.cleandoc(str(after.value.value)))
    return {name: found[name] for name in sorted(found) if not name.startswith("_")}


def _target(statement: ast.stmt) -> str:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
    return ast.unparse(targets[0]).removeprefix("self.") if targets else ""


def _decorated(function: Function, name: str) -> bool:
    return any(ast.unparse(decorator).rpartition(".")[2] == name for decorator in function.decorator_list)


def _example(text: str) -> tuple[str, str]:
    """A docstring without its example, and the example."""
    before, _, after = text.partition("\nExample:\n")
    return before.strip(), textwrap.dedent(after).strip()


def _sentence(text: str) -> str:
    return _cell(re.split(r"\n\n", text, maxsplit=1)[0])


def _class(item: Name) -> str:
    """The section of a construct, an interface or another class."""
    said, example = _example(_said(item.definition))
    methods, attributes = _methods(item), _attributes(item)
    parts = [f"### `{item.name}` {{ #{item.name.lower()} }}", "", said, ""]
    if example:
        parts += ["```python", example, "```", ""]
    body = item.definition.body if isinstance(item.definition, ast.ClassDef) else []
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            parts += _table(node)
    properties = {name: _said(node) for name, node in methods.items() if _decorated(node, "property")}
    if found := attributes | properties:
        parts += ["| Attribute | Meaning |", "|---|---|"]
        parts += [f"| `{name}` | {_sentence(text)} |" for name, text in sorted(found.items())]
        parts.append("")
    for name, node in methods.items():
        if not _decorated(node, "property"):
            parts += [f"`{name}`: {_sentence(_said(node))}", "", *_table(node)]
    return "\n".join(parts)


def _function(item: Name) -> str:
    said = _sentence(re.split(r"\n\n", _said(item.definition))[0])
    table = _table(item.definition) if isinstance(item.definition, ast.FunctionDef) else []
    return "\n".join((f"### `{item.name}` {{ #{item.name.lower()} }}", "", said, "", *table))


def page() -> str:
    """The text of the page."""
    public = names()
    settings = [item for item in public if _is(item, "Settings")]
    constructs = [item for item in public if _is(item, "Construct")]
    interfaces = [item for item in public if _is(item, "Protocol")]
    rest = [item for item in public if item not in (*settings, *constructs, *interfaces)]
    places = setting_pages.Models(setting_pages.Environment).page
    rows = [f"| {_linked(item.name, places)} | {_sentence(_said(item.definition))} |" for item in settings]
    parts = [
        "# Constructs",
        "",
        "Everything that an app of one's own builds with comes from `podwright.constructs.library`. Each construct "
        "takes the scope and an id first, then the arguments below by name. What an environment file would be refused "
        "for is raised as `InvalidSettings`, with the same ids; warnings become annotations. "
        "[Examples](../python/index.md) are complete apps.",
        "",
        "## Constructs { #of-the-module }",
        "",
        *map(_class, constructs),
        "## Interfaces",
        "",
        *map(_class, interfaces),
        "## Beside them",
        "",
        *(_class(item) if isinstance(item.definition, ast.ClassDef) else _function(item) for item in rest),
        "## Settings",
        "",
        "The models of environment files, which Python fills by the same names.",
        "",
        "| Model | Meaning |",
        "|---|---|",
        *rows,
        "",
    ]
    return "\n".join(parts)


def _linked(name: str, places: dict[str, str]) -> str:
    if name not in places:
        return f"`{name}`"
    return f"[`{name}`](settings/{places[name]}.md#{setting_pages.anchor(name)})"
