"""How long each rank took for a step, by what jobs write to their logs, and which rank is the slowest.

Ranks that wait for each other take equally long for whole steps; where a job logs the time of its own part of a step,
the straggler stands out.
"""

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Final, NamedTuple

from ..output.console import write_json, write_line
from ..output.tables import new_table

_NUMBER: Final = r"(\d+(?:\.\d+)?(?:e-?\d+)?)"
# Forms of PyTorch loops, Megatron, Lightning, DeepSpeed and tqdm, with what makes seconds of a number.
_FORMS: Final[tuple[tuple[re.Pattern[str], float], ...]] = (
    (re.compile(rf"elapsed time per iteration \(ms\): *{_NUMBER}", re.IGNORECASE), 0.001),
    (
        re.compile(rf"\b(?:step|iter|iteration|batch)[ _-]?time(?:_ms| ?\(ms\))[\"']? *[:=] *{_NUMBER}", re.IGNORECASE),
        0.001,
    ),
    (re.compile(rf"\b(?:step|iter|iteration|batch)[ _-]?time[\"']? *[:=] *{_NUMBER} *ms\b", re.IGNORECASE), 0.001),
    (re.compile(rf"\b(?:step|iter|iteration|batch)[ _-]?time(?:_s| ?\(s\))?[\"']? *[:=] *{_NUMBER}", re.IGNORECASE), 1),
    (re.compile(rf"{_NUMBER} *ms */ *(?:step|it|iter|iteration|batch)\b", re.IGNORECASE), 0.001),
    (re.compile(rf"{_NUMBER} *s(?:ec)? */ *(?:step|it|iter|iteration|batch)\b", re.IGNORECASE), 1),
)
_RATE: Final = re.compile(rf"{_NUMBER} *(?:it|step|iter|batch)(?:es|s)? */ *s(?:ec)?\b", re.IGNORECASE)
_RANK: Final = re.compile(r"\[rank(\d+)\]|\brank[\"']?\s*[:= ]\s*(\d+)\b", re.IGNORECASE)
_LOCAL: Final = re.compile(r"^\[[a-z_]+(\d+)\]:")
_LAST: Final = 50
_SHOWN: Final = 8
STEP_LINES: Final = 2000
"""Lines at the end of a log that are read for step times."""
CLEAR: Final = 1.05
"""A rank is called slow from so many times the median of all."""


class RankTime(NamedTuple):
    """A rank's time for a step."""

    rank: int
    pod: str
    node: str
    steps: int
    """How many times it was read from, the last ones of its log."""
    seconds: float
    """Their median."""


class PodLog(NamedTuple):
    """What a pod wrote."""

    pod: str
    node: str
    first_rank: int
    """Rank of its first process."""
    lines: Iterable[str]


def seconds_of(line: str) -> float | None:
    """The time of a step that a line states; None where it states none."""
    for form, factor in _FORMS:
        if match := form.search(line):
            return float(match[1]) * factor
    match = _RATE.search(line)
    return 1 / float(match[1]) if match and float(match[1]) else None


def rank_of(line: str, first_rank: int) -> int | None:
    """The rank that a line says that it is of: by its number, or by torchrun's prefix, which counts within the pod."""
    if match := _RANK.search(line):
        return int(match[1] or match[2])
    match = _LOCAL.match(line)
    return first_rank + int(match[1]) if match else None


def is_of(line: str, rank: int | None, first_rank: int) -> bool:
    """Whether a line is of a rank, as far as it says so."""
    return rank is None or rank_of(line, first_rank) in (None, rank)


def rank_times(logs: Iterable[PodLog]) -> list[RankTime]:
    """The time of a step by rank, the slowest first; of a pod whose lines name no rank, of its first."""
    results = []
    for log in logs:
        times: dict[int, list[float]] = {}
        for line in log.lines:
            seconds = seconds_of(line)
            if seconds is not None:
                rank = rank_of(line, log.first_rank)
                times.setdefault(log.first_rank if rank is None else rank, []).append(seconds)
        results += list(_times(log, times))
    return sorted(results, key=lambda item: (-item.seconds, item.rank))


def _times(log: PodLog, times: Mapping[int, list[float]]) -> Iterator[RankTime]:
    for rank, all_times in times.items():
        last = all_times[-_LAST:]
        yield RankTime(rank, log.pod, log.node, len(last), median(last))


def verdict(times: list[RankTime]) -> str:
    """Which rank is the slowest and by how much, in a sentence. `times` begin with the slowest."""
    if len(times) < 2:
        return "Only one rank logs step times, so none can be called the slowest."
    middle, slowest = median(item.seconds for item in times), times[0]
    over = slowest.seconds / middle if middle else 1
    if over < CLEAR:
        within = (over - 1) * 100
        return f"No rank is slow: the slowest is within {within:.1f} % of the median of {len(times)} ranks."
    return (
        f"Rank {slowest.rank} is the slowest: {slowest.seconds:.3g} s a step, {(over - 1) * 100:.0f} % over the median "
        f"of {len(times)} ranks; it runs in {slowest.pod} on {slowest.node}."
    )


def print_times(args: argparse.Namespace, job: str, times: list[RankTime]) -> int:
    """Print step times by rank, the slowest first. `times` begin with the slowest."""
    if args.json:
        slowest = times[0]._asdict() if len(times) > 1 else None
        write_json({"job": job, "slowest": slowest, "ranks": [item._asdict() for item in times]})
        return 0
    if not times:
        write_line(
            f"{job} logs no step times that podwright knows: `step_time: 1.2 s`, `1.2 s/step`, `3.4 it/s`, "
            "`elapsed time per iteration (ms): 1200`."
        )
        return 0
    names = ("rank", "s a step", "steps", "pod", "node")
    write_line(new_table("", names, map(_row, times[:_SHOWN]), right=names[:3]))
    if len(times) > _SHOWN:
        write_line(f"and {len(times) - _SHOWN:,} faster ones")
    write_line(verdict(times))
    return 0


def _row(item: RankTime) -> tuple[str, ...]:
    return str(item.rank), f"{item.seconds:.3f}", str(item.steps), item.pod, item.node
