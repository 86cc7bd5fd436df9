"""Work that was or could be: jobs with when they were submitted and how long they ran, from whatever recorded them.

A reader makes a `Trace` of text. What cannot be a job is a problem with its line, and the rest is read all the same;
text that is no trace at all is refused with the line where that shows.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

from ....config.errors import InvalidValue

Kind = Literal[
    "unreadable", "unknown team", "unknown priority", "negative duration", "no duration", "too large", "clock jump"
]
"""What is wrong with a row of a trace."""
LONGEST_GAP: Final = 90 * 86400.0
"""Seconds without a submission that are taken for a clock that jumped, rather than for a holiday."""
# A file in which more rows than this are out of order was never in the order of submission.
_SORTED: Final = 0.9


@dataclass(frozen=True, slots=True)
class TracedJob:
    """A job of a trace."""

    line: int
    """Where it stands: a line of the file, or the number of the item in a list."""
    name: str
    team: str
    submitted: float
    """Seconds since 1970."""
    seconds: float
    """How long it ran, or would run undisturbed."""
    pods: int
    accelerators: int
    """GPUs or Neuron devices of each pod."""
    vcpu: float | None = None
    """Of each pod; None for the share of a node that belongs to its accelerators."""
    memory_gib: float | None = None
    """Of each pod; None as with vCPUs."""
    priority: str = ""
    """A priority of the environment; empty for none."""
    group: str = ""
    """The instance group or type that it asks for; empty for any."""
    least_pods: int | None = None
    """Pods with which it would start as well; None where it needs all."""
    topology: str = ""
    """A node label within one value of which all its pods have to lie; empty where that does not matter."""
    startup: float | None = None
    """Seconds until its pods are ready; None as is assumed of all."""
    replaces: str = ""
    """The job of the same team that it continues with another number of pods; empty where it begins by itself."""


class TraceProblem(NamedTuple):
    """A row that is left out, and why."""

    line: int
    kind: Kind
    message: str


class Trace(NamedTuple):
    """What a reader made of a text."""

    form: str
    """What the text was, in words."""
    jobs: tuple[TracedJob, ...]
    """In the order of their submission."""
    problems: tuple[TraceProblem, ...] = ()
    """In the order of their lines."""
    assumptions: tuple[str, ...] = ()
    """What the reader took for true because the text does not say it."""


class UnreadableTrace(InvalidValue):
    """Text that is no trace of the form that it seemed to be."""

    def __init__(self, line: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.line, self.hint = line, hint


def moved(trace: Trace, start: float) -> Trace:
    """The same work with its first job at another time."""
    by = start - min((job.submitted for job in trace.jobs), default=start)
    words = (
        f"the work is moved by {by / 86400:.1f} days, to begin at {datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M}"
    )
    jobs = tuple(replace(job, submitted=job.submitted + by) for job in trace.jobs)
    return trace._replace(jobs=jobs, assumptions=(*trace.assumptions, words))


def latest(trace: Trace, days: float) -> Trace:
    """The work of the last days up to its last submission."""
    start = max((job.submitted for job in trace.jobs), default=0.0) - days * 86400
    return trace._replace(jobs=tuple(job for job in trace.jobs if job.submitted > start))


def counted(problems: Iterable[TraceProblem]) -> dict[str, int]:
    """How many problems there are of each kind, the most frequent first."""
    return dict(Counter(problem.kind for problem in problems).most_common())


def traced(
    form: str, jobs: Sequence[TracedJob], problems: Iterable[TraceProblem] = (), *, assumptions: Iterable[str] = ()
) -> Trace:
    """A trace of what a reader read, in its order: without what a clock that jumped has spoilt."""
    jumps = _clock_jumps(jobs)
    spoilt = {problem.line for problem in jumps}
    remaining = [job for job in jobs if job.line not in spoilt]
    return Trace(
        form,
        tuple(sorted(remaining, key=lambda job: (job.submitted, job.line))),
        tuple(sorted((*problems, *jumps))),
        tuple(assumptions),
    )


def _clock_jumps(jobs: Sequence[TracedJob]) -> list[TraceProblem]:
    """Rows whose time does not fit those around them.

    Where a file is in the order of submission, they are the fewest rows without which it would be quite so. Of parts
    between which nothing was submitted for `LONGEST_GAP` all but the largest are left out too.
    """
    times = [job.submitted for job in jobs]
    steady = _longest_ascent(times)
    if len(steady) < _SORTED * len(jobs):
        steady = list(range(len(jobs)))
    retained = set(steady)
    jumps = [
        TraceProblem(job.line, "clock jump", f"{job.name} was submitted out of order: the clock was not right")
        for index, job in enumerate(jobs)
        if index not in retained
    ]
    parts = list[list[int]]()
    for index in sorted(steady, key=times.__getitem__):
        if not parts or times[index] - times[parts[-1][-1]] > LONGEST_GAP:
            parts.append([])
        parts[-1].append(index)
    largest = max(parts, key=len, default=[])
    days = LONGEST_GAP / 86400
    jumps += [
        TraceProblem(jobs[index].line, "clock jump", f"{jobs[index].name} is more than {days:g} days from the rest")
        for part in parts
        for index in part
        if part is not largest
    ]
    return jumps


def _longest_ascent(times: Sequence[float]) -> list[int]:
    """Indices of the longest part of `times` that never decreases."""
    tops, ends, before = list[float](), list[int](), list[int]()
    for index, time in enumerate(times):
        position = bisect_right(tops, time)
        before.append(ends[position - 1] if position else -1)
        # Beyond the end a slice appends.
        tops[position : position + 1] = [time]
        ends[position : position + 1] = [index]
    chain, index = list[int](), ends[-1] if ends else -1
    while index >= 0:
        chain.append(index)
        index = before[index]
    return chain[::-1]
