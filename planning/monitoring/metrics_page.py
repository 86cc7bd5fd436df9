"""The page that names every metric, `docs/metrics.md`, as it is made of the tables."""

from itertools import groupby

from ...config.catalog.instance_types import catalog
from ...config.catalog.metrics import Metric, metrics
from ...config.findings import listed
from ..cost.series import bill, series_rows
from .metric_levels import addon_levels

_EXPORTERS = {
    "dcgm": "GPUs, by NVIDIA's dcgm-exporter",
    "neuron_monitor": "Neuron devices, by AWS's neuron-monitor",
    "efa": "EFA, by AWS's EFA node exporter",
    "node": "Nodes, by node_exporter; Lustre is a file system of each node",
    "kube_state": "Kubernetes objects, by kube-state-metrics",
    "cadvisor": "Containers, by the kubelet's cAdvisor",
    "kubernetes_api": "The Kubernetes API",
    "collector": "The collector itself",
    "kueue": "Queues and quotas, by Kueue, which task governance runs too",
    "training_operator": "Training, by HyperPod's training operator",
    "inference": "Model endpoints, by HyperPod's inference operator",
    "slurm": "Slurm",
    "podwright": "What podwright asks SageMaker and Kubernetes about, once a minute",
}
_EXAMPLE, _NODES = "ml.p5en.48xlarge", 1000
_HEAD = """# Metrics

Every metric that dashboards, recordings and alerts are made of. This page is made of the catalog's `metrics.csv`, the
only place where names stand; a query of anything else fails a test.

Each series also has `cluster_name`, by which clusters that share a workspace are told apart. *Level* is the lowest
level of `observability.metrics` at which a metric is there. *Series* says how many there are for each of something, and
how sure that is: measured on a run of the exporter, documented in its sources, or assumed.
"""


def metrics_page() -> str:
    """The whole page, in Markdown."""
    parts = [_HEAD, _levels()]
    for exporter, result in groupby(metrics().values(), key=lambda metric: metric.exporter):
        parts.append(_section(_EXPORTERS[exporter], list(result)))
    return "\n".join([*parts, _series()])


def _levels() -> str:
    lines = [
        "## Levels",
        "",
        "What HyperPod's collector is told at each level. `observability.levels` sets one source apart.",
        "",
        "| source | key of the add-on | basic | advanced |",
        "| --- | --- | --- | --- |",
    ]
    for source, (key, words) in addon_levels().items():
        lines.append(f"| `{source}` | `{key}` | {words['basic']} | {words['advanced']} |")
    return "\n".join([*lines, ""])


def _section(title: str, result: list[Metric]) -> str:
    """The metrics of one exporter as a table of Markdown."""
    sources = dict.fromkeys(f"[{item.text}]({item.url}), {item.date}" for metric in result for item in metric.sources)
    common = set(result[0].labels).intersection(*(metric.labels for metric in result))
    shared = [label for label in result[0].labels if label in common]
    all_have = [f"All have the labels {listed((f'`{label}`' for label in shared), 'and')}.", ""] if shared else []
    lines = [
        f"## {title}",
        "",
        *(f"- {source}" for source in sources),
        "",
        *all_have,
        "| metric | kind, unit | labels | level | series | meaning |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for metric in result:
        labels = ", ".join(f"`{label}`" for label in metric.labels if label not in shared) or "–"
        count = f"{metric.series} for each {metric.per.replace('_', ' ')}, {metric.basis}"
        unit = f"{metric.kind}, {metric.unit.replace('_', ' ')}"
        lines.append(f"| `{metric.name}` | {unit} | {labels} | {metric.level} | {count} | {metric.says} |")
    return "\n".join([*lines, ""])


def _series() -> str:
    """How many series a cluster of some sizes has, as a table of Markdown."""
    instance = catalog().find(_EXAMPLE)
    assert instance is not None
    lines = [
        "## How many series, and what they cost",
        "",
        "All series of an exporter, those included that nothing here reads.",
        "",
        "| exporter | level | for each | series | how sure | what |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in series_rows():
        per = row.per.replace("_", " ")
        lines.append(f"| {row.exporter} | {row.level} | {per} | {row.series:,} | {row.basis} | {row.what} |")
    lines += [
        "",
        f"At {_NODES:,} nodes of {_EXAMPLE}, a sample every 30 seconds and 150 days of retention:",
        "",
        "| level | series of a node | series | samples a month | US dollars a month |",
        "| --- | --- | --- | --- | --- |",
    ]
    for level in ("basic", "advanced"):
        resolved_bill = bill(instance, _NODES, level)
        samples = f"{resolved_bill.samples / 1e9:,.0f} billion"
        lines.append(
            f"| {level} | {resolved_bill.per_node:,} | {resolved_bill.series:,} | {samples} | "
            f"{resolved_bill.usd:,.0f} |"
        )
    lines += [
        "",
        "[measurements.md](measurements.md#series-and-what-they-cost) has other types. Half the samples, with",
        "`scrape_seconds: 60`, cost about half.",
    ]
    return "\n".join([*lines, ""])
