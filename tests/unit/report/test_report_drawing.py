"""The drawing: nothing overlaps, no text leaves its box, colours can be read, and the one of the README is current."""

import itertools
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from podwright.operations.report.architecture import architecture
from podwright.operations.report.drawing import HUES, drawing
from podwright.operations.report.lettering import fitted, width, wrapped
from podwright.operations.report.style import DARK, LIGHT
from podwright.operations.report.style import HUES as COLOURS
from report_world import DAY, NAMES, ROOT, assembly, loaded

SVG = "{http://www.w3.org/2000/svg}"
LONG = "a-name-of-sixty-three-letters-which-is-the-longest-that-hyperpod-t"
Box = tuple[float, float, float, float]


def group(number: int, zones: list[str], **given: Any) -> dict[str, Any]:
    made = {
        "name": f"{LONG}-{number}" if number % 2 else f"g{number}",
        "types": ["ml.p6e-gb200.36xlarge", "ml.trn2.48xlarge"] if number % 3 else ["ml.p5.48xlarge"],
        "count": 6758 if number % 5 == 0 else number,
        "min": 0 if number % 4 == 0 else None,
        "zones": zones,
        "capacity": ("on demand", "Spot", "account team", f"plan {LONG}")[number % 4],
        "plan": LONG if number % 4 == 3 else None,
        "accelerator": "RTX PRO 6000 Blackwell",
        "accelerators": 8,
        "efa": 32,
        "efa_only": True,
        "checks": [],
        "slurm": f"compute {LONG}",
        "restricted": True,
    }
    return made | given


def world(zones: int, groups: int) -> dict[str, Any]:
    """An architecture of so many zones and groups, with the longest names that there may be."""
    names = [f"usgw1-lax{number}-az{number}" for number in range(zones)]
    subnets = [
        {"role": role, "range": f"100.127.{index}.0/24", "nat_gateways": 1, "usable": 65531} | taken
        for index, (role, taken) in enumerate(
            (
                ("public", {"taken": None, "replacing": None, "sums": ""}),
                ("control plane", {"taken": 250, "replacing": None, "sums": "x"}),
                ("nodes", {"taken": 65000, "replacing": 70000, "sums": "x"}),
            )
        )
    ]
    moments = [("2027-01-04", "2027-02-01"), ("2027-02-03", "2027-02-04"), ("2027-08-01", "2028-01-29")]
    windows = [
        {"start": f"{start}T11:30:00+00:00", "end": f"{end}T11:30:00+00:00", "zone": "z", "count": 64, "status": ""}
        for start, end in moments
    ]
    system = {"kind": "FSx for Lustre, adopted", "facts": [LONG, LONG, LONG], "repositories": [f"/x ⇄ s3://{LONG}"]}
    return {
        "account": "111122223333",
        "region": "us-west-2",
        "vpc": {"name": "x", "existing": False, "cidrs": ["10.0.0.0/16"] * 5, "nat_gateways": 0, "flow_logs": True},
        "zones": [{"id": name, "subnets": subnets} for name in names],
        "groups": [group(number, names if number % 7 == 6 else [names[number % zones]]) for number in range(groups)],
        "file_systems": [system | {"name": LONG, "zones": [names[0]]}, system | {"name": "db", "zones": []}],
        "control_plane": {
            "kind": "EKS 1.34",
            "facts": ["API private"],
            "parts": [f"{LONG}{LONG}{LONG}", *["add-on"] * 40],
        },
        "endpoints": {"interface": [f"service-{number}" for number in range(30)], "gateway": ["s3"]},
        "regional": [{"kind": "S3 bucket", "count": 2, "names": [LONG, LONG]}],
        "plans": [
            {"name": LONG, "state": "exists", "needs": [LONG], "windows": windows},
            {"name": "wanted", "state": "purchase", "needs": [], "windows": [], "wish": {"days": 28}},
        ],
        "nodes": 10,
        "accelerators": {"H200": 8},
    }


def boxes(root: ElementTree.Element, *classes: str) -> list[Box]:
    found = []
    for rect in root.iter(f"{SVG}rect"):
        if not classes or set(rect.get("class", "").split()) & set(classes):
            x, y, wide, high = (float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))
            found.append((x, y, x + wide, y + high))
    return found


def spans(root: ElementTree.Element) -> list[tuple[str, float, float, float]]:
    """Each text with its left and right end, as wide as it may be, and its line."""
    found = []
    for item in root.iter(f"{SVG}text"):
        words = "".join(part for part in [item.text or "", *(child.tail or "" for child in item)])
        named = item.get("class", "").split()
        wide = width(words, float(item.get("font-size", "0")), bold="b" in named)
        x = float(item.get("x", "0")) - (wide if "e" in named else 0)
        found.append((words, x, x + wide, float(item.get("y", "0"))))
    return found


