"""What nodes measured when they booted, and which groups measure."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from ....config.catalog.instance_types import environment_types
from ....config.settings.benchmarks import benchmark_policy
from ...benchmarks.picture import picture
from ...benchmarks.rows import faults, rows
from ...benchmarks.table import number
from ..scene import Scene
from ..views import Badge, Cell, Table, plural

ID: Final = "benchmarks"
TITLE: Final = "Benchmarks"
_HUES: Final = {"pass": "green", "warn": "orange", "fail": "red", "skip": "blue"}
_POLICIES: Final = {
    "gate": "measured at boot; one that fails is replaced",
    "report": "measured at boot; the verdict is published",
    "skip": "not measured",
}


@dataclass(frozen=True)
class View:
    """Results, or how to get some."""

    environment: str
    intro: str
    policies: Table
    faults: Sequence[Cell]
    """What did not pass."""
    picture: str
    """SVG, escaped when `collect` drew it: the only markup in a document."""
    results: Table


def collect(scene: Scene) -> dict[str, Any]:
    """Policies of groups, and results by group and kernel."""
    runs, groups = list(scene.benchmarks), scene.environment.instance_groups
    types = environment_types(scene.environment.instance_types)
    return {
        "groups": {name: benchmark_policy(group, types) for name, group in groups.items()},
        "nodes": [
            {"node": run.instance_id, "group": run.group, "type": run.instance_type, "verdict": run.verdict}
            for run in runs
        ],
        "rows": [
            {
                "group": row.group,
                "type": row.instance_type,
                "name": row.first.name,
                "unit": row.first.unit,
                "outcome": row.outcome,
                "worst": row.points[0].value if row.points else None,
                "middle": row.middle if row.points else None,
                "best": row.points[-1].value if row.points else None,
                "bound": row.line("bound"),
            }
            for row in rows(runs)
        ],
        "faults": [{"outcome": item.outcome, "where": item.where, "reason": item.reason} for item in faults(runs)],
        "picture": picture(runs) if runs else "",
    }


def view(data: dict[str, Any], document: dict[str, Any]) -> View:
    """Results where there are some; which groups measure in any case."""
    wrong = [item for item in data["faults"] if item["outcome"] in ("fail", "warn")]
    policies = [(name, _POLICIES[policy]) for name, policy in data["groups"].items()]
    return View(
        environment=document["environment"],
        intro=f"Latest results of {len(data['nodes'])} node{plural(len(data['nodes']))}.",
        policies=Table("What groups do", ("group", "nodes are"), policies),
        faults=[(_badge(item["outcome"]), f"{item['where']}: {item['reason']}") for item in wrong],
        picture=data["picture"],
        results=_results(data),
    )


def _results(data: dict[str, Any]) -> Table:
    rows = [
        (
            row["name"],
            row["group"],
            _badge(row["outcome"]),
            *map(number, itemgetter("worst", "middle", "best", "bound")(row)),
            row["unit"],
        )
        for row in data["rows"]
    ]
    headers = ("kernel", "group", "outcome", "worst", "middle", "best", "bound", "unit")
    return Table("Benchmarks", headers, rows, right=(3, 4, 5, 6), name="Results as a table")


def _badge(outcome: str) -> Badge:
    return Badge(outcome, _HUES[outcome])
