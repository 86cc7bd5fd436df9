"""A report in a real browser: nothing is asked of a network, nothing overflows, nothing is cut, and it prints."""

import itertools
import re
from pathlib import Path

import pytest

from chromium import AXE, AXE_IS_THERE, CHROMIUM_IS_THERE, JUDGE, chromium, dark, frames, measured
from first_come import first_come
from loopback import Call, Reply, serving
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

pytestmark = CHROMIUM_IS_THERE
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
say(out);
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
say(out);
"""


@pytest.mark.parametrize(("name", "theme"), [("prod", "light"), ("sandbox", "light"), ("governed-hundred", "dark")])
def test_nothing_overflows_and_nothing_is_cut(name: str, theme: str, tmp_path: Path) -> None:
    actual = measured(tmp_path / "measured.html", frames(name, page(report(name)), WIDTHS), MEASURE, *dark(theme))
    assert len(actual) == len(WIDTHS)
    for observed in actual.values():
        assert observed["texts"] > 100
        assert {key: observed[key] for key in PROBLEMS} == PROBLEMS
        assert observed["sheet"] == "12px", "the policy lets the page's own style sheet in"
        assert observed["ground"] == {"light": "rgb(244, 246, 249)", "dark": "rgb(14, 18, 25)"}[theme]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_of_work_are_read_on_a_desk_and_on_a_phone(theme: str, tmp_path: Path) -> None:
    environment = loaded("prod").environment
    types = environment_types(environment.instance_types)
    quotas = demands(environment_policy(environment, types), shapes(environment, types))
    made = simulation([policy_of(environment, types)], generated(quotas, Made(2, 1)), first_come, Assumptions())
    text = page(document(scene("prod", work=made)))
    actual = measured(tmp_path / "measured.html", frames("work", text, WIDTHS), MEASURE, *dark(theme))
    wrong = {name: {key: observed[key] for key in PROBLEMS} for name, observed in actual.items()}
    assert {name: observed for name, observed in wrong.items() if observed != PROBLEMS} == {}


def test_a_drawing_with_long_names_and_many_groups_keeps_its_place(tmp_path: Path) -> None:
    bodies = [
        frames(f"{zones} {groups}", page(report("prod") | {"architecture": large(zones, groups)}), WIDTHS)
        for zones, groups in SIZES
    ]
    actual = measured(tmp_path / "measured.html", "".join(bodies), MEASURE)
    assert len(actual) == len(WIDTHS) * len(SIZES)
    wrong = {name: {key: observed[key] for key in PROBLEMS} for name, observed in actual.items()}
    assert {name: observed for name, observed in wrong.items() if observed != PROBLEMS} == {}


def test_a_drawing_of_its_own_is_as_high_as_it_says(tmp_path: Path) -> None:
    clusters = [drawing(large(zones, groups), LONG, DAY) for zones, groups in SIZES]
    shipped = [drawing(architecture(loaded(name).environment, assembly(name)), name) for name in NAMES]
    body = "".join(map(drawing_file, [*shipped, *clusters]))
    actual = measured(tmp_path / "measured.html", body, MEASURE_FILES)
    assert len(actual) == len(NAMES) + len(SIZES)
    for name, observed in zip([*NAMES, *SIZES], actual, strict=True):
        assert (observed["left"], observed["beyond"], observed["high"], observed["ranges"]) == (0, [], [], []), name
        assert observed["ground"] == "rgb(244, 246, 249)"
    # The longest names that there may be are cut, and whole in their titles; those of the repository are not.
    assert {name: observed["cut"] for name, observed in zip(NAMES, actual, strict=False) if observed["cut"]} == {}


def test_a_page_loads_nothing_and_complains_of_nothing(tmp_path: Path) -> None:
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


@AXE_IS_THERE
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_in_the_way_of_a_reader_who_cannot_see_it(theme: str, tmp_path: Path) -> None:
    # The page's own policy lets no script in.
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page(report("prod")))
    assert "Content-Security-Policy" not in text
    (tmp_path / "axe.js").write_bytes(AXE.read_bytes())
    body = frames("prod", text.replace("</body>", '<script src="axe.js"></script></body>'), (1280,))
    script = f"""{JUDGE}
    const view = document.querySelector("iframe").contentWindow;
    view.document.querySelectorAll("details").forEach(one => one.open = true);
    say(await judged(view));
    """
    assert measured(tmp_path / "measured.html", body, script, *dark(theme), milliseconds=60_000) == []


def test_it_prints_with_everything_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pages() -> int:
        file, pdf = tmp_path / "report.html", tmp_path / "report.pdf"
        file.write_text(page(report("prod")), encoding="utf-8")
        chromium("--no-pdf-header-footer", f"--print-to-pdf={pdf}", file.as_uri())
        return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))

    whole = pages()
    monkeypatch.setattr(frame, "SHEET", SHEET.replace("details::details-content", "details::nothing"))
    assert 8 <= whole <= 18
    assert pages() < whole - 3, "folded away, most of it would be missing on paper"
