"""Rules on addresses: what nodes, endpoints and the control plane take from their subnets."""

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Literal, NamedTuple

from ....config.catalog.instance_types import Catalog
from ....config.catalog.limits import limits
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ....config.settings.groups import AnyGroup, InstanceGroup
from ...network.cidrs import Subnet, usable
from ...network.endpoints import GATEWAY_SERVICE, features, services
from ..capacity.zones import sections
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule
from ..groups.groups import known
from ..groups.updates import batch_nodes
from .network import planned, subnet_path

# Source: Amazon EKS User Guide, "VPC and subnet requirements".
# What EKS asks to be free in each subnet of its control plane, for its interfaces and those of an upgrade.
_CONTROL_PLANE = 6
# One interface for each of: kubectl provider, NodesReady waiter, runner. Lambda shares one among functions of a group.
_FUNCTIONS = 3


class Demand(NamedTuple):
    """Addresses that the groups of one zone take from its nodes subnets."""

    now: int
    """With the minimum counts."""
    full: int
    """With all counts reached."""
    replacing: int
    """And while one batch of each group is being replaced: old and new nodes hold addresses together."""
    sums: str
    """The arithmetic of `full`."""
    largest: int
    """Addresses of the largest node, which lie in one subnet together."""


def demand(environment: Environment, zone: str, types: Catalog) -> Demand:
    """What the groups of `zone` take: of a group in several zones an equal part, of one of mixed types the largest."""
    orchestrator = environment.cluster.orchestrator
    parts = [_part(path, group, types, orchestrator) for path, group in sections(environment) if zone in group.zone_ids]
    shown = [f"{part.name} {part.full} × {part.each} = {part.full * part.each:,}" for part in parts if part.full]
    # RDS chooses the zones of its instances, so each zone has to have room for all.
    database = database_instances(environment)
    shown += [f"accounting database {database}"] if database else []
    full = sum(part.each * part.full for part in parts) + database
    return Demand(
        now=sum(part.each * part.least for part in parts) + database,
        full=full,
        replacing=full + sum(part.each * part.batch for part in parts),
        sums=", ".join(shown),
        largest=max((part.each for part in parts if part.full), default=1),
    )


