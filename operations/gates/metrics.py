"""The gate `metrics`: every exporter has sent something lately, recordings are made, and dashboards are there."""

import time
from collections.abc import Iterable
from typing import Final

from ...config.catalog.instance_types import Catalog
from ...config.catalog.metrics import metrics
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.monitoring.collected import collected, exporters
from ...planning.monitoring.recordings import recordings
from ..aws.calls import get, pages
from ..aws.clusters import nodes
from ..aws.stacks import StackResource, stack_resources
from ..dashboards.sources import workspace
from ..programs.prometheus import Prometheus, QueryError
from .gate import Context, Observation, Result

# They send something only once there is work of their kind.
_WITH_WORK: Final = ("training_operator", "inference")
_NODES: Final = 'count(count by (instance) (last_over_time(node_uname_info{{cluster_name="{cluster}"}}[{minutes}m])))'
_NO_PROMETHEUS: Final = "there is no Prometheus on this machine"
_CONTENT: Final = "Custom::PodwrightGrafanaContent"
_DONE: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE")


def run(context: Context) -> Result:
    """Wait until all of it has arrived."""
    environment = context.environment
    settings = environment.observability
    assert settings
    server = workspace(environment, settings, context.account)
    desired = series(environment, context.types)
    context.asked["exporters"] = {name: len(names) for name, names in desired.items()}
    try:
        # One cheap query first: a workspace that lets nobody ask is another problem than one without series.
        server.instant("vector(1)", time.time())
    except QueryError as error:
        # Only the sandbox says this, which starts the machine's own Prometheus behind its workspaces.
        if _NO_PROMETHEUS in str(error) and context.account.endpoint:
            return Result(True, str(error), skipped=True)
        raise CommandError(f"the workspace refuses a query: {error}", "check its status in the console") from None
    return context.wait(lambda: _observe(context, server, desired))


def series(environment: Environment, types: Catalog) -> dict[str, list[str]]:
    """The metrics that have to arrive, by exporter; those that are recorded of them under `recorded`."""
    existing, runs = collected(environment, types), exporters(environment, types)
    results: dict[str, list[str]] = {name: [] for name in sorted(runs)}
    for metric in metrics().values():
        if metric.exporter in runs and metric.name in existing:
            results[metric.exporter].append(metric.name)
    results["recorded"] = [
        # Those of the whole cluster: recordings of teams and jobs have series only once there is work.
        item.name
        for item in recordings()
        if item.name in existing and item.name.startswith("cluster:")
    ]
    return {name: names for name, names in results.items() if names}


def _observe(context: Context, server: Prometheus, desired: dict[str, list[str]]) -> Observation:
    """Series of each collector, nodes that send some, and the dashboards."""
    observation, environment = Observation(next_step=_next(context)), context.environment
    minutes, now = context.settings.metrics.fresh_minutes, time.time()
    for name, names in desired.items():
        count = _count(server, _query(names, environment.cluster.name, minutes), now)
        idle = not count and name in _WITH_WORK
        # Exporters of work are silent until there is some, and that is no failure.
        absent = "no work of its kind yet" if idle else f"nothing in {minutes} min"
        message = f"{count} series" if count else absent
        observation.check(f"metrics of {name}", f"series in {minutes} min", message, bool(count) or idle)
    if "node" in desired:
        nodes = _running(context)
        count = _count(server, _NODES.format(cluster=environment.cluster.name, minutes=minutes), now)
        # A node that is being replaced may still have sent something lately, so more is fine.
        observation.check("nodes that send metrics", nodes, f"{count} of {nodes}", count >= nodes)
    observation.answers["workspace"] = server.url.rpartition("/")[2]
    _dashboards(context, observation)
    return observation


def _query(names: Iterable[str], cluster: str, minutes: int) -> str:
    return f'count(last_over_time({{__name__=~"{"|".join(names)}",cluster_name="{cluster}"}}[{minutes}m]))'


def _count(server: Prometheus, query: str, now: float) -> int:
    try:
        result = server.instant(query, now)
    except QueryError as error:
        raise CommandError(f"the workspace refuses a query: {error}", "check its status in the console") from None
    # An empty answer means none; count() gives no zero.
    return int(float(result[0]["value"][1])) if result else 0


def _running(context: Context) -> int:
    """Nodes that run."""
    return sum(node.status == "Running" for node in nodes(context.account, context.environment.cluster.name))


def _dashboards(context: Context, observation: Observation) -> None:
    """Grafana with what was put into it, else CloudWatch's: as the environment's own stacks made them."""
    account, environment = context.account, context.environment
    by_type: dict[str, list[StackResource]] = {}
    grafana = environment.observability.managed_grafana if environment.observability else None
    for item in stack_resources(account, f"{environment.name}-{'grafana' if grafana else 'observability'}"):
        by_type.setdefault(item.type, []).append(item)
    if grafana:
        # An absent workspace is checked like one that is there.
        own = [item.name for item in by_type.get("AWS::Grafana::Workspace", [])]
        ids = [grafana.existing.id] if grafana.existing else own or [""]
        for id in ids:
            status = (
                get(account, "grafana", "describe_workspace", workspaceId=id)["workspace"]["status"]
                if id
                else "is not there"
            )
            observation.check("Grafana", "ACTIVE", status, status == "ACTIVE")
        statuses = [item.status for item in by_type.get(_CONTENT, [])]
        good = bool(statuses) and all(status in _DONE for status in statuses)
        observation.check("dashboards in Grafana", "delivered", ", ".join(statuses) or "not delivered", good)
        return
    desired = {item.name for item in by_type.get("AWS::CloudWatch::Dashboard", [])}
    existing = {entry["DashboardName"] for entry in pages(account, "cloudwatch", "list_dashboards", "DashboardEntries")}
    # A stack names them by ARN or by name.
    missing = {name for name in desired if name.rpartition("/")[2] not in existing}
    observation.check(
        "dashboards of CloudWatch", len(desired), len(desired) - len(missing), bool(desired) and not missing
    )


def _next(context: Context) -> str:
    settings = context.environment
    agent = (
        "the add-on amazon-sagemaker-hyperpod-observability"
        if settings.cluster.orchestrator == "eks"
        else ("the extension sagemaker-observability")
    )
    return f"{agent} collects them: `podwright doctor {settings.name}` reads its state; its role needs aps:RemoteWrite"
