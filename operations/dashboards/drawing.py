"""A panel and what Prometheus answered: plotly draws what has an axis, a template the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from ...planning.monitoring.dashboards.panel import Colour, Panel
from .answers import Series, Span
from .quantities import scale, written

COLOURS: Final[Mapping[Colour, str]] = {
    "green": "#2f7d4f",
    "yellow": "#d4b106",
    "orange": "#d97706",
    "red": "#c2302a",
    "blue": "#2f6fbf",
    "purple": "#7a4fbf",
    "grey": "#8a8f98",
}
_SERIES: Final = (
    *("#2f6fbf", "#d97706", "#2f7d4f", "#c2302a", "#7a4fbf", "#0f8b8d", "#8c564b", "#c44f9c", "#7f8c1f", "#5b6470"),
)
PIXELS: Final = 34
"""Height of a row of Grafana's grid."""
_HEADER: Final = 46
_LINE: Final = 20
"""Height of a line of names."""
# More names leave no room for lines; the pointer shows them.
_MOST_NAMES: Final = 8


@dataclass(frozen=True)
class Tile:
    """A number."""

    value: str
    colour: str
    label: str
    """Which of several; empty for the only one."""


@dataclass(frozen=True)
class Bar:
    """The latest value of a series."""

    name: str
    value: str
    percent: float
    """Its length."""
    colour: str


@dataclass(frozen=True)
class Name:
    """A line of a figure, as its legend has it."""

    name: str
    colour: str


@dataclass(frozen=True)
class TableRow:
    """A row of a table."""

    labels: Sequence[str]
    cells: Sequence[str]


@dataclass(frozen=True)
class Table:
    """Values by labels, with a column for each query."""

    labels: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[TableRow]


@dataclass(frozen=True)
class Text:
    """What a panel without an axis shows."""

    empty: str = ""
    """What is said where there is nothing."""
    tiles: Sequence[Tile] = ()
    bars: Sequence[Bar] = ()
    names: Sequence[Name] = ()
    """Below a figure."""
    table: Table | None = None


def figure(panel: Panel, series: Sequence[Series], span: Span) -> dict[str, Any] | None:
    """Data and layout of plotly's figure of a panel; None where it has none, because it is HTML or empty."""
    if not series or panel.kind in ("number", "table", "bars"):
        return None
    import plotly.graph_objects as go

    drawn = go.Figure(layout=_layout(panel, series, span))
    {"lines": _lines, "stacked": _stacked, "states": _states}[panel.kind](go, drawn, panel, series, span)
    return drawn.to_plotly_json()


def text(panel: Panel, series: Sequence[Series]) -> Text:
    """What a panel shows in words: all of it, or the names of the lines that plotly draws."""
    if not series:
        return Text("none, which is good" if panel.may_be_empty else "no data")
    if panel.kind == "number":
        many = len(series) > 1
        return Text(
            tiles=[
                Tile(written(one.last, panel.unit), colour(panel, one.last), one.name if many else "") for one in series
            ]
        )
    if panel.kind == "bars":
        return Text(bars=_bars(panel, series))
    return Text(names=_names(panel, series), table=_table(panel, series) if panel.kind == "table" else None)


def _names(panel: Panel, series: Sequence[Series]) -> list[Name]:
    """The legend: of states their words, of lines their names unless there are more than an eye tells apart."""
    if panel.kind == "states":
        return [Name(panel.words[value], COLOURS[panel.steps[value]]) for value in sorted(panel.words)]
    if panel.kind not in ("lines", "stacked") or len(series) > _MOST_NAMES:
        return []
    return [Name(one.name or "value", _SERIES[index % len(_SERIES)]) for index, one in enumerate(series)]


def _bars(panel: Panel, series: Sequence[Series]) -> list[Bar]:
    """A bar for the last value of each series, the largest at the top."""
    most = panel.most or max((one.last for one in series), default=0)
    return [
        Bar(
            one.name or "value",
            written(one.last, panel.unit),
            max(0.0, min(100 * one.last / most if most else 0, 100)),
            colour(panel, one.last),
        )
        for one in sorted(series, key=lambda one: -one.last)
    ]


def _layout(panel: Panel, series: Sequence[Series], span: Span) -> dict[str, Any]:
    """Plotly's layout of a panel, as high as Grafana draws it."""
    axis = {"zeroline": False, "automargin": True}
    named = len(_names(panel, series)) > 0
    return {
        "height": panel.height * PIXELS - _HEADER - named * _LINE,
        "margin": {"l": 8, "r": 12, "t": 6, "b": 6},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, Segoe UI, Helvetica, Arial, sans-serif", "size": 12},
        "colorway": list(_SERIES),
        "hovermode": "x unified" if panel.kind in ("lines", "stacked") else "closest",
        "hoverlabel": {"namelength": -1, "font": {"size": 12}},
        "showlegend": False,
        "xaxis": axis | _time_axis(span),
        "yaxis": dict(axis),
    }


