"""Recorded CPU seconds of each test file: which files are slow, and which became slower.

`bin/test --all --record` writes `tests/durations.csv`. Each file is measured with all processes that it starts.
"""

import csv
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "tests/durations.csv"
BUDGET = 2.0
"""A file may take this multiple of its record."""
SPARE_SECONDS = 10.0
"""CPU seconds over its record that a file may take at any rate: the first file of a shard imports the CDK and starts
Node, and the first that needs an environment synthesizes it."""
SAME_RATIO, SAME_SECONDS = 1.25, 0.5
"""A new measurement within these bounds keeps the recorded seconds, so that the recording's diff shows real changes."""
MOST_INFLATION = 2.0
"""Shared caches alone explain no more; a suite that takes longer than this everywhere has become slower."""
LEAST_SECONDS = 1.0
"""Faster files are too noisy to show how much slower this machine is."""


@dataclass(frozen=True)
class Record:
    """What one test file takes."""

    seconds: float
    """CPU seconds, user and system, of the process and all that it started."""
    tests: int
    """Tests that were selected."""
    skipped: int = 0
    """Tests that were skipped, such as for want of a Debian package."""


def read(path: Path = PATH) -> dict[str, Record]:
    """The records by test file, its path relative to the checkout; empty without a file."""
    if not path.exists():
        return {}
    with path.open(newline="") as opened:
        return {
            row["file"]: Record(float(row["cpu_seconds"]), int(row["tests"]), int(row["skipped"]))
            for row in csv.DictReader(opened)
        }


def write(records: Mapping[str, Record], path: Path = PATH) -> None:
    """Write the records, sorted by file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as opened:
        table = csv.writer(opened, lineterminator="\n")
        table.writerow(["file", "cpu_seconds", "tests", "skipped"])
        for file, record in sorted(records.items()):
            table.writerow([file, f"{record.seconds:.1f}", record.tests, record.skipped])


def merged(
    recorded: Mapping[str, Record], measured: Mapping[str, Record], existing: Iterable[str]
) -> dict[str, Record]:
    """The records after a run: of existing files, with seconds that hardly differ left as they are."""
    remaining = set(existing)
    updated = {}
    for file, record in {**recorded, **measured}.items():
        before = recorded.get(file)
        if file not in remaining:
            continue
        if before is not None and file in measured:
            record = Record(_seconds(before, record), record.tests, record.skipped)
        updated[file] = record
    return updated


def _seconds(before: Record, now: Record) -> float:
    close = abs(now.seconds - before.seconds) <= SAME_SECONDS
    within = before.seconds / SAME_RATIO <= now.seconds <= before.seconds * SAME_RATIO
    return before.seconds if close or within else now.seconds


def expected_seconds(recorded: Mapping[str, Record], file: str) -> float:
    """The recorded seconds of a file; those of the median file without a record."""
    if file in recorded:
        return recorded[file].seconds
    return statistics.median(record.seconds for record in recorded.values()) if recorded else 1.0


def inflation(recorded: Mapping[str, Record], measured: Mapping[str, Record]) -> float:
    """How much more CPU time the machine took for the same work, from 1 to 2: the median over comparable files.

    Processes that share caches with others take up to 1.8 times the CPU seconds.
    """
    ratios = [
        now.seconds / recorded[file].seconds
        for file, now in measured.items()
        if file in recorded and recorded[file].seconds >= LEAST_SECONDS
    ]
    return min(MOST_INFLATION, max(1.0, statistics.median(ratios))) if ratios else 1.0


def over_budget(
    recorded: Mapping[str, Record], measured: Mapping[str, Record], factor: float | None = None
) -> dict[str, str]:
    """A message for each file that takes more than twice its record.

    Args:
        recorded: The records. One with skipped tests binds only runs that skip as many.
        measured: What the files took.
        factor: How much more CPU time the machine took for the same work; None to infer it from the files.
    """
    factor = factor or inflation(recorded, measured)
    messages = {}
    for file, now in sorted(measured.items()):
        record = recorded.get(file)
        if record is None or now.skipped < record.skipped:
            continue
        seconds = now.seconds / factor
        if seconds > max(BUDGET * record.seconds, record.seconds + SPARE_SECONDS):
            messages[file] = (
                f"{file}: {seconds:.1f} CPU seconds are more than {BUDGET:g} times its record of {record.seconds:.1f} "
                f"({now.seconds:.1f} measured, divided by this run's inflation of {factor:.2f})\n"
                f"  → Make the file cheaper, or record it again: bin/test --record {file}"
            )
    return messages
