"""The Helm charts that an environment installs, each with its values: the one list that every command goes by."""

from collections.abc import Mapping
from pathlib import Path

from .artifacts import ChartArchive, chart_archive
from .chart_values import dependencies_values
from .charts import HYPERPOD_DEPENDENCIES, WantedChart, chart
from .environment import Environment
from .images import Image
from .rules.run import environment_types


def wanted_charts(environment: Environment, mirror: Mapping[str, Image] | None = None) -> tuple[WantedChart, ...]:
    """The charts of an environment in the order in which they are installed; none with Slurm, which runs no pods.

    Args:
        environment: The environment.
        mirror: Where mirrored images lie, by the original's name (see `mirrors.mirror_of`).
    """
    if environment.cluster.orchestrator != "eks":
        return ()
    found: list[WantedChart] = []
    existing = environment.cluster.eks.existing
    if existing is None or not existing.dependencies_installed:
        dependencies = chart(HYPERPOD_DEPENDENCIES)
        values = dependencies_values(
            dependencies,
            environment.groups.values(),
            environment_types(environment.instance_types),
            region=environment.region,
            mirror=mirror,
        )
        found.append(WantedChart(dependencies, values))
    return tuple(found)


def wanted_chart(environment: Environment, name: str, mirror: Mapping[str, Image] | None = None) -> WantedChart | None:
    """The chart of that name, or None for an environment that does not install it."""
    return next((wanted for wanted in wanted_charts(environment, mirror) if wanted.chart.name == name), None)


def chart_archives(root: Path, environment: Environment) -> dict[str, ChartArchive]:
    """The archives of an environment's charts in the project in `root`, by name.

    Raises:
        InvalidFile: one is not locked or not there.
    """
    return {wanted.chart.name: chart_archive(root, wanted.chart) for wanted in wanted_charts(environment)}
