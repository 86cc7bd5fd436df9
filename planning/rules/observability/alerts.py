"""Rules on alerts: which there are, whom they reach, and which cannot fire."""

from difflib import get_close_matches

from ....config.catalog.instance_types import Catalog
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.observability import Observability
from ...monitoring.alerts import alerts, unmeasured
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule


@rule("OBS030", ERROR, on=Observability, source="", final=True)
def unknown_alert(settings: Observability) -> Problems:
    """Unknown alert setting."""
    if not (settings.alerts.thresholds or settings.alerts.silenced):
        return
    named = [(("alerts", "thresholds", name), name) for name in settings.alerts.thresholds]
    named += [(("alerts", "silenced", index), name) for index, name in enumerate(settings.alerts.silenced)]
    for path, name in named:
        if name not in alerts():
            close = get_close_matches(name, alerts(), 3, 0.5)
            near = f"close are {listed(close, 'and')}" if close else "`podwright explain GpuXid` shows one"
            yield Problem(path, f"there is no alert {name}; {near}", "correct the name, or remove it")


@rule("OBS031", ERROR, on=Observability, source="", final=True)
def no_threshold(settings: Observability) -> Problems:
    """Threshold for an alert without one."""
    if not settings.alerts.thresholds:
        return
    for name in settings.alerts.thresholds:
        alert = alerts().get(name)
        if alert and alert.minutes is not None and "$threshold" not in alert.expression:
            yield Problem(
                ("alerts", "thresholds", name),
                f"{name} has no threshold: it fires whenever its condition is true",
                f"remove it, or silence {name}",
            )


@rule("OBS032", WARNING, on=Observability, source="amp-alert-manager")
def manager_of_others(settings: Observability) -> Problems:
    """Metric alerts that an existing workspace does not deliver."""
    messages = settings.alerts.emails or settings.alerts.chat.slack or settings.alerts.chat.teams
    if settings.workspace and settings.metrics != "off" and messages:
        yield Problem(
            "alerts",
            f"alerts on metrics go to the alert manager of {settings.workspace}, whose definition podwright does not "
            "change; the addresses here only get the cluster's events and the budget's messages",
            "merge what `podwright alerts ENV --alert-manager` prints into its definition, and accept this",
        )


@rule("OBS033", INFO, on=Environment, source="hyperpod-metrics")
def cannot_fire(environment: Environment, types: Catalog) -> Problems:
    """Alerts without the metrics that they need."""
    settings = environment.observability
    if not settings or settings.metrics != "advanced" or not environment.has_cluster or not settings.levels:
        return
    if names := unmeasured(environment, types):
        yield Problem(
            ("observability", "levels"),
            f"without what these levels leave out, {listed(names, 'and')} cannot fire and {_are(names)} left out",
            "raise the level, or accept this",
        )


@rule("OBS034", INFO, on=Environment, source="hyperpod-events")
def no_events(environment: Environment) -> Problems:
    """Cluster events without continuous provisioning."""
    settings, cluster = environment.observability, environment.cluster
    if settings and environment.has_cluster and cluster.provisioning != "continuous":
        yield Problem(
            ("cluster", "provisioning"),
            "SageMaker sends events of instances and groups, with the reason of a failure, only with continuous "
            "provisioning; people hear of the cluster's state and of nodes' health alone",
            "provision continuously, or accept this",
        )


def _are(names: list[str]) -> str:
    return "are" if len(names) > 1 else "is"
