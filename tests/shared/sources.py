"""The Python files and pages of the checkout, each read and parsed once in a process."""

import ast
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parents[2]
Node = TypeVar("Node", bound=ast.AST)


class Import(NamedTuple):
    """One imported module; `from . import a` counts as `a`."""

    line: int
    name: str
    """Dotted name as written, without leading dots."""
    level: int
    """Number of leading dots; 0 for an absolute import."""
    late: bool
    """True inside a function."""


class Class(NamedTuple):
    """A class definition with its base classes as written."""

    name: str
    bases: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Source:
    """A file of the checkout, or the text of a sample under the path that it would have."""

    path: str
    """Relative to the checkout, with `/`."""
    text: str

    @property
    def file(self) -> Path:
        """The absolute path."""
        return ROOT / self.path

    @property
    def folder(self) -> str:
        """The top-level folder."""
        return self.path.partition("/")[0]

    @property
    def is_python(self) -> bool:
        """True for a Python module."""
        return self.path.endswith(".py")

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed module; an empty one for a page."""
        return ast.parse(self.text if self.is_python else "", self.path)

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], list[ast.AST]]:
        by_type, nodes = defaultdict(list), list[ast.AST]([self.tree])
        # Breadth first, as ast.walk, which takes twice as long: it visits the context of each name as well.
        for node in nodes:
            by_type[type(node)].append(node)
            for field in node._fields:
                child = getattr(node, field, None)
                if isinstance(child, list):
                    nodes += [item for item in child if isinstance(item, ast.AST)]
                elif isinstance(child, ast.AST) and field != "ctx":
                    nodes.append(child)
        return by_type

    def nodes(self, *types: type[Node]) -> list[Node]:
        """All syntax nodes of exactly these types."""
        return [node for each in types for node in self._by_type.get(each, ())]  # type: ignore[misc]

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Every import, in the order of lines."""
        statements = self.nodes(ast.Import, ast.ImportFrom)
        functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        if any(node.col_offset for node in statements):
            functions = self.nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        late = {id(node) for function in functions for node in ast.walk(function)}
        return tuple(sorted(each for node in statements for each in _imports(node, id(node) in late)))

    @cached_property
    def classes(self) -> tuple[Class, ...]:
        """Every class definition."""
        return tuple(Class(node.name, tuple(map(ast.unparse, node.bases))) for node in self.nodes(ast.ClassDef))

    def release(self) -> None:
        """Drop the syntax tree and keep imports and classes: the trees of all modules take 500 MB."""
        _ = self.imports, self.classes
        for name in ("tree", "_by_type"):
            self.__dict__.pop(name, None)


def _imports(node: ast.Import | ast.ImportFrom, late: bool) -> Iterable[Import]:
    if isinstance(node, ast.Import):
        return [Import(node.lineno, alias.name, 0, late) for alias in node.names]
    prefix = f"{node.module}." if node.module else ""
    return [Import(node.lineno, f"{prefix}{alias.name}", node.level, late) for alias in node.names]


def read(root: Path, files: Iterable[Path]) -> list[Source]:
    """The files of a checkout as sources, in the order of their paths."""
    return [Source(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")) for file in sorted(files)]


@cache
def _everything() -> list[Source]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "*.py", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return read(ROOT, (ROOT / name for name in listed if (ROOT / name).is_file()))


def sources(*folders: str) -> list[Source]:
    """The Python files and pages of the checkout, or those in some top-level folders, new ones included."""
    return [source for source in _everything() if not folders or source.folder in folders]


def modules(*folders: str) -> list[Source]:
    """The Python files of the checkout, or of some top-level folders."""
    return [source for source in sources(*folders) if source.is_python]
