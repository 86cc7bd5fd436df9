"""Pictures of a simulation, as plotly reads them. Colours are names of the page's style sheet: it is light or dark."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from ...planning.simulation.summary.figures import Figures, percentile
from ...planning.simulation.summary.gantt import Gantt, gantt
from .policies import UNDATED
from .summary import duration

_PARTS: Final = (
    ("in_quota", "in quota", "--green", ""),
    ("idle", "idle quota", "--faint", ""),
    ("borrowed", "borrowed", "--orange", ""),
    ("waiting", "waiting", "--red", "/"),
)
"""From the ground up: what is held of the guarantee and what is idle of it reach its height together."""
_HUES: Final = 10
_MOST_TEAMS: Final = 12
_SLOT_PIXELS: Final = 5
_NAME_SLOTS: Final = 4
_MOST_ARROWS: Final = 80
_LEGEND_PIXELS: Final = 48
Window = Mapping[str, Any]


class Picture(NamedTuple):
    """A figure with what it shows."""

    title: str
    words: str
    figure: dict[str, Any]


class Axis(NamedTuple):
    """Time, as dates where the trace has a real clock, and as days from its beginning otherwise."""

    start: float
    end: float

    def at(self, time: float) -> str | float:
        """Where a time is."""
        if self.start < UNDATED:
            return round((time - self.start) / 86400, 5)
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")

    def layout(self, start: float | None = None, end: float | None = None) -> dict[str, Any]:
        """Plotly's axis of a time within it, or of all of it."""
        bounds = [self.at(self.start if start is None else start), self.at(self.end if end is None else end)]
        # A title would lie on the legend. Of bars, whose lengths are numbers, plotly would not see that they are dates.
        kind = {"type": "linear", "ticksuffix": " d"} if self.start < UNDATED else {"type": "date"}
        return {"range": bounds, "gridcolor": "--line", "zeroline": False, "automargin": True} | kind


def pictures(figures: Figures, windows: Sequence[Window], start: float | None = None) -> list[Picture]:
    """All pictures of one policy, in the order of the page; `start` is where jobs on their domains begin."""
    outcome = figures.outcome
    axis = Axis(outcome.start, outcome.end)
    hues = {team.team: f"--s{index % _HUES}" for index, team in enumerate(figures.teams)}
    ranked = sorted(figures.teams, key=lambda team: -sum(team.hours))[:_MOST_TEAMS]
    named = [team.team for team in figures.teams if team in ranked]
    more = len(figures.teams) - len(named)
    besides = f" The {more} teams with the fewest accelerator-hours are in the table alone." if more else ""
    drawn = [
        Picture(
            "Accelerators in use, by team",
            f"Mean of each period; dashed: the total.{besides}",
            _used(figures, axis, named, hues, windows),
        ),
        *(
            Picture(
                f"Team {team}",
                "What it holds of its guarantee, what is idle of that, what it borrows, and what its jobs wait for.",
                _team(figures, axis, team, windows),
            )
            for team in named
        ),
        Picture(
            "Waits",
            "Part of a team's jobs that had started so long after they were submitted.",
            _waits(figures, named, hues),
        ),
        Picture(
            "Fairness",
            "Jain's index: 1 if every team with demand had the same share of its entitlement. "
            "Dotted: what a team borrowed in percent of everything, by its weight.",
            _fairness(figures, axis, named, hues),
        ),
    ]
    chart = gantt(outcome, start)
    if chart.bars:
        drawn.append(Picture("Jobs on their domains", _gantt_words(chart), _gantt(chart, axis, hues, windows)))
    return drawn


def _layout(axis: dict[str, Any], height: int, y: str, **more: Any) -> dict[str, Any]:
    """Plotly's layout of a figure so many pixels high, with `y` as the name of its upright axis."""
    return {
        "height": height,
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, Segoe UI, Helvetica, Arial, sans-serif", "size": 12, "color": "--ink"},
        "hovermode": "x unified",
        "hoverlabel": {"namelength": -1, "bgcolor": "--card", "bordercolor": "--line", "font": {"color": "--ink"}},
        "legend": {"orientation": "h", "y": -_LEGEND_PIXELS / (height - _LEGEND_PIXELS), "x": 0, "yanchor": "top"},
        "xaxis": axis,
        "yaxis": {
            "gridcolor": "--line",
            "zeroline": False,
            "automargin": True,
            "rangemode": "tozero",
            "title": {"text": y},
        },
        **more,
    }


