"""Changed files of the checkout, and the functions and lines of a module that changed."""

import ast
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path


class GitError(Exception):
    """Git refused a command; the message is Git's."""


@dataclass(frozen=True)
class Change:
    """A file that differs between the base and the working tree."""

    path: str
    """Relative to the checkout."""
    before: str | None
    """Its text at the base; None for a new file."""
    after: str | None
    """Its text in the working tree; None for a deleted file."""


@dataclass(frozen=True)
class Function:
    """A function or method of a module."""

    name: str
    """Qualified, such as `Class.method`."""
    first: int
    """The line of `def`; decorators belong to the module."""
    last: int
    body: int
    """The first line of the body."""


class Code:
    """One text of a Python module."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines()
        try:
            self.tree = ast.parse(text)
        except SyntaxError:
            # Unfinished code: all changed lines count for the module, and the tests show the error.
            self.tree = ast.Module([], [])
        self.functions: list[Function] = []
        self._statements: dict[int, range] = {}
        self._walk(self.tree.body, "")

    def _walk(self, body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            first, last = node.lineno, node.end_lineno or node.lineno
            inner = _bodies(node)
            header = range(first, inner[0][0].lineno if inner else last + 1)
            if inner and header.stop == first:
                # `if x: return` on one line.
                header = range(first, last + 1)
            name = prefix
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{node.name}."
                self._statements |= dict.fromkeys(*_decorators(node))
                if not isinstance(node, ast.ClassDef):
                    self.functions.append(Function(f"{prefix}{node.name}", first, last, node.body[0].lineno))
            self._statements |= dict.fromkeys(header, header)
            for statements in inner:
                self._walk(statements, name)

    def statement(self, line: int) -> range | None:
        """The lines of a simple statement, or of the head of a compound one; None for blank lines and comments."""
        return self._statements.get(line)

    def enclosing(self, line: int) -> list[Function]:
        """The functions around a line, the innermost first."""
        around = [each for each in self.functions if each.first <= line <= each.last]
        return sorted(around, key=lambda function: function.last - function.first)

    @cached_property
    def by_name(self) -> dict[str, Function]:
        """The functions by qualified name; of several definitions the last."""
        return {function.name: function for function in self.functions}


def _bodies(node: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a compound statement."""
    blocks = [getattr(node, field, None) for field in ("body", "orelse", "finalbody")]
    handlers = [each.body for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
    return [block for block in (*blocks, *handlers) if block]


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[range, range]:
    lines = range(min((each.lineno for each in node.decorator_list), default=node.lineno), node.lineno)
    return lines, lines


@dataclass(frozen=True)
class Edit:
    """Changed lines inside one function, or of the module outside functions."""

    function: str | None
    line: int
    """The first of them in the text after the change, or before it if they were deleted."""
    lines: frozenset[int]
    """The lines before the change; empty where lines were only inserted."""
    new_lines: frozenset[int]
    """The lines after the change."""


def is_same_code(change: Change) -> bool:
    """Whether only comments and layout of a module changed."""
    if change.before is None or change.after is None:
        return False
    try:
        return ast.dump(ast.parse(change.before)) == ast.dump(ast.parse(change.after))
    except SyntaxError:
        return False


def edits(change: Change) -> list[Edit]:
    """What changed in a module, each run of changed lines by function."""
    before, after = Code(change.before or ""), Code(change.after or "")
    actual = []
    for tag, *bounds in _opcodes(before.lines, after.lines):
        if tag != "equal":
            old = _by_function(before, range(bounds[0] + 1, bounds[1] + 1))
            new = _by_function(after, range(bounds[2] + 1, bounds[3] + 1))
            for name in {**old, **new}:
                removed, added = old.get(name, []), new.get(name, [])
                line = min(added or removed)
                actual.append(Edit(name, line, frozenset(removed), frozenset(added)))
    return actual


def _by_function(code: Code, lines: range) -> dict[str | None, list[int]]:
    by_function: dict[str | None, list[int]] = {}
    for line in lines:
        if code.statement(line) is not None or not code.tree.body:
            around = code.enclosing(line)
            by_function.setdefault(around[0].name if around else None, []).append(line)
    return by_function


def line_numbers(old: str, new: str) -> dict[int, int]:
    """The lines that two texts share: numbers in `new` by numbers in `old`."""
    if old == new:
        return {line: line for line in range(1, len(old.splitlines()) + 1)}
    numbers = {}
    for tag, first, last, start, _ in _opcodes(old.splitlines(), new.splitlines()):
        if tag == "equal":
            numbers |= {first + offset + 1: start + offset + 1 for offset in range(last - first)}
    return numbers


def _opcodes(old: list[str], new: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def git(root: Path, *arguments: str) -> str:
    """The output of a Git command.

    Raises:
        GitError: Git failed.
    """
    result = subprocess.run(["git", *arguments], cwd=root, capture_output=True)
    if result.returncode:
        raise GitError(result.stderr.decode(errors="replace").strip())
    return result.stdout.decode(errors="replace")


def default_base(root: Path) -> str:
    """The commit at which this branch left main; HEAD on main, and in a repository without main."""
    for main in ("main", "origin/main"):
        with suppress(GitError):
            return git(root, "merge-base", "HEAD", main).strip()
    return git(root, "rev-parse", "--verify", "HEAD").strip()


def changed_files(root: Path, base: str) -> Iterator[Change]:
    """The files that differ from a commit: committed, uncommitted, and new ones that Git does not ignore.

    Raises:
        GitError: Git does not know the commit.
    """
    base = git(root, "rev-parse", "--verify", "--end-of-options", f"{base}^{{commit}}").strip()
    tracked = git(root, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--relative", base)
    untracked = git(root, "ls-files", "-z", "--others", "--exclude-standard")
    known = {*filter(None, git(root, "ls-tree", "-r", "-z", "--name-only", base).split("\0"))}
    for path in sorted({*filter(None, f"{tracked}\0{untracked}".split("\0"))}):
        before = git(root, "show", f"{base}:./{path}") if path in known else None
        file = root / path
        after = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
        if before != after:
            yield Change(path, before, after)
