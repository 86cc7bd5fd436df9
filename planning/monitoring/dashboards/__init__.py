"""The dashboards, as data: those of them that an environment has metrics for."""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from ....config.settings.observability import Observability
from ..collected import names_in
from ..recordings import filled, rate_seconds
from . import benchmarks, capacity, elastic, goodput, priorities, slurm, storage, tasks, teams
from . import cluster as cluster_page
from .panel import Choice, Dashboard, Panel, Row

_PAGES: Final = {
    "cluster": cluster_page,
    "tasks": tasks,
    "teams": teams,
    "priorities": priorities,
    "capacity": capacity,
    "storage": storage,
    "goodput": goodput,
    "benchmarks": benchmarks,
    "elastic": elastic,
    "slurm": slurm,
}
NAMES: Final = tuple(_PAGES)
"""Each is the module of this folder that defines it, in the order of a menu."""


def dashboards(settings: Observability, *, cluster: str, metrics: Collection[str]) -> tuple[Dashboard, ...]:
    """The dashboards of one cluster. What has no metrics is left out: panels, rows without panels, dashboards.

    Args:
        settings: The environment's targets, and how often it measures.
        cluster: Name of the cluster; it stands in every query.
        metrics: Metrics and recordings that are there (see `config.collected`).
    """
    span = rate_seconds(settings.scrape_seconds)
    existing = frozenset(metrics)
    pages = [page.define(settings.targets) for page in _PAGES.values()]
    return tuple(_of_cluster(page, cluster, span, existing) for page in pages if existing.intersection(page.needs))


def _of_cluster(page: Dashboard, cluster: str, span: int, metrics: frozenset[str]) -> Dashboard:
    """A page about one cluster, without what there are no metrics for."""

    def seen(panel: Panel) -> Panel | None:
        queries = {
            legend: filled(query, cluster=cluster, rate_seconds=span)
            for legend, query in panel.queries.items()
            if names_in(query) <= metrics
        }
        return replace(panel, queries=queries) if queries else None

    rows = tuple(Row(row.title, tuple(filter(None, map(seen, row.panels)))) for row in page.rows)
    choices: dict[str, Choice] = {}
    for choice in page.choices:
        if choice.metric in metrics:
            choices.setdefault(choice.name, choice)
    return replace(page, rows=tuple(row for row in rows if row.panels), choices=tuple(choices.values()))
