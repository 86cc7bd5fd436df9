"""The metrics of a made-up cluster as OpenMetrics text: every one of the catalog that it would have.

`history` writes a span of time, which `promtool tsdb create-blocks-from openmetrics` puts into a Prometheus at once.
`snapshot` is what an exporter shows at a moment.
"""

from collections.abc import Collection, Iterator
from itertools import pairwise
from random import Random

from ....config.catalog.metrics import Metric, metrics
from .cluster import Change, SyntheticCluster
from .series_sources import Labels, SeriesSource, series_of, series_sources
from .signals import Signal, signal_of, wavers

_ORCHESTRATOR = {"eks": ("slurm",), "slurm": ("kube_state", "kubernetes_api", "cadvisor", "kueue", "training_operator")}
_DAY = 86400.0


def history(*clusters: SyntheticCluster, names: Collection[str] | None = None) -> str:
    """Each metric with all its samples from a world's start to its end; only those named, where `names` are given.

    Worlds differ in the names of their clusters. A histogram is named by its parts. A sample takes some microseconds,
    so a caller who knows what it asks says so.
    """
    lines = list[str]()
    for metric in metrics().values():
        if names is not None and metric.name not in names:
            continue
        lines += _head(metric)
        signal = signal_of(metric)
        for cluster in clusters:
            found = _cut(cluster, metric) if _has(cluster, metric) else ()
            # A pod of one name is on one node after the other, and the samples of its series have to be in order.
            for series in sorted(found, key=lambda one: one.start):
                name = f"{metric.name}{_labelled(series_of(metric, series))}"
                samples = _samples(cluster, metric, signal, series)
                lines += [f"{name} {value:.10g} {timestamp:.0f}" for timestamp, value in samples]
    return "\n".join([*lines, "# EOF", ""])


def snapshot(cluster: SyntheticCluster, timestamp: float) -> str:
    """Each metric with its value at a moment, without times, in the form that Prometheus scrapes."""
    lines = list[str]()
    for metric in metrics().values():
        if not _has(cluster, metric):
            continue
        lines += _head(metric)
        signal = signal_of(metric)
        for series in _cut(cluster, metric):
            if not series.start <= timestamp < series.end:
                continue
            value = _value(
                signal, cluster, series, timestamp, _wavering(metric, series), _changes(cluster, metric, series)
            )
            if value is not None and metric.kind == "counter":
                value *= timestamp - max(cluster.start, series.start) + _DAY
            if value is not None:
                lines.append(f"{metric.name}{_labelled(series_of(metric, series))} {value:.10g}")
    return "\n".join([*lines, "# EOF", ""])


def _has(cluster: SyntheticCluster, metric: Metric) -> bool:
    """Whether a cluster of this orchestrator has what exports a metric."""
    return metric.exporter not in _ORCHESTRATOR[cluster.orchestrator]


def _head(metric: Metric) -> list[str]:
    """Parts of histograms, and counters without `_total`, have no type of their own in OpenMetrics."""
    family = metric.name.removesuffix("_total")
    plain = metric.kind == "gauge" or family != metric.name
    says = metric.says.replace("\\", "\\\\").replace('"', '\\"')
    return [f"# HELP {family} {says}", f"# TYPE {family} {metric.kind if plain else 'unknown'}"]


def _labelled(labels: Labels) -> str:
    shown = [f'{name}="{value}"' for name, value in sorted(labels.items()) if value]
    return "{" + ",".join(shown) + "}"


def _cut(cluster: SyntheticCluster, metric: Metric) -> Iterator[SeriesSource]:
    """The places of a metric; the time in which a change gives a series other labels is a series of its own."""
    changes = [change for change in cluster.changes if change.metric == metric.name and change.labels]
    for series in series_sources(cluster, metric):
        mine = [change for change in changes if change.touches(metric.name, series.labels)]
        edges = {edge for change in mine for edge in (change.start, change.end) if series.start < edge < series.end}
        for start, end in pairwise(sorted({series.start, series.end, *edges})):
            labels = dict(series.labels)
            for change in mine:
                if change.start <= start < change.end:
                    labels |= change.labels
            yield SeriesSource(
                labels=labels,
                start=start,
                end=end,
                node=series.node,
                job=series.job,
                team=series.team,
                plan=series.plan,
            )


def _samples(
    cluster: SyntheticCluster, metric: Metric, signal: Signal, series: SeriesSource
) -> Iterator[tuple[float, float]]:
    """The samples of a series; a counter sums its signal."""
    # One that was there before has counted for a day; one that began later starts at nothing.
    total, seconds = 0.0, float(_DAY) if series.start < cluster.start else 0.0
    wavering, changes = _wavering(metric, series), _changes(cluster, metric, series)
    for timestamp in cluster.moments:
        if not series.start <= timestamp < series.end:
            continue
        value = _value(signal, cluster, series, timestamp, wavering, changes)
        if value is None:
            continue
        if metric.kind == "counter":
            total += value * seconds
            value, seconds = total, cluster.step
        yield timestamp, value


def _value(
    signal: Signal,
    cluster: SyntheticCluster,
    series: SeriesSource,
    timestamp: float,
    wavering: Random | None,
    changes: list[Change],
) -> float | None:
    """A signal at one time, with its noise and the faults that change it; None where it is absent."""
    value = signal(cluster, series, timestamp)
    if value and wavering:
        value *= wavering.uniform(0.98, 1.02)
    for change in changes:
        if change.start <= timestamp < change.end:
            if change.how == "gone":
                return None
            value = {"set": change.value, "add": (value or 0) + change.value, "times": (value or 0) * change.value}[
                change.how
            ]
    return value


def _wavering(metric: Metric, series: SeriesSource) -> Random | None:
    """What makes values never quite the same, and the same each time."""
    if not wavers(metric):
        return None
    return Random(metric.name + series.labels.get("UUID", "") + series.labels.get("instance", ""))


def _changes(cluster: SyntheticCluster, metric: Metric, series: SeriesSource) -> list[Change]:
    """The changes of a series, whose labels may be their doing already."""
    result = list[Change]()
    for change in cluster.changes:
        desired = dict(change.where) | dict(change.labels)
        if change.metric == metric.name and all(series.labels.get(name) == value for name, value in desired.items()):
            result.append(change)
    return result
