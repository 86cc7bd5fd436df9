"""The architecture as a drawing: what `architecture` found, laid out as VPC, zones, subnets and what stands in them.

It is SVG without a script: a part of the page, or with its colours in it a file of its own.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from .lettering import width
from .markup import Markup, tag
from .shapes import Drawn, bar, box, chips, headed, text
from .style import DRAWING
from .time_line import time_line

Data = Mapping[str, Any]
WIDTH: Final = 1200
_MARGIN: Final = 24
_GAP: Final = 14
_PAD: Final = 12
_LEAST_CARD: Final = 232
# With more groups than this in a zone each gets a card of two lines.
_MOST_LARGE_CARDS: Final = 12
_DOT, _PITCH, _DOT_ROWS = 7, 9.5, 2
# How many nodes a square may stand for.
_SCALES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
HUES: Final = {"on demand": "violet", "training plan": "orange", "Spot": "teal", "account team": "blue"}
"""The colour of a group by where its instances come from."""
_SPOKEN: Final = 12


def drawing(found: Data, title: str, *, day: date | None = None, alone: bool = False) -> Markup:
    """The drawing.

    Args:
        found: What `architecture` returned.
        title: Name of the environment.
        day: The day that the time line marks; none when absent.
        alone: As a file of its own, with its colours in it.
    """
    # The page has the heading and the margins already.
    margin = _MARGIN if alone else 2
    inside = WIDTH - 2 * margin
    y, parts = _heading(found, title) if alone else (float(margin), [])

    def plans(found: Data, x: float, y: float, room: float) -> Drawn:
        return time_line(found["plans"], x, y, room, day) if found["plans"] else (0, [])

    for draw in (_control_plane, _vpc, _regional, plans):
        height, elements = draw(found, margin, y, inside)
        parts += elements
        y += height + (_GAP if height else 0)
    total = round(y + margin - _GAP)
    return tag(
        "svg",
        tag("title", f"Architecture of {title}", id="drawing-title"),
        tag("desc", spoken(found), id="drawing-says"),
        tag("style", Markup(DRAWING)) if alone else None,
        box(0, 0, WIDTH, total, "ground", 14) if alone else None,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {total}",
        width=WIDTH if alone else None,
        height=total if alone else None,
        class_="pw",
        role="img",
        aria_labelledby="drawing-title drawing-says",
    )


def spoken(found: Data) -> str:
    """The drawing in a few sentences, for who does not see it."""
    groups = [
        f"{group['name']}: {counted(group)} × {' or '.join(group['types'])} in {', '.join(group['zones'])}"
        for group in found["groups"]
    ]
    more = f"; and {len(groups) - _SPOKEN} more" if len(groups) > _SPOKEN else ""
    systems = ", ".join(f"{system['kind']} {system['name']}" for system in found["file_systems"])
    return (
        f"Region {found['region']}, VPC {', '.join(found['vpc']['cidrs'])} in "
        f"{', '.join(zone['id'] for zone in found['zones'])}. Instance groups: "
        f"{'; '.join(groups[:_SPOKEN]) or 'none'}{more}. Storage: {systems or 'none'}."
    )


def counted(group: Data) -> str:
    """How many instances a group has: `16`, or `0 to 4` where it may have fewer."""
    least = group["min"]
    return f"{group['count']:,}" if least is None or least == group["count"] else f"{least:,} to {group['count']:,}"


def hue(group: Data) -> str:
    """The colour of a group."""
    return HUES["training plan" if group["plan"] else group["capacity"]]


def _heading(found: Data, title: str) -> Drawn:
    counts = [f"{found['nodes']:,} node{'' if found['nodes'] == 1 else 's'}"] if found["groups"] else []
    counts += [f"{count:,} × {name}" for name, count in found["accelerators"].items()]
    where = " · ".join([f"account {found['account']}", found["region"], *counts])
    room = WIDTH - 2 * _MARGIN
    return 80, [text(_MARGIN, 44, title, 24, room=room, bold=True), text(_MARGIN, 66, where, 13, "soft", room=room)]


def _control_plane(found: Data, x: float, y: float, room: float) -> Drawn:
    if not (plane := found["control_plane"]):
        return 0, []
    height, parts = chips(plane["parts"], x + _PAD, y + 42, room - 2 * _PAD)
    words = " · ".join(filter(None, plane["facts"]))
    total = 42 + height + (_PAD if height else 0)
    head = headed(x + _PAD, y + 26, room - 2 * _PAD, plane["kind"], words, "word")
    return total, [tag("g", box(x, y, room, total, "tint", 10), *head, *parts, class_="blue")]


def _vpc(found: Data, x: float, y: float, room: float) -> Drawn:
    vpc, zones = found["vpc"], found["zones"]
    way = "internet through NAT" if vpc["nat_gateways"] else "no way to the internet"
    words = [*vpc["cidrs"], vpc["name"] if vpc["existing"] else way, *(["flow logs"] if vpc["flow_logs"] else [])]
    inside = room - 2 * _PAD
    parts = headed(x + _PAD, y + 26, inside, "VPC, adopted" if vpc["existing"] else "VPC", " · ".join(words))
    top = y + 42
    if zones:
        wide = (inside - _GAP * (len(zones) - 1)) / len(zones)
        scale = _scale(found, wide)
        tallest = max(_zone(found, zone, 0, 0, wide, scale)[0] for zone in zones)
        for index, zone in enumerate(zones):
            parts += _zone(found, zone, x + _PAD + index * (wide + _GAP), top, wide, scale, tallest)[1]
        top += tallest + _GAP
        if found["groups"]:
            parts += _legend(found, scale, x + _PAD, top + 8)
            top += 24
    everywhere = [system for system in found["file_systems"] if not system["zones"]]
    height, drawn = _systems(everywhere, x + _PAD, top, inside, 1)
    parts += drawn
    top += height + (6 if everywhere else 0)
    endpoints = found["endpoints"]
    if names := [*endpoints["interface"], *(f"{name} (gateway)" for name in endpoints["gateway"])]:
        parts.append(text(x + _PAD, top + 10, f"{len(names)} endpoints: AWS without the internet", 12, "soft"))
        height, drawn = chips(names, x + _PAD, top + 20, inside)
        parts += drawn
        top += 20 + height + _PAD
    return top - y, [box(x, y, room, top - y, "box", 12), *parts]


def _scale(found: Data, zone_wide: float) -> int:
    """How many nodes a square stands for, so that the squares of the largest group have room."""
    _, card = _grid(zone_wide - 2 * _PAD)
    room = _DOT_ROWS * int((card - 2 * _PAD) // _PITCH)
    most = max((_here(group) for group in found["groups"]), default=0)
    return next((scale for scale in _SCALES if -(-most // scale) <= room), _SCALES[-1])


def _here(group: Data) -> int:
    """Nodes of a group in one of its zones."""
    return -(-group["count"] // max(1, len(group["zones"])))


def _grid(room: float) -> tuple[int, float]:
    """Cards beside each other, and how wide each is."""
    across = max(1, int((room + 8) // (_LEAST_CARD + 8)))
    return across, (room - 8 * (across - 1)) / across


def _zone(found: Data, zone: Data, x: float, y: float, wide: float, scale: int, high: float | None = None) -> Drawn:
    """A zone; its nodes subnet takes what is left of `high`."""
    parts = headed(x + _PAD, y + 24, wide - 2 * _PAD, zone["id"], "")
    top = y + 36
    groups = [group for group in found["groups"] if zone["id"] in group["zones"]]
    systems = [system for system in found["file_systems"] if zone["id"] in system["zones"]]
    for subnet in sorted(zone["subnets"], key=lambda row: row["role"] == "nodes"):
        inside = wide - 4 * _PAD
        head = _head(subnet, inside)
        taken = head
        drawn: list[Markup] = _subnet(subnet, x + 2 * _PAD, top, inside)
        if subnet["role"] == "nodes":
            taken = head + 6
            for draw, items in ((_groups, groups), (_systems, systems)):
                height, elements = draw(items, x + 2 * _PAD, top + taken, inside, scale)
                drawn += elements
                taken += height
            taken += 4
            if high is not None:
                taken = y + high - _PAD - top
        parts += [box(x + _PAD, top, wide - 2 * _PAD, taken, "card"), *drawn]
        top += taken + 8
    total = top - 8 + _PAD - y
    return total, [box(x, y, wide, total, "sunk", 10), *parts]


def _words(subnet: Data) -> tuple[str, str]:
    """What a subnet is called, and what is said of its addresses."""
    taken, free = subnet["taken"], subnet["usable"]
    if taken is not None:
        said = f"{taken:,} of {free:,} addresses"
    else:
        said = "NAT gateway" if subnet["nat_gateways"] else f"{free:,} addresses"
    return f"{subnet['role']} {subnet['range']}", said


def _beside(subnet: Data, room: float) -> bool:
    """Whether both fit into one line."""
    name, said = _words(subnet)
    return width(name, 12, bold=True) + 10 + width(said, 11) <= room


def _head(subnet: Data, room: float) -> float:
    """How high the words and the bar of a subnet are."""
    return (28.0 if subnet["taken"] is None else 36.0) + (0 if _beside(subnet, room) else 15)


def _subnet(subnet: Data, x: float, y: float, room: float) -> list[Markup]:
    """A subnet's range, and how full it is."""
    taken, free = subnet["taken"], subnet["usable"]
    name, said = _words(subnet)
    parts = [text(x, y + 18, name, 12, room=room, bold=True)]
    if _beside(subnet, room):
        parts.append(text(x + room, y + 18, said, 11, "soft", "e"))
    else:
        parts.append(text(x, y + 33, said, 11, "soft", room=room))
    if taken is None:
        return parts
    worst = subnet["replacing"] or taken
    tight = "red" if worst > free else "orange" if worst > free * 0.8 else "green"
    line = y + _head(subnet, room) - 11
    return [*parts, tag("g", tag("title", subnet["sums"]), *bar(x, line, room, taken / free), class_=tight)]


