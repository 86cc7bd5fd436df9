"""Tests wait for events: no assertion depends on how fast this machine is, and no limit is short."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FOLDERS = ["unit", "node", "handlers", "browser", "manifests", "synth", "doctor", "snapshot", "gpu"]
FOLDERS += ["conformance", "shared", "sandbox", "stories", "kubernetes", "evolution"]
LONGEST_SLEEP_SECONDS = 0.2
SHORTEST_LIMIT_SECONDS = 60
_CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time"}
_WAITS = {
    "Barrier",
    "check_call",
    "check_output",
    "communicate",
    "create_connection",
    "join",
    "run",
    "shell",
    "urlopen",
}
_WAITS |= {"wait"}
# Most files have none of these words and are not parsed.
_WORDS = re.compile(r"\bsleep\(|\btimeout=|\.(?:wait|join)\([0-9]|\btime\.[a-z_]+\(")


def guesses(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a test file that depend on the machine's speed, with the reason."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert) and any(_reads_clock(inner) for inner in ast.walk(node)):
            yield node.lineno, "asserts a time → count calls, or measure it in bin/bench"
        if isinstance(node, ast.BinOp) and _is_deadline(node):
            yield node.lineno, "sets a deadline → wait with `until` of tests/shared/waiting.py"
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        numbers = [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
        limits = [_number(word.value) for word in node.keywords if word.arg == "timeout"]
        if name == "sleep" and not _is_of_double(node.func) and any(_exceeds(number) for number in numbers):
            yield node.lineno, "sleeps → wait with `until` of tests/shared/waiting.py"
        short = [*limits, *(numbers if name in ("wait", "join") else ())] if name in _WAITS else []
        if any(isinstance(limit, int | float) and 0 < limit < SHORTEST_LIMIT_SECONDS for limit in short):
            yield node.lineno, "has a short limit → take CEILING_SECONDS of tests/shared/waiting.py"


def _is_deadline(node: ast.BinOp) -> bool:
    """True for the clock plus a fixed number of seconds."""
    return isinstance(node.op, ast.Add) and _reads_clock(node.left) and isinstance(node.right, ast.Constant)


def _is_of_double(function: ast.expr) -> bool:
    """True for a method of something else than a module: of a clock that a test moves."""
    return isinstance(function, ast.Attribute) and getattr(function.value, "id", "") not in ("time", "asyncio")


def _exceeds(number: object) -> bool:
    return isinstance(number, int | float) and number > LONGEST_SLEEP_SECONDS


def _number(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _reads_clock(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _CLOCKS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "time"
    )


def test_no_test_guesses_a_time() -> None:
    findings = [
        f"{file.relative_to(TESTS.parent)}:{line}: {reason}"
        for folder in FOLDERS
        for file in sorted((TESTS / folder).rglob("*.py"))
        if file.name not in ("test_waits.py", "waiting.py")
        and _WORDS.search(source := file.read_text(encoding="utf-8"))
        for line, reason in guesses(source)
    ]
    assert findings == [], "\n" + "\n".join(findings)


@pytest.mark.parametrize(
    "source",
    [
        "time.sleep(0.3)",
        "sleep(1)",
        "await asyncio.sleep(1)",
        "assert time.monotonic() - began < 120",
        "deadline = time.monotonic() + 180",
        "event.wait(5)",
        "thread.join(30.0)",
        "subprocess.run(command, timeout=30)",
        "threading.Barrier(3, timeout=5)",
    ],
)
def test_a_guess_is_found(source: str) -> None:
    assert [line for line, _ in guesses(source)] == [1]


@pytest.mark.parametrize(
    "source",
    [
        "time.sleep(0.05)",
        "time.sleep(seconds)",
        "clock.sleep(301)",
        "event.wait(CEILING_SECONDS)",
        "event.wait()",
        "' '.join(words)",
        "subprocess.run(command, timeout=600)",
        "assert clock.monotonic() == 10",
        "rest(wait_for_pods, timeout=5)",
    ],
)
def test_what_is_no_guess_passes(source: str) -> None:
    assert list(guesses(source)) == []
