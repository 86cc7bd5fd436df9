"""A report in a real browser: nothing is asked of a network, nothing overflows, nothing is cut, and it prints."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from first_come import first_come
from loopback import Call, Reply, serving
from needs import needs
from podwright.config.catalog.instance_types import environment_types
from podwright.operations.report import page as frame
from podwright.operations.report.architecture import architecture
from podwright.operations.report.drawing import drawing
from podwright.operations.report.drawing_file import drawing_file
from podwright.operations.report.page import SHEET, document, page
from podwright.operations.simulation.policies import policy_of
from podwright.operations.simulation.run import simulation
from podwright.planning.quota.policy import environment_policy
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.traces.generator import Made, generated
from podwright.planning.simulation.traces.requested_work import demands, shapes
from report_account import DAY, LONG, NAMES, assembly, large, loaded, report, scene

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = needs(CHROMIUM, "Chromium: Debian's package chromium")
WIDTHS = (1280, 390)
SIZES = list(itertools.product((1, 2, 3, 4), (1, 13, 50)))
"""Zones and groups."""
PROBLEMS = {"overflow": 0, "beyond": [], "cut": [], "over": [], "small": []}
"""What is wrong with a page: nothing."""
# What a frame of the page says of itself, everything open.
MEASURE = """
const out = {};
const words = element => [...element.childNodes].filter(node => node.nodeType === 3 && node.textContent.trim());
const shown = element => element.getClientRects().length > 0;
const told = elements => elements.map(element => element.outerHTML.slice(0, 80));
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, view = frame.contentWindow;
  page.querySelectorAll("details").forEach(one => one.open = true);
  const wide = page.documentElement.clientWidth;
  const all = [...page.querySelectorAll("body *")].filter(shown), drawn = [...page.querySelectorAll(".drawing *")];
  const text = all.filter(element => words(element).length && !element.closest(".skip, title"));
  const size = element => parseFloat(view.getComputedStyle(element).fontSize);
  const boxed = [...page.querySelectorAll(".drawing .card, .drawing li")];
  const boxes = boxed.map(one => [one, one.getBoundingClientRect()]);
  const apart = (one, other) => one.right <= other.left + 0.5 || other.right <= one.left + 0.5
    || one.bottom <= other.top + 0.5 || other.bottom <= one.top + 0.5;
  out[frame.name] = {
    overflow: page.documentElement.scrollWidth - wide,
    beyond: told(all.filter(element => !element.closest(".scroll, .skip")
      && (!element.closest("svg") || element.tagName === "text") && element.getBoundingClientRect().right > wide + 1)),
    cut: told([...drawn, ...page.querySelectorAll("td, th")].filter(element => !element.closest("svg")
      && (element.scrollWidth > element.clientWidth + 1) && element.clientWidth)),
    over: told(boxes.filter(([one, place], index) => boxes.slice(index + 1).some(([, other]) => !apart(place, other)))
      .map(([one]) => one)),
    small: told(text.filter(element => size(element) < 12)),
    texts: text.length,
    sheet: view.getComputedStyle(page.querySelector("section")).borderTopLeftRadius,
    ground: view.getComputedStyle(page.body).backgroundColor,
  };
}
const said = document.createElement("pre"); said.id = "said"; said.textContent = JSON.stringify(out);
document.body.append(said);
"""
# What drawings that are files of their own say of themselves.
MEASURE_FILES = """
const out = [];
for (const svg of document.querySelectorAll("body > svg")) {
  const whole = svg.getBoundingClientRect(), inner = svg.querySelector(".fixed");
  const right = whole.right - 24, last = inner.lastElementChild.getBoundingClientRect().bottom;
  const texts = [...inner.querySelectorAll("*")].filter(one => !one.closest("svg svg"));
  const parts = texts.filter(one => one.getBoundingClientRect().height);
  const told = test => parts.filter(test).map(one => one.outerHTML.slice(0, 80));
  out.push({
    left: Math.round(whole.bottom - 24 - last),
    beyond: told(one => one.getBoundingClientRect().right > right + 1),
    cut: told(one => one.clientWidth && one.scrollWidth > one.clientWidth),
    ranges: told(one => one.matches(".subnet > .pair *") && one.scrollWidth > one.clientWidth),
    high: told(one => one.matches(".card, .plan, .subnet") && one.scrollHeight > one.clientHeight + 1),
    ground: getComputedStyle(inner).backgroundColor,
  });
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


def measured(chromium: Callable[..., Any], folder: Path, body: str, script: str, *arguments: str) -> Any:
    """What a script says of a page with this body."""
    file = folder / "measured.html"
    file.write_text(f"<!doctype html><body>{body}<script>onload = () => {{ {script} }}</script></body>", "utf-8")
    done = chromium("--dump-dom", "--virtual-time-budget=5000", *arguments, file.as_uri())
    (output,) = re.findall(r'<pre id="said">(.*)</pre>', done.stdout, re.DOTALL)
    return json.loads(unescape(output))


def frames(name: str, text: str) -> str:
    """The page in frames of several widths, which a script outside of them may measure."""
    return "".join(
        f'<iframe name="{name} {wide}" width="{wide}" height="900" srcdoc="{escape(text)}"></iframe>' for wide in WIDTHS
    )


@pytest.mark.parametrize(("name", "theme"), [("prod", "light"), ("sandbox", "light"), ("governed-hundred", "dark")])
def test_nothing_overflows_and_nothing_is_cut(
    name: str, theme: str, chromium: Callable[..., Any], tmp_path: Path
) -> None:
    dark = ("--force-dark-mode",) if theme == "dark" else ()
    actual = measured(chromium, tmp_path, frames(name, page(report(name))), MEASURE, *dark)
    assert len(actual) == len(WIDTHS)
    for observed in actual.values():
        assert observed["texts"] > 100
        assert {key: observed[key] for key in PROBLEMS} == PROBLEMS
        assert observed["sheet"] == "12px", "the policy lets the page's own style sheet in"
        assert observed["ground"] == {"light": "rgb(244, 246, 249)", "dark": "rgb(14, 18, 25)"}[theme]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_of_work_are_read_on_a_desk_and_on_a_phone(
    theme: str, chromium: Callable[..., Any], tmp_path: Path
) -> None:
    environment = loaded("prod").environment
    types = environment_types(environment.instance_types)
    quotas = demands(environment_policy(environment, types), shapes(environment, types))
    made = simulation([policy_of(environment, types)], generated(quotas, Made(2, 1)), first_come, Assumptions())
    text = page(document(scene("prod", work=made)))
    dark = ("--force-dark-mode",) if theme == "dark" else ()
    actual = measured(chromium, tmp_path, frames("work", text), MEASURE, *dark)
    wrong = {name: {key: observed[key] for key in PROBLEMS} for name, observed in actual.items()}
    assert {name: observed for name, observed in wrong.items() if observed != PROBLEMS} == {}


def test_a_drawing_with_long_names_and_many_groups_keeps_its_place(
    chromium: Callable[..., Any], tmp_path: Path
) -> None:
    bodies = [
        frames(f"{zones} {groups}", page(report("prod") | {"architecture": large(zones, groups)}))
        for zones, groups in SIZES
    ]
    actual = measured(chromium, tmp_path, "".join(bodies), MEASURE)
    assert len(actual) == len(WIDTHS) * len(SIZES)
    wrong = {name: {key: observed[key] for key in PROBLEMS} for name, observed in actual.items()}
    assert {name: observed for name, observed in wrong.items() if observed != PROBLEMS} == {}


def test_a_drawing_of_its_own_is_as_high_as_it_says(chromium: Callable[..., Any], tmp_path: Path) -> None:
    clusters = [drawing(large(zones, groups), LONG, DAY) for zones, groups in SIZES]
    shipped = [drawing(architecture(loaded(name).environment, assembly(name)), name) for name in NAMES]
    body = "".join(map(drawing_file, [*shipped, *clusters]))
    actual = measured(chromium, tmp_path, body, MEASURE_FILES)
    assert len(actual) == len(NAMES) + len(SIZES)
    for name, observed in zip([*NAMES, *SIZES], actual, strict=True):
        assert (observed["left"], observed["beyond"], observed["high"], observed["ranges"]) == (0, [], [], []), name
        assert observed["ground"] == "rgb(244, 246, 249)"
    # The longest names that there may be are cut, and whole in their titles; those of the repository are not.
    assert {name: observed["cut"] for name, observed in zip(NAMES, actual, strict=False) if observed["cut"]} == {}


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
    assert 8 <= whole <= 18
    assert pages() < whole - 3, "folded away, most of it would be missing on paper"
