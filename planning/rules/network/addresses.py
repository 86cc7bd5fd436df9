"""Rules on addresses: what nodes, endpoints and the control plane take from their subnets."""

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Literal, NamedTuple

from ....config.catalog.instance_types import Catalog
from ....config.findings import Path
from ....config.settings.environment import Environment
from ....config.settings.groups import AnyGroup, InstanceGroup
from ...network.cidrs import usable
from ...network.endpoints import GATEWAY_SERVICE, features, services
from ..capacity.zones import sections
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule
from ..groups.groups import known
from ..groups.updates import batch_nodes
from .network import planned

# Source: Amazon EKS User Guide, "VPC and subnet requirements".
# What EKS asks to be free in each subnet of its control plane, for its interfaces and those of an upgrade.
_CONTROL_PLANE = 6
# One interface for each of: kubectl provider, NodesReady waiter, runner. Lambda shares one among functions of a group.
_FUNCTIONS = 3


class Demand(NamedTuple):
    """Addresses that the groups of one zone take from its nodes subnet."""

    now: int
    """With the minimum counts."""
    full: int
    """With all counts reached."""
    replacing: int
    """And while one batch of each group is being replaced: old and new nodes hold addresses together."""
    sums: str
    """The arithmetic of `full`."""


def demand(environment: Environment, zone: str, types: Catalog) -> Demand:
    """What the groups of `zone` take: of a group in several zones an equal part, of one of mixed types the largest."""
    orchestrator = environment.cluster.orchestrator
    parts = [_part(path, group, types, orchestrator) for path, group in sections(environment) if zone in group.zone_ids]
    shown = [f"{name} {count} × {each} = {count * each:,}" for name, each, _, count, _ in parts if count]
    # RDS chooses the zones of its instances, so each zone has to have room for all.
    database = database_instances(environment)
    shown += [f"accounting database {database}"] if database else []
    full = sum(each * count for _, each, _, count, _ in parts) + database
    return Demand(
        now=sum(each * least for _, each, least, _, _ in parts) + database,
        full=full,
        replacing=full + sum(each * batch for _, each, _, _, batch in parts),
        sums=", ".join(shown),
    )


def database_instances(environment: Environment) -> int:
    """Instances of an accounting database of ours. RDS chooses among the zones, so each may hold them all."""
    accounting = environment.cluster.slurm.accounting
    if environment.cluster.orchestrator != "slurm" or accounting is None or accounting.existing:
        return 0
    return 2 if accounting.standby else 1


def _part(
    path: Path, group: AnyGroup, types: Catalog, orchestrator: Literal["eks", "slurm", "none"]
) -> tuple[str, int, int, int, int]:
    """Name, addresses of a node, and how many nodes in one zone: at least, in full, and replaced at a time."""
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
    return str(path[-1]), each, -(-least // share), -(-group.count // share), -(-batch // share)


def _subnets(environment: Environment) -> Iterator[tuple[str, Path, IPv4Network]]:
    """Each zone's nodes subnet with the path of what decides its size."""
    network = environment.network
    for (zone, role), block in planned(network).items():
        if role == "nodes":
            specified = (
                ("network", "subnets", zone, role)
                if zone in network.subnets and network.subnets[zone].nodes
                else ("network", "cidr")
            )
            yield zone, ("network", "vpc", "subnets", zone, "nodes_cidr") if network.vpc else specified, block


def _free_addresses(block: IPv4Network) -> str:
    return f"{block} has {block.num_addresses:,} - {block.num_addresses - usable(block)} reserved = {usable(block):,}"


@rule("NET013", ERROR, on=Environment, source="hyperpod-prerequisites ec2-subnet")
def enough(environment: Environment, types: Catalog) -> Problems:
    """More addresses wanted than the subnet has."""
    for zone, path, block in _subnets(environment):
        need, free = demand(environment, zone, types), usable(block)
        if need.full > free:
            yield Problem(
                path,
                f"{zone}: {need.sums}; together {need.full:,} addresses at full count ({need.now:,} at minimum counts, "
                f"{need.replacing:,} during replacement), and {_free_addresses(block)}",
                f"give {zone} a larger nodes range under network.subnets, if need be in a secondary range, or set "
                "`network_interface: efa-only` on EFA groups",
            )


@rule("NET014", WARNING, on=Environment, source="hyperpod-prerequisites ec2-subnet")
def enough_to_replace(environment: Environment, types: Catalog) -> Problems:
    """No addresses left to replace nodes with."""
    for zone, path, block in _subnets(environment):
        need, free = demand(environment, zone, types), usable(block)
        if need.full <= free < need.replacing:
            yield Problem(
                path,
                f"{zone}: {need.sums}; together {need.full:,} addresses, {need.replacing:,} while one batch of each "
                f"group is replaced, and {_free_addresses(block)}",
                f"give {zone} a larger nodes range, or lower the batch of its groups",
            )


def control_plane_demand(environment: Environment) -> dict[str, int]:
    """Addresses that a control-plane subnet has to have, by what takes them."""
    # The gateway endpoint of S3 is in route tables and takes no address.
    endpoints = len([name for name in services(features(environment)) if name != GATEWAY_SERVICE])
    if environment.cluster.orchestrator == "eks":
        return {"for EKS": _CONTROL_PLANE, "endpoints": endpoints, "functions": _FUNCTIONS}
    return {"endpoints": endpoints}


@rule("NET015", ERROR, on=Environment, source="eks-network eks-private")
def control_plane(environment: Environment) -> Problems:
    """A control-plane subnet that is too small."""
    network = environment.network
    parts = control_plane_demand(environment)
    need = sum(parts.values())
    for (zone, role), block in planned(network).items():
        if role == "control_plane" and usable(block) < need:
            specified = zone in network.subnets and network.subnets[zone].control_plane
            path = ("network", "subnets", zone, role) if specified else ("network", "cidr")
            yield Problem(
                path,
                f"{zone}: {' + '.join(f'{count} {part}' for part, count in parts.items())} = {need} addresses, "
                f"and {_free_addresses(block)}",
                "use a wider cidr, or a control_plane range of /26 under network.subnets",
            )