def _used(
    figures: Figures, axis: Axis, teams: Sequence[str], hues: Mapping[str, str], windows: Sequence[Window]
) -> dict[str, Any]:
    """What teams hold on each other, below what there is."""
    timeline = figures.timeline
    slice_hours = timeline.seconds / 3600
    times = [axis.at(start) for start in timeline.starts]
    data = []
    for team in teams:
        held = [(hours.in_quota + hours.borrowed) / slice_hours for hours in timeline.teams[team]]
        data.append(_area(times, held, team, hues[team]))
    steps = figures.outcome.accelerators()
    existing = [*steps, (axis.end, steps[-1][1])]
    data.append(
        {
            "type": "scatter",
            "x": [axis.at(time) for time, _ in existing],
            "y": [amount for _, amount in existing],
            "name": "there are",
            "mode": "lines",
            "line": {"width": 1, "color": "--soft", "shape": "hv", "dash": "dash"},
            "hovertemplate": "%{y}",
        }
    )
    layout = _layout(axis.layout(), 300, "accelerators", shapes=_windows(windows, axis, axis.start, axis.end))
    # Above the line there is room for the names of plans.
    layout["yaxis"]["range"] = [0, 1.2 * max(amount for _, amount in existing)]
    return {"data": data, "layout": layout}


def _area(times: Sequence[Any], values: Sequence[float], name: str, hue: str, pattern: str = "") -> dict[str, Any]:
    """A layer of a stack that changes in steps."""
    filled = {"fillpattern": {"shape": pattern, "size": 5, "solidity": 0.35}} if pattern else {}
    return {
        "type": "scatter",
        "x": times,
        "y": [round(value, 3) for value in values],
        "name": name,
        "mode": "lines",
        "stackgroup": "all",
        "line": {"width": 0.8, "color": hue, "shape": "hv"},
        "hovertemplate": "%{y:.4~g}",
        **filled,
    }


def _team(figures: Figures, axis: Axis, team: str, windows: Sequence[Window]) -> dict[str, Any]:
    """The four kinds of accelerator-hours of a team on each other, with the windows of training plans behind them."""
    timeline = figures.timeline
    slice_hours = timeline.seconds / 3600
    times = [axis.at(start) for start in timeline.starts]
    rows = timeline.teams[team]
    data = []
    for part, name, hue, pattern in _PARTS:
        amounts = [getattr(hours, part) / slice_hours for hours in rows]
        data.append(_area(times, amounts, name, hue, pattern))
    shapes = _windows(windows, axis, axis.start, axis.end)
    return {"data": data, "layout": _layout(axis.layout(), 260, "accelerators", shapes=shapes)}


def _windows(windows: Sequence[Window], axis: Axis, start: float, end: float) -> list[dict[str, Any]]:
    """The windows of training plans within a time, each once whatever groups it gives instances."""
    spans = dict.fromkeys((window["plan"], window["start"], window["end"]) for window in windows)
    return [
        {
            "type": "rect",
            "yref": "paper",
            "x0": axis.at(max(first, start)),
            "x1": axis.at(min(last, end)),
            "y0": 0,
            "y1": 1,
            "fillcolor": "--blue-tint",
            "line": {"color": "--blue", "width": 1, "dash": "dot"},
            "layer": "below",
            "label": {"text": f"plan {plan}", "textposition": "top left", "font": {"color": "--blue", "size": 12}},
        }
        for plan, first, last in spans
        if last > start and first < end
    ]


def _waits(figures: Figures, teams: Sequence[str], hues: Mapping[str, str]) -> dict[str, Any]:
    """For each team, how many of its jobs had started after how long, over a logarithm of time."""
    outcome = figures.outcome
    steps = (*range(0, 100, 2), 99, 100)
    data = []
    for team in teams:
        jobs = [job for job in outcome.jobs if job.team == team]
        seconds = sorted((job.runs[0].start if job.runs else outcome.end) - job.submitted for job in jobs)
        if not seconds:
            continue
        # Less than a second has no place on a logarithm.
        values = [max(percentile(seconds, step), 1.0) for step in steps]
        data.append(
            {
                "type": "scatter",
                "x": values,
                "y": list(steps),
                "text": [duration(value) for value in values],
                "name": team,
                "mode": "lines",
                "line": {"width": 2, "color": hues[team], "shape": "hv"},
                "hovertemplate": "%{y} % within %{text}",
            }
        )
    ticks = (1, 60, 600, 3600, 21600, 86400, 604800, 2592000)
    axis = {
        "type": "log",
        "gridcolor": "--line",
        "tickvals": list(ticks),
        "ticktext": ["at once", *map(duration, ticks[1:])],
        "automargin": True,
    }
    return {"data": data, "layout": _layout(axis, 300, "% of jobs", hovermode="closest")}


