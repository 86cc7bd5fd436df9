"""Measurements of many devices and nodes, brought together for tables and pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ...planning.node.benchmark_results import BenchmarkResults, Measurement, Outcome

ORDER: tuple[Outcome, ...] = ("fail", "warn", "pass", "skip")
"""Outcomes, the worst first."""


@dataclass(frozen=True, slots=True)
class Point:
    """A measurement and the node that it is of."""

    run: BenchmarkResults
    measurement: Measurement
    value: float

    @property
    def where(self) -> str:
        """The node and its devices."""
        devices = devices_of(self.measurement)
        return f"{self.run.instance_id or self.run.group}{f' [{devices}]' if devices else ''}"


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel on all nodes of a group that are of one type."""

    group: str
    instance_type: str
    measurements: tuple[tuple[BenchmarkResults, Measurement], ...]

    @property
    def first(self) -> Measurement:
        """What all have in common: name, unit and direction."""
        return self.measurements[0][1]

    @property
    def points(self) -> list[Point]:
        """Those with a value, the worst first."""
        matches = [Point(run, item, item.value) for run, item in self.measurements if item.value is not None]
        return sorted(matches, key=lambda point: point.value, reverse=not self.first.higher_is_better)

    @property
    def outcome(self) -> Outcome:
        """The worst one."""
        return min((item.outcome for _, item in self.measurements), key=ORDER.index)

    @property
    def middle(self) -> float:
        """The median of the values; there has to be one."""
        return median(point.value for point in self.points)

    @property
    def spread_percent(self) -> float | None:
        """How far worst and best are apart, in percent of the median."""
        points = self.points
        if len(points) < 2 or not self.middle:
            return None
        return abs(points[-1].value - points[0].value) / abs(self.middle) * 100

    def line(self, name: str) -> float | None:
        """The strictest `fail_below` or `warn_below`, or the `bound`."""
        values = [value for _, item in self.measurements if (value := getattr(item, name)) is not None]
        return (max if self.first.higher_is_better else min)(values, default=None)


def rows(runs: Sequence[BenchmarkResults]) -> list[Row]:
    """Kernels by group and type, each in the order in which it was run."""
    results: dict[tuple[str, str, str, str], list[tuple[BenchmarkResults, Measurement]]] = {}
    for run in runs:
        for item in run.results:
            results.setdefault((run.group, run.instance_type, item.name, item.unit), []).append((run, item))
    order = {key: number for number, key in enumerate(results)}
    keys = sorted(results, key=lambda key: (key[0], key[1], order[key]))
    return [Row(key[0], key[1], tuple(results[key])) for key in keys]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that did not pass, for one reason, on one or more nodes."""

    outcome: Outcome
    where: str
    """Kernel and devices, with the node where it is one of several."""
    reason: str


def faults(runs: Sequence[BenchmarkResults]) -> list[Fault]:
    """What did not pass, the worst first. What many nodes say alike is said once."""
    nodes: dict[tuple[Outcome, str, str], list[str]] = {}
    for run in runs:
        for item in run.results:
            if item.outcome != "pass":
                devices = devices_of(item)
                name = f"{item.name} [{devices}]" if devices else item.name
                nodes.setdefault((item.outcome, name, item.reason), []).append(run.instance_id or run.group)
    results = [
        Fault(outcome, f"{name} on {some[0] if len(some) == 1 else f'{len(some)} nodes'}", reason)
        for (outcome, name, reason), some in nodes.items()
    ]
    return sorted(results, key=lambda fault: ORDER.index(fault.outcome))


def devices_of(measurement: Measurement) -> str:
    """Its devices in short, such as `3`, `0-5` for a pair or `0…7`; empty for the whole node."""
    devices = measurement.devices
    return f"{devices[0]}…{devices[-1]}" if len(devices) > 2 else "-".join(map(str, devices))
