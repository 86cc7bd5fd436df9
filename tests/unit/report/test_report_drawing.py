"""The drawing: it is whole, colours can be read, and the one of the README is current. A browser measures the rest."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from podwright.operations.report import drawing as drawn
from podwright.operations.report.architecture import architecture
from podwright.operations.report.drawing import HUES, GroupCard, Seen, SubnetBox, drawing
from podwright.operations.report.drawing_file import drawing_file
from report_account import DAY, LONG, NAMES, ROOT, assembly, large, loaded

THEME = (Path(drawn.__file__).parent / "theme.css").read_text()
COLOURS = {
    name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+):light-dark\((#\w{6}),(#\w{6})\)", THEME)
}
MEANINGS = re.findall(r"^\.(\w+)\{--hue", THEME, re.MULTILINE)


def nodes(actual: dict[str, Any]) -> SubnetBox:
    return drawing(actual, "x").zones[0].subnets[-1]


def card(**provided: Any) -> GroupCard:
    actual = large(2, 1)
    actual["groups"][0] |= {"zones": ["usgw1-lax0-az0"], "capacity": "Spot", "plan": None} | provided
    return nodes(actual).groups[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_environment_is_drawn_whole(name: str) -> None:
    actual = architecture(loaded(name).environment, assembly(name))
    text = drawing_file(drawing(actual, name))
    assert text == drawing_file(drawing(actual, name))
    words = " ".join(ElementTree.fromstring(text).itertext())
    assert all(group["name"] in words for group in actual["groups"])
    assert all(subnet["range"] in words for zone in actual["zones"] for subnet in zone["subnets"])
    assert not re.search(r"url\(|href|<script|@import", text), "a drawing asks nobody for anything"


def test_the_drawing_of_the_readme_is_current() -> None:
    """`podwright report prod --drawing --out docs/prod.svg` writes it."""
    actual = architecture(loaded("prod").environment, assembly("prod"))
    assert (ROOT / "docs/prod.svg").read_text(encoding="utf-8") == drawing_file(drawing(actual, "prod"))


def test_no_name_becomes_markup() -> None:
    actual = large(1, 2)
    actual["groups"][0]["name"] = """</style><script>alert(1)</script>"' onload="x&amp;"""
    text = drawing_file(drawing(actual, "<&>", DAY))
    names = {item.tag.rpartition("}")[2] for item in ElementTree.fromstring(text).iter()}
    assert "script" not in names
    assert "&lt;script&gt;alert(1)" in text


def test_the_nodes_of_a_zone_come_last_with_what_stands_in_it() -> None:
    actual = large(2, 3)
    first, second = drawing(actual, "x").zones
    assert [subnet.name.partition(" 100")[0] for subnet in first.subnets] == ["public", "control plane", "nodes"]
    assert [one.name for one in first.subnets[-1].groups] == ["g0", "g2"]
    assert [one.name for one in second.subnets[-1].groups] == [f"{LONG}-1"]
    assert [len(zone.subnets[-1].systems) for zone in (first, second)] == [1, 0]
    assert [system.name for system in drawing(actual, "x").systems] == ["db"]


def test_squares_stand_for_nodes_and_empty_ones_for_those_that_may_be_missing() -> None:
    def squares(**provided: Any) -> tuple[int, int]:
        actual = card(**provided).squares
        return actual.sure, actual.total - actual.sure

    assert squares(count=16, min=None) == (16, 0)
    assert squares(count=4, min=0) == (0, 4)
    assert squares(count=8, min=3) == (3, 5)
    assert squares(count=8, min=3, zones=["usgw1-lax0-az0", "usgw1-lax1-az1"]) == (2, 2)
    assert squares(count=84, min=42) == (21, 21), "a square is two nodes"
    whole, none = squares(count=6758, min=None)
    assert none == 0
    assert 6758 / 512 <= whole <= 42


def test_many_groups_are_shown_in_short() -> None:
    assert not nodes(large(1, 12)).is_dense
    assert nodes(large(1, 13)).is_dense
    assert drawing(large(1, 13), "x").square == ""
    assert drawing(large(1, 12), "x").square.endswith("an empty one may be missing")


@pytest.mark.parametrize(
    ("taken", "replacing", "colour"),
    [(30, 60, "green"), (200, 200, "green"), (200, 210, "orange"), (200, 251, "orange"), (200, 260, "red")],
)
def test_the_bar_of_a_subnet_warns_before_nodes_cannot_be_replaced(taken: int, replacing: int, colour: str) -> None:
    actual = large(1, 0)
    actual["zones"][0]["subnets"] = [actual["zones"][0]["subnets"][-1] | {"usable": 251}]
    actual["zones"][0]["subnets"][0] |= {"taken": taken, "replacing": replacing}
    subnet = nodes(actual)
    assert (subnet.hue, subnet.share) == (colour, round(100 * taken / 251, 1))


def luminance(colour: str) -> float:
    parts = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_has_contrast_on_every_ground_in_both_themes(theme: int) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    grounds = ["ground", "card", "sunk"]
    tints = [f"{hue}-tint" for hue in MEANINGS]
    pairs = [(words, behind) for words in ("ink", "soft") for behind in (*grounds, *tints)]
    pairs += [(hue, behind) for hue in MEANINGS for behind in (*grounds, f"{hue}-tint")]
    observed = {pair: round(contrast(*(COLOURS[name][theme] for name in pair)), 2) for pair in pairs}
    assert len(observed) == 42
    assert {pair: value for pair, value in observed.items() if value < 4.5} == {}


def test_every_capacity_has_a_colour_of_the_sheet() -> None:
    assert set(HUES.values()) <= set(MEANINGS)
    assert len(set(HUES.values())) == len(HUES)


def test_squares_show_what_was_seen_of_the_nodes() -> None:
    actual = large(1, 1)
    actual["groups"][0] |= {"name": "h200", "zones": [actual["zones"][0]["id"]], "count": 16, "min": None}
    looked_at = drawing(actual, "x", None, {"h200": Seen(13, 1)})
    (group,) = looked_at.zones[0].subnets[-1].groups
    assert (group.squares.sure, group.squares.bad, group.squares.total) == (13, 1, 16)
    assert "13 run, 1 need a look, 2 missing" in group.title
    assert looked_at.square.endswith("a red one needs a look, an empty one is missing")
    assert 'class="bad"' in drawing_file(looked_at)
    (missing,) = drawing(actual, "x", None, {}).zones[0].subnets[-1].groups
    assert missing.squares.sure == 0
