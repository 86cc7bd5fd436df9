"""Runs test files on several pytest processes and reports as one pytest.

Every shard collects only the files that it runs. Their reports go through this process's own pytest, which prints
progress, failures and the closing line, and writes what `--junitxml` and `--lf` need.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import SimpleNamespace

import pytest
from _pytest.reports import TestReport

import records
from records import Record
from worklist import Worklist

SMALL_SECONDS = 45.0
"""A selection that takes fewer CPU seconds runs in one process."""
ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""Exit codes of a shard that has run all its files."""
END_SECONDS = 120
"""Seconds that an interrupted shard has to end what its fixtures started."""
MAX_LISTED_FILES = 10
"""The hint lists this many files without a record; with more of them it suggests to record all."""
ONE_PROCESS = (
    "collectonly", "usepdb", "trace", "lf", "failedfirst", "newfirst", "stepwise", "setuponly", "setupshow",
    "setupplan", "showfixtures", "show_fixtures_per_test", "markers", "cacheshow",
)  # fmt: skip
"""Options of pytest that need all tests in one process."""


@dataclass
class Process:
    """A shard as the controller sees it."""

    number: int
    popen: subprocess.Popen[bytes]
    connection: Connection
    output: Path
    file: str = ""
    """The file that it collects or runs."""
    running: str = ""
    """The node id of its test."""


