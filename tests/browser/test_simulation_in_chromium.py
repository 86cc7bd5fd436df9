"""The page of a simulation in a real browser: it draws everything, light and dark, on a desk and on a phone."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from chromium import CHROMIUM_IS_THERE, chromium, dark
from first_come import first_come
from podwright.config.catalog.instance_types import environment_types
from podwright.config.loading.project import Project
from podwright.operations.simulation.page import html
from podwright.operations.simulation.policies import policy_of
from podwright.operations.simulation.run import simulation
from podwright.planning.quota.policy import environment_policy
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.traces.generator import Made, generated
from podwright.planning.simulation.traces.requested_work import demands, shapes
from podwright.planning.simulation.traces.trace import moved

ROOT = Path(__file__).resolve().parents[2]
pytestmark = CHROMIUM_IS_THERE
# Once everything is drawn: what is wider than the page, which figures are empty, and what the browser refused.
MEASURE = """
<script>
const errors = []; addEventListener("error", event => errors.push(event.message));
addEventListener("load", () => setTimeout(() => {
  const wide = document.documentElement.clientWidth;
  const figures = [...document.querySelectorAll(".figure")];
  const out = {
    errors, wide, figures: figures.length,
    overflow: document.documentElement.scrollWidth - wide,
    empty: figures.filter(one => !one.querySelector(".main-svg")).map(one => one.id),
    beyond: figures.filter(one => one.getBoundingClientRect().right > wide + 1).map(one => one.id),
    bars: document.querySelectorAll(".barlayer .point").length,
    arrows: document.querySelectorAll(".annotation-arrow-g").length,
    ink: getComputedStyle(document.querySelector(".xtick text")).fill,
    ground: getComputedStyle(document.body).backgroundColor,
    asked: performance.getEntriesByType("resource").map(one => one.name),
  };
  const said = document.createElement("pre"); said.id = "said"; said.textContent = JSON.stringify(out);
  document.body.append(said);
}, 500));
</script>
"""


@pytest.fixture(scope="module", params=[None, 1799020800.0], ids=["days", "dates"])
def page(request: pytest.FixtureRequest) -> str:
    environment = Project.at(ROOT).load("prod").environment
    types = environment_types(environment.instance_types)
    policy = policy_of(environment, types)
    quotas = demands(environment_policy(environment, types), shapes(environment, types))
    trace = generated(quotas, Made(2, 1, load=1.3))
    trace = trace if request.param is None else moved(trace, request.param)
    return html(simulation([policy, policy], trace, first_come, Assumptions()))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_is_drawn_and_nothing_overflows(width: int, theme: str, page: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    # A frame is as narrow as it is told; a window of the browser is not.
    (tmp_path / "inner.html").write_text(page.replace("<head>", f"<head>{MEASURE}"), "utf-8")
    file.write_text(
        f'<!doctype html><body><iframe src="inner.html" width="{width}" height="900"></iframe><script>'
        "onload = () => setTimeout(() => document.body.append("
        'document.querySelector("iframe").contentDocument.querySelector("#said")), 3000)</script></body>',
        "utf-8",
    )
    more = (*dark(theme), "--allow-file-access-from-files", "--virtual-time-budget=20000")
    done = chromium("--dump-dom", *more, file.as_uri())
    (output,) = re.findall(r'<pre id="said">(.*)</pre>', done.stdout, re.DOTALL)
    actual: dict[str, Any] = json.loads(unescape(output))
    wrong = {key: actual[key] for key in ("errors", "overflow", "empty", "beyond", "asked")}
    assert wrong == {"errors": [], "overflow": 0, "empty": [], "beyond": [], "asked": []}
    assert actual["figures"] == 2 * 6
    assert actual["arrows"] > 0
    assert actual["bars"] > 100
    assert abs(actual["wide"] - width) < 20
    colours = {"light": ("rgb(22, 27, 37)", "rgb(244, 246, 249)"), "dark": ("rgb(233, 237, 244)", "rgb(14, 18, 25)")}
    assert (actual["ink"], actual["ground"]) == colours[theme]
