"""Rules on the ranges of a VPC and its subnets."""

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import NamedTuple

from ....config.catalog.limits import limits
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ....config.settings.network import Network
from ...network.cidrs import Subnet, all_subnets, collisions, strays
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule

# The layout gives every zone a slot of an eighth: below /20 its small subnets would fall under EC2's /28.
_NARROWEST = 20
# The default quota of a VPC, which AWS raises on request.
_DEFAULT_RANGES = 5
_DOCKER = IPv4Network("172.17.0.0/16")
PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
"""Private ranges (RFC 1918)."""
# Shared address space of providers (RFC 6598): private as well, and seldom used on premises.
_CARRIER = IPv4Network("100.64.0.0/10")
UNROUTED = (*PRIVATE, _CARRIER, IPv4Network("127.0.0.0/8"), IPv4Network("169.254.0.0/16"))
"""Ranges from which nobody comes over the internet. Source: IANA IPv4 special-purpose address registry."""
_BENCHMARK = IPv4Network("198.19.0.0/16")
LOG_RETENTION = (
    1,
    3,
    5,
    7,
    14,
    30,
    60,
    90,
    120,
    150,
    180,
    365,
    400,
    545,
    731,
    1096,
    1827,
    2192,
    2557,
    2922,
    3288,
    3653,
)
"""Days that CloudWatch Logs can keep records."""
_NEW_VPC = ("cidr", "secondary_cidrs", "subnets", "nat", "flow_logs_days")


def _ranges(network: Network) -> list[tuple[str | Path, IPv4Network]]:
    """All ranges of a VPC of ours with the fields that they stand in, the primary one first."""
    if network.vpc:
        return []
    secondary = [(("secondary_cidrs", index), IPv4Network(text)) for index, text in enumerate(network.secondary_cidrs)]
    return [("cidr", IPv4Network(network.cidr)), *secondary]


def planned(network: Network) -> list[Subnet]:
    """Every subnet with its range; none while the VPC has a size without room for them (see NET020)."""
    # Until the size is right, subnets have no ranges that other rules could look at.
    return all_subnets(network) if network.vpc or IPv4Network(network.cidr).prefixlen <= _NARROWEST else []


def subnet_path(network: Network, subnet: Subnet) -> Path:
    """The field that decides the range of a subnet, below `network`."""
    zone, role = subnet.zone, subnet.role
    if network.vpc:
        return ("vpc", "subnets", zone, "more_nodes" if subnet.further else "nodes_cidr")
    if subnet.further:
        return ("subnets", zone, "more_nodes")
    specified = zone in network.subnets and getattr(network.subnets[zone], role)
    return ("subnets", zone, role) if specified else ("cidr",)


@rule("NET020", ERROR, on=Network, source="vpc-guide", final=True)
def vpc_size(network: Network) -> Problems:
    """VPC size outside /16 to /20."""
    widest, prefix = limits().network.vpc_prefix[0], IPv4Network(network.cidr).prefixlen
    if network.vpc is None and not widest <= prefix <= _NARROWEST:
        yield Problem(
            "cidr",
            f"cidr is {network.cidr}; allowed: /{widest} to /{_NARROWEST}",
            f"use a /{widest}: addresses cost nothing",
        )


@rule("NET021", ERROR, on=Network, source="vpc-cidr", final=True)
def secondary(network: Network) -> Problems:
    """Invalid secondary range."""
    widest, narrowest = limits().network.vpc_prefix
    ranges = _ranges(network)
    # The primary range has a rule of its own.
    for position, (path, block) in enumerate(ranges[1:], start=1):
        if not widest <= block.prefixlen <= narrowest:
            yield Problem(
                path,
                f"{block} is a /{block.prefixlen}; allowed: /{widest} to /{narrowest}",
                "split it, or choose another size",
            )
        # Each pair once, found at the later of the two.
        for _, other in ranges[:position]:
            if block.overlaps(other):
                yield Problem(path, f"{block} overlaps {other}", "choose another range")


@rule("NET022", ERROR, on=Network, source="vpc-cidr")
def secondary_kin(network: Network) -> Problems:
    """Secondary range incompatible with the primary one."""
    for path, block in _ranges(network)[1:]:
        primary = IPv4Network(network.cidr)
        # EC2 keeps the three private ranges apart: beside a primary range of one it takes none of the others.
        own = next((each for each in PRIVATE if primary.subnet_of(each)), None)
        foreign = next((each for each in PRIVATE if each != own and block.overlaps(each)), None)
        if foreign or block.overlaps(_BENCHMARK):
            family = f"{own} and {_CARRIER}" if own else f"public ranges and {_CARRIER}"
            yield Problem(
                path,
                f"{block} lies in {foreign or _BENCHMARK}; beside {primary} EC2 takes ranges of {family}",
                f"use a range of {_CARRIER}, which nothing on premises routes",
            )


