"""All dashboards in one HTML file: no server, no network, a tab for each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...planning.monitoring.dashboards.panel import Dashboard, Panel
from ..output.templates import templates
from .answers import Series, Span
from .drawing import PIXELS, Text, figure, text

_FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Drawn:
    """A dashboard with the series of each of its panels, in the order of its panels."""

    page: Dashboard
    series: Sequence[Sequence[Series]]


@dataclass(frozen=True)
class PanelView:
    """A panel."""

    panel: Panel
    figure: str
    """The id of its figure; empty where it is text."""
    text: Text
    """What it says in words, with a figure its legend."""


@dataclass(frozen=True)
class RowView:
    """Panels below a heading."""

    title: str
    panels: Sequence[PanelView]


@dataclass(frozen=True)
class PageView:
    """A dashboard."""

    page: Dashboard
    rows: Sequence[RowView]


def html(title: str, note: str, drawn: Sequence[Drawn], span: Span) -> str:
    """The file.

    Args:
        title: Above everything.
        note: Where the numbers come from; whoever gets the file has to know.
        drawn: The dashboards, in the order of the tabs.
        span: The time that they show.
    """
    from plotly.offline import get_plotlyjs

    figures: dict[str, Mapping[str, Any]] = {}
    pages = [_page(one, span, figures) for one in drawn]
    # In a script an end tag would end it, whatever stands around it.
    data = json.dumps(figures, default=_plain, separators=(",", ":")).replace("</", "<\\/")
    made = (
        templates(_FOLDER)
        .get_template("page.html.jinja")
        .render(
            title=title,
            note=note,
            pages=pages,
            pixels=PIXELS,
            style=(_FOLDER / "page.css").read_text(encoding="utf-8"),
            plotly=get_plotlyjs(),
            figures=data,
            script=(_FOLDER / "page.js").read_text(encoding="utf-8"),
        )
    )
    return f"{made}\n"


def _page(drawn: Drawn, span: Span, figures: dict[str, Mapping[str, Any]]) -> PageView:
    """The dashboard; what plotly draws of it goes into `figures`."""
    answers, rows = iter(drawn.series), []
    for row in drawn.page.rows:
        panels = []
        for panel in row.panels:
            series, name = next(answers), f"{drawn.page.name}-{len(figures)}"
            if shown := figure(panel, series, span):
                figures[name] = shown
            panels.append(PanelView(panel, name if shown else "", text(panel, series)))
        rows.append(RowView(row.title, panels))
    return PageView(drawn.page, rows)


def _plain(value: Any) -> Any:
    """Plotly keeps tuples and its own objects."""
    return value.to_plotly_json() if hasattr(value, "to_plotly_json") else list(value)
