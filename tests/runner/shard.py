"""One shard: a pytest process that collects and runs one test file after another, as its controller hands them out."""

import os
import sys
from collections.abc import Generator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

import processor_time


class Shard:
    """A pytest plugin that replaces the collection and loop of pytest, and sends reports to the controller.

    Messages are tuples: `("next",)` asks for a file and is answered by its path or None; `("collected", file, tests)`,
    `("running", node id)`, `("report", kind, data)`, `("deselected", count)` and `("done", file, CPU seconds)` follow.
    """

    def __init__(self, connection: Connection, number: int, basetemp: str) -> None:
        self._connection = connection
        self._number = number
        self._basetemp = basetemp
        self._file: str | None = None
        self._start = 0.0
        self._folders: dict[Path, pytest.Collector] = {}
        self._tree = os.getppid() if sys.platform == "linux" else os.getpid()

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> None:
        """Mark the process as pytest-xdist's workers are: pytest's plugins then leave files to the controller."""
        early_config.workerinput = {"workerid": f"shard{self._number}"}  # type: ignore[attr-defined]
        early_config.option.basetemp = self._basetemp

    def pytest_collection(self, session: pytest.Session) -> bool:
        """Collect the next file. Called by pytest for the first, so that its checks of warnings apply to every file."""
        self._start = self._start or self._seconds()
        self._connection.send(("next",))
        self._file = self._connection.recv()
        session.items = []
        if self._file is not None:
            session.perform_collect([self._file])
            self._connection.send(("collected", self._file, len(session.items)))
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_directory(self, path: Path) -> Generator[None, pytest.Collector | None, pytest.Collector | None]:
        """Keep the node of each folder: pytest binds the fixtures of a conftest.py to it, once."""
        node = yield
        return node if node is None else self._folders.setdefault(path, node)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_finish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Do not let pytest forget a conftest.py of its arguments before a file of that folder is collected."""
        pending = session._fixturemanager._pending_conftests
        waiting = dict(pending)
        yield
        pending.update(waiting)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the files one after another."""
        start = self._start
        while self._file is not None:
            # A session as the next item keeps what the session holds: its fixtures end with the shard.
            for item, following in zip(session.items, [*session.items[1:], session], strict=False):
                self._run(session, item, following)
            end = self._seconds()
            self._connection.send(("done", self._file, end - start))
            start = end
            session.config.hook.pytest_collection(session=session)
        return True

    def _run(self, session: pytest.Session, item: pytest.Item, following: pytest.Item | pytest.Session) -> None:
        self._connection.send(("running", item.nodeid))
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)

    def _seconds(self) -> float:
        return processor_time.tree_seconds(self._tree)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hand a report of a test to the controller."""
        self._report("test", report)

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Hand a failed or skipped collection to the controller."""
        if not report.passed:
            self._report("collect", report)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Hand the count of deselected tests to the controller."""
        self._connection.send(("deselected", len(items)))

    def _report(self, kind: str, report: Any) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(("report", kind, data))

    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep the configuration, by which reports become data."""
        self._config = config


def main(descriptor: int, number: int, basetemp: str, output: str, arguments: Sequence[str]) -> int:
    """Run a shard; returns pytest's exit code."""
    processor_time.adopt_orphans()
    os.set_inheritable(descriptor, False)
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    with Path(output).open("w") as opened:
        os.dup2(opened.fileno(), 1)
        os.dup2(opened.fileno(), 2)
    connection = Connection(descriptor)
    try:
        return int(pytest.main([*arguments], plugins=[Shard(connection, number, basetemp)]))
    except (BrokenPipeError, EOFError):
        # The controller has ended.
        return 2
    finally:
        connection.close()
