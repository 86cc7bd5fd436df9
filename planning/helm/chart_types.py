"""Whether the health agent of a fetched chart knows the instance types of an environment."""

import re
import zipfile
from functools import cache
from pathlib import Path
from typing import Final

from ...config.catalog.charts import HYPERPOD_DEPENDENCIES
from ...config.catalog.instance_types import environment_types
from ...config.findings import Finding, Level
from ...config.loading.artifacts import archive_file, chart_findings, read_artifacts
from ...config.loading.source import Source
from ...config.settings.environment import Environment
from .wanted_charts import wanted_charts

_AGENT: Final = "health-monitoring-agent"
_TYPE: Final = re.compile(r"\bml\.[a-z0-9-]+\.[a-z0-9-]+\b")


def chart_type_findings(root: Path, environment: Environment, source: Source) -> list[Finding]:
    """A warning for each group whose accelerated type the lists of the fetched chart's health agent lack.

    Its pods run on the types of these lists alone, and without its agent HyperPod finds no fault of a node, so it
    replaces none. Nothing while no chart is fetched, or when its agent has no lists.

    Args:
        root: The project.
        environment: The environment.
        source: Its file.

    Raises:
        InvalidFile: `artifacts.lock` is damaged.
    """
    desired = [item.chart for item in wanted_charts(environment) if item.chart.name == HYPERPOD_DEPENDENCIES]
    if not desired or chart_findings(root, desired[0]):
        return []
    known = _agent_types(archive_file(root, desired[0], read_artifacts(root).charts[HYPERPOD_DEPENDENCIES].sha256))
    if not known:
        return []
    types = environment_types(environment.instance_types)
    return [
        Finding(
            "CHT007",
            Level.WARNING,
            f"instance_groups.{name}",
            f"the health agent of {desired[0].name} {desired[0].pin} does not run on {lacking}: its lists of instance "
            f"types end before it, so HyperPod would find no fault of these nodes and replace none",
            "ask AWS for a chart whose health-monitoring-agent lists the type, or watch these nodes otherwise",
            source.position(("instance_groups", name)),
        )
        for name, group in environment.groups.items()
        for lacking in group.types
        if (row := types.find(lacking)) and row.accelerator_count and lacking not in known
    ]


@cache
def _agent_types(file: Path) -> frozenset[str]:
    """Every instance type that the agent's part of a packed chart names."""
    with zipfile.ZipFile(file) as archive:
        texts = (
            archive.read(name).decode(errors="replace")
            for name in archive.namelist()
            if _AGENT in name.split("/") and name.endswith((".yaml", ".yml", ".tpl"))
        )
        return frozenset(match for text in texts for match in _TYPE.findall(text))
