"""What a dashboard is made of: panels with their queries, in rows, as data that Grafana and the preview both draw."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Kind = Literal["lines", "stacked", "bars", "number", "states", "table"]
"""How a panel draws: lines or stacked areas over time; a bar for each series, a number, or a table of what is now;
states over time, one lane for each series."""
Colour = Literal["green", "yellow", "orange", "red", "blue", "purple", "grey"]

WIDTH: Final = 24
"""Columns of a dashboard, as in Grafana."""
UID_CHARACTERS: Final = 40
"""Longest uid. Source: Grafana 10.4 documentation, HTTP API, "Dashboard" and "Data source"."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measurement."""

    grafana: str
    """Grafana's id of it. Source: Grafana 10.4, packages/grafana-data, value formats."""
    suffix: str
    """As it is written behind a number."""
    factor: float = 1
    """What a value is multiplied with to be written with the suffix."""


UNITS: Final = {
    "count": Unit("short", ""),
    "fraction": Unit("percentunit", "%", 100),
    "percent": Unit("percent", "%"),
    "bytes": Unit("bytes", "GiB", 1 / 1024**3),
    "bytes/s": Unit("binBps", "GiB/s", 1 / 1024**3),
    "GB/s": Unit("suffix:GB/s", "GB/s"),
    "TFLOPS": Unit("suffix:TFLOPS", "TFLOPS"),
    "celsius": Unit("celsius", "°C"),
    "watts": Unit("watt", "W"),
    "seconds": Unit("s", "s"),
    "hours": Unit("suffix:h", "h"),
    "days": Unit("suffix:d", "d"),
    "per second": Unit("suffix:/s", "/s"),
    "GPU hours": Unit("suffix:GPU-h", "GPU-h"),
    "USD": Unit("currencyUSD", "USD"),
}
"""The units that panels use, by our name."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture.

    In a query `$cluster` stands for the labels of the environment's cluster and `$rate` for the span of a rate; what is
    chosen above the dashboard, such as `$node`, stands behind `=~`; `$__range` is the length of what is shown.
    """

    kind: Kind
    title: str
    unit: str
    """Key of `UNITS`."""
    queries: Mapping[str, str]
    """PromQL by the name of its series, in which `{{label}}` is a label's value; of a table, by the name of its
    column."""
    says: str
    """What it shows and what to make of it; behind the (i) of the panel."""
    steps: Mapping[float, Colour] = field(default_factory=dict)
    """Colours, each from a value on; with states, at a value."""
    words: Mapping[float, str] = field(default_factory=dict)
    """What states are called."""
    width: int = 12
    height: int = 8
    most: float | None = None
    """End of the axis, where it has one."""
    may_be_empty: bool = False
    """Whether no series at all is good news, such as no GPU with an Xid."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels below a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """What can be chosen above a dashboard: the values of a label of a metric; all at first.

    Of several with one name the first counts whose metric is there.
    """

    name: str
    label: str
    metric: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One page."""

    name: str
    """Ends its address; never changes, since people keep links."""
    title: str
    says: str
    needs: tuple[str, ...]
    """Metrics and recordings without any of which there is nothing to show."""
    rows: tuple[Row, ...]
    choices: tuple[Choice, ...] = ()
    hours: int = 6
    """What it shows at first."""

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels."""
        return tuple(panel for row in self.rows for panel in row.panels)


def uid(environment: str, name: str) -> str:
    """A uid in Grafana for the thing `name` of an environment: the same forever, and no other environment's.

    An environment's name that is too long is cut, and told apart by a digest of the whole.
    """
    text = f"{environment}-{name}"
    if len(text) <= UID_CHARACTERS:
        return text
    digest = hashlib.sha256(environment.encode()).hexdigest()[:8]
    return f"{environment[: UID_CHARACTERS - len(name) - 10]}-{digest}-{name}"


def filled(expression: str, choices: tuple[Choice, ...], span: str) -> str:
    """A query without anything to choose: every value, over `span` (such as 6h)."""
    for choice in choices:
        expression = expression.replace(f'=~"${choice.name}"', '=~".*"')
    return expression.replace("$__range", span)
