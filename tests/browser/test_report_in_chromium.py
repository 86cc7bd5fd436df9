"""A report in a real browser: nothing is asked of a network, nothing overflows, nothing is cut, and it prints."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from loopback import Call, Reply, serving
from needs import needs
from podwright.operations.report import page as frame
from podwright.operations.report.lettering import width
from podwright.operations.report.page import page
from podwright.operations.report.style import SHEET
from report_world import report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = needs(CHROMIUM, "Chromium: Debian's package chromium")
WIDTHS = (1280, 390)
# What a frame of the page says of itself.
MEASURE = """
const out = {};
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, view = frame.contentWindow;
  page.querySelectorAll("details").forEach(one => one.open = true);
  const wide = page.documentElement.clientWidth;
  const inside = element => element.closest(".scroll");
  const beyond = [...page.querySelectorAll("body *")].filter(element => !inside(element) && !element.closest("svg")
    && !element.classList.contains("skip") && element.getBoundingClientRect().right > wide + 1);
  const texts = [...page.querySelectorAll("svg.pw text")];
  out[frame.width] = {
    overflow: page.documentElement.scrollWidth - wide,
    beyond: beyond.map(element => element.outerHTML.slice(0, 80)),
    texts: texts.map(text => [[...text.childNodes].at(-1).textContent, +text.getAttribute("font-size"),
      text.classList.contains("b"), text.getComputedTextLength()]),
    sheet: view.getComputedStyle(page.querySelector("section")).borderTopLeftRadius,
    grounds: view.getComputedStyle(page.body).backgroundColor,
    cells: [...page.querySelectorAll("td, th")].filter(cell => cell.scrollWidth > cell.clientWidth + 1)
      .map(cell => cell.textContent),
  };
}
const said = document.createElement("pre"); said.id = "said"; said.textContent = JSON.stringify(out);
document.body.append(said);
"""


@pytest.fixture
def chromium(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        quiet = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
        more = (
            "--disable-component-update",
            "--disable-sync",
            "--disable-quic",
            f"--user-data-dir={tmp_path / 'home'}",
        )
        command = [str(CHROMIUM), *quiet, *more, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    return run


def frames(text: str) -> str:
    """The page in frames of several widths, which a script outside of them may measure."""
    inner = "".join(f'<iframe width="{wide}" height="900" srcdoc="{escape(text)}"></iframe>' for wide in WIDTHS)
    return f"<!doctype html><body>{inner}<script>onload = () => {{ {MEASURE} }}</script></body>"


@pytest.mark.parametrize(("name", "theme"), [("prod", "light"), ("governed-hundred", "dark")])
def test_nothing_overflows_and_nothing_is_cut(
    name: str, theme: str, chromium: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "frames.html"
    file.write_text(frames(page(report(name))), encoding="utf-8")
    dark = ("--force-dark-mode",) if theme == "dark" else ()
    done = chromium("--dump-dom", "--virtual-time-budget=5000", *dark, file.as_uri())
    (said,) = re.findall(r'<pre id="said">(.*)</pre>', done.stdout, re.DOTALL)
    found = json.loads(unescape(said))
    assert set(found) == {str(wide) for wide in WIDTHS}
    for seen in found.values():
        assert (seen["overflow"], seen["beyond"], seen["cells"]) == (0, [], [])
        assert len(seen["texts"]) > 40
        reckoned = [(words, width(words, size, bold=bold), long) for words, size, bold, long in seen["texts"]]
        assert [item for item in reckoned if item[2] > item[1] + 0.5] == [], "wider than the drawing made room for"
        assert seen["sheet"] == "12px", "the policy lets the page's own style sheet in"
        assert seen["grounds"] == {"light": "rgb(244, 246, 249)", "dark": "rgb(14, 18, 25)"}[theme]


def test_a_page_loads_nothing_and_complains_of_nothing(chromium: Callable[..., Any], tmp_path: Path) -> None:
    asked: list[str] = []
    text = page(report("prod"))

    def answer(call: Call) -> Reply:
        asked.append(call.path)
        return Reply(body=text.encode(), headers={"Content-Type": "text/html; charset=utf-8"})

    log = tmp_path / "log"
    with serving(answer) as server:
        chromium("--enable-logging", f"--log-file={log}", "--dump-dom", f"{server.url}/report.html")
    # A browser asks every server for the icon of its pages.
    assert [path for path in asked if path != "/favicon.ico"] == ["/report.html"]
    assert [line for line in log.read_text(errors="replace").splitlines() if "CONSOLE" in line] == []


def test_it_prints_with_everything_open(
    chromium: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pages() -> int:
        file, pdf = tmp_path / "report.html", tmp_path / "report.pdf"
        file.write_text(page(report("prod")), encoding="utf-8")
        chromium("--no-pdf-header-footer", f"--print-to-pdf={pdf}", file.as_uri())
        return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))

    whole = pages()
    monkeypatch.setattr(frame, "SHEET", SHEET.replace("details::details-content", "details::nothing"))
    assert 8 <= whole <= 16
    assert pages() < whole - 3, "folded away, most of it would be missing on paper"