def _fairness(figures: Figures, axis: Axis, teams: Sequence[str], hues: Mapping[str, str]) -> dict[str, Any]:
    """Jain's index, and what each team borrowed by its weight on an axis at the right."""
    timeline = figures.timeline
    times = [axis.at(start) for start in timeline.starts]
    line = {"type": "scatter", "x": times, "mode": "lines"}
    index = line | {
        "y": [None if value is None else round(value, 4) for value in timeline.fairness],
        "name": "Jain's index",
        "line": {"width": 2, "color": "--ink", "shape": "hv"},
        "hovertemplate": "%{y:.2f}",
    }
    shares = [
        line
        | {
            "y": list(timeline.shares[team]),
            "name": f"{team} borrows",
            "yaxis": "y2",
            "line": {"width": 1.2, "color": hues[team], "shape": "hv", "dash": "dot"},
            "hovertemplate": "%{y:.3~g} %",
        }
        for team in teams
        if any(timeline.shares[team])
    ]
    right = {
        "overlaying": "y",
        "side": "right",
        "showgrid": False,
        "rangemode": "tozero",
        "ticksuffix": " %",
        "tickformat": ".3~g",
        "automargin": True,
    }
    layout = _layout(axis.layout(), 280, "Jain's index", yaxis2=right)
    layout["yaxis"]["range"] = [0, 1.05]
    return {"data": [index, *shares], "layout": layout}


def _gantt_words(chart: Gantt) -> str:
    span = duration(chart.end - chart.start)
    words = f"{span} around the most preemptions; a row for each domain, as high as it has accelerators."
    if chart.arrows:
        words += " Arrows lead from a job that began to the one that was stopped for it."
    return f"{words} {chart.left_out} domains that it touches less are left out." if chart.left_out else words


def _gantt(chart: Gantt, axis: Axis, hues: Mapping[str, str], windows: Sequence[Window]) -> dict[str, Any]:
    """A bar for each run on each domain, by team, arrows of preemptions, and the windows of training plans."""
    bottoms, position = dict[str, int](), 0
    for domain in reversed(chart.lanes):
        bottoms[domain] = position
        position += chart.lanes[domain] + 1
    scale = 1 if axis.start < UNDATED else 1000
    data = []
    for team, hue in hues.items():
        bars = [bar for bar in chart.bars if bar.team == team]
        if not bars:
            continue
        ends = [min(bar.end, chart.end) for bar in bars]
        starts = [max(bar.start, chart.start) for bar in bars]
        # Dates have durations in milliseconds, and days in days.
        lengths = [(end - start) * scale / (1 if scale > 1 else 86400) for start, end in zip(starts, ends, strict=True)]
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": team,
                "base": [axis.at(start) for start in starts],
                "x": lengths,
                "y": [bottoms[bar.domain] + bar.slot + bar.slots / 2 for bar in bars],
                "width": [bar.slots * 0.92 for bar in bars],
                "marker": {"color": hue, "line": {"color": "--card", "width": 0.6}},
                "customdata": [[bar.job, bar.domain, bar.slots, bar.ended or "still runs"] for bar in bars],
                "hovertemplate": "%{customdata[0]}<br>%{customdata[2]} on %{customdata[1]}<br>%{customdata[3]}",
            }
        )
    shapes = _windows(windows, axis, chart.start, chart.end)
    lanes = {
        "tickvals": [bottoms[domain] + chart.lanes[domain] / 2 for domain in chart.lanes],
        "ticktext": [_short(domain) for domain in chart.lanes],
        # Above the bars there is room for the names of plans.
        "range": [-0.5, position + (_NAME_SLOTS if shapes else 0)],
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
    }
    layout = _layout(
        axis.layout(chart.start, chart.end),
        max(min(position * _SLOT_PIXELS, 1600), 160) + 90,
        "",
        hovermode="closest",
        barmode="overlay",
        annotations=_annotations(chart, axis, bottoms),
        shapes=shapes,
    )
    return {"data": data, "layout": layout | {"yaxis": lanes}}


def _short(domain: str) -> str:
    """A domain's name in the width of a phone: of the ids of nodes the ends differ."""
    return domain if len(domain) <= 18 else f"…{domain[-12:]}"


def _annotations(chart: Gantt, axis: Axis, bottoms: Mapping[str, int]) -> list[dict[str, Any]]:
    """Arrows from preemptors to victims."""
    # Both often lie on the same accelerators, one after the other, and an arrow has to have a length.
    aside = (chart.end - chart.start) * 0.012
    return [
        {
            "x": axis.at(min(arrow.victim.end, arrow.stop.time) - aside),
            "y": bottoms[arrow.victim.domain] + arrow.victim.slot + arrow.victim.slots / 2,
            "ax": axis.at(arrow.preemptor.start + aside),
            "ay": bottoms[arrow.preemptor.domain] + arrow.preemptor.slot + arrow.preemptor.slots / 2,
            "xref": "x",
            "yref": "y",
            "axref": "x",
            "ayref": "y",
            "text": "",
            "hovertext": f"{arrow.stop.preemptor} stops {arrow.stop.victim}: {arrow.stop.reason}",
            "showarrow": True,
            "arrowhead": 2,
            "arrowsize": 1.2,
            "arrowwidth": 1.4,
            "arrowcolor": "--red",
        }
        for arrow in chart.arrows[:_MOST_ARROWS]
    ]
