"""Figures of an outcome: waits, accelerator-hours, preemptions and fairness, by team and over time."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from .outcome import JobOutcome, Outcome

PARTS: Final = ("in_quota", "borrowed", "waiting", "idle")
"""What accelerator-hours of a team are: held within its guarantee, held above it, asked for by jobs that wait, and
guaranteed to it while nobody held them."""


class Waits(NamedTuple):
    """How long jobs waited for their first admission, in seconds. Those that still wait count with what they waited."""

    jobs: int
    started: int
    finished: int
    mean: float
    p50: float
    p90: float
    most: float


class Hours(NamedTuple):
    """Accelerator-hours."""

    in_quota: float
    borrowed: float
    waiting: float
    idle: float


class TeamFigures(NamedTuple):
    """What came of a team's work."""

    team: str
    waits: Waits
    hours: Hours
    stopped: int
    """How often a job of it was stopped for another one."""
    stops: int
    """How often a job of it stopped another one."""
    lost_hours: float
    """Accelerator-hours of runs that were stopped before they ended."""


class StopCount(NamedTuple):
    """How often teams stopped each other, and why."""

    preemptor_team: str
    victim_team: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened by slices of time, all equally long."""

    starts: Sequence[float]
    """Where each slice begins."""
    seconds: float
    """How long each is."""
    teams: Mapping[str, Sequence[Hours]]
    """Accelerator-hours by team, slice by slice."""
    fairness: Sequence[float | None]
    """Jain's index of how much of what it was entitled to each team had that wanted any; None where none did."""
    whole: Sequence[float]
    """Accelerator-hours that there were."""
    shares: Mapping[str, Sequence[float]]
    """What a team borrowed in percent of everything there is, divided by its weight in relation to all."""


class Figures(NamedTuple):
    """All figures of an outcome."""

    outcome: Outcome
    teams: Sequence[TeamFigures]
    everybody: Waits
    stops: Sequence[StopCount]
    timeline: Timeline
    used: float
    """Part of all accelerator-hours that jobs held."""


def figures(outcome: Outcome, slices: int = 240) -> Figures:
    """The figures of an outcome, with the time divided into so many slices."""
    timeline = _timeline(outcome, slices)
    by_team: dict[str, list[JobOutcome]] = {team: [] for team in outcome.quotas}
    for job in outcome.jobs:
        by_team.setdefault(job.team, []).append(job)
    stopped = Counter(stop.victim_team for stop in outcome.stops)
    stops = Counter(stop.preemptor_team for stop in outcome.stops)
    teams = [
        TeamFigures(
            team,
            waits(jobs, outcome.end),
            _sum(timeline.teams[team]),
            stopped[team],
            stops[team],
            sum(map(_lost, jobs)),
        )
        for team, jobs in by_team.items()
    ]
    counts = Counter((stop.preemptor_team, stop.victim_team, stop.reason) for stop in outcome.stops)
    held = sum(team.hours.in_quota + team.hours.borrowed for team in teams)
    whole = sum(timeline.whole)
    return Figures(
        outcome,
        teams,
        waits(outcome.jobs, outcome.end),
        [StopCount(*key, count) for key, count in counts.most_common()],
        timeline,
        held / whole if whole else 0.0,
    )


