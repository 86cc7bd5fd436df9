"""The architecture as a drawing: what `architecture` found, as the boxes that `drawing.html.jinja` renders.

The browser lays the boxes out and measures their text, so nothing here knows how wide a letter is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from .time_line import TimeLine, time_line
from .views import plural

Data = Mapping[str, Any]
HUES: Final = {"on demand": "violet", "training plan": "orange", "Spot": "teal", "account team": "blue"}
"""The colour of a group by where its instances come from."""
EFA_ONLY: Final = {True: ", efa-only", False: ""}
# Squares in a line, which are narrower than the narrowest card, and lines.
_PER_LINE, _LINES = 21, 2
# How many nodes a square may stand for.
_SCALES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# With more groups than this in a zone each gets a card of two lines.
_MOST_LARGE_CARDS: Final = 12
_SPOKEN: Final = 12
_SQUARES: Final = {False: "an empty one may be missing", True: "a red one needs a look, an empty one is missing"}
_NAMED: Final = 3


@dataclass(frozen=True)
class Squares:
    """Nodes of a group in one zone, each square one of them or several."""

    sure: int
    """Those that are there; where nobody looked, those of the least count."""
    bad: int
    """Of the rest, those that are there and need a look."""
    total: int
    """With those that are, or may be, missing."""

    per_line: int = _PER_LINE

    @property
    def lines(self) -> int:
        """Lines that they take."""
        return -(-self.total // self.per_line)


@dataclass(frozen=True)
class Seen:
    """Nodes of a group when somebody looked at the cluster."""

    well: int
    bad: int
    """There, and named as one that needs a look."""


@dataclass(frozen=True)
class GroupCard:
    """An instance group in a zone."""

    name: str
    capacity: str
    hue: str
    size: str
    brings: Sequence[str]
    """Lines: accelerators and EFA, then its part in Slurm and what was seen of its nodes."""
    squares: Squares

    @property
    def title(self) -> str:
        """All of it in one line."""
        return ", ".join((f"{self.name}: {self.size}", self.capacity, *self.brings))


@dataclass(frozen=True)
class SystemCard:
    """A file system or a database."""

    name: str
    kind: str
    lines: Sequence[str]


@dataclass(frozen=True)
class SubnetBox:
    """A subnet, how full it is, and in that of nodes what stands in it."""

    name: str
    said: str
    sums: str
    """How its addresses add up."""
    share: float | None
    """Percent of its addresses that are taken; None where nothing counts them."""
    hue: str
    groups: Sequence[GroupCard] = ()
    systems: Sequence[SystemCard] = ()

    @property
    def is_dense(self) -> bool:
        """Whether its groups are shown in short."""
        return len(self.groups) > _MOST_LARGE_CARDS

    @property
    def is_tall(self) -> bool:
        """Whether one of its groups has more lines than the others."""
        return any(len(group.brings) > 1 for group in self.groups)


@dataclass(frozen=True)
class ZoneBox:
    """An availability zone."""

    id: str
    subnets: Sequence[SubnetBox]


@dataclass(frozen=True)
class Drawing:
    """Everything that is drawn."""

    title: str
    where: str
    """Account, region and counts."""
    spoken: str
    """The drawing in a few sentences, for who does not see it."""
    plane: str
    """The control plane; empty without one."""
    plane_facts: str
    plane_parts: Sequence[str]
    vpc: str
    vpc_facts: str
    zones: Sequence[ZoneBox]
    key: Mapping[str, str]
    """The colour of each source of instances that occurs."""
    square: str
    """What a square stands for; empty where there are none."""
    systems: Sequence[SystemCard]
    """Those that stand in all zones."""
    endpoints: Sequence[str]
    regional: Sequence[str]
    plans: TimeLine | None

    @property
    def across(self) -> int:
        """Cards side by side in a zone of a drawing of full width."""
        return {1: 4, 2: 2}.get(len(self.zones), 1)


def drawing(result: Data, title: str, day: date | None = None, observed: Mapping[str, Seen] | None = None) -> Drawing:
    """The drawing.

    Args:
        result: What `architecture` returned.
        title: Name of the environment.
        day: The day that the time line marks; none when absent.
        observed: Nodes of groups as somebody saw the cluster; None where nobody looked.
    """
    plane, vpc, endpoints = result["control_plane"], result["vpc"], result["endpoints"]
    scale = _scale(result)
    zones = [_zone(result, zone, scale, observed) for zone in result["zones"]]
    sources = {"training plan" if group["plan"] else group["capacity"] for group in result["groups"]}
    nodes = "one square is one node" if scale == 1 else f"one square is {scale} nodes"
    has_squares = any(not subnet.is_dense for zone in zones for subnet in zone.subnets if subnet.groups)
    return Drawing(
        title=title,
        where=_where(result),
        spoken=_spoken(result),
        plane=plane["kind"] if plane else "",
        plane_facts=" · ".join(filter(None, plane["facts"])) if plane else "",
        plane_parts=plane["parts"] if plane else (),
        vpc="VPC, adopted" if vpc["existing"] else "VPC",
        vpc_facts=_vpc_facts(vpc),
        zones=zones,
        key={source: colour for source, colour in HUES.items() if source in sources},
        square=f"{nodes}; {_SQUARES[observed is not None]}" if has_squares else "",
        systems=[_system(system) for system in result["file_systems"] if not system["zones"]],
        endpoints=[*endpoints["interface"], *(f"{name} (gateway)" for name in endpoints["gateway"])],
        regional=[_regional(item) for item in result["regional"]],
        plans=time_line(result["plans"], day) if result["plans"] else None,
    )


def counted(group: Data) -> str:
    """How many instances a group has: `16`, or `0 to 4` where it may have fewer."""
    least = group["min"]
    return f"{group['count']:,}" if least is None or least == group["count"] else f"{least:,} to {group['count']:,}"


def hue(group: Data) -> str:
    """The colour of a group."""
    return HUES["training plan" if group["plan"] else group["capacity"]]


def _where(result: Data) -> str:
    counts = [f"{result['nodes']:,} node{plural(result['nodes'])}"] if result["groups"] else []
    counts += [f"{count:,} × {name}" for name, count in result["accelerators"].items()]
    return " · ".join([f"account {result['account']}", result["region"], *counts])


def _spoken(result: Data) -> str:
    groups = [
        f"{group['name']}: {counted(group)} × {' or '.join(group['types'])} in {', '.join(group['zones'])}"
        for group in result["groups"]
    ]
    more = f"; and {len(groups) - _SPOKEN} more" if len(groups) > _SPOKEN else ""
    systems = ", ".join(f"{system['kind']} {system['name']}" for system in result["file_systems"])
    return (
        f"Region {result['region']}, VPC {', '.join(result['vpc']['cidrs'])} in "
        f"{', '.join(zone['id'] for zone in result['zones'])}. Instance groups: "
        f"{'; '.join(groups[:_SPOKEN]) or 'none'}{more}. Storage: {systems or 'none'}."
    )


def _vpc_facts(vpc: Data) -> str:
    way = "internet through NAT" if vpc["nat_gateways"] else "no way to the internet"
    logs = ["flow logs"] if vpc["flow_logs"] else []
    return " · ".join([*vpc["cidrs"], vpc["name"] if vpc["existing"] else way, *logs])


def _here(group: Data) -> int:
    """Nodes of a group in one of its zones."""
    return -(-group["count"] // max(1, len(group["zones"])))


def _scale(result: Data) -> int:
    """How many nodes a square stands for, so that those of the largest group take two lines."""
    most = max((_here(group) for group in result["groups"]), default=0)
    return next((scale for scale in _SCALES if -(-most // scale) <= _PER_LINE * _LINES), _SCALES[-1])


def _zone(result: Data, zone: Data, scale: int, observed: Mapping[str, Seen] | None) -> ZoneBox:
    """A zone. The subnet of its nodes comes last and holds its groups and file systems."""
    looked = (
        {}
        if observed is None
        else {group["name"]: observed.get(group["name"], Seen(0, 0)) for group in result["groups"]}
    )
    groups = [
        _group(group, scale, looked.get(group["name"])) for group in result["groups"] if zone["id"] in group["zones"]
    ]
    systems = [_system(system) for system in result["file_systems"] if zone["id"] in system["zones"]]
    others = [_subnet(subnet) for subnet in zone["subnets"] if subnet["role"] != "nodes"]
    others += [_subnet(subnet) for subnet in zone["subnets"] if subnet["role"] == "nodes" and subnet["further"]]
    nodes = [
        _subnet(subnet, groups, systems)
        for subnet in zone["subnets"]
        if subnet["role"] == "nodes" and not subnet["further"]
    ]
    return ZoneBox(zone["id"], [*others, *nodes])


def _subnet(subnet: Data, groups: Sequence[GroupCard] = (), systems: Sequence[SystemCard] = ()) -> SubnetBox:
    taken, free = subnet["taken"], subnet["usable"]
    name = f"{subnet['role']} {subnet['range']}"
    if taken is None:
        message = "NAT gateway" if subnet["nat_gateways"] else f"{free:,} addresses"
        return SubnetBox(name, message, "", None, "", groups, systems)
    # Orange while there is still room: nodes stand twice while they are replaced.
    worst = subnet["replacing"] or taken
    short = "red" if worst > free else "orange"
    tight = short if worst > free * 0.8 else "green"
    share = round(min(100 * taken / free, 100), 1)
    return SubnetBox(name, f"{taken:,} of {free:,} addresses", subnet["sums"], share, tight, groups, systems)


def _group(group: Data, scale: int, observed: Seen | None) -> GroupCard:
    """A group's card, with squares of `scale` nodes in each zone: those that were seen, or else of its least count."""
    shared = len(group["zones"])
    size = f"{counted(group)} × {' or '.join(group['types'])}" + (f", over {shared} zones" if shared > 1 else "")
    brings = [f"{group['accelerators'] * group['count']:,} × {group['accelerator']}"] if group["accelerators"] else []
    brings += [f"EFA ×{group['efa']}{EFA_ONLY[group['efa_only']]}"] if group["efa"] else []
    part = [group["slurm"]] if group["slurm"] else []
    part += ["restricted"] if group["restricted"] else []
    least = group["count"] if group["min"] is None else group["min"]
    total, each = min(-(-_here(group) // scale), _PER_LINE * _LINES), max(1, shared) * scale
    bad = min(-(-observed.bad // each), total) if observed else 0
    sure = min(-(-(observed.well if observed else least) // each), total - bad)
    if observed:
        missing = max(group["count"] - observed.well - observed.bad, 0)
        counts = {"run": observed.well, "need a look": observed.bad, "missing": missing}
        part.append(", ".join(f"{count:,} {word}" for word, count in counts.items() if count or word == "run"))
    return GroupCard(
        name=group["name"],
        capacity=group["capacity"],
        hue=hue(group),
        size=size,
        brings=[" · ".join(brings) or "no accelerators", *([" · ".join(part)] if part else [])],
        squares=Squares(sure, bad, total),
    )


def _system(system: Data) -> SystemCard:
    facts = system["facts"]
    lines = (" · ".join(facts[:2]), " · ".join(facts[2:]), " · ".join(system["repositories"]))
    return SystemCard(system["name"], system["kind"], [line for line in lines if line])


def _regional(item: Data) -> str:
    """What stands in the region and in no subnet; by name where it is little."""
    count = f"{item['count']} {item['kind']}s" if item["count"] > 1 else item["kind"]
    return f"{count}: {', '.join(item['names'])}" if 0 < len(item["names"]) <= _NAMED else count
