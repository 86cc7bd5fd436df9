"""The drawing as an SVG file of its own, which READMEs and wikis show: the page's boxes, with a page of known height.

An image has to say how large it is before a browser lays it out. So here each line of text stays on one line, cut with
an ellipsis where it is too long, and the height follows from how many lines and boxes there are. A test in a browser
compares it with what is drawn.
"""

from pathlib import Path
from typing import Final

from ..output.templates import templates
from .drawing import Drawing, SubnetBox, ZoneBox

_FOLDER: Final = Path(__file__).parent
_SHEETS: Final = ("theme.css", "drawing.css", "drawing_file.css")
_WIDTH: Final = 1200
# Frame and padding of a block, and of a subnet or card, above and below together; gaps; lines.
_FRAME, _LINE, _HEAD, _GAP, _ROW_GAP = 26, 18, 20, 14, 8
_SUBNET, _BAR = 14, 9
_CARD, _TALL_CARD, _DENSE_CARD, _SYSTEM = 92, 110, 52, 106
_CHIP, _CHIP_GAP = 24, 6
_PLAN: Final = 40
_TITLE: Final = 50
_PADDING: Final = 48


def drawing_file(drawing: Drawing) -> str:
    """The text of the file."""
    sheet = "".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SHEETS)
    template = templates(_FOLDER).get_template("drawing_file.svg.jinja")
    made = template.render(drawing=drawing, sheet=sheet, width=_WIDTH, height=_height(drawing))
    return f"{made}\n"


def _height(drawing: Drawing) -> int:
    plane = _HEAD + _chips(len(drawing.plane_parts), 4)
    zones = max((_zone(zone, drawing.across) for zone in drawing.zones), default=0)
    vpc = _HEAD + 10 + zones + _cards(len(drawing.systems), 4, _SYSTEM)
    vpc += 10 + _LINE if drawing.key else 0
    vpc += _ROW_GAP + _LINE + _chips(len(drawing.endpoints), 8) if drawing.endpoints else 0
    blocks = [vpc]
    blocks += [plane] if drawing.plane else []
    blocks += [_HEAD + _chips(len(drawing.regional), 4)] if drawing.regional else []
    if plans := drawing.plans:
        axis = _ROW_GAP + _LINE if plans.ticks else 0
        blocks.append(_HEAD + axis + len(plans.rows) * (_ROW_GAP + _PLAN))
    return _PADDING + _TITLE + sum(_GAP + _FRAME + block for block in blocks)


def _chips(count: int, columns: int) -> int:
    rows = -(-count // columns)
    return _ROW_GAP + rows * (_CHIP + _CHIP_GAP) - _CHIP_GAP if rows else 0


def _cards(count: int, across: int, high: int) -> int:
    return -(-count // across) * (high + _ROW_GAP)


def _zone(zone: ZoneBox, across: int) -> int:
    return _FRAME + _LINE + sum(_ROW_GAP + _subnet(subnet, across) for subnet in zone.subnets)


def _subnet(subnet: SubnetBox, across: int) -> int:
    usual = _TALL_CARD if subnet.is_tall else _CARD
    high = _DENSE_CARD if subnet.is_dense else usual
    groups = _cards(len(subnet.groups), across, high)
    bar = _BAR if subnet.share is not None else 0
    # In a narrow zone range and addresses stand in two lines.
    words = _LINE if across > 1 else 2 * _LINE
    return _SUBNET + words + bar + groups + _cards(len(subnet.systems), across, _SYSTEM)
