"""Jobs on topology domains over a span of time, and who stopped whom: what a picture of it draws."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from .outcome import JobOutcome, Outcome, Run, Stop

_SPAN: Final = 86400.0


class Bar(NamedTuple):
    """A run of a job on some accelerators of a domain."""

    job: str
    team: str
    start: float
    end: float
    domain: str
    slot: int
    """The first of its accelerators, counted within the domain."""
    slots: int
    ended: str
    """As `Run.ended`."""


class Arrow(NamedTuple):
    """A preemption: from the job that began to the one that had to end."""

    stop: Stop
    preemptor: Bar
    victim: Bar


class Gantt(NamedTuple):
    """Bars by domain within a span of time."""

    start: float
    end: float
    lanes: dict[str, int]
    """Accelerators by domain: as many as were in use at once."""
    bars: Sequence[Bar]
    arrows: Sequence[Arrow]
    left_out: int
    """Domains that have no lane because there are too many."""


def gantt(outcome: Outcome, start: float | None = None, most_bars: int = 1500, most_lanes: int = 40) -> Gantt:
    """A day, or less of it where it has too many bars, on the domains that preemptions touched most.

    It begins at `start`, or shortly before the most preemptions (`busiest`).
    """
    start = busiest(outcome) if start is None else start
    end = min(start + _SPAN, outcome.end)
    bars = list(_bars(outcome.jobs, start, end))
    while len(bars) > most_bars and end - start > 600:
        end = start + (end - start) / 2
        bars = list(_bars(outcome.jobs, start, end))
    victims = {stop.victim for stop in outcome.stops}
    touched = Counter(bar.domain for bar in bars)
    stopped = Counter(bar.domain for bar in bars if bar.ended and bar.job in victims)
    domains = sorted(sorted(touched, key=lambda domain: (-stopped[domain], -touched[domain], domain))[:most_lanes])
    shown = [bar for bar in bars if bar.domain in set(domains)]
    lanes = dict.fromkeys(domains, 0)
    for bar in shown:
        lanes[bar.domain] = max(lanes[bar.domain], bar.slot + bar.slots)
    return Gantt(start, end, lanes, shown, list(_arrows(outcome.stops, shown)), len(touched) - len(domains))


def busiest(outcome: Outcome) -> float:
    """When the day begins that has the most preemptions, shortly before the first of them; the first without any."""
    times = [stop.time for stop in outcome.stops]
    lead = _SPAN / 12
    counts = [(bisect_left(times, time + _SPAN - lead) - index, -time) for index, time in enumerate(times)]
    first = -max(counts)[1] - lead if counts else min((job.submitted for job in outcome.jobs), default=outcome.start)
    return max(first, outcome.start)


def _bars(jobs: Sequence[JobOutcome], start: float, end: float) -> Iterator[Bar]:
    """The bars of all runs within a time, each on the lowest accelerators of its domain that are free."""
    runs = [(run.start, job.name, job, run) for job in jobs for run in job.runs if run.start < end and run.end > start]
    free: dict[str, list[float]] = {}
    for _, _, job, run in sorted(runs, key=lambda each: each[:2]):
        for domain, amount in _domains(run):
            slots = free.setdefault(domain, [])
            usable = [index for index, until in enumerate(slots) if until <= run.start][:amount]
            added = range(len(slots), len(slots) + amount - len(usable))
            slots.extend(0.0 for _ in added)
            taken = [*usable, *added]
            for index in taken:
                slots[index] = run.end
            yield from _pieces(job, run, domain, taken)


def _pieces(job: JobOutcome, run: Run, domain: str, taken: Sequence[int]) -> Iterator[Bar]:
    """A bar for each group of accelerators that lie beside each other."""
    for _, group in groupby(enumerate(taken), key=lambda pair: pair[1] - pair[0]):
        slots = [slot for _, slot in group]
        yield Bar(job.name, job.team, run.start, run.end, domain, slots[0], len(slots), run.ended)


def _domains(run: Run) -> Iterator[tuple[str, int]]:
    """Accelerators of a run by domain; one where it holds none, and its flavor where nothing places it."""
    pods = sum(count for _, count in run.domains)
    for domain, count in run.domains or ((run.flavor, 1),):
        yield domain, max(run.accelerators * count // max(pods, 1), 1)


def _arrows(stops: Sequence[Stop], bars: Sequence[Bar]) -> Iterator[Arrow]:
    """An arrow for each preemption of which both jobs have a bar."""
    by_job: dict[str, list[Bar]] = {}
    for bar in bars:
        by_job.setdefault(bar.job, []).append(bar)
    for stop in stops:
        # Its pods may take a while to end, and the preemptor begins when they have.
        victim = next((bar for bar in by_job.get(stop.victim, ()) if bar.start <= stop.time <= bar.end), None)
        preemptor = next((bar for bar in by_job.get(stop.preemptor, ()) if bar.start >= stop.time), None)
        if victim and preemptor:
            yield Arrow(stop, preemptor, victim)
