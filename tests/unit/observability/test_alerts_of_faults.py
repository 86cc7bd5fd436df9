"""Alerts over the sandbox's made-up clusters, in a real Prometheus: silent while all is well, and none but the fitting
ones when something goes wrong. The clusters were made without a check of the alerts."""

import re
from dataclasses import replace
from pathlib import Path

from needs import needs
from podwright.config.loading.load import load_environment
from podwright.config.settings.observability import Observability
from podwright.operations.programs.prometheus import history, installed
from podwright.planning.monitoring.alerts import Watched, alert_rule, alerts
from podwright.planning.monitoring.collected import names_in
from podwright.planning.monitoring.recordings import recording_groups
from podwright.planning.monitoring.synthetic.cluster import synthetic_cluster
from podwright.planning.monitoring.synthetic.faults import Fault, with_faults
from podwright.planning.monitoring.synthetic.metrics import history as metrics_of

START = 1_780_000_000.0
END = START + 2400
BROKEN = END - 1200
EXPECTED = {
    "well": set[str](),
    "hang": {"JobHanging"},
    "efa": {"EfaErrors"},
    "row-remap": {"GpuMemoryFailed"},
    "starved": {"QuotaStarving"},
    "plan-ending": {"PlanEndsSoon", "PlanEnding"},
    "crash-loop": {"PodNotStarting"},
    "benchmark": {"BenchmarkFailed", "BenchmarkRegression", "BenchmarkOutlier"},
}
_EVERY = 'cluster_name="every"'


def of_every_cluster(expression: str) -> str:
    return expression.replace(_EVERY, 'cluster_name=~".+"')


@needs(installed(), "Prometheus and promtool: Debian's package prometheus")
def test_each_fault_and_no_other() -> None:
    path = Path(__file__).parents[3] / "environments" / "sandbox.yaml"
    well = synthetic_cluster(load_environment(path).environment, START, END, step=60, nodes=2, devices=1)
    node = next(node.name for node in well.nodes if node.gpus)
    clusters = [
        replace(well, cluster=kind)
        if kind == "well"
        else with_faults(replace(well, cluster=kind), Fault(kind=kind, node=node, start=BROKEN))
        for kind in EXPECTED
    ]
    settings, watched = Observability(metrics="advanced"), Watched("every", "eks", instances=100)
    rules = [
        {"record": rule["record"], "expr": of_every_cluster(rule["expr"])}
        for group in recording_groups("every", settings.scrape_seconds)
        for rule in group["rules"]
    ]
    conditions = {
        name: of_every_cluster(alert_rule(alert, settings, watched)["expr"])
        for name, alert in alerts().items()
        # Without a cluster of its own, nothing is absent; and a budget this has none.
        if not re.search(r"absent\(", alert.expression) and name != "SpendAboveBudget"
    }
    names = {name for text in (*conditions.values(), *(rule["expr"] for rule in rules)) for name in names_in(text)}
    fired: dict[str, set[str]] = {kind: set() for kind in EXPECTED}
    with history(metrics_of(*clusters, names=names), rules, start=END - 300, end=END - 60, step=60) as prometheus:
        for name, condition in conditions.items():
            for series in prometheus.instant(condition, END - 60):
                fired[series["metric"]["cluster_name"]].add(name)
    assert fired == EXPECTED