@pytest.mark.parametrize("zones", [1, 2, 3, 4])
@pytest.mark.parametrize("groups", [1, 13, 50])
@pytest.mark.parametrize("alone", [True, False])
def test_no_text_leaves_its_box_and_no_card_lies_on_another(zones: int, groups: int, alone: bool) -> None:
    root = ElementTree.fromstring(drawing(world(zones, groups), LONG, day=DAY, alone=alone))
    *_, wide, high = map(float, root.get("viewBox", "").split())
    around = boxes(root, "card", "tint", "sunk", "box")
    for words, left, right, y in spans(root):
        assert left >= 0, words
        assert right <= wide, words
        assert 0 < y < high, words
        within = [box for box in around if box[0] <= left + 1 and box[1] <= y <= box[3] and left < box[2]]
        smallest = min(within, key=lambda box: (box[2] - box[0]) * (box[3] - box[1]), default=(0, 0, wide, high))
        # A window of a plan may be shorter than the words about it, which then stand beside it.
        assert right <= smallest[2] + 0.1 or "2027" in words, f"{words} leaves {smallest}"
    for (one, left, right, y), (other, start, _, line) in itertools.permutations(spans(root), 2):
        assert line != y or start < left or start >= right, f"{other} is written over {one}"
    cards = boxes(root, "tint")
    for one, other in itertools.combinations(cards, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, f"{one} lies on {other}"
    assert all(box[2] <= wide and box[3] <= high + 0.1 for box in boxes(root))


@pytest.mark.parametrize("name", NAMES)
def test_every_environment_is_drawn_whole(name: str) -> None:
    found = architecture(loaded(name).environment, assembly(name))
    text = drawing(found, name, alone=True)
    assert text == drawing(found, name, alone=True)
    words = " ".join(ElementTree.fromstring(text).itertext())
    assert all(f"{group['name']}: " in words for group in found["groups"])
    assert all(subnet["range"] in words for zone in found["zones"] for subnet in zone["subnets"])
    assert not re.search(r"url\(|href|<script|@import", text), "a drawing asks nobody for anything"


def test_the_drawing_of_the_readme_is_current() -> None:
    """`podwright report prod --drawing docs/prod.svg` writes it."""
    found = architecture(loaded("prod").environment, assembly("prod"))
    assert (ROOT / "docs/prod.svg").read_text(encoding="utf-8") == f"{drawing(found, 'prod', alone=True)}\n"


def test_squares_stand_for_nodes_and_empty_ones_for_those_that_may_be_missing() -> None:
    def squares(**given: Any) -> tuple[int, int]:
        found = world(2, 0) | {"groups": [group(1, ["usgw1-lax0-az0"], capacity="Spot", plan=None, **given)]}
        text = drawing(found, "x")
        return text.count("h7v7h-7z"), text.count("h6v6h-6z")

    assert squares(count=16, min=None) == (16, 0)
    assert squares(count=4, min=0) == (0, 4)
    assert squares(count=8, min=3) == (3, 5)
    whole, none = squares(count=6758, min=None)
    assert none == 0
    assert 6758 / 512 <= whole <= 50


def test_the_bar_of_a_subnet_warns_before_nodes_cannot_be_replaced() -> None:
    def colour(taken: int, replacing: int) -> str:
        found = world(1, 0)
        found["zones"][0]["subnets"] = [
            {
                "role": "nodes",
                "range": "10.0.0.0/24",
                "nat_gateways": 0,
                "usable": 251,
                "taken": taken,
                "replacing": replacing,
                "sums": "sum",
            }
        ]
        groups = ElementTree.fromstring(drawing(found, "x")).iter(f"{SVG}g")
        (match,) = [item.get("class", "") for item in groups if item.findtext(f"{SVG}title") == "sum"]
        return match

    assert [colour(30, 60), colour(200, 210), colour(200, 260)] == ["green", "orange", "red"]


def luminance(colour: str) -> float:
    parts = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_contrast_on_every_ground_in_both_themes(theme: dict[str, str]) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    tints = [f"{hue}-tint" for hue in COLOURS]
    grounds = ["ground", "card", "sunk"]
    low = {
        (words, ground): round(contrast(theme[words], theme[ground]), 2)
        for words, behind in (
            *((words, [*grounds, *tints]) for words in ("ink", "soft")),
            *((hue, [*grounds, f"{hue}-tint"]) for hue in COLOURS),
        )
        for ground in behind
        if contrast(theme[words], theme[ground]) < 4.5
    }
    assert low == {}


def test_every_capacity_has_a_colour_of_the_sheet() -> None:
    assert set(HUES.values()) <= set(COLOURS)
    assert len(set(HUES.values())) == len(HUES)


def test_text_is_cut_to_the_room_there_is() -> None:
    assert fitted("short", 11, 100) == "short"
    cut = fitted(LONG, 11, 100)
    assert cut.endswith("…")
    assert width(cut, 11) <= 100 < width(f"{LONG[: len(cut)]}…", 11)
    assert width("名前", 10) >= 20
    assert [len(line) for line in wrapped(["aaaa"] * 5, 10, 60, 4)] == [2, 2, 1]