@rule("NET023", WARNING, on=Network, source="vpc-quotas")
def how_many(network: Network) -> Problems:
    """More ranges than the VPC's default limit."""
    if (count := len(_ranges(network))) > _DEFAULT_RANGES:
        yield Problem(
            "secondary_cidrs",
            f"{count} ranges in all; the quota of a VPC is {_DEFAULT_RANGES} until AWS raises it",
            "use fewer and larger ranges, or have the quota raised first",
        )


@rule("NET024", ERROR, on=Network, source="ec2-subnet", final=True)
def inside(network: Network) -> Problems:
    """Subnet outside the VPC."""
    for subnet in strays(network) if planned(network) and network.vpc is None else ():
        yield Problem(
            subnet_path(network, subnet),
            f"{subnet.block} is in none of the VPC's ranges, {listed((block for _, block in _ranges(network)), 'and')}",
            "add its range to secondary_cidrs, or choose another",
        )


@rule("NET025", ERROR, on=Network, source="ec2-subnet", final=True)
def overlap(network: Network) -> Problems:
    """Overlapping subnets."""
    for one, other in collisions(network) if planned(network) else ():
        paths = [subnet_path(network, subnet) for subnet in (one, other)]
        yield Problem(
            # The longer path is the more particular one: a range that somebody wrote, and not one that was worked out.
            max(paths, key=len),
            f"{one.role} of {one.zone} is {one.block} and {other.role} of {other.zone} is {other.block}",
            "give one of the two another range under network.subnets",
        )


@rule("NET026", ERROR, on=Network, source="ec2-subnet", final=True)
def subnet_size(network: Network) -> Problems:
    """Invalid subnet size."""
    widest, narrowest = limits().network.subnet_prefix
    for zone, ranges in network.subnets.items():
        named = [(("subnets", zone, role), getattr(ranges, role)) for role in ("public", "control_plane", "nodes")]
        further = [(("subnets", zone, "more_nodes", at), text) for at, text in enumerate(ranges.more_nodes)]
        for path, text in (*named, *further):
            if text and not widest <= IPv4Network(text).prefixlen <= narrowest:
                yield Problem(
                    path, f"{path[2]} is {text}; allowed: /{widest} to /{narrowest}", "choose a size in between"
                )


@rule("NET027", WARNING, on=Network, source="vpc-cidr")
def docker_range(network: Network) -> Problems:
    """Range that Docker uses."""
    adopted = [(("vpc", "cidr"), IPv4Network(network.vpc.cidr))] if network.vpc else []
    for path, block in [*adopted, *_ranges(network)]:
        if block.overlaps(_DOCKER):
            yield Problem(
                path,
                f"{block} overlaps {_DOCKER}, which Docker uses inside a host: nothing there can be reached",
                "choose a range outside it",
            )


@rule("NET028", WARNING, on=Network, source="vpc-cidr")
def public_range(network: Network) -> Problems:
    """Public IP range in the VPC."""
    for path, block in _ranges(network):
        if not any(block.subnet_of(each) for each in (*PRIVATE, _CARRIER)):
            yield Problem(
                path,
                f"{block} is a public range, whose owner nodes could then not reach",
                f"use a range of {listed((*PRIVATE, _CARRIER))}",
            )


@rule("NET029", ERROR, on=Network, source="log-retention", final=True)
def retention(network: Network) -> Problems:
    """Invalid flow log retention."""
    if network.vpc is None and network.flow_logs_days and network.flow_logs_days not in LOG_RETENTION:
        # Of two that are equally near the longer one: nobody loses records that were asked for.
        nearest = min(LOG_RETENTION, key=lambda days: (abs(days - network.flow_logs_days), -days))
        yield Problem(
            "flow_logs_days",
            f"flow_logs_days is {network.flow_logs_days}; allowed: 0, {listed(LOG_RETENTION)}",
            f"use {nearest}",
        )