def demand_of_subnet(environment: Environment, subnet: Subnet, types: Catalog) -> Demand:
    """What the groups of a zone take from one of its nodes subnets: of several each has its part by size."""
    need = demand(environment, subnet.zone, types)
    blocks = [each.block for each in planned(environment.network) if (each.zone, each.role) == (subnet.zone, "nodes")]
    if len(blocks) <= 1:
        return need
    own, total = usable(subnet.block), sum(map(usable, blocks))
    return need._replace(
        # Rounded up, so that no part is shown smaller than it is.
        now=-(-need.now * own // total),
        full=-(-need.full * own // total),
        replacing=-(-need.replacing * own // total),
        sums=f"{need.sums}; over {len(blocks)} subnets",
    )


def database_instances(environment: Environment) -> int:
    """Instances of an accounting database of ours. RDS chooses among the zones, so each may hold them all."""
    accounting = environment.cluster.slurm.accounting
    if environment.cluster.orchestrator != "slurm" or accounting is None or accounting.existing:
        return 0
    return 2 if accounting.standby else 1


class _Part(NamedTuple):
    """What a group takes in one of its zones: addresses of a node, and how many nodes."""

    name: str
    each: int
    least: int
    full: int
    batch: int
    """Replaced at a time."""


def _part(path: Path, group: AnyGroup, types: Catalog, orchestrator: Literal["eks", "slurm", "none"]) -> _Part:
    """The part of one zone, where zones have equal ones."""
    interface = group.network_interface if isinstance(group, InstanceGroup) else None
    # The type with the most interfaces decides: HyperPod may fill the group with it alone.
    each = max((row.addresses(orchestrator, interface or "efa").total for row in known(group, types)), default=0)
    share = max(1, len(group.zone_ids))
    # A group comes into service with its minimum, and fills up later.
    least = group.min_count if isinstance(group, InstanceGroup) and group.min_count is not None else group.count
    rollout = (group.patching or group.scheduled_update) if isinstance(group, InstanceGroup) else None
    # Without a policy nodes are replaced one at a time, when one fails.
    batch = batch_nodes(rollout, group.count) if rollout else min(1, group.count)
    # Rounded up, as an uneven number leaves one zone with more.
    return _Part(str(path[-1]), each, -(-least // share), -(-group.count // share), -(-batch // share))


class _Capacity(NamedTuple):
    """The nodes subnets of a zone together."""

    zone: str
    need: Demand
    """What the nodes of the zone take."""
    path: Path
    """What decides the size of the first."""
    free: int
    """Addresses that nodes can take: what is left of each subnet beyond whole nodes serves nobody."""
    words: str
    """The arithmetic of `free`."""


def _capacities(environment: Environment, types: Catalog) -> Iterator[_Capacity]:
    """What the subnets of each zone have for its nodes."""
    blocks: dict[str, list[Subnet]] = {}
    for subnet in planned(environment.network):
        if subnet.role == "nodes":
            blocks.setdefault(subnet.zone, []).append(subnet)
    for zone, subnets in blocks.items():
        yield _capacity(environment, zone, subnets, demand(environment, zone, types))


def _capacity(environment: Environment, zone: str, subnets: list[Subnet], need: Demand) -> _Capacity:
    path, largest = ("network", *subnet_path(environment.network, subnets[0])), need.largest
    if len(subnets) == 1:
        block = subnets[0].block
        return _Capacity(zone, need, path, usable(block), _free_addresses(block))
    # The addresses of a node come from one subnet.
    parts = [usable(subnet.block) - usable(subnet.block) % largest for subnet in subnets]
    names = listed((subnet.block for subnet in subnets), "and")
    sums = " + ".join(f"{part:,}" for part in parts)
    words = f"{names} have room for nodes of {largest} addresses in {sums} = {sum(parts):,}"
    return _Capacity(zone, need, path, sum(parts), words)


def _free_addresses(block: IPv4Network) -> str:
    return f"{block} has {block.num_addresses:,} - {block.num_addresses - usable(block)} reserved = {usable(block):,}"


def _more_capacity(environment: Environment, zone: str, missing: int, types: Catalog) -> str:
    """What gives a zone more addresses. It never names what the file has already."""
    network = environment.network
    if network.vpc:
        advice = (
            f"name further subnets of {zone} with {missing:,} addresses under network.vpc.subnets.{zone}.more_nodes"
        )
    else:
        advice = (
            f"give {zone} further ranges with {missing:,} addresses under network.subnets.{zone}.more_nodes, each a "
            "/16 at most and inside a range of network.secondary_cidrs"
        )
    saving = [
        str(path[-1])
        for path, group in sections(environment)
        if isinstance(group, InstanceGroup) and zone in group.zone_ids and _saves(group, types)
    ]
    return f"{advice}; or set `network_interface: efa-only` on {listed(saving, 'and')}" if saving else advice


def _saves(group: InstanceGroup, types: Catalog) -> bool:
    """Whether EFA-only interfaces would take fewer addresses, and are not set yet."""
    rows = known(group, types)
    return group.network_interface != "efa-only" and any(row.efa_only and row.network_cards > 1 for row in rows)


@rule("NET013", ERROR, on=Environment, source="hyperpod-prerequisites ec2-subnet")
def enough(environment: Environment, types: Catalog) -> Problems:
    """Too few addresses in a zone's subnets."""
    for capacity in _capacities(environment, types):
        zone, need = capacity.zone, capacity.need
        if need.full > capacity.free:
            yield Problem(
                capacity.path,
                f"{zone}: {need.sums}; together {need.full:,} addresses at full count ({need.now:,} at minimum counts, "
                f"{need.replacing:,} during replacement), and {capacity.words}",
                _more_capacity(environment, zone, need.replacing - capacity.free, types),
            )


@rule("NET014", WARNING, on=Environment, source="hyperpod-prerequisites ec2-subnet")
def enough_to_replace(environment: Environment, types: Catalog) -> Problems:
    """No free addresses for node replacement."""
    for capacity in _capacities(environment, types):
        zone, need = capacity.zone, capacity.need
        if need.full <= capacity.free < need.replacing:
            yield Problem(
                capacity.path,
                f"{zone}: {need.sums}; together {need.full:,} addresses, {need.replacing:,} while one batch of each "
                f"group is replaced, and {capacity.words}",
                f"{_more_capacity(environment, zone, need.replacing - capacity.free, types)}; or lower the batch of "
                "its groups",
            )


@rule("NET016", ERROR, on=Environment, source="cfn-cluster", final=True)
def subnets_of_a_group(environment: Environment) -> Problems:
    """Too many subnets for an instance group."""
    most = limits().cluster.subnets
    held = Counter(subnet.zone for subnet in planned(environment.network) if subnet.role == "nodes")
    for path, group in sections(environment):
        zones = () if isinstance(group, InstanceGroup) and group.subnet_ids else group.zone_ids
        if (count := sum(held[zone] for zone in zones)) > most:
            yield Problem(
                path,
                f"its {len(zones)} zones have {count} subnets of nodes together; a group takes {most} at most",
                "place it in fewer zones, or give it separate `subnet_ids`",
            )


@rule("NET017", WARNING, on=Environment, source="vpc-address-usage")
def address_usage(environment: Environment, types: Catalog) -> Problems:
    """More addresses and interfaces than the VPC's default limit."""
    default, most = limits().network.address_usage
    sums, total = _address_usage(environment, types)
    if default < total <= most:
        yield Problem(
            ("network",),
            f"{sums} = {total:,} units of Network Address Usage; a VPC has {default:,} until AWS raises the quota",
            f"have the quota raised to {total:,} or more before the nodes come; then accept this",
        )


@rule("NET018", ERROR, on=Environment, source="vpc-address-usage")
def address_usage_limit(environment: Environment, types: Catalog) -> Problems:
    """More addresses and interfaces than the VPC's maximum."""
    _, most = limits().network.address_usage
    sums, total = _address_usage(environment, types)
    if total > most:
        yield Problem(
            ("network",),
            f"{sums} = {total:,} units of Network Address Usage; AWS raises the quota of a VPC to {most:,} at most",
            "split the nodes among environments with separate networks",
        )


def _address_usage(environment: Environment, types: Catalog) -> tuple[str, int]:
    """The arithmetic of all groups' Network Address Usage at full count, and its sum."""
    orchestrator, parts, total = environment.cluster.orchestrator, list[str](), 0
    for path, group in sections(environment):
        interface = group.network_interface if isinstance(group, InstanceGroup) else None
        rows = known(group, types)
        each = max((row.address_usage(orchestrator, interface or "efa") for row in rows), default=0)
        total += each * group.count
        parts.append(f"{path[-1]} {group.count:,} × {each}")
    return " + ".join(parts), total


def control_plane_demand(environment: Environment) -> dict[str, int]:
    """Addresses that a control-plane subnet has to have, by what takes them."""
    # The gateway endpoint of S3 is in route tables and takes no address.
    endpoints = len([name for name in services(features(environment)) if name != GATEWAY_SERVICE])
    if environment.cluster.orchestrator == "eks":
        return {"for EKS": _CONTROL_PLANE, "endpoints": endpoints, "functions": _FUNCTIONS}
    return {"endpoints": endpoints}


@rule("NET015", ERROR, on=Environment, source="eks-network eks-private")
def control_plane(environment: Environment) -> Problems:
    """Control-plane subnet too small."""
    network = environment.network
    parts = control_plane_demand(environment)
    need = sum(parts.values())
    for subnet in planned(network):
        if subnet.role == "control_plane" and usable(subnet.block) < need:
            yield Problem(
                ("network", *subnet_path(network, subnet)),
                f"{subnet.zone}: {' + '.join(f'{count} {part}' for part, count in parts.items())} = {need} addresses, "
                f"and {_free_addresses(subnet.block)}",
                "use a wider cidr, or a control_plane range of /26 under network.subnets",
            )
