"""Print the steps of a promotion in order: commands, dependencies and requirements of each step."""

import argparse
from dataclasses import asdict

from ...config.loading.project import Project
from ...planning.delivery.pipeline_steps import Step, drift_steps, steps
from ..output.console import write_json, write_line
from ..output.tables import new_table

_RUNS = {"person": "a person consents"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright pipeline show`."""
    parser.add_argument("--json", action="store_true", help="print the steps as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the table, or JSON."""
    project = Project.at(args.project)
    resolved_steps = steps(project.settings, project.names)
    drift = drift_steps(project.settings, project.names)
    if args.json:
        write_json({"steps": [asdict(step) for step in resolved_steps], "drift": [asdict(step) for step in drift]})
        return 0
    _write("A promotion", resolved_steps)
    pipeline = project.settings.pipeline
    schedule = pipeline.drift.schedule if pipeline else "cron(0 6 * * ? *)"
    if schedule != "off":
        write_line()
        _write(f"The look for drift, {schedule}", drift)
    return 0


def _write(title: str, result: tuple[Step, ...]) -> None:
    rows = (
        (
            step.stage or "",
            step.name,
            "" if step.role == "person" else step.role,
            "\n".join(step.commands) or _RUNS[step.role],
        )
        for step in result
    )
    table = new_table(title, ("stage", "step", "role", "runs"), rows)
    write_line(table)
