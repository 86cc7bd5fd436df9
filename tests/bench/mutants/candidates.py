"""What can be changed in a module so that a test ought to notice: one small change of its source at a time."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_OPERATORS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
    "and": "or",
    "or": "and",
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "//": "*",
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "startswith": "endswith", "endswith": "startswith"}
# What the source says of types and of the class itself is for the type checker, and decides nothing.
_SKIPPED_FIELDS = ("annotation", "returns", "decorator_list", "type_params")
_STATEMENTS = (ast.AugAssign, ast.Raise, ast.Delete, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Mutant:
    """One change: the bytes from `start` to `end` of the file at `path` (from the checkout's top) become `new`."""

    path: str
    kind: str
    first_line: int
    """Of the statement that is changed, or of its head when it has a body."""
    last_line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def id(self) -> str:
        """The same in every run over the same source."""
        return f"{self.path}:{self.first_line}:{self.start}:{self.kind}:{self.new}"

    @property
    def package(self) -> str:
        """The top-level folder."""
        return self.path.split("/", 1)[0]

    def applied(self, source: bytes) -> bytes:
        """The changed source."""
        return source[: self.start] + self.new.encode() + source[self.end :]


class _Module:
    """A module's source and where its lines begin. The parser counts bytes from the beginning of a line."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.source = source
        self._begins = [0]
        for line in source.splitlines(keepends=True):
            self._begins.append(self._begins[-1] + len(line))

    def begin(self, node: ast.AST) -> int:
        """Offset of the first byte of a node."""
        return self._begins[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """Offset behind the last byte of a node."""
        return self._begins[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def mutants(self) -> Iterator[Mutant]:
        """Every change that this knows, in the order of the source."""
        tree = ast.parse(self.source)
        for statement in tree.body:
            yield from self._statement(statement)

    def _statement(self, statement: ast.stmt) -> Iterator[Mutant]:
        """Changes of a statement itself, then of its expressions, then of the statements inside it."""
        nested = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
        last = nested[0].lineno - 1 if nested else statement.end_lineno
        lines = (statement.lineno, max(last or 0, statement.lineno))
        call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        if call or isinstance(statement, _STATEMENTS):
            yield self._change(statement, "statement removed", "pass", lines)
        if isinstance(statement, ast.Return) and not isinstance(statement.value, ast.Constant | None):
            yield self._change(statement, "returns None", "return None", lines)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return
        for name, value in ast.iter_fields(statement):
            if name not in _SKIPPED_FIELDS:
                yield from self._children(value, lines)

    def _children(self, value: object, lines: tuple[int, int]) -> Iterator[Mutant]:
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.stmt):
                yield from self._statement(child)
            elif isinstance(child, ast.AST):
                yield from self._expression(child, lines)

    def _expression(self, node: ast.AST, lines: tuple[int, int]) -> Iterator[Mutant]:
        """Changes of a node, then of the nodes inside it."""
        match node:
            case ast.Compare(left=left, comparators=[right, *_]):
                yield from self._operator(left, right, "comparison", lines)
            case ast.BoolOp(values=[left, right, *_]):
                yield from self._operator(left, right, "and, or", lines)
            case ast.BinOp(left=left, right=right):
                yield from self._operator(left, right, "arithmetic", lines)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._change(node, "negation", f"({self._text(operand)})", lines)
            case ast.IfExp(test=test):
                yield self._change(test, "negation", f"(not ({self._text(test)}))", lines)
            case ast.comprehension(ifs=[test, *_]):
                yield self._change(test, "negation", f"(not ({self._text(test)}))", lines)
            case ast.Subscript(slice=ast.Constant(value=0) as index):
                yield self._change(index, "first, last", "-1", lines)
            case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)) as index):
                yield self._change(index, "first, last", "0", lines)
            case ast.Constant(value=bool(value)):
                yield self._change(node, "constant", str(not value), lines)
            case ast.Constant(value=int(value)):
                yield self._change(node, "constant", str(value + 1), lines)
            case ast.Call(func=ast.Name(id=name) as function) if name in _CALLS:
                yield self._change(function, "call", _CALLS[name], lines)
            case ast.Call(func=ast.Attribute(attr=name) as function) if name in _CALLS:
                text = self._text(function).removesuffix(name)
                yield self._change(function, "call", text + _CALLS[name], lines)
        for name, value in ast.iter_fields(node):
            first_or_last = isinstance(node, ast.Subscript) and name == "slice" and not isinstance(value, ast.Slice)
            if name not in _SKIPPED_FIELDS and not first_or_last:
                yield from self._children(value, lines)

    def _operator(self, left: ast.AST, right: ast.AST, kind: str, lines: tuple[int, int]) -> Iterator[Mutant]:
        """The operator between two nodes, when nothing but it and white space is there."""
        start, end = self.end(left), self.begin(right)
        old = self.source[start:end].decode()
        operator = re.sub(r"\s+", " ", old.strip())
        if operator in _OPERATORS:
            new = old.replace(old.strip(), _OPERATORS[operator])
            yield Mutant(self.path, kind, *lines, start, end, old.strip(), new)

    def _change(self, node: ast.AST, kind: str, new: str, lines: tuple[int, int]) -> Mutant:
        return Mutant(self.path, kind, *lines, self.begin(node), self.end(node), self._text(node), new)

    def _text(self, node: ast.AST) -> str:
        return self.source[self.begin(node) : self.end(node)].decode()


def candidates(root: Path, path: str) -> list[Mutant]:
    """Every mutant of a module, conditions of `if` and `while` included; a few are no Python, see `is_python`."""
    module = _Module(path, (root / path).read_bytes())
    return [*module.mutants(), *_conditions(module)]


def _conditions(module: _Module) -> Iterator[Mutant]:
    for node in ast.walk(ast.parse(module.source)):
        if isinstance(node, ast.If | ast.While) and "TYPE_CHECKING" not in ast.unparse(node.test):
            test = node.test
            new = f"not ({module._text(test)})"
            yield module._change(test, "negation", new, (test.lineno, test.end_lineno or test.lineno))


def is_python(root: Path, mutant: Mutant) -> bool:
    """Whether the changed module can be parsed: inside an f-string, for one, not every change can stand."""
    try:
        ast.parse(mutant.applied((root / mutant.path).read_bytes()))
    except SyntaxError:
        return False
    return True
