"""What Prometheus answers to the queries of a panel, asked as Grafana asks them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...planning.monitoring.dashboards.panel import Choice, Panel, filled
from ..programs.prometheus import Prometheus

_LABEL: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_OVER_TIME: Final = ("lines", "stacked", "states")
POINTS: Final = 288
"""Points of a line: one every five minutes of a day, as long as a checkpoint of some gigabytes takes."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer."""

    query: str
    """The legend of the query that it answers."""
    name: str
    """The legend with the labels' values."""
    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]
    """Seconds since 1970, and value; one of them for what is now."""

    @property
    def last(self) -> float:
        """The latest value."""
        return self.points[-1][1]


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is shown, in seconds since 1970."""

    end: float
    hours: float

    @property
    def start(self) -> float:
        """Where it begins."""
        return self.end - self.hours * 3600

    @property
    def step(self) -> float:
        """Seconds between two points of a line."""
        # Recordings are made every minute; finer steps would repeat them.
        return max(60.0, self.hours * 3600 / POINTS)


def ask(server: Prometheus, panel: Panel, choices: Sequence[Choice], span: Span) -> list[Series]:
    """All series of a panel, with everything chosen that can be. Raises QueryError."""
    answers = list[Series]()
    for legend, query in panel.queries.items():
        # "All" is how Grafana asks when nothing is chosen.
        text = filled(query, tuple(choices), f"{span.hours * 60:.0f}m")
        if panel.kind in _OVER_TIME:
            results = [(item["metric"], item["values"]) for item in server.range(text, span.start, span.end, span.step)]
        else:
            results = [(item["metric"], [item["value"]]) for item in server.instant(text, span.end)]
        answers += [_series(legend, labels, values) for labels, values in results]
    return answers


def _series(legend: str, labels: Mapping[str, str], values: Sequence[Sequence[Any]]) -> Series:
    name = _LABEL.sub(lambda result: labels.get(result[1], ""), legend).strip()
    return Series(legend, name, labels, tuple((float(timestamp), float(value)) for timestamp, value in values))
