"""A plugin of pytest: which test executes which line of the product, and how long each test takes.

Loaded by `-p mutants.contexts`; writes JSON to `$MUTANTS_CONTEXTS`. What a module does while it is imported belongs to
no test.
"""

import json
import os
from collections import defaultdict
from pathlib import Path

import coverage
import pytest

_RECORDER = coverage.Coverage(
    data_file=None,
    config_file=False,
    include=[f"{Path.cwd().resolve()}/*"],
    omit=["*/tests/*", "*/.venv/*", "*/site-packages/*"],
    branch=False,
)
_seconds: dict[str, float] = defaultdict(float)
_failed: set[str] = set()
_RECORDER.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    _RECORDER.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        _RECORDER.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration
    if not report.passed:
        _failed.add(report.nodeid)


def pytest_unconfigure() -> None:
    """Lines by file and test. Tests that failed or were skipped prove nothing and are left out."""
    _RECORDER.stop()
    data = _RECORDER.get_data()
    top = Path.cwd().resolve()
    tests = sorted(set(_seconds) - _failed)
    numbers = {test: number for number, test in enumerate(tests)}
    lines: dict[str, dict[int, list[int]]] = {}
    for file in sorted(data.measured_files()):
        lines[str(Path(file).relative_to(top))] = {
            line: sorted(numbers[name] for name in names if name in numbers)
            for line, names in sorted(data.contexts_by_lineno(file).items())
        }
    answer = {"tests": tests, "seconds": [_seconds[test] for test in tests], "lines": lines}
    Path(os.environ["MUTANTS_CONTEXTS"]).write_text(json.dumps(answer))
