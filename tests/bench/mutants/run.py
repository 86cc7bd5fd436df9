"""Does a test notice? Small changes of the product, each met by the tests that execute the changed line.

`bin/bench --only mutants --seed 1 [--count N] [--jobs N] [--again] [--json FILE]`. A run that was stopped resumes where
it was: answers and what tests execute are kept in `.podwright/mutants`, until the product or a test file changes.
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from random import Random
from threading import Lock
from typing import Literal

import coverage_map
import language
from mutants.candidates import Mutant, candidates, is_python
from mutants.checkouts import Copy
from table import Report, markdown
from timing import ROOT

Result = Literal["killed", "survived", "not covered", "timed out"]
RESULTS: tuple[Result, ...] = ("killed", "survived", "not covered", "timed out")
PACKAGES = (*language.PACKAGES, "bin")
# The folders whose tests run in one process, so that one can see which line each executes. Sandbox and node tests run
# the product in processes of its own.
MEASURED = ("unit", "handlers", "manifests", "synth", "doctor")
# What runs on nodes does so in processes of its own: these tests run all of it.
ON_NODES = ("tests/node/test_host_steps.py", "tests/node/test_on_create.py", "tests/node/test_bad_input.py")
LIMIT_SECONDS = 60
# Of a line that half of all tests execute: the files that know most of its module, and their quick tests.
MOST_FILES, MOST_TESTS, MOST_TEST_SECONDS = 6, 200, 8.0
AROUND = 12
LEAST_OF_A_PACKAGE = 12
STATE = ROOT / ".podwright/mutants"


@dataclass(frozen=True)
class Answer:
    """What became of a mutant."""

    result: Result
    tests: int
    """How many met it."""


@dataclass(frozen=True, order=True)
class _Ranked:
    """A test in the order in which tests meet a mutant."""

    distance: int
    """The more lines around it the test executes, the less."""
    seconds: float
    test: str


class Contexts:
    """Which tests execute which lines, and how long each takes."""

    def __init__(self, measured: dict[str, dict]) -> None:
        self._measured = measured

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that execute a mutant's line; of each file first those that execute most of what is around it.

        These continued behind the condition that is changed, where most others turned back.

        A line that runs while its module is imported is met by the tests that execute anything else of the module.
        What a test has computed once and the next ones of its file find in a cache is met by these too: the rest of a
        file comes at the end, first what executes anything of the module.
        """
        expected = range(mutant.first_line, mutant.last_line + 1)
        files: list[_Executed] = []
        for file in self._measured.values():
            lines = file["lines"].get(mutant.path, {})
            direct = {test for line in expected for test in lines.get(line, ())}
            others = {test for tests in lines.values() for test in tests} - direct
            if direct or (others and any(line in lines for line in expected)):
                known = sum(bool(tests) for tests in lines.values())
                rest = set(range(len(file["tests"]))) - direct - others
                around = range(mutant.first_line - AROUND, mutant.last_line + AROUND + 1)
                nearby = Counter(test for line in around for test in lines.get(line, ()))
                files.append(_Executed(known, *(_ranked(file, tests, nearby) for tests in (direct, others, rest))))
        # Files whose tests execute the line itself come first; the stable sort keeps runs equal.
        files.sort(key=lambda file: (not file.direct, -file.known_lines))
        nearest = files[:MOST_FILES]
        groups = ([getattr(file, kind) for file in nearest] for kind in ("direct", "others", "rest"))
        return list(_first(*map(_in_turn, groups)))


@dataclass(frozen=True)
class _Executed:
    """What a file of tests has to do with a module."""

    known_lines: int
    """How many of the module's lines its tests execute."""
    direct: list[_Ranked]
    """Those that execute the line."""
    others: list[_Ranked]
    """The same of those that execute another line of the module."""
    rest: list[_Ranked]
    """The same of all others of the file."""


def _ranked(file: dict, numbers: set[int], nearby: Counter[int]) -> list[_Ranked]:
    return sorted(_Ranked(-nearby[number], file["seconds"][number], file["tests"][number]) for number in numbers)


def _in_turn(files: list[list[_Ranked]]) -> Iterator[_Ranked]:
    """The first test of each file, then the second of each, and so on."""
    ordered = sorted(filter(None, files))
    for turn in range(max(map(len, ordered), default=0)):
        yield from (file[turn] for file in ordered if turn < len(file))


def _first(*groups: Iterator[_Ranked]) -> Iterator[str]:
    """As many tests as there is time for; at least one."""
    spent, count = 0.0, 0
    for ranked in (ranked for group in groups for ranked in group):
        if count and (spent + ranked.seconds > MOST_TEST_SECONDS or count == MOST_TESTS):
            continue
        spent, count = spent + ranked.seconds, count + 1
        yield ranked.test


def report(folder: Path, args: argparse.Namespace) -> Report:
    """Meet `--count` mutants, chosen by `--seed`, and count by package what became of them."""
    chosen = choose(args.seed, args.count)
    copies = [Copy(folder / f"copy-{number}") for number in range(args.jobs)]
    contexts = Contexts(measure(copies))
    answers = meet(chosen, contexts, copies, STATE / f"answers-{args.seed}.json", again=args.again)
    if args.json:
        rows = [asdict(mutant) | asdict(answers[mutant.id]) for mutant in chosen]
        args.json.write_text(json.dumps(rows, indent=1))
    for mutant in chosen:
        if answers[mutant.id].result != "killed":
            change = f"{' '.join(mutant.old.split())[:60]} → {' '.join(mutant.new.split())[:60]}"
            sys.stderr.write(
                f"{answers[mutant.id].result}: {mutant.path}:{mutant.first_line} {mutant.kind}: {change}\n"
            )
    return Report(_table(chosen, answers), kept=True)


