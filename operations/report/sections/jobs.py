"""The jobs of the file: whose they are, where they run, and what each takes while it runs."""

from typing import Any, Final

from ....config.catalog.instance_types import environment_types
from ....planning.jobs.plan import Planner, fewest, spares
from ..scene import Scene
from ..views import Table, Tables, plural

ID: Final = "jobs"
TITLE: Final = "Jobs"


def collect(scene: Scene) -> dict[str, Any] | None:
    """A row for each job; None where the file has none."""
    environment = scene.environment
    planner = Planner(environment, environment_types(environment.instance_types))
    rows = [_row(planner, name, job) for name, job in environment.jobs.items()]
    return {"jobs": rows} if rows else None


def _row(planner: Planner, name: str, job: Any) -> dict[str, Any]:
    plan = planner.plan(name)
    sizes = getattr(job, "sizes", (fewest(job),))
    return {
        "name": name,
        "kind": job.kind,
        "team": job.team,
        "group": job.group,
        "priority": job.priority,
        "pods": [sizes[0] + spares(job), sizes[-1] + spares(job)],
        "accelerators_per_pod": plan.pod.accelerators,
    }


def view(data: dict[str, Any], document: dict[str, Any]) -> Tables:
    """One table; sizes of elastic jobs are from the fewest pods to the most."""
    rows = [_cells(row) for row in data["jobs"]]
    headers = ("job", "kind", "team", "group", "priority", "pods", "accelerators")
    count = len(rows)
    return Tables(
        intro=f"{count} job{plural(count)} in the file; a deployment starts none, podwright submit does.",
        tables=[Table("What each takes while it runs", headers, rows, right=(5, 6))],
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    names = [row[key] or "" for key in ("name", "kind", "team", "group", "priority")]
    accelerators = [count * row["accelerators_per_pod"] for count in row["pods"]]
    return (*names, _span(*row["pods"]), _span(*accelerators))


def _span(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
