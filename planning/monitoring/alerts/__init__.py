"""The alerts, as data, and the rules that they become for one cluster.

What an alert means and what to do about it stands on its page, which `podwright explain <name>` prints.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from ....config.catalog.instance_types import Catalog
from ....config.settings.environment import Environment
from ....config.settings.governance.teams import TeamBudget
from ....config.settings.observability import Observability
from ...quota.budgets import budgets
from ..collected import collected, names_in
from ..recordings import INTERVAL_SECONDS, filled, rate_seconds
from . import capacity, gpus, jobs, nodes, teams, upkeep
from .alert import Alert

GROUPS: Final[Mapping[str, tuple[Alert, ...]]] = {
    "nodes": nodes.ALERTS,
    "gpus": gpus.ALERTS,
    "jobs": jobs.ALERTS,
    "teams": teams.ALERTS,
    "capacity": capacity.ALERTS,
    "upkeep": upkeep.ALERTS,
}
"""All alerts, by the module of this folder that defines them."""
RUNBOOKS: Final = Path(__file__).parent.parent / "runbooks"
"""The folder of pages, one an alert."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The cluster that alerts are about."""

    cluster: str
    """Name of the HyperPod cluster."""
    orchestrator: Literal["eks", "slurm"]
    """What hands out its work; alerts on the other are left out."""
    instances: int
    """Instances that its file allows, in all groups together."""
    budgets: Mapping[str, TeamBudget] = field(default_factory=dict)
    """Budgets of its teams."""
    metrics: frozenset[str] | None = None
    """What is measured of it; alerts on anything else are left out. None when all is."""


def watched(environment: Environment, types: Catalog) -> Watched:
    """The cluster of an environment."""
    orchestrator = "slurm" if environment.cluster.orchestrator == "slurm" else "eks"
    instances = sum(group.count for group in environment.groups.values())
    # Slurm keeps the hours of its accounts itself, and shows them to no metric.
    named = budgets(environment.governance.teams) if orchestrator == "eks" else {}
    return Watched(environment.cluster.name, orchestrator, instances, named, collected(environment, types))


@cache
def alerts() -> dict[str, Alert]:
    """Every alert by its name, in the order of the groups."""
    results = [alert for group in GROUPS.values() for alert in group]
    by_name = {alert.name: alert for alert in results}
    if len(by_name) < len(results):
        raise ValueError("two alerts have the same name")
    return by_name


def threshold(alert: Alert, settings: Observability, cluster: Watched) -> float | None:
    """Where an alert begins in an environment; None when nothing says so, and then there is no such alert.

    The environment's own threshold comes first, then its target, then podwright's own.
    """
    if (own := settings.alerts.thresholds.get(alert.name)) is not None:
        return own
    if alert.target:
        return getattr(settings.targets, alert.target)
    of_environment = {"InstanceCountSurge": cluster.instances, "SpendAboveBudget": settings.budget_usd_per_month}
    return of_environment.get(alert.name, alert.threshold)


def wanted(settings: Observability, cluster: Watched) -> Iterator[Alert]:
    """The alerts that an environment has."""
    for alert in alerts().values():
        decided = alert.minutes is not None and "$threshold" not in alert.expression
        if alert.name in settings.alerts.silenced or alert.orchestrator not in ("any", cluster.orchestrator):
            continue
        if "team:budget_" in alert.expression and not cluster.budgets:
            continue
        # An alert on what nobody measures would look as if it watched; `unmeasured` names those that are left out.
        if cluster.metrics is not None and not names_in(alert.expression) <= cluster.metrics:
            continue
        if decided or threshold(alert, settings, cluster) is not None:
            yield alert


def unmeasured(environment: Environment, types: Catalog) -> list[str]:
    """Alerts that an environment would have if every metric were measured, at the level advanced, of what it runs."""
    settings, cluster = environment.observability, watched(environment, types)
    if settings is None:
        return []
    full = environment.model_copy(update={"observability": settings.model_copy(update={"levels": {}})})
    everything = replace(cluster, metrics=collected(full, types))
    existing = {alert.name for alert in wanted(settings, cluster)}
    return [alert.name for alert in wanted(settings, everything) if alert.name not in existing]


def alert_groups(settings: Observability, cluster: Watched) -> list[dict[str, Any]]:
    """The groups of a rules file that alert, for one cluster."""
    group_of = {alert.name: group for group, defined in GROUPS.items() for alert in defined}
    rules: dict[str, list[dict[str, Any]]] = {}
    for alert in wanted(settings, cluster):
        rules.setdefault(group_of[alert.name], []).append(alert_rule(alert, settings, cluster))
    return [
        {"name": f"podwright-alerts-{group}", "interval": f"{INTERVAL_SECONDS}s", "rules": its}
        for group, its in rules.items()
    ]


def alert_rule(alert: Alert, settings: Observability, cluster: Watched) -> dict[str, Any]:
    """One alert as a rule."""
    value = threshold(alert, settings, cluster)
    message = "" if value is None else f"{value:.10g}"
    span = rate_seconds(settings.scrape_seconds)

    def fill(text: str) -> str:
        return filled(text, cluster=cluster.cluster, rate_seconds=span, threshold=message)

    minutes = value if alert.minutes is None else alert.minutes
    rule: dict[str, Any] = {"alert": alert.name, "expr": fill(alert.expression)}
    if minutes:
        rule["for"] = f"{round(minutes * 60)}s"
    return rule | {
        "labels": {"severity": alert.severity},
        "annotations": {"summary": fill(alert.summary), "runbook": f"podwright explain {alert.name}"},
    }
