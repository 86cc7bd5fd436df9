"""The coverage map: which test executes which line of which text, in one SQLite file.

`contexts.py` writes it; `bin/test --changed` and `bin/bench --only mutants` read it. The map stores the text of each
measured module, so that lines can be found again after any change, commit or rebase.
"""

import hashlib
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from coverage.numbits import numbits_to_nums, nums_to_numbits

PATH = Path(".podwright/tests/coverage.sqlite")
"""Of the checkout's map, relative to the checkout."""
LOCK_SECONDS = 600
"""Seconds to wait for another shard that writes."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS file (id INTEGER PRIMARY KEY, path TEXT UNIQUE, digest TEXT, revision TEXT);
CREATE TABLE IF NOT EXISTS test (file INTEGER, number INTEGER, name TEXT, seconds REAL, passed INTEGER);
CREATE TABLE IF NOT EXISTS module (id INTEGER PRIMARY KEY, path TEXT, digest TEXT, text BLOB, UNIQUE (path, digest));
CREATE TABLE IF NOT EXISTS executed (module INTEGER, file INTEGER, lines BLOB, tests BLOB);
CREATE INDEX IF NOT EXISTS executed_module ON executed (module);
CREATE INDEX IF NOT EXISTS executed_file ON executed (file);
CREATE INDEX IF NOT EXISTS test_file ON test (file);
"""
"""`lines` and `tests` (their numbers in the file) are numbits of coverage. Tests that execute the same lines of a
module share a row."""


@dataclass(frozen=True)
class Test:
    """One recorded test."""

    seconds: float
    """Elapsed, while its lines were recorded."""
    passed: bool


@dataclass(frozen=True)
class Recording:
    """The lines that the tests of one file execute."""

    file: str
    """The test file, relative to the checkout."""
    digest: str
    """Digest of the test file's text."""
    revision: str
    """The commit that was checked out."""
    tests: Mapping[str, Test]
    """By node id."""
    lines: Mapping[str, Mapping[str | None, Iterable[int]]]
    """Lines by module and test; those that run at import by None."""


@dataclass(frozen=True)
class File:
    """A recorded test file."""

    digest: str
    revision: str


@dataclass(frozen=True)
class Module:
    """One text of a module that was measured."""

    text: str
    lines: Mapping[str, frozenset[int]]
    """Lines by the node ids of the tests that execute them."""


def digest_of(text: str) -> str:
    """The digest by which texts are compared."""
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None)) as connection:
        yield connection


def write(path: Path, recordings: Iterable[Recording], texts: Mapping[str, str]) -> None:
    """Replace the recordings of some test files, all at once; `texts` has the text of each module."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _opened(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in filter(str.strip, _SCHEMA.split(";")):
            connection.execute(statement)
        modules = {name: _module(connection, name, text) for name, text in texts.items()}
        for recording in recordings:
            _replace(connection, recording, modules)
        connection.execute("DELETE FROM module WHERE id NOT IN (SELECT module FROM executed)")
        connection.execute("COMMIT")


def _module(connection: sqlite3.Connection, path: str, text: str) -> int:
    key = path, digest_of(text)
    row = (*key, zlib.compress(text.encode()))
    connection.execute("INSERT OR IGNORE INTO module (path, digest, text) VALUES (?, ?, ?)", row)
    return connection.execute("SELECT id FROM module WHERE path = ? AND digest = ?", key).fetchone()[0]


def _replace(connection: sqlite3.Connection, recording: Recording, modules: Mapping[str, int]) -> None:
    for (old,) in connection.execute("SELECT id FROM file WHERE path = ?", [recording.file]).fetchall():
        connection.execute("DELETE FROM executed WHERE file = ?", [old])
        connection.execute("DELETE FROM test WHERE file = ?", [old])
        connection.execute("DELETE FROM file WHERE id = ?", [old])
    row = recording.file, recording.digest, recording.revision
    file = connection.execute("INSERT INTO file (path, digest, revision) VALUES (?, ?, ?)", row).lastrowid
    numbers = {name: number for number, name in enumerate(recording.tests)}
    rows = [(file, numbers[name], name, test.seconds, test.passed) for name, test in recording.tests.items()]
    connection.executemany("INSERT INTO test VALUES (?, ?, ?, ?, ?)", rows)
    for module, by_test in recording.lines.items():
        tests: dict[bytes, set[int]] = defaultdict(set)
        for name, lines in by_test.items():
            tests[nums_to_numbits(lines)] |= set() if name is None else {numbers[name]}
        values = [(modules[module], file, lines, nums_to_numbits(same)) for lines, same in tests.items()]
        connection.executemany("INSERT INTO executed VALUES (?, ?, ?, ?)", values)


def read(path: Path) -> Iterator[Recording]:
    """All recordings of a map, whole."""
    with _opened(path) as connection:
        query = "SELECT id, path, digest, revision FROM file ORDER BY path"
        for number, file, digest, revision in connection.execute(query).fetchall():
            tests = _tests(connection, number)
            names = [*tests]
            lines: dict[str, dict[str | None, set[int]]] = defaultdict(lambda: defaultdict(set))
            query = "SELECT path, lines, tests FROM executed JOIN module ON id = module WHERE file = ?"
            for module, executed, same in connection.execute(query, [number]):
                for name in [names[each] for each in numbits_to_nums(same)] or [None]:
                    lines[module][name] |= {*numbits_to_nums(executed)}
            yield Recording(file, digest, revision, tests, lines)


def _tests(connection: sqlite3.Connection, file: int) -> dict[str, Test]:
    rows = connection.execute("SELECT name, seconds, passed FROM test WHERE file = ? ORDER BY number", [file])
    return {name: Test(seconds, bool(passed)) for name, seconds, passed in rows}


class CoverageMap:
    """Answers questions about a map; a missing file is an empty map."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.files: dict[str, File] = {}
        """Recorded test files by path."""
        # A recording that was killed leaves an empty file.
        if path.exists() and path.stat().st_size:
            with _opened(path) as connection:
                rows = connection.execute("SELECT path, digest, revision FROM file ORDER BY path")
                self.files = {name: File(*row) for name, *row in rows}

    def tests(self, file: str) -> dict[str, Test]:
        """The tests of a recorded file by node id."""
        if file not in self.files:
            return {}
        with _opened(self._path) as connection:
            (number,) = connection.execute("SELECT id FROM file WHERE path = ?", [file]).fetchone()
            return _tests(connection, number)

    def modules(self, path: str) -> list[Module]:
        """The texts of a module that were measured: one, or more where test files were recorded at different times."""
        if not self.files:
            return []
        with _opened(self._path) as connection:
            rows = connection.execute("SELECT id, text FROM module WHERE path = ?", [path]).fetchall()
            return [Module(zlib.decompress(text).decode(), _lines(connection, number)) for number, text in rows]


def _lines(connection: sqlite3.Connection, module: int) -> dict[str, frozenset[int]]:
    """Lines of a module by test."""
    rows = connection.execute("SELECT file, lines, tests FROM executed WHERE module = ?", [module]).fetchall()
    names: dict[int, list[str]] = {}
    lines: dict[str, frozenset[int]] = {}
    for file, executed, same in rows:
        if file not in names:
            names[file] = [*_tests(connection, file)]
        lines |= dict.fromkeys(
            (names[file][each] for each in numbits_to_nums(same)), frozenset(numbits_to_nums(executed))
        )
    return lines
