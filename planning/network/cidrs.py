"""Which subnets a network has, and their addresses: a pure function of `Network`.

The VPC's range is cut into eight slots, and a zone's slot follows from its own id. Adding, removing or reordering
zones or instance groups therefore never moves an existing subnet. Inside a slot, `nodes` has the upper half; the
lower half begins with one 32nd of the slot each for `public` and `control_plane`, and its rest is spare for what a
person adds by hand. In a /16 a slot is a /19 with 4,096 addresses for nodes and 256 for either of the others.
"""

import re
import zlib
from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import combinations
from typing import NamedTuple

from ...config.catalog.limits import limits
from ...config.catalog.zones import is_local, takes_control_plane
from ...config.settings.network import Network, SubnetRole

SubnetKey = tuple[str, SubnetRole]
"""A subnet belongs to a zone id and a role, never to an instance group."""


class Subnet(NamedTuple):
    """A subnet and its range."""

    zone: str
    role: SubnetRole
    block: IPv4Network
    further: bool = False
    """Whether it stands beside the zone's first subnet of nodes, and so is named by its range."""


# A subnet's range is create-only, so a zone keeps its slot, whatever else stands in the file.
SLOT_BITS = 3
_NODES_BITS, _SMALL_BITS = SLOT_BITS + 1, SLOT_BITS + 5
# Availability Zones are numbered from 1, and no region has more than six; so these two are free for Local Zones.
# Source: EC2 DescribeAvailabilityZones, snapshot in moto 5.2.5.
_LOCAL_SLOTS = (0, 7)


def slot(zone_id: str) -> int:
    """The slot of a zone, 0 to 7: its number for an Availability Zone, one of the two spare ones for a Local Zone.

    Two Local Zones may share a slot; `collisions` finds that, and `network.subnets` resolves it.
    """
    if is_local(zone_id):
        # A checksum and not Python's hash(), which differs from run to run.
        return _LOCAL_SLOTS[zlib.crc32(zone_id.encode()) % len(_LOCAL_SLOTS)]
    # A zone id ends with its number: usw2-az1. Its name does not, for each account has its own letters.
    return int(re.findall(r"[0-9]+", zone_id)[-1]) % 2**SLOT_BITS


def nat_zones(network: Network) -> tuple[str, ...]:
    """The zones that hold a NAT gateway and, for it, a public subnet. Local Zones use another zone's."""
    regular = tuple(zone for zone in network.zones if not is_local(zone))
    # A closed network has no way out that a gateway could be for, and an adopted one has its own.
    if network.vpc is not None or network.endpoints == "closed":
        return ()
    return regular[:1] if network.nat == "single" else regular


def plan(network: Network) -> dict[SubnetKey, IPv4Network]:
    """The range of every subnet that the network has, of nodes that of each zone's first one.

    Of an adopted VPC only the nodes subnets are known. Overlaps are not looked for; see `collisions` and `strays`.

    Raises:
        ValueError: a primary range longer than /24, which has no room for slots.
    """
    if network.vpc is not None:
        # What else lies in an adopted VPC is its owner's business.
        return {(zone, "nodes"): IPv4Network(subnets.nodes_cidr) for zone, subnets in network.vpc.subnets.items()}
    ranges: dict[SubnetKey, IPv4Network] = {}
    for zone, role in _subnets(network):
        specified = getattr(network.subnets[zone], role) if zone in network.subnets else None
        ranges[zone, role] = IPv4Network(specified) if specified else _computed(IPv4Network(network.cidr), zone, role)
    return ranges


def further_nodes(network: Network) -> dict[str, list[IPv4Network]]:
    """Ranges of the nodes subnets beside the first, by address, of the zones that have any.

    Their ranges name them, so none ever moves when others come or go.
    """
    if network.vpc is not None:
        texts = {zone: subnets.more_nodes.values() for zone, subnets in network.vpc.subnets.items()}
    else:
        texts = {zone: network.subnets[zone].more_nodes for zone in sorted(network.zones) if zone in network.subnets}
    return {zone: sorted(map(IPv4Network, ranges)) for zone, ranges in texts.items() if ranges}


def all_subnets(network: Network) -> list[Subnet]:
    """Every subnet: those of `plan`, and further ones of nodes after them. Raises ValueError like `plan`."""
    first = [Subnet(zone, role, block) for (zone, role), block in plan(network).items()]
    return first + [
        Subnet(zone, "nodes", block, further=True)
        for zone, blocks in further_nodes(network).items()
        for block in blocks
    ]


def _subnets(network: Network) -> Iterator[SubnetKey]:
    # Sorted, so that the order of zones in a file changes nothing.
    for zone in sorted(set(network.zones)):
        if zone in nat_zones(network):
            yield zone, "public"
        if takes_control_plane(zone):
            yield zone, "control_plane"
        yield zone, "nodes"


def _computed(vpc: IPv4Network, zone: str, role: SubnetRole) -> IPv4Network:
    """The `index`-th block of its size in the VPC, counted from the start of the zone's slot."""
    bits, index = {"nodes": (_NODES_BITS, 1), "public": (_SMALL_BITS, 0), "control_plane": (_SMALL_BITS, 1)}[role]
    if vpc.prefixlen + bits > vpc.max_prefixlen:
        raise ValueError(f"{vpc} is too small to be cut into subnets")
    # The number of the slot, in blocks of this size, plus the place within the slot.
    position = (slot(zone) << bits - SLOT_BITS) + index
    size = 2 ** (vpc.max_prefixlen - vpc.prefixlen - bits)
    return IPv4Network((int(vpc.network_address) + position * size, vpc.prefixlen + bits))


def usable(block: IPv4Network) -> int:
    """Addresses of a subnet that AWS hands out: all but the first four and the last."""
    return max(0, block.num_addresses - limits().network.reserved_addresses)


def collisions(network: Network) -> list[tuple[Subnet, Subnet]]:
    """Pairs of subnets whose ranges overlap, for a rule. Raises ValueError like `plan`."""
    return [(one, other) for one, other in combinations(all_subnets(network), 2) if one.block.overlaps(other.block)]


def strays(network: Network) -> list[Subnet]:
    """Subnets that lie in none of the VPC's ranges, for a rule. Raises ValueError like `plan`."""
    texts = [network.vpc.cidr] if network.vpc is not None else [network.cidr, *network.secondary_cidrs]
    ranges = [IPv4Network(text) for text in texts]
    return [subnet for subnet in all_subnets(network) if not any(map(subnet.block.subnet_of, ranges))]
