"""The dashboards, as data: those of them that an environment has metrics for."""

from collections.abc import Collection
from dataclasses import replace
from importlib import import_module
from typing import Final

from ....config.settings.observability import Observability, Targets
from ..collected import names_in
from ..recordings import filled, rate_seconds
from .panel import Dashboard, Panel, Row

NAMES: Final = ("cluster", "tasks", "teams", "capacity", "storage", "goodput", "benchmarks", "elastic", "slurm")
"""Each is the module of this folder that defines it, in the order of a menu."""


def dashboards(settings: Observability, *, cluster: str, metrics: Collection[str]) -> tuple[Dashboard, ...]:
    """The dashboards of one cluster. What has no metrics is left out: panels, rows without panels, dashboards.

    Args:
        settings: The environment's targets, and how often it measures.
        cluster: Name of the cluster; it stands in every query.
        metrics: Metrics and recordings that are there (see `config.collected`).
    """
    span = rate_seconds(settings.scrape_seconds)
    there = frozenset(metrics)
    pages = [_define(name, settings.targets) for name in NAMES]
    return tuple(_of_cluster(page, cluster, span, there) for page in pages if page.needs in there)


def _define(name: str, targets: Targets) -> Dashboard:
    return import_module(f".{name}", __package__).define(targets)


def _of_cluster(page: Dashboard, cluster: str, span: int, metrics: frozenset[str]) -> Dashboard:
    def seen(panel: Panel) -> Panel | None:
        queries = {
            legend: filled(query, cluster=cluster, rate_seconds=span)
            for legend, query in panel.queries.items()
            if names_in(query) <= metrics
        }
        return replace(panel, queries=queries) if queries else None

    rows = tuple(Row(row.title, tuple(filter(None, map(seen, row.panels)))) for row in page.rows)
    choices = tuple(choice for choice in page.choices if choice.metric in metrics)
    return replace(page, rows=tuple(row for row in rows if row.panels), choices=choices)