def waits(jobs: Iterable[JobOutcome], end: float) -> Waits:
    """How long jobs waited until they first held their quota, up to `end` where they never did."""
    jobs = list(jobs)
    seconds = sorted((job.runs[0].start if job.runs else end) - job.submitted for job in jobs)
    if not seconds:
        return Waits(0, 0, 0, 0.0, 0.0, 0.0, 0.0)
    started, finished = sum(1 for job in jobs if job.runs), sum(1 for job in jobs if job.finished is not None)
    mean = sum(seconds) / len(seconds)
    return Waits(len(jobs), started, finished, mean, percentile(seconds, 50), percentile(seconds, 90), seconds[-1])


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest of the values that is not below `percent` of them: nearest rank."""
    return ordered[max(-(-len(ordered) * percent // 100) - 1, 0)]


def _sum(rows: Sequence[Hours]) -> Hours:
    return Hours(*(float(sum(part)) for part in zip(*rows, strict=True)))


def _lost(job: JobOutcome) -> float:
    return sum((run.end - run.start) * run.accelerators / 3600 for run in job.runs if run.ended not in ("", "finished"))


class _Change(NamedTuple):
    """A step of what a team holds of a flavor, or waits for where there is none."""

    time: float
    team: str
    flavor: str
    amount: int


def _changes(outcome: Outcome) -> Iterator[_Change]:
    """What begins and ends to be held or waited for."""
    for job in outcome.jobs:
        free = job.submitted
        for run in job.runs:
            yield _Change(free, job.team, "", job.accelerators)
            yield _Change(run.start, job.team, "", -job.accelerators)
            yield _Change(run.start, job.team, run.flavor, run.accelerators)
            yield _Change(run.end, job.team, run.flavor, -run.accelerators)
            free = run.end
        if job.finished is None and free < outcome.end:
            yield _Change(free, job.team, "", job.accelerators)


def _timeline(outcome: Outcome, slices: int) -> Timeline:
    """Accelerator-hours, fairness and borrowing by slice: what is held between two changes is spread over slices."""
    seconds = max((outcome.end - outcome.start) / slices, 1.0)
    starts = [outcome.start + index * seconds for index in range(slices)]
    names = sorted({*outcome.quotas, *(job.team for job in outcome.jobs)})
    sums = {team: _zeros(slices) for team in names}
    held: dict[str, Counter[str]] = {team: Counter() for team in names}
    pending: list[_Change] = sorted(_changes(outcome))
    since = dict.fromkeys(names, outcome.start)

    def spread(team: str, until: float) -> None:
        """Add what a team held since its last change."""
        rates = _hourly(held[team], quotas.get(team, {}))
        for index, hours in _slices(starts, seconds, since[team], min(until, outcome.end)):
            row = sums[team][index]
            for part, rate in enumerate(rates):
                row[part] += rate * hours
        since[team] = max(since[team], until)

    quotas, later = outcome.quotas, list(outcome.later)
    for change in (*pending, _Change(outcome.end, "", "", 0)):
        while later and later[0].time <= change.time:
            level = later.pop(0)
            for team in names:
                spread(team, level.time)
            quotas = level.quotas
        if change.team:
            spread(change.team, change.time)
            held[change.team][change.flavor] += change.amount
    for team in names:
        spread(team, outcome.end)
    teams = {team: list(map(Hours._make, rows)) for team, rows in sums.items()}
    fairness = [_jain(hours) for hours in zip(*teams.values(), strict=True)]
    whole = _whole(outcome, starts, seconds)
    return Timeline(starts, seconds, teams, fairness, whole, _shares(outcome, teams, whole))


def _whole(outcome: Outcome, starts: Sequence[float], seconds: float) -> list[float]:
    """Accelerator-hours that there were in each slice."""
    steps, whole = outcome.accelerators(), [0.0] * len(starts)
    ends = [*(time for time, _ in steps[1:]), outcome.end]
    for (start, amount), end in zip(steps, ends, strict=True):
        for index, hours in _slices(starts, seconds, start, end):
            whole[index] += amount * hours
    return whole


def _zeros(slices: int) -> list[list[float]]:
    return [[0.0] * len(PARTS) for _ in range(slices)]


def _hourly(held: Mapping[str, int], quotas: Mapping[str, int]) -> Hours:
    """What a team has in an hour of holding this."""
    amounts = {flavor: amount for flavor, amount in held.items() if flavor}
    inside = sum(min(amount, quotas.get(flavor, 0)) for flavor, amount in amounts.items())
    return Hours(inside, sum(amounts.values()) - inside, held.get("", 0), sum(quotas.values()) - inside)


def _slices(starts: Sequence[float], seconds: float, start: float, end: float) -> Iterator[tuple[int, float]]:
    """The slices that a time touches, each with the hours of it that lie there."""
    if end <= start:
        return
    index = max(bisect_right(starts, start) - 1, 0)
    while index < len(starts) and starts[index] < end:
        inside = min(end, starts[index] + seconds) - max(start, starts[index])
        yield index, max(inside, 0.0) / 3600
        index += 1


def _jain(teams: Iterable[Hours]) -> float | None:
    """Jain's index of how much of what it was entitled to each team had: (Σx)² / nΣx², 1 where all had the same part.

    A team that waits is entitled to its guarantee, and to no more than it asked for.
    """
    parts = list[float]()
    for hours in teams:
        taken = hours.in_quota + hours.borrowed
        entitled = min(hours.in_quota + hours.idle, taken + hours.waiting)
        if entitled > 0:
            parts.append(min(taken / entitled, 1.0))
    squares = sum(part * part for part in parts)
    return sum(parts) ** 2 / (len(parts) * squares) if squares else None


def _shares(outcome: Outcome, teams: Mapping[str, Sequence[Hours]], whole: Sequence[float]) -> dict[str, list[float]]:
    """What teams borrow of everything, in percent, by their weight in relation to the mean weight."""
    weights = {team: outcome.weights.get(team, 1.0) for team in teams}
    mean = sum(weights.values()) / len(weights) if weights else 1.0
    shares = dict[str, list[float]]()
    for team, rows in teams.items():
        factor = 100 * mean / weights[team] if weights[team] else 0.0
        shares[team] = [
            hours.borrowed * factor / most if most else 0.0 for hours, most in zip(rows, whole, strict=True)
        ]
    return shares
