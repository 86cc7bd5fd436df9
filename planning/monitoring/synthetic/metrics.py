"""The metrics of a made-up cluster as OpenMetrics text: every one of the catalog that it would have.

`history` writes a span of time, which `promtool tsdb create-blocks-from openmetrics` puts into a Prometheus at once.
`snapshot` is what an exporter shows at a moment.
"""

from collections.abc import Collection, Iterator
from itertools import pairwise
from random import Random

from ....config.catalog.metrics import Metric, metrics
from .cluster import Change, World
from .places import Labels, Place, places, series_of
from .signals import Signal, signal_of, wavers

_ORCHESTRATOR = {"eks": ("slurm",), "slurm": ("kube_state", "kubernetes_api", "cadvisor", "kueue", "training_operator")}
_DAY = 86400.0


def history(*worlds: World, names: Collection[str] | None = None) -> str:
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
        for world in worlds:
            for place in _cut(world, metric) if _has(world, metric) else ():
                name = f"{metric.name}{_labelled(series_of(metric, place))}"
                samples = _samples(world, metric, signal, place)
                lines += [f"{name} {value:.10g} {moment:.0f}" for moment, value in samples]
    return "\n".join([*lines, "# EOF", ""])


def snapshot(world: World, moment: float) -> str:
    """Each metric with its value at a moment, without times, in the form that Prometheus scrapes."""
    lines = list[str]()
    for metric in metrics().values():
        if not _has(world, metric):
            continue
        lines += _head(metric)
        signal = signal_of(metric)
        for place in _cut(world, metric):
            if not place.start <= moment < place.end:
                continue
            value = _value(signal, world, place, moment, _wavering(metric, place), _changes(world, metric, place))
            if value is not None and metric.kind == "counter":
                value *= moment - max(world.start, place.start) + _DAY
            if value is not None:
                lines.append(f"{metric.name}{_labelled(series_of(metric, place))} {value:.10g}")
    return "\n".join([*lines, "# EOF", ""])


def _has(world: World, metric: Metric) -> bool:
    """Whether a cluster of this orchestrator has what exports a metric."""
    return metric.exporter not in _ORCHESTRATOR[world.orchestrator]


def _head(metric: Metric) -> list[str]:
    """Parts of histograms, and counters without `_total`, have no type of their own in OpenMetrics."""
    family = metric.name.removesuffix("_total")
    plain = metric.kind == "gauge" or family != metric.name
    says = metric.says.replace("\\", "\\\\").replace('"', '\\"')
    return [f"# HELP {family} {says}", f"# TYPE {family} {metric.kind if plain else 'unknown'}"]


def _labelled(labels: Labels) -> str:
    shown = [f'{name}="{value}"' for name, value in sorted(labels.items()) if value]
    return "{" + ",".join(shown) + "}"


def _cut(world: World, metric: Metric) -> Iterator[Place]:
    """The places of a metric; the time in which a change gives a series other labels is a series of its own."""
    changes = [change for change in world.changes if change.metric == metric.name and change.labels]
    for place in places(world, metric):
        mine = [change for change in changes if change.touches(metric.name, place.labels)]
        edges = {edge for change in mine for edge in (change.start, change.end) if place.start < edge < place.end}
        for start, end in pairwise(sorted({place.start, place.end, *edges})):
            labels = dict(place.labels)
            for change in mine:
                if change.start <= start < change.end:
                    labels |= change.labels
            yield Place(
                labels=labels, start=start, end=end, node=place.node, job=place.job, team=place.team, plan=place.plan
            )


def _samples(world: World, metric: Metric, signal: Signal, place: Place) -> Iterator[tuple[float, float]]:
    total: float | None = None
    wavering, changes = _wavering(metric, place), _changes(world, metric, place)
    for moment in world.moments:
        if not place.start <= moment < place.end:
            continue
        value = _value(signal, world, place, moment, wavering, changes)
        if value is None:
            continue
        if metric.kind == "counter":
            # One that was there before has counted for a day; one that began within the world starts at nothing.
            total = value * (_DAY if place.start < world.start else 0) if total is None else total + value * world.step
            value = total
        yield moment, value


def _value(
    signal: Signal, world: World, place: Place, moment: float, wavering: Random | None, changes: list[Change]
) -> float | None:
    value = signal(world, place, moment)
    if value and wavering:
        value *= wavering.uniform(0.98, 1.02)
    for change in changes:
        if change.start <= moment < change.end:
            if change.how == "gone":
                return None
            value = {"set": change.value, "add": (value or 0) + change.value, "times": (value or 0) * change.value}[
                change.how
            ]
    return value


def _wavering(metric: Metric, place: Place) -> Random | None:
    """What makes values never quite the same, and the same each time."""
    if not wavers(metric):
        return None
    return Random(metric.name + place.labels.get("UUID", "") + place.labels.get("instance", ""))


def _changes(world: World, metric: Metric, place: Place) -> list[Change]:
    """The changes of a series, whose labels may be their doing already."""
    found = list[Change]()
    for change in world.changes:
        wanted = dict(change.where) | dict(change.labels)
        if change.metric == metric.name and all(place.labels.get(name) == value for name, value in wanted.items()):
            found.append(change)
    return found