def _time_axis(span: Span) -> dict[str, Any]:
    # Up to a day and a half the hour tells more than the date, which stands below the first hour of each day.
    form = "%H:%M\n%d %b" if span.hours <= 36 else "%d %b"
    return {"tickformat": form, "tickangle": 0, "nticks": 8, "range": [_moment(span.start), _moment(span.end)]}


def _lines(go: Any, drawn: Any, panel: Panel, series: Sequence[Series], span: Span, **more: Any) -> None:
    """A line for each series, and dashed ones where the panel changes its colour; `more` is for plotly's Scatter."""
    factor, suffix = scale(panel.unit, _largest(series))
    moments = _moments(span)
    for one in series:
        values = dict(one.points)
        drawn.add_trace(
            go.Scatter(
                x=_times(span),
                # A line ends where its series does.
                y=[values[timestamp] * factor if timestamp in values else None for timestamp in moments],
                name=one.name or "value",
                mode="lines",
                line={"width": 1.6},
                hovertemplate="%{y:.4~g} " + suffix,
                # Four digits: measured values are no more exact.
                **more,
            )
        )
    drawn.update_yaxes(ticksuffix=f" {suffix}" if suffix else "", rangemode="tozero")
    # A little more than the most, so that a line at the top is seen.
    if panel.most is not None:
        drawn.update_yaxes(range=[0, panel.most * factor * 1.02])
    for step in filter(None, panel.steps):
        drawn.add_hline(y=step * factor, line={"dash": "dash", "width": 1, "color": COLOURS[panel.steps[step]]})


def _stacked(go: Any, drawn: Any, panel: Panel, series: Sequence[Series], span: Span) -> None:
    _lines(go, drawn, panel, series, span, stackgroup="all")
    drawn.update_traces(line={"width": 0.5})


def _cells(one: Series, moments: Sequence[float], names: Mapping[float, Any], absent: Any) -> list[Any]:
    """What `names` calls the value of a series at each timestamp; `absent` where it has none, or one without a name."""
    values = dict(one.points)
    return [names.get(values[timestamp], absent) if timestamp in values else absent for timestamp in moments]


def _states(go: Any, drawn: Any, panel: Panel, series: Sequence[Series], span: Span) -> None:
    """A lane for each series, coloured by the state that each value means."""
    moments = _moments(span)
    values = sorted(panel.words)
    index = {value: position for position, value in enumerate(values)}
    count = len(values)
    scale_of_colours = [
        [edge, COLOURS[panel.steps[value]]]
        # Each colour at both its edges: plotly would otherwise blend neighbours.
        for position, value in enumerate(values)
        for edge in (position / count, (position + 1) / count)
    ]
    drawn.add_trace(
        go.Heatmap(
            x=_times(span),
            y=[one.name for one in series],
            z=[_cells(one, moments, index, None) for one in series],
            text=[_cells(one, moments, panel.words, "") for one in series],
            # Half a step beyond, so that each whole number is in the middle of its colour.
            zmin=-0.5,
            zmax=count - 0.5,
            colorscale=scale_of_colours,
            ygap=3,
            showscale=False,
            hovertemplate="%{y}<br>%{x}: %{text}<extra></extra>",
        )
    )


def colour(panel: Panel, value: float) -> str:
    """The colour of a value: that of the highest step that it has reached."""
    reached = [step for step in sorted(panel.steps) if value >= step]
    return COLOURS[panel.steps[reached[-1]]] if reached else COLOURS["blue"]


def _table(panel: Panel, series: Sequence[Series]) -> Table:
    columns = list(dict.fromkeys(one.query for one in series))
    labels = list(dict.fromkeys(label for one in series for label in one.labels if label != "__name__"))
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for one in series:
        key = tuple(one.labels.get(label, "") for label in labels)
        rows.setdefault(key, dict.fromkeys(columns, ""))[one.query] = written(one.last, panel.unit)
    return Table(labels, columns, [TableRow(key, list(cells.values())) for key, cells in sorted(rows.items())])


def _largest(series: Sequence[Series]) -> float:
    return max((abs(value) for one in series for _, value in one.points), default=0.0)


def _moments(span: Span) -> list[float]:
    """Every moment that Prometheus was asked about; it answers in milliseconds."""
    count = int((span.end - span.start) / span.step) + 1
    return [round(span.start + span.step * index, 3) for index in range(count)]


@cache
def _times(span: Span) -> tuple[str, ...]:
    return tuple(map(_moment, _moments(span)))


def _moment(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%d %H:%M:%S")