@rule("NET030", WARNING, on=Environment, source="vpc-flow-logs")
def flow_logs(environment: Environment) -> Problems:
    """No flow logs in a retained network."""
    if (
        # A sandbox that may be destroyed has nothing that somebody would investigate.
        environment.protection == "retain"
        and environment.network.vpc is None
        and environment.network.flow_logs_days == 0
    ):
        yield Problem(
            ("network", "flow_logs_days"),
            "flow_logs_days is 0: who talked to whom cannot be found out later",
            "keep 14 days or more, or accept this",
        )


@rule("NET031", WARNING, on=Environment, source="vpc-nat")
def single_nat(environment: Environment) -> Problems:
    """One NAT gateway for several zones."""
    network = environment.network
    if (
        environment.protection == "retain"
        and network.vpc is None
        and network.endpoints == "standard"
        and network.nat == "single"
        and len(network.zones) > 1
    ):
        yield Problem(
            ("network", "nat"),
            f"nat is single: {len(network.zones)} zones lose their way out when {network.zones[0]} fails",
            "use per_zone, or accept the shared fate",
        )


@rule("NET032", WARNING, on=Network, source="")
def adopted(network: Network) -> Problems:
    """Setting without effect on an existing VPC."""
    for field in _NEW_VPC if network.vpc else ():
        # A value that the file does not have is the default, and says nothing of what somebody wants.
        if field in network.model_fields_set and getattr(network, field):
            yield Problem(
                field,
                f"{field} has no effect: {network.vpc.id if network.vpc else ''} exists and stays as it is",
                "remove it",
            )


@rule("NET033", INFO, on=Network, source="")
def nat_when_closed(network: Network) -> Problems:
    """NAT settings in a closed network."""
    if network.vpc is None and network.endpoints == "closed" and "nat" in network.model_fields_set:
        yield Problem("nat", f"nat is {network.nat}, and a closed network has no NAT gateway", "remove it")


@rule("NET034", ERROR, on=Network, source="ec2-subnet", final=True)
def subnet_once(network: Network) -> Problems:
    """Subnet used twice."""
    # One subnet may serve nodes and control plane of the same zone; of that another rule speaks.
    observed: dict[str, str] = {}
    for zone, role, subnet in _adopted_subnets(network):
        if observed.setdefault(subnet, zone) != zone:
            yield Problem(
                ("vpc", "subnets", zone, role),
                f"{subnet} is given for {observed[subnet]} as well; a subnet is in one zone",
                "look up the zone with `aws ec2 describe-subnets`",
            )


@rule("NET035", WARNING, on=Network, source="eks-network")
def separate_subnets(network: Network) -> Problems:
    """Nodes and control plane in the same subnet."""
    for zone, subnets in network.vpc.subnets.items() if network.vpc else ():
        if subnets.control_plane == subnets.nodes:
            yield Problem(
                ("vpc", "subnets", zone, "control_plane"),
                f"{subnets.nodes} holds nodes too: when they have used up its addresses, "
                "the control plane cannot be upgraded",
                "give the control plane a separate small subnet",
            )


@rule("NET036", WARNING, on=Network, source="")
def closed_by_others(network: Network) -> Problems:
    """Closed endpoints in an existing VPC."""
    if network.vpc and network.endpoints == "closed":
        yield Problem(
            "endpoints",
            f"endpoints is closed, and {network.vpc.id} keeps its own routes and endpoints",
            "make sure that no route leads out and that every service it calls has an endpoint; then accept this",
        )


class _AdoptedSubnet(NamedTuple):
    zone: str
    role: str
    id: str


def _adopted_subnets(network: Network) -> Iterator[_AdoptedSubnet]:
    for zone, subnets in network.vpc.subnets.items() if network.vpc else ():
        yield _AdoptedSubnet(zone, "nodes", subnets.nodes)
        for subnet in subnets.more_nodes:
            yield _AdoptedSubnet(zone, "more_nodes", subnet)
        if subnets.control_plane:
            yield _AdoptedSubnet(zone, "control_plane", subnets.control_plane)


@rule("NET037", ERROR, on=Network, source="cfn-cluster", final=True)
def security_groups(network: Network) -> Problems:
    """Too many security groups for a node."""
    groups, most = network.node_security_groups, limits().cluster.security_groups
    if len(groups) >= most:
        yield Problem(
            "node_security_groups",
            f"{len(groups)} further security groups; allowed: {most - 1}, as a cluster takes {most} and the nodes' own "
            "is one of them",
            "put rules that belong together into one group",
        )
    if network.vpc and network.vpc.security_group in groups:
        yield Problem(
            ("node_security_groups", groups.index(network.vpc.security_group)),
            f"{network.vpc.security_group} is the nodes' own security group already",
            "remove it here",
        )