class Controller:
    """A pytest plugin that leaves collecting and running to shards where more than one is worth it."""

    def __init__(
        self,
        arguments: Sequence[str],
        shards: int | None,
        *,
        record: bool = False,
        coverage: bool = False,
        seconds: float | None = None,
        root: Path = records.ROOT,
    ) -> None:
        """Prepare a run.

        Args:
            arguments: Pytest's, for each shard.
            shards: Number of processes; None for 3, or one where a selection is small.
            record: Write tests/durations.csv. Uses shards for a small selection too.
            coverage: The arguments load the recorder of coverage. Uses shards too, and judges no budget.
            seconds: Expected CPU seconds; None for the sum of the records of the files.
            root: The checkout.
        """
        self._arguments = arguments
        self._count = shards
        self._record = record
        self._coverage = coverage
        self._seconds = seconds
        self._root = root
        self._table = root / records.PATH.relative_to(records.ROOT)
        self._recorded = records.read(self._table)
        self._measured: dict[str, Record] = {}
        self._tests: dict[str, int] = {}
        self._skipped: dict[str, int] = {}
        self._processes: dict[int, Process] = {}
        self._failed: set[str] = set()
        self._files: list[str] = []
        self._over: dict[str, str] = {}
        self._measuring_again = False
        self._whole = False
        self._crashes = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool | None:
        """List the files, without importing them. Leaves a small selection to pytest."""
        config = session.config
        always = self._record or self._coverage
        if not always and (self._count == 0 or _needs_one_process(config)):
            return None
        self._files = test_files(config, self._root)
        seconds = self._seconds
        if seconds is None:
            seconds = sum(records.expected_seconds(self._recorded, file) for file in self._files)
        small = len(self._files) <= 1 or (self._count is None and seconds < SMALL_SECONDS)
        if not self._files or (small and not always):
            self._files = []
            return None
        self._whole = not (self._coverage or _selects(config))
        session.testscollected = sum(self._recorded[file].tests for file in self._files if file in self._recorded)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Start the shards and pass on what they report, until the last has ended."""
        if not self._files:
            return None
        shards = min(self._count or 3, len(self._files))
        self._write(session, f"{len(self._files)} test files on {shards} shards\n")
        self._run(session, self._files, shards)
        if self._whole and not self._record:
            self._judge(session)
        session.testscollected = sum(self._tests.values())
        return True

    def _judge(self, session: pytest.Session) -> None:
        """Find the files over their budget. Another run of each, alone, has to confirm the first."""
        records.write(self._measured, self._root / ".podwright/tests/durations.csv")
        factor = records.inflation(self._recorded, self._measured)
        over = records.over_budget(self._recorded, self._measured, factor)
        # pytest reports files with failed tests anyway.
        first = sorted(over.keys() - self._failed)
        if not first:
            return
        self._write(session, f"\nover their budget, so run again alone: {', '.join(first)}\n")
        self._measuring_again = True
        for file in first:
            del self._measured[file]
        self._run(session, first, 1)
        # A file whose shard dies has no second measurement, and the run has failed.
        again = {file: self._measured[file] for file in first if file in self._measured}
        self._over = records.over_budget(self._recorded, again, factor)

    def _run(self, session: pytest.Session, files: list[str], shards: int) -> None:
        worklist = Worklist(files, self._recorded)
        try:
            for number in range(shards):
                self._start(session, number)
            while self._processes:
                by_connection = {process.connection: process for process in self._processes.values()}
                for connection in wait([*by_connection]):
                    self._receive(session, by_connection[connection], worklist)  # type: ignore[index]
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
        finally:
            self._end()

    def _start(self, session: pytest.Session, number: int) -> None:
        ours, theirs = Pipe()
        base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        output = base / f"shard{number}.txt"
        command = [
            *(sys.executable, "-P", str(Path(__file__).parent), "--shard"),
            *(str(theirs.fileno()), str(number), str(base / f"shard{number}"), str(output)),
            *self._arguments,
        ]
        # In another process group, so that Ctrl-C reaches a shard once: from here.
        popen = subprocess.Popen(
            command, cwd=self._root, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
        theirs.close()
        self._processes[number] = Process(number, popen, ours, output)

    def _receive(self, session: pytest.Session, process: Process, worklist: Worklist) -> None:
        try:
            message = process.connection.recv()
        except (EOFError, ConnectionResetError):
            self._ended(session, process, worklist)
            return
        match message:
            case ("next",):
                file = worklist.take(process.number)
                process.file = file or ""
                process.connection.send(file)
            case ("collected", _, _) | ("deselected", _) if self._measuring_again:
                pass
            case ("collected", file, tests):
                self._tests[file] = tests
                expected = self._recorded[file].tests if file in self._recorded else 0
                session.testscollected += tests - expected
            case ("running", test):
                process.running = test
            case ("deselected", count):
                session.config.hook.pytest_deselected(items=[SimpleNamespace()] * count)
            case ("done", file, seconds):
                process.file = process.running = ""
                self._measured[file] = Record(seconds, self._tests[file], self._skipped.get(file, 0))
            case ("report", kind, data):
                self._report(session, kind, data)

    def _report(self, session: pytest.Session, kind: str, data: dict) -> None:
        hook = session.config.hook
        report = hook.pytest_report_from_serializable(config=session.config, data=data)
        if report.failed:
            self._failed.add(report.nodeid.partition("::")[0])
        elif self._measuring_again:
            # The first run has counted it.
            return
        if kind == "collect":
            hook.pytest_collectreport(report=report)
            return
        if report.skipped and not hasattr(report, "wasxfail"):
            file = report.nodeid.partition("::")[0]
            self._skipped[file] = self._skipped.get(file, 0) + 1
        hook.pytest_runtest_logreport(report=report)

    def _ended(self, session: pytest.Session, process: Process, worklist: Worklist) -> None:
        """A shard has closed its connection: it is done, or it died and another takes its place."""
        del self._processes[process.number]
        process.connection.close()
        code = process.popen.wait()
        if session.shouldfail or (not process.file and code in ENDED):
            return
        test = process.running or process.file or f"shard {process.number}"
        reason = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        action = f"  → Run the file alone: bin/test {process.file}\n" if process.file else ""
        message = f"shard {process.number} ended with {reason} while it ran {test}\n{action}{_tail(process.output)}"
        report = TestReport(test, (process.file, None, test), {}, "failed", message, "call")
        session.config.hook.pytest_runtest_logreport(report=report)
        self._crashes += 1
        if len(worklist) and self._crashes <= 3 * (self._count or 3):
            self._start(session, process.number)

    def _end(self) -> None:
        """Interrupt the shards that still run, once, and wait for what their fixtures end."""
        for process in self._processes.values():
            # Without the connection a shard ends before its next test.
            process.connection.close()
            with suppress(ProcessLookupError):
                process.popen.send_signal(signal.SIGINT)
        for process in self._processes.values():
            try:
                process.popen.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.popen.pid, signal.SIGKILL)
                process.popen.wait()
        self._processes = {}

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge the budget of a whole run, and write what was measured."""
        if not self._files or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        if self._record:
            passed = {file: record for file, record in self._measured.items() if file not in self._failed}
            records.write(records.merged(self._recorded, passed, _all_files(self._root)), self._table)
        elif self._over and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Name files over their budget and files without a record."""
        del exitstatus
        new = sorted(file for file in self._measured if file not in self._recorded)
        if self._over:
            terminalreporter.section("test files over their budget", red=True)
            for message in self._over.values():
                terminalreporter.write_line(message)
        if new and self._recorded and not (self._record or self._coverage):
            terminalreporter.section("test files without a record, counted as the median")
            terminalreporter.write_line(", ".join(new))
            named = " ".join(new) if len(new) <= MAX_LISTED_FILES else "--all"
            terminalreporter.write_line(f"  → Record them: bin/test --record {named}")
        if self._record and self._failed:
            terminalreporter.section("not recorded, because a test failed", red=True)
            terminalreporter.write_line(", ".join(sorted(self._failed)))

    def _write(self, session: pytest.Session, text: str) -> None:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write(text)


def test_files(config: pytest.Config, root: Path) -> list[str]:
    """The test files that pytest's arguments name, in the order of their paths relative to the checkout.

    Files and folders that `pytest_ignore_collect` of tests/conftest.py leaves out are left out here.
    """
    files = {}
    for argument in config.args:
        path = config.invocation_params.dir / argument.partition("::")[0]
        for file in _below(path, config) if path.is_dir() else [path]:
            files[file.resolve().relative_to(root).as_posix()] = None
    return sorted(files)


def _below(folder: Path, config: pytest.Config) -> list[Path]:
    if _is_left_out(folder, config):
        return []
    files = [file for file in sorted(folder.glob("test_*.py")) if not (_is_ignored(file) or _is_left_out(file, config))]
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        if inner.name != "__pycache__" and not inner.name.startswith("."):
            files += _below(inner, config)
    return files


def _is_left_out(path: Path, config: pytest.Config) -> bool:
    return bool(config.hook.pytest_ignore_collect(collection_path=path, config=config))


def _is_ignored(file: Path) -> bool:
    """True for cases of upstream's tests, which this repository does not contain; their folder's conftest says so."""
    return file.name == "test_kueue_cases.py" and not os.environ.get("PODWRIGHT_KUEUE_CASES")


def _all_files(root: Path) -> list[str]:
    return [file.relative_to(root).as_posix() for file in (root / "tests").rglob("test_*.py")]


def _needs_one_process(config: pytest.Config) -> bool:
    options = any(getattr(config.option, name, None) for name in ONE_PROCESS)
    return options or config.option.capture == "no" or any("::" in argument for argument in config.args)


def _selects(config: pytest.Config) -> bool:
    """Whether arguments select a part of the tests, or change what a file takes."""
    option = config.option
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    changes = ("update_snapshots", "update_release", "every_point", "aws")
    return bool(named or option.keyword or option.markexpr or option.maxfail) or any(
        getattr(option, name, False) for name in changes
    )


def _tail(output: Path) -> str:
    """The last lines that a shard has printed."""
    lines = output.read_text(errors="replace").splitlines() if output.exists() else []
    return "\n".join(lines[-15:])