def choose(seed: int, count: int) -> list[Mutant]:
    """Mutants of all rooms: a number of each, the rest by how much there is to change; a larger count adds to them."""
    folders = {
        folder: [mutant for file in _modules(folder) for mutant in candidates(ROOT, file)] for folder in PACKAGES
    }
    spare = max(0, count - LEAST_OF_A_PACKAGE * len(PACKAGES))
    total = sum(map(len, folders.values()))
    chosen = []
    for folder, mutants in folders.items():
        Random(f"{seed} {folder}").shuffle(mutants)
        expected = LEAST_OF_A_PACKAGE + -(-spare * len(mutants) // total)
        chosen.append(list(islice((mutant for mutant in mutants if is_python(ROOT, mutant)), expected)))
    # In turn, so that a run that is stopped early has seen all rooms.
    return [folder[turn] for turn in range(max(map(len, chosen))) for folder in chosen if turn < len(folder)]


def _modules(folder: str) -> list[str]:
    return sorted(
        str(file.relative_to(ROOT)) for file in (ROOT / folder).rglob("*.py") if "__pycache__" not in file.parts
    )


def measure(copies: Sequence[Copy]) -> dict[str, dict]:
    """What the tests of each file execute: measured, or kept from before."""
    product = hashlib.sha256(b"".join((ROOT / file).read_bytes() for folder in PACKAGES for file in _modules(folder)))
    retained = STATE / f"contexts-{product.hexdigest()[:12]}"
    retained.mkdir(parents=True, exist_ok=True)
    files = sorted(file for name in MEASURED for file in (ROOT / "tests" / name).rglob("test_*.py"))
    paths = {
        str(file.relative_to(ROOT)): retained
        / f"{file.stem}-{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}.sqlite"
        for file in files
    }
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def one(name: str) -> None:
        copy = free.get()
        try:
            sys.stderr.write(f"  lines of {name}\n")
            copy.pytest("-p", "contexts", name, timeout=900, PODWRIGHT_COVERAGE_MAP=str(paths[name]))
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(one, [name for name, path in paths.items() if not path.exists()]))
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing:
        raise RuntimeError(f"no lines of {', '.join(missing)}: run its tests by themselves")
    return {name: _passed(path) for name, path in paths.items()}


def _passed(path: Path) -> dict:
    """Seconds and lines of the tests of a file, by their numbers. Failed and skipped tests prove nothing."""
    recordings = list(coverage_map.read(path))
    tests = {
        name: test.seconds for recording in recordings for name, test in sorted(recording.tests.items()) if test.passed
    }
    numbers = {name: number for number, name in enumerate(tests)}
    lines: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for recording in recordings:
        for module, by_test in recording.lines.items():
            for name, executed in by_test.items():
                for line in executed:
                    lines[module][line] += [numbers[name]] if name in numbers else []
    return {"tests": [*tests], "seconds": [*tests.values()], "lines": lines}


def meet(
    chosen: Sequence[Mutant], contexts: Contexts, copies: Sequence[Copy], state: Path, *, again: bool
) -> dict[str, Answer]:
    """The answer for each mutant. Kept ones stand; with `again`, only those that a test has killed."""
    answers = (
        {name: Answer(**retained) for name, retained in json.loads(state.read_text()).items()} if state.exists() else {}
    )
    if again:
        answers = {name: answer for name, answer in answers.items() if answer.result == "killed"}
    left: SimpleQueue[Mutant] = SimpleQueue()
    for mutant in chosen:
        if mutant.id not in answers:
            left.put(mutant)
    lock = Lock()

    def work(copy: Copy) -> None:
        while not left.empty():
            mutant = left.get()
            answer = _answer(mutant, contexts, copy)
            with lock:
                answers[mutant.id] = answer
                written = {name: asdict(answer) for name, answer in answers.items()}
                state.with_suffix(".new").write_text(json.dumps(written, indent=1))
                state.with_suffix(".new").replace(state)
                sys.stderr.write(f"  {answer.result}: {mutant.id} ({answer.tests} tests), {left.qsize()} left\n")

    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(work, copies))
    return answers


def _answer(mutant: Mutant, contexts: Contexts, copy: Copy) -> Answer:
    tests = contexts.tests(mutant) or (list(ON_NODES) if mutant.package == "lifecycle_scripts" else [])
    if not tests:
        return Answer("not covered", 0)
    file = copy.folder / mutant.path
    source, times = file.read_bytes(), file.stat()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as arguments:
        arguments.write("\n".join(tests))
        arguments.flush()
        try:
            file.write_bytes(mutant.applied(source))
            code = copy.pytest("-x", f"@{arguments.name}", timeout=LIMIT_SECONDS)
        finally:
            file.write_bytes(source)
            # Byte code is held to be fresh by its source's time.
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
            shutil.rmtree(copy.folder / "cdk.out", ignore_errors=True)
    if code is None:
        return Answer("timed out", len(tests))
    return Answer("survived" if code == 0 else "killed", len(tests))


def _table(chosen: Sequence[Mutant], answers: dict[str, Answer]) -> str:
    """A row for each package. What no test covers counts as survived, and what timed out as killed in neither."""
    counts = {
        folder: Counter(answers[mutant.id].result for mutant in chosen if mutant.package == folder)
        for folder in PACKAGES
    }
    counts["**all**"] = sum(counts.values(), Counter())
    rows = [
        [
            folder if folder == "**all**" else f"`{folder}`",
            str(count.total()),
            *(str(count[result]) for result in RESULTS),
            f"{100 * count['killed'] / max(1, count.total()):.0f} %",
        ]
        for folder, count in counts.items()
    ]
    return markdown(["package", "mutants", *RESULTS, "killed of all"], rows)
