"""What nodes measured when they booted, and which groups measure."""

from typing import Any, Final

from ....config.catalog.instance_types import environment_types
from ....config.settings.benchmarks import benchmark_policy
from ...benchmarks.picture import picture
from ...benchmarks.rows import faults, rows
from ...benchmarks.table import number
from ..markup import Markup, badge, details, joined, table, tag
from ..scene import Scene

ID: Final = "benchmarks"
TITLE: Final = "Benchmarks"
_HUES: Final = {"pass": "green", "warn": "orange", "fail": "red", "skip": "blue"}
_POLICIES: Final = {
    "gate": "measured at boot; one that fails is replaced",
    "report": "measured at boot; the verdict is published",
    "skip": "not measured",
}


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


def shown(data: dict[str, Any], document: dict[str, Any]) -> Markup:
    """Results where there are some; which groups measure in any case."""
    if not data["groups"]:
        return tag("p", "No instance groups, so no nodes that measure.")
    groups = [(name, _POLICIES[policy]) for name, policy in data["groups"].items()]
    policies = table("What groups do", ("group", "nodes are"), groups)
    if not data["rows"]:
        name = document["environment"]
        how = ("Results come from running nodes: ", tag("code", f"podwright report {name} --live"), " reads them.")
        return joined([tag("p", *how), policies])
    results = [
        (
            row["name"],
            row["group"],
            badge(row["outcome"], _HUES[row["outcome"]]),
            *(number(row[key]) if row[key] is not None else "" for key in ("worst", "middle", "best", "bound")),
            row["unit"],
        )
        for row in data["rows"]
    ]
    headers = ("kernel", "group", "outcome", "worst", "middle", "best", "bound", "unit")
    faulty = [
        tag("li", badge(item["outcome"], _HUES[item["outcome"]]), f" {item['where']}: {item['reason']}")
        for item in data["faults"]
        if item["outcome"] in ("fail", "warn")
    ]
    return joined(
        [
            tag("p", f"Latest results of {len(data['nodes'])} node{'' if len(data['nodes']) == 1 else 's'}."),
            tag("ul", *faulty, class_="plain") if faulty else None,
            tag(
                "div",
                Markup(data["picture"]),
                class_="scroll drawing paper",
                role="region",
                tabindex="0",
                aria_label="Benchmark results as a picture",
            ),
            details("Results as a table", table("Benchmarks", headers, results, right=(3, 4, 5, 6))),
            details("What groups do", policies),
        ]
    )
