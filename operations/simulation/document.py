"""What a simulation says, as plain data: the form that `--json` prints and that tables are made of."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...planning.simulation.summary.figures import Figures, TeamFigures, Waits
from ...planning.simulation.summary.outcome import JobOutcome
from ...planning.simulation.traces.trace import TraceProblem, counted

SCHEMA: Final = 1
"""Of the document; one more when a field goes or means something else."""
_NAMED: Final = 1000


@dataclass(frozen=True, slots=True)
class Simulation:
    """One piece of work under one policy or under two."""

    figures: Sequence[Figures]
    """Of each policy, in the order in which they were named."""
    work: str
    """Where the work comes from, in words."""
    submitted: int
    """Jobs that were simulated."""
    problems: Sequence[TraceProblem]
    """Rows that were left out."""
    assumptions: Sequence[str]
    """What no policy says and no trace, each as a sentence."""
    windows: Sequence[Sequence[dict[str, Any]]] = ()
    """Windows of training plans of each policy, each with `plan`, `group`, `instances`, `start`, `gone` and `end` in
    seconds."""


def document(simulation: Simulation) -> dict[str, Any]:
    """Everything that the summary and the page show, but for the series of their pictures."""
    # Two policies of one environment have the same windows.
    windows = dict.fromkeys(tuple(each.items()) for each in itertools.chain.from_iterable(simulation.windows))
    return {
        "schema": SCHEMA,
        "work": simulation.work,
        "jobs": simulation.submitted,
        "left_out": counted(simulation.problems),
        "problems": [problem._asdict() for problem in simulation.problems[:_NAMED]],
        "assumptions": list(simulation.assumptions),
        "plan_windows": list(map(dict, windows)),
        "policies": [_policy(figures) for figures in simulation.figures],
    }


def _policy(figures: Figures) -> dict[str, Any]:
    """What came of the work under one policy."""
    outcome = figures.outcome
    return {
        "environment": outcome.name,
        "start": outcome.start,
        "end": outcome.end,
        "accelerators": max(amount for _, amount in outcome.accelerators()),
        "used": round(figures.used, 4),
        "waits": _waits(figures.everybody),
        "teams": [_team(team) for team in figures.teams],
        "preemptions": [count._asdict() for count in figures.stops],
        "budgets": [use._asdict() | {"hours": round(use.hours, 2)} for use in outcome.budgets],
        "fairness": _mean([value for value in figures.timeline.fairness if value is not None]),
        "never_admitted": _named(job for job in outcome.jobs if not job.runs),
        "never_finished": _named(job for job in outcome.jobs if job.runs and job.finished is None and job.waits_for),
    }


def _named(jobs: Iterable[JobOutcome]) -> list[dict[str, Any]]:
    """The first of some jobs, with why each of them waits."""
    return [{"job": job.name, "team": job.team, "why": job.waits_for} for job in itertools.islice(jobs, _NAMED)]


def _team(team: TeamFigures) -> dict[str, Any]:
    return {
        "team": team.team,
        "waits": _waits(team.waits),
        "accelerator_hours": {name: round(value, 2) for name, value in team.hours._asdict().items()},
        "stopped": team.stopped,
        "stops": team.stops,
        "lost_hours": round(team.lost_hours, 2),
    }


def _waits(waits: Waits) -> dict[str, Any]:
    return {
        "jobs": waits.jobs,
        "started": waits.started,
        "finished": waits.finished,
        "mean_seconds": round(waits.mean, 1),
        "p50_seconds": round(waits.p50, 1),
        "p90_seconds": round(waits.p90, 1),
        "max_seconds": round(waits.most, 1),
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None
