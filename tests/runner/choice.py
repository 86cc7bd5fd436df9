"""Chooses the tests of `bin/test --changed`.

Recorded coverage shows the tests that execute changed lines of functions. Imports show the test files for other lines,
for data, and for test files without a recording.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import coverage_map
import records
from changes import Change, Code, Edit, edits, is_same_code, line_numbers
from coverage_map import CoverageMap, Module
from imports import Imports, is_test_file
from real_parts import needs_all
from records import Record

IMPORT_SECONDS = 30.0
"""CPU seconds for test files that are chosen by their imports alone; more are left to the whole suite."""
CODE_TESTS, DOCS_TESTS = "tests/contract/code", "tests/contract/docs"
"""They judge sources and pages, which no coverage shows."""
MOST_NAMED = 6
"""Names that a line of the table lists."""


@dataclass(frozen=True)
class Reason:
    """A row of the table: why tests run."""

    changed: str
    why: str
    tests: int
    files: int


@dataclass
class Choice:
    """The chosen tests."""

    files: dict[str, set[str] | None] = field(default_factory=dict)
    """Node ids by test file; None for all of a file."""
    reasons: list[Reason] = field(default_factory=list)
    unexecuted: list[str] = field(default_factory=list)
    """Changed functions that no recorded test executes."""
    uncovered: list[str] = field(default_factory=list)
    """Changed files that this choice knows no test of."""
    left_out: list[str] = field(default_factory=list)
    """Test files that import changed modules, beyond IMPORT_SECONDS."""
    only_with_all: set[str] = field(default_factory=set)
    """Test files of real parts, which this run leaves out."""
    deselected: set[str] = field(default_factory=set)
    """Recorded node ids of the chosen files that do not run. Tests without a record do."""
    tests: int = 0
    seconds: float = 0.0
    """Expected CPU seconds, by tests/durations.csv."""


class Chooser:
    """Chooses tests for some changes."""

    def __init__(
        self, root: Path, recorded: CoverageMap, durations: Mapping[str, Record], *, real_parts: bool = False
    ) -> None:
        self._root = root
        self._map = recorded
        self._durations = durations
        self._real_parts = real_parts
        self._imports = Imports(root)
        self._choice = Choice()
        self._distances: dict[str, dict[str, int]] = {}
        """Distances of test files by changed file, for choices by imports."""

    def choose(self, changes: Sequence[Change]) -> Choice:
        """The tests for all changes."""
        for change in changes:
            if is_test_file(change.path):
                if change.after is not None:
                    self._add(change.path, "changed test file", {change.path: None})
            elif change.path.endswith(".py"):
                self._python(change)
            else:
                self._data(change)
        self._contract(changes)
        self._by_imports()
        self._finish()
        return self._choice

    def _python(self, change: Change) -> None:
        if is_same_code(change):
            return
        modules = self._map.modules(change.path)
        if change.path.startswith("tests/"):
            self._wish(change.path, self._imports.tests_of(change.path))
            return
        functions: dict[str, set[str]] = {}
        lines: dict[str, int] = {}
        changes_module = False
        for edit in edits(change):
            if edit.function is None:
                changes_module = True
            else:
                functions.setdefault(edit.function, set()).update(_executing(change, edit, modules))
                lines.setdefault(edit.function, edit.line)
        for name, tests in functions.items():
            self._executed(change.path, lines[name], name, tests)
        if changes_module:
            self._wish(change.path, self._imports.tests_of(change.path))
        else:
            self._wish_unrecorded(change.path)

    def _executed(self, path: str, line: int, name: str, tests: set[str]) -> None:
        by_file: dict[str, set[str] | None] = {}
        for test in tests:
            file = test.partition("::")[0]
            by_file[file] = (by_file.get(file) or set()) | {test}
        by_file = {file: ids for file, ids in by_file.items() if (self._root / file).is_file()}
        if by_file:
            self._add(path, f"executed: {name}", by_file)
        elif self._map.files:
            self._choice.unexecuted.append(f"{path}:{line} {name}")

    def _data(self, change: Change) -> None:
        """A file that Python does not import: the tests that name it, and those of modules that name it."""
        naming = self._imports.naming(change.path)
        for path, lines in naming.items():
            if is_test_file(path):
                self._wish(change.path, {path: 0})
            elif path.startswith("tests/"):
                self._wish(change.path, self._imports.tests_of(path))
            else:
                self._named(change.path, path, lines)
        docs = _is_page(change.path)
        if not naming and not docs:
            self._choice.uncovered.append(change.path)

    def _named(self, data: str, path: str, lines: list[int]) -> None:
        """The tests of a module that names a file of data: of the function that does, or of all that import it."""
        text = self._imports.sources[path].text
        code = Code(text)
        modules = self._map.modules(path)
        unchanged = Change(path, text, text)
        for line in lines:
            around = code.enclosing(line)
            tests: set[str] = set()
            if around:
                edit = Edit(around[0].name, line, frozenset([line]), frozenset([line]))
                tests = _executing(unchanged, edit, modules)
            if tests:
                self._executed(data, line, f"{path}: {around[0].name}", tests)
            else:
                self._wish(data, self._imports.tests_of(path))

    def _contract(self, changes: Sequence[Change]) -> None:
        judged = [change.path for change in changes if change.path.endswith((".py", ".sh", ".md"))]
        if judged:
            files = self._imports.below(CODE_TESTS)
            self._add(_names(judged), "sources", dict.fromkeys(files))
        pages = [change.path for change in changes if _is_page(change.path)]
        if pages:
            self._add(_names(pages), "pages", dict.fromkeys(self._imports.below(DOCS_TESTS)))

    def _wish_unrecorded(self, path: str) -> None:
        """Choose the test files that import a module and whose tests the map does not know."""
        files = self._imports.tests_of(path)
        self._wish(path, {file: distance for file, distance in files.items() if not self._is_recorded(file)})

    def _is_recorded(self, file: str) -> bool:
        known = self._map.files.get(file)
        return known is not None and known.digest == coverage_map.digest_of(self._imports.sources[file].text)

    def _wish(self, path: str, distances: Mapping[str, int]) -> None:
        wished = self._distances.setdefault(path, {})
        for file, distance in distances.items():
            wished[file] = min(distance, wished.get(file, distance))

    def _by_imports(self) -> None:
        """Choose test files by imports: the nearest first, of these the quickest, within IMPORT_SECONDS."""
        ranked = sorted(
            (distance, self._seconds(file), file)
            for file, distance in _nearest(self._distances.values()).items()
            if self._real_parts or not needs_all(file)
        )
        spent, chosen = 0.0, set[str]()
        for _, seconds, file in ranked:
            whole = file in self._choice.files and self._choice.files[file] is None
            if whole or not chosen or spent + seconds <= IMPORT_SECONDS:
                spent += 0.0 if whole else seconds
                chosen.add(file)
            else:
                self._choice.left_out.append(file)
        for path, distances in self._distances.items():
            if files := [file for file in distances if file in chosen]:
                self._add(path, "imports or names it", dict.fromkeys(files))

    def _seconds(self, file: str) -> float:
        return records.expected_seconds(self._durations, file)

    def _add(self, changed: str, why: str, files: Mapping[str, set[str] | None]) -> None:
        if not self._real_parts:
            self._choice.only_with_all |= {file for file in files if needs_all(file)}
            files = {file: ids for file, ids in files.items() if not needs_all(file)}
        if not files:
            return
        for file, ids in files.items():
            before = self._choice.files.get(file, set())
            self._choice.files[file] = None if ids is None or before is None else before | ids
        tests = sum(self._count(file) if ids is None else len(ids) for file, ids in files.items())
        self._choice.reasons.append(Reason(changed, why, tests, len(files)))

    def _count(self, file: str) -> int:
        """Tests of a file by its recording; 1 for an unknown one."""
        record = self._durations.get(file)
        return len(self._map.tests(file)) or (record.tests if record else 1)

    def _finish(self) -> None:
        """Count the tests, and list those that do not run."""
        choice = self._choice
        for file, ids in sorted(choice.files.items()):
            if ids is None:
                choice.tests += self._count(file)
                choice.seconds += self._seconds(file)
                continue
            known = self._map.tests(file)
            choice.deselected |= known.keys() - ids
            choice.tests += len(ids)
            elapsed = sum(test.seconds for test in known.values())
            share = sum(known[test].seconds for test in ids) / elapsed if elapsed else 1.0
            choice.seconds += share * self._seconds(file)


def _executing(change: Change, edit: Edit, modules: Iterable[Module]) -> set[str]:
    """The recorded tests that execute the changed lines of a function.

    Where no test executes them, or lines were only inserted: those that execute the function, or the one around it.
    """
    tests: set[str] = set()
    for module in modules:
        code = Code(module.text)
        old = line_numbers(change.before or "", module.text)
        new = line_numbers(change.after or "", module.text)
        lines = {old.get(line) for line in edit.lines} | {new.get(line) for line in edit.new_lines}
        statements = [code.statement(line) for line in lines if line is not None]
        executed = {line for statement in statements for line in statement or ()}
        name = edit.function or ""
        functions = [code.by_name[each] for each in _with_outer(name) if each in code.by_name]
        bodies = [{*range(each.body, each.last + 1)} for each in functions]
        if bodies:
            choices = [executed & bodies[0], *bodies]
            tests |= next(filter(None, (_intersecting(module, each) for each in choices)), set())
    return tests


def _with_outer(name: str) -> list[str]:
    """A qualified name and those around it: `a.b.c`, `a.b`, `a`."""
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]


def _intersecting(module: Module, lines: set[int]) -> set[str]:
    return {test for test, executed in module.lines.items() if not executed.isdisjoint(lines)}


def _nearest(several: Iterable[Mapping[str, int]]) -> dict[str, int]:
    nearest: dict[str, int] = {}
    for distances in several:
        for file, distance in distances.items():
            nearest[file] = min(distance, nearest.get(file, distance))
    return nearest


def _is_page(path: str) -> bool:
    return path.endswith(".md") and (path.startswith("docs/") or len(PurePosixPath(path).parts) == 1)


def _names(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}"


def table(choice: Choice, base: str, changed: int, recorded: CoverageMap) -> str:
    """What runs and why, as text."""
    lines = [f"{_count(changed, 'file')} changed since {base}"]
    if not recorded.files:
        lines.append("No coverage is recorded, so imports alone choose the tests.\n  → bin/test --record-coverage")
    if choice.reasons:
        width = max(len(reason.changed) for reason in choice.reasons)
        for reason in choice.reasons:
            count = f"{_count(reason.tests, 'test')} in {_count(reason.files, 'file')}"
            lines.append(f"  {reason.changed:{width}}  {reason.why}: {count}")
    for title, names, action in (
        ("No recorded test executes", choice.unexecuted, "bin/test, which runs tests that start processes as well"),
        ("Not covered by this choice", choice.uncovered, "bin/test"),
        (f"Left out beyond {IMPORT_SECONDS:.0f} CPU seconds", choice.left_out, "bin/test"),
        ("Run with --all only", sorted(choice.only_with_all), "bin/test --all --changed"),
    ):
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            lines.append(f"{title}: {', '.join(names[:MOST_NAMED])}{more}\n  → {action}")
    total = f"{_count(choice.tests, 'test')} in {_count(len(choice.files), 'file')}"
    lines.append(f"{total}, about {choice.seconds:.0f} CPU seconds")
    return "\n".join(lines) + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
