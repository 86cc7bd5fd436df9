"""All dashboards in one HTML file: no server, no network, a tab for each."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from ...planning.monitoring.dashboards.panel import Dashboard, Panel
from .answers import Series, Span
from .drawing import PIXELS, figure, text

_STYLE: Final = """
:root { color-scheme: light; font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; color: #1d2330; }
body { margin: 0; background: #f3f4f7; font-size: 14px; }
header { background: #1d2330; color: #fff; padding: 14px 24px 0; position: sticky; top: 0; z-index: 2; }
header h1 { margin: 0; font-size: 18px; font-weight: 600; }
header p { margin: 4px 0 10px; color: #b9c0cc; font-size: 12px; }
nav { display: flex; flex-wrap: wrap; gap: 2px; }
nav button { border: 0; background: none; color: #b9c0cc; padding: 8px 14px; font: inherit; cursor: pointer; }
nav button.chosen { background: #f3f4f7; color: #1d2330; border-radius: 6px 6px 0 0; font-weight: 600; }
main { display: none; padding: 8px 24px 32px; max-width: 1720px; margin: 0 auto; }
main.chosen { display: block; }
main > p { margin: 8px 0; color: #5b6470; }
h2 { font-size: 14px; margin: 18px 0 8px; }
.row { display: grid; grid-template-columns: repeat(24, minmax(0, 1fr)); gap: 10px; }
.panel { background: #fff; border: 1px solid #e4e7ec; border-radius: 6px; padding: 8px 10px; overflow: auto; }
.panel h3 { font-size: 12px; font-weight: 600; margin: 0 0 2px; cursor: help; }
.panel h3 i { display: inline-block; width: 13px; line-height: 13px; border-radius: 50%; background: #e4e7ec;
  color: #5b6470; font: italic 600 9px/13px Georgia, serif; text-align: center; vertical-align: 1px; }
.number { font-size: 26px; font-weight: 600; padding-top: 6px; white-space: nowrap; }
.number small { font-size: 11px; font-weight: 400; color: #5b6470; margin-left: 8px; }
.empty { color: #8a8f98; padding: 6px 0; margin: 0; }
table { border-collapse: collapse; font-size: 11px; width: 100%; }
th { text-align: left; font-weight: 600; color: #5b6470; }
th, td { padding: 3px 8px 3px 0; border-bottom: 1px solid #eef0f3; }
.value { text-align: right; font-variant-numeric: tabular-nums; }
@media (max-width: 900px) { .panel { grid-column: 1 / -1 !important; } }
"""
_SCRIPT: Final = """
function show(name) {
  for (const part of document.querySelectorAll("main, nav button")) {
    part.classList.toggle("chosen", part.dataset.page === name);
  }
  for (const place of document.querySelectorAll("main.chosen .figure:empty")) {
    const { data, layout } = figures[place.id];
    Plotly.newPlot(place, data, layout, { displayModeBar: false, responsive: true });
  }
  history.replaceState(null, "", "#" + name);
}
for (const button of document.querySelectorAll("nav button")) button.onclick = () => show(button.dataset.page);
const wanted = location.hash.slice(1);
show(document.querySelector(`main[data-page="${wanted}"]`) ? wanted : document.querySelector("main").dataset.page);
"""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A dashboard with the series of each of its panels, in the order of its panels."""

    page: Dashboard
    series: Sequence[Sequence[Series]]


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
    pages = [part for one in drawn for part in _page(one, span, figures)]
    # In a script an end tag would end it, whatever stands around it.
    data = json.dumps(figures, default=_plain, separators=(",", ":")).replace("</", "<\\/")
    tabs = [f'<button data-page="{one.page.name}">{escape(one.page.title)}</button>' for one in drawn]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            f"<header><h1>{escape(title)}</h1><p>{escape(note)}</p><nav>{''.join(tabs)}</nav></header>",
            *pages,
            f"<script>{get_plotlyjs()}</script>",
            f"<script>const figures = {data};{_SCRIPT}</script></body></html>\n",
        ]
    )


def _page(drawn: Drawn, span: Span, figures: dict[str, Mapping[str, Any]]) -> Iterator[str]:
    answers = iter(drawn.series)
    yield f'<main data-page="{drawn.page.name}"><p>{escape(drawn.page.says)}</p>'
    for row in drawn.page.rows:
        yield f'<h2>{escape(row.title)}</h2><div class="row">'
        for panel in row.panels:
            series = next(answers)
            name = f"{drawn.page.name}-{len(figures)}"
            if shown := figure(panel, series, span):
                figures[name] = shown
            yield _panel(panel, f'<div class="figure" id="{name}"></div>' if shown else text(panel, series))
        yield "</div>"
    yield "</main>"


def _panel(panel: Panel, body: str) -> str:
    style = f"grid-column:span {panel.width};height:{panel.height * PIXELS - 20}px"
    heading = f'<h3 title="{escape(panel.says)}">{escape(panel.title)} <i>i</i></h3>'
    return f'<section class="panel" style="{style}">{heading}{body}</section>'


def _plain(value: Any) -> Any:
    """Plotly keeps tuples and its own objects."""
    return value.to_plotly_json() if hasattr(value, "to_plotly_json") else list(value)
