"""The preview of dashboards in a real browser: every figure is drawn, light and dark, on a desk and on a phone."""

from pathlib import Path

import pytest

from chromium import CHROMIUM_IS_THERE, dark, measured
from podwright.config.catalog.metrics import metrics
from podwright.config.settings.observability import Observability
from podwright.operations.dashboards.answers import Series, Span
from podwright.operations.dashboards.page import Drawn, html
from podwright.planning.monitoring.dashboards import dashboards
from podwright.planning.monitoring.dashboards.panel import Panel
from podwright.planning.monitoring.recordings import recordings

pytestmark = CHROMIUM_IS_THERE
SPAN = Span(1_800_000_000.0, 2)
EVERYTHING = frozenset(metrics()) | {recording.name for recording in recordings()}
# What each frame says of itself, with every page shown after the other.
MEASURE = """
const wait = milliseconds => new Promise(done => setTimeout(done, milliseconds));
const out = {};
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, view = frame.contentWindow, wide = page.documentElement.clientWidth;
  const wrong = { overflow: [], empty: [], beyond: [], small: [] };
  for (const button of page.querySelectorAll("nav button")) {
    button.click();
    await wait(200);
    const main = page.querySelector("main.chosen"), name = main.dataset.page;
    const parts = [...main.querySelectorAll("section *")].filter(one => one.getClientRects().length);
    const beyond = one => one.getBoundingClientRect().right > wide + 1 && !one.closest("svg");
    if (page.documentElement.scrollWidth > wide) wrong.overflow.push(name);
    wrong.empty.push(...[...main.querySelectorAll(".figure")].filter(one => !one.querySelector(".main-svg"))
      .map(one => one.id));
    wrong.beyond.push(...parts.filter(beyond).map(one => one.outerHTML.slice(0, 80)));
    wrong.small.push(...parts.filter(one => one.textContent.trim() && !one.children.length
      && parseFloat(view.getComputedStyle(one).fontSize) < 12).map(one => one.outerHTML.slice(0, 80)));
  }
  const ink = page.querySelector("main.chosen .xtick text");
  out[frame.name] = {
    wrong, ink: view.getComputedStyle(ink).fill, ground: view.getComputedStyle(page.body).backgroundColor,
  };
}
say(out);
"""


def answer(panel: Panel) -> list[Series]:
    """Three series with long names, as nodes and jobs have; nothing for every third panel that may be empty."""
    if panel.may_be_empty and len(panel.title) % 3 == 0:
        return []
    values = sorted(panel.words) or [0.2, 0.5, 0.9]
    return [
        Series(
            next(iter(panel.queries)),
            f"hyperpod-i-{number:017x} of hyperpod-ns-research/pretraining-of-the-largest-model",
            {"node": f"hyperpod-i-{number:017x}"},
            tuple((SPAN.start + SPAN.step * at, values[(at + number) % len(values)]) for at in range(120)),
        )
        for number in range(3)
    ]


@pytest.mark.parametrize(("theme", "widths"), [("light", (390, 1280)), ("dark", (390,))])
def test_every_figure_is_drawn_and_nothing_overflows(theme: str, widths: tuple[int, ...], tmp_path: Path) -> None:
    pages = dashboards(Observability(metrics="advanced"), cluster="prod", metrics=EVERYTHING)
    drawn = [Drawn(page, [answer(panel) for panel in page.panels]) for page in pages]
    (tmp_path / "page.html").write_text(html("Dashboards of prod", "Made up. " * 20, drawn, SPAN), encoding="utf-8")
    body = "".join(f'<iframe name="{wide}" width="{wide}" height="900" src="page.html"></iframe>' for wide in widths)
    actual = measured(
        tmp_path / "measured.html", body, MEASURE, "--allow-file-access-from-files", *dark(theme), milliseconds=60_000
    )
    colours = {"light": ("rgb(29, 35, 48)", "rgb(243, 244, 247)"), "dark": ("rgb(227, 231, 238)", "rgb(14, 18, 25)")}
    nothing = {"overflow": [], "empty": [], "beyond": [], "small": []}
    for name, observed in actual.items():
        assert observed["wrong"] == nothing, name
        assert (observed["ink"], observed["ground"]) == colours[theme]
    assert len(actual) == len(widths)
