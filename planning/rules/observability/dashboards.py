"""Rules on dashboards: whether there is anything to show, and where."""

from ....config.catalog.facts import table
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.observability import Grafana
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule


@rule("OBS020", ERROR, on=Environment, source="", final=True)
def something_to_show(environment: Environment) -> Problems:
    """Grafana workspace without metrics."""
    settings = environment.observability
    if settings is None or settings.managed_grafana is None:
        return
    if settings.metrics == "off" or not environment.has_cluster:
        why = "metrics is off" if settings.metrics == "off" else "the environment has no cluster to measure"
        yield Problem(
            ("observability", "grafana"),
            f"grafana is wanted, and {why}: its dashboards would be empty",
            "remove grafana, or set metrics to basic",
        )


@rule("OBS021", WARNING, on=Environment, source="grafana-regions")
def grafana_is_there(environment: Environment) -> Problems:
    """Region without Managed Grafana."""
    settings = environment.observability
    if settings is None or settings.managed_grafana is None:
        return
    known = [row["region"] for row in table("grafana_regions")]
    if environment.region not in known:
        yield Problem(
            ("observability", "grafana"),
            f"Amazon Managed Grafana is in {listed(known, 'and')} by the public list, and this is {environment.region}",
            "write `grafana: false`: dashboards are then CloudWatch's, and `podwright dashboards export` writes them "
            "for a Grafana of your own",
        )


@rule("OBS022", WARNING, on=Grafana, source="")
def existing_workspace(grafana: Grafana) -> Problems:
    """Setting without effect on an existing Grafana workspace."""
    if grafana.existing:
        for field in ("saml", "version"):
            if field in grafana.model_fields_set:
                yield Problem(
                    field,
                    f"{field} has no effect: {grafana.existing.id} exists, and only data sources and dashboards are "
                    "delivered to it",
                    "remove it; change the workspace where it was made",
                )
