"""Charts of podwright's own in place of those that a project fetches, for tests and the sandbox."""

from pathlib import Path
from typing import Final

from ...config.catalog.charts import Chart
from ...config.loading.artifacts import ChartArchive, stand_in_archive
from ...config.settings.environment import Environment
from ...planning.helm.wanted_charts import wanted_charts

_FOLDER: Final = Path(__file__).parent / "stand_in_charts"


def stand_in(chart: Chart) -> ChartArchive:
    """What takes the place of a chart: the one with its name, or `any`, which shows the values that it got."""
    folder = _FOLDER / chart.name
    return stand_in_archive(chart.name, folder if folder.is_dir() else _FOLDER / "any")


def stand_ins(environment: Environment) -> dict[str, ChartArchive]:
    """Stand-ins for all charts that an environment installs, by name."""
    return {item.chart.name: stand_in(item.chart) for item in wanted_charts(environment)}
