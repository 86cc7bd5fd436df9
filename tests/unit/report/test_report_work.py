"""Work under quotas in a report: the pictures of a simulation without a script, and what is around them."""

import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from first_come import first_come
from podwright.config.catalog.instance_types import environment_types
from podwright.operations.report.page import document, page
from podwright.operations.report.plots import WIDTH, Scale, plot, seconds
from podwright.operations.simulation.document import Simulation
from podwright.operations.simulation.drawing import pictures
from podwright.operations.simulation.policies import policy_of
from podwright.operations.simulation.run import simulation
from podwright.planning.quota.policy import environment_policy
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.traces.generator import Made, generated
from podwright.planning.simulation.traces.requested_work import demands, shapes
from podwright.planning.simulation.traces.trace import moved
from report_account import Tree, loaded, scene

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module", params=[None, 1799020800.0], ids=["days", "dates"])
def work(request: pytest.FixtureRequest) -> Simulation:
    environment = loaded("prod").environment
    types = environment_types(environment.instance_types)
    quotas = demands(environment_policy(environment, types), shapes(environment, types))
    trace = generated(quotas, Made(2, 1, load=1.3))
    trace = trace if request.param is None else moved(trace, request.param)
    return simulation([policy_of(environment, types)], trace, first_come, Assumptions())


def test_a_report_has_the_pictures_of_the_simulation(work: Simulation) -> None:
    tree = Tree(page(document(scene("prod", work=work))))
    titles = [picture.title for picture in pictures(work.figures[0], ())]
    assert [title for title in titles if title not in tree.text] == []
    labels = [svg.get("aria-label") or "" for svg in tree.of("svg")]
    assert sum(label.startswith(tuple(titles)) for label in labels) == len(titles)
    assert "style" not in {name for _, provided in tree.elements for name in provided}
    assert "script" not in {tag for tag, _ in tree.elements}
    for sentence in work.assumptions:
        assert sentence in tree.text


def test_without_work_there_is_no_section() -> None:
    assert document(scene("prod"))["work"] is None
    assert "Who gets what, and when" not in page(document(scene("prod")))


def test_nothing_is_drawn_outside(work: Simulation) -> None:
    for picture in pictures(work.figures[0], ()):
        drawn: dict[str, Any] = plot(picture.title, picture.words, picture.figure)
        numbers = [list(map(float, re.findall(r"[0-9.]+", path["d"]))) for path in drawn["paths"]]
        across = [*chain.from_iterable(each[::2] for each in numbers), *(box["x"] for box in drawn["boxes"])]
        down = [*chain.from_iterable(each[1::2] for each in numbers), *(box["y"] for box in drawn["boxes"])]
        assert across
        assert drawn["left"] <= min(across) <= max(across) <= drawn["right"] < WIDTH
        assert min(down) >= 0
        assert max(down) <= drawn["height"]
        assert all(0 <= label["x"] <= WIDTH and 0 <= label["y"] <= drawn["height"] for label in drawn["labels"])
        assert len({label["text"] for label in drawn["labels"]}) > 4


def test_every_bar_of_the_simulation_is_a_box(work: Simulation) -> None:
    (gantt,) = [picture for picture in pictures(work.figures[0], ()) if picture.title == "Jobs on their domains"]
    drawn = plot(gantt.title, gantt.words, gantt.figure)
    assert len(drawn["boxes"]) == sum(len(trace["x"]) for trace in gantt.figure["data"])
    assert len(drawn["arrows"]) == len(gantt.figure["layout"]["annotations"]) > 0


def test_areas_lie_on_each_other() -> None:
    trace = {"type": "scatter", "x": [0, 1], "stackgroup": "all", "line": {"color": "--s0"}, "name": "a"}
    layout = {"height": 160, "xaxis": {"range": [0, 2]}, "yaxis": {"range": [0, 10]}}
    first, second = trace | {"y": [2, 4]}, trace | {"y": [3, 1]}
    paths = plot("t", "w", {"data": [first, second], "layout": layout})["paths"]
    scale = Scale(0, 10, 100 - 22, 8)
    low, high = (re.findall(r"[0-9.]+", path["d"]) for path in paths)
    assert [float(value) for value in low[1:4:2]] == [scale.at(2)] * 2
    assert float(high[1]) == scale.at(5)
    assert f"{scale.at(2)}" in high


def test_dates_are_seconds() -> None:
    assert seconds("2027-01-04 00:00:00") == 1799020800.0
    assert seconds(3) == 3.0
