"""What a simulation says, as plain data: the form that `--json` prints and that tables are made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...planning.simulation.summary.figures import Figures, TeamFigures, Waits
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
    windows: Sequence[dict[str, Any]] = ()
    """Windows of training plans, each with `plan`, `group`, `instances`, `start` and `end` in seconds."""


def document(simulation: Simulation) -> dict[str, Any]:
    """Everything that the summary and the page show, but for the series of their pictures."""
    return {
        "schema": SCHEMA,
        "work": simulation.work,
        "jobs": simulation.submitted,
        "left_out": counted(simulation.problems),
        "problems": [problem._asdict() for problem in simulation.problems[:_NAMED]],
        "assumptions": list(simulation.assumptions),
        "plan_windows": list(simulation.windows),
        "policies": [_policy(figures) for figures in simulation.figures],
    }


def _policy(figures: Figures) -> dict[str, Any]:
    """What came of the work under one policy."""
    outcome = figures.outcome
    return {
        "environment": outcome.name,
        "start": outcome.start,
        "end": outcome.end,
        "accelerators": sum(outcome.capacity.values()),
        "used": round(figures.used, 4),
        "waits": _waits(figures.everybody),
        "teams": [_team(team) for team in figures.teams],
        "preemptions": [count._asdict() for count in figures.stops],
        "fairness": _mean([value for value in figures.timeline.fairness if value is not None]),
        "never_admitted": [
            {"job": job.name, "team": job.team, "why": job.waits_for} for job in outcome.jobs if not job.runs
        ][:_NAMED],
    }


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