def _groups(groups: list[Data], x: float, y: float, room: float, scale: int) -> Drawn:
    if not groups:
        return 0, []
    across, wide = _grid(room)
    small = len(groups) > _MOST_LARGE_CARDS
    deepest = max(-(-_here(group) // scale) for group in groups)
    high = 42 if small else 66 + _PITCH * min(_DOT_ROWS, max(1, -(-deepest // int((wide - 2 * _PAD) // _PITCH))))
    parts: list[Markup] = []
    rows = [groups[start : start + across] for start in range(0, len(groups), across)]
    for row, some in enumerate(rows):
        for column, group in enumerate(some):
            left, top = x + column * (wide + 8), y + row * (high + 8)
            parts.append(_group(group, left, top, wide, high, None if small else scale))
    return len(rows) * (high + 8), parts


def _group(group: Data, x: float, y: float, wide: float, high: float, scale: int | None) -> Markup:
    """A card; without a scale it has no squares."""
    word = group["capacity"]
    room = wide - 2 * _PAD
    shared = len(group["zones"])
    size = f"{counted(group)} × {' or '.join(group['types'])}" + (f", over {shared} zones" if shared > 1 else "")
    brings = [f"{group['accelerators'] * group['count']:,} × {group['accelerator']}"] if group["accelerators"] else []
    brings += [f"EFA ×{group['efa']}{', efa-only' if group['efa_only'] else ''}"] if group["efa"] else []
    brings += [group["slurm"]] if group["slurm"] else []
    brings += ["restricted"] if group["restricted"] else []
    badge_wide = min(width(word, 10), room / 2)
    lines = [
        text(x + _PAD, y + 18, group["name"], 13, room=room - badge_wide - 8, bold=True),
        text(x + wide - _PAD, y + 17, word, 10, "word", "e", room=badge_wide + 1),
        text(x + _PAD, y + 34, size, 11, room=room),
    ]
    if scale is not None:
        lines += [
            text(x + _PAD, y + 49, " · ".join(brings) or "no accelerators", 11, "soft", room=room),
            *_squares(group, x + _PAD, y + 57, room, scale),
        ]
    said = f"{group['name']}: {size}, {word}{', ' if brings else ''}{', '.join(brings)}"
    named = "tint dashed" if group["capacity"] == "Spot" else "tint"
    return tag("g", tag("title", said), box(x, y, wide, high, named, 6), *lines, class_=hue(group))


def _squares(group: Data, x: float, y: float, room: float, scale: int) -> list[Markup]:
    """Nodes as squares; those that may be missing are empty."""
    across, here = int(room // _PITCH), _here(group)
    least = group["count"] if group["min"] is None else group["min"]
    sure = -(-least // max(1, len(group["zones"])))
    # One path for each kind: a square for each of hundreds of nodes would be most of the file.
    kinds: dict[str, list[str]] = {"hue": [], "may": []}
    for index in range(min(-(-here // scale), across * _DOT_ROWS)):
        left, top = x + index % across * _PITCH, y + index // across * _PITCH
        size = _DOT if index * scale < sure else _DOT - 1
        shift = 0 if index * scale < sure else 0.5
        path = f"M{left + shift:.1f} {top + shift:.1f}h{size}v{size}h-{size}z"
        kinds["hue" if index * scale < sure else "may"].append(path)
    return [tag("path", d="".join(paths), class_=named) for named, paths in kinds.items() if paths]


def _systems(systems: list[Data], x: float, y: float, room: float, _: int) -> Drawn:
    parts: list[Markup] = []
    across, wide = _grid(room)
    high = max(map(_high, systems), default=0.0)
    rows = [systems[start : start + across] for start in range(0, len(systems), across)]
    for row, some in enumerate(rows):
        for column, system in enumerate(some):
            parts.append(_system(system, x + column * (wide + 8), y + row * (high + 8), wide, high))
    return len(rows) * (high + 8), parts


def _said(system: Data) -> list[str]:
    """What there is to say of a file system, by lines."""
    facts = system["facts"]
    return [line for line in (" · ".join(facts[:2]), " · ".join(facts[2:]), " · ".join(system["repositories"])) if line]


def _high(system: Data) -> float:
    return 42.0 + 14 * len(_said(system))


def _system(system: Data, x: float, y: float, wide: float, high: float) -> Markup:
    """A file system or a database, with a cylinder for what holds data."""
    left, room = x + _PAD + 30, wide - 2 * _PAD - 30
    top, middle = x + _PAD, y + high / 2 - 10
    cylinder = f"M{top:.1f} {middle:.1f}v20a9 4 0 0 0 18 0v-20M{top:.1f} {middle:.1f}a9 4 0 0 0 18 0a9 4 0 0 0 -18 0"
    return tag(
        "g",
        tag("title", ", ".join([system["kind"], system["name"], *system["facts"], *system["repositories"]])),
        box(x, y, wide, high, "tint", 6),
        tag("path", d=cylinder, class_="edge"),
        text(left, y + 18, system["name"], 13, room=room, bold=True),
        text(left, y + 33, system["kind"], 11, room=room),
        *(text(left, y + 47 + 14 * row, line, 11, "soft", room=room) for row, line in enumerate(_said(system))),
        class_="green",
    )


def _legend(found: Data, scale: int, x: float, y: float) -> list[Markup]:
    parts: list[Markup] = []
    kinds = {"training plan" if group["plan"] else group["capacity"] for group in found["groups"]}
    for kind, colour in HUES.items():
        if kind in kinds:
            parts.append(tag("g", box(x, y - 8, 9, 9, "hue", 2), class_=colour))
            parts.append(text(x + 14, y, kind, 11, "soft"))
            x += 14 + width(kind, 11) + 18
    if any(
        sum(zone["id"] in group["zones"] for group in found["groups"]) <= _MOST_LARGE_CARDS for zone in found["zones"]
    ):
        square = "one square is one node" if scale == 1 else f"one square is {scale} nodes"
        parts.append(text(x, y, f"{square}; an empty one may be missing", 11, "soft"))
    return parts


def _regional(found: Data, x: float, y: float, room: float) -> Drawn:
    """What stands in the region and in no subnet."""
    words = []
    for item in found["regional"]:
        named = ", ".join(item["names"][:3])
        count = f"{item['count']} {item['kind']}s" if item["count"] > 1 else item["kind"]
        words.append(f"{count}: {named}" if named and len(item["names"]) <= 3 else count)
    if not words:
        return 0, []
    height, parts = chips(words, x + _PAD, y + 38, room - 2 * _PAD)
    total = 38 + height + _PAD
    return total, [box(x, y, room, total, "box", 10), *headed(x + _PAD, y + 25, room, "In the region", ""), *parts]
