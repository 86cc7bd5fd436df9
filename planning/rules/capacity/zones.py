"""Rules on zones: groups, subnets, file systems and plans have to agree on them."""

from collections.abc import Iterator

from ....config.catalog.instance_types import Catalog
from ....config.catalog.limits import limits
from ....config.catalog.regions import UnknownRegion, region, zone
from ....config.catalog.zones import is_local, takes_control_plane, without_control_plane
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ....config.settings.groups import AnyGroup, InstanceGroup
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule
from ..groups.groups import accelerated, with_efa


def sections(environment: Environment) -> Iterator[tuple[Path, AnyGroup]]:
    """All groups with their paths."""
    for section, groups in (
        ("instance_groups", environment.instance_groups),
        ("restricted_instance_groups", environment.restricted_instance_groups),
    ):
        for name, group in groups.items():
            yield (section, name), group


def file_system_zones(environment: Environment) -> Iterator[tuple[Path, str]]:
    """The zone of every file system with the path of its field."""
    storage = environment.storage
    if storage.lustre:
        yield ("storage", "lustre", "zone"), storage.lustre.zone
    for name, lustre in storage.additional_lustre.items():
        yield ("storage", "additional_lustre", name, "zone"), lustre.zone
    if storage.home:
        yield ("storage", "home", "openzfs", "zone"), storage.home.openzfs.zone
        if storage.home.openzfs.standby_zone:
            yield ("storage", "home", "openzfs", "standby_zone"), storage.home.openzfs.standby_zone


@rule("NET001", ERROR, on=Environment, source="ec2-zones", final=True)
def zone_of_region(environment: Environment) -> Problems:
    """Zone from another region."""
    try:
        prefix = region(environment.region).zone_prefix
    except UnknownRegion:
        return
    for index, name in enumerate(environment.network.zones):
        # Holds for Local Zones as well: usw2-phx2-az1 begins with the prefix of its region.
        if prefix and name.partition("-")[0] != prefix:
            existing = zone(name).region
            yield Problem(
                ("network", "zones", index),
                f"{name} is a zone of {existing or 'no region that we know'}; zones of "
                f"{environment.region} begin with {prefix}-",
                f"use ids such as {prefix}-az1, or another region",
            )


@rule("NET002", ERROR, on=Environment, source="api-cluster", final=True)
def group_zone(environment: Environment) -> Problems:
    """Instance group in a zone outside the network."""
    zones = environment.network.zones
    for path, group in sections(environment):
        many = isinstance(group, InstanceGroup) and group.zones
        for index, name in enumerate(group.zone_ids):
            if name not in zones:
                yield Problem(
                    (*path, "zones", index) if many else (*path, "zone"),
                    f"{name} has no subnet; the network has {listed(zones, 'and')}",
                    f"add {name} to network.zones (no existing subnet moves), or choose another zone",
                )


@rule("NET003", ERROR, on=Environment, source="fsx-regions", final=True)
def file_system_zone(environment: Environment) -> Problems:
    """File system in a zone outside the network."""
    for path, name in file_system_zones(environment):
        if name not in environment.network.zones:
            yield Problem(
                path,
                f"{name} has no subnet; the network has {listed(environment.network.zones, 'and')}",
                f"add {name} to network.zones, or choose another zone",
            )


@rule("NET004", ERROR, on=Environment, source="hyperpod-field-notes", final=True)
def plan_zone_in_network(environment: Environment) -> Problems:
    """Training plan in a zone outside the network."""
    used = {group.plan for _, group in sections(environment)}
    for name, plan in environment.training_plans.items():
        for coverage in plan.zones if name in used else ():
            if coverage not in environment.network.zones:
                yield Problem(
                    ("training_plans", name, "zone"),
                    f"the plan's capacity is in {coverage}, which has no subnet; the "
                    f"network has {listed(environment.network.zones, 'and')}",
                    f"add {coverage} to network.zones, or use a plan in a zone of the network",
                )


@rule("NET005", ERROR, on=InstanceGroup, source="ec2-efa hyperpod-field-notes")
def efa_in_one_zone(group: InstanceGroup, types: Catalog) -> Problems:
    """EFA group in several zones."""
    for field in ("zones", "subnet_ids"):
        subnets = getattr(group, field)
        if len(subnets) > 1 and accelerated(group, types) and with_efa(group, types):
            yield Problem(
                field,
                f"{field} are {listed(subnets, 'and')}; EFA traffic does not leave a zone, so nodes of one group "
                "would not reach each other",
                "keep one, and make a group for each other zone",
            )


@rule("NET006", ERROR, on=InstanceGroup, source="", final=True)
def one_way_to_place(group: InstanceGroup) -> Problems:
    """Group with both zone and subnets."""
    if group.zones and group.zone:
        yield Problem("zone", f"zone is {group.zone} and zones are {listed(group.zones, 'and')}", "keep one of the two")
    if group.zones and group.subnet_ids:
        yield Problem(
            "zones", f"zones are {listed(group.zones, 'and')}, and subnet_ids names subnets", "keep one of the two"
        )


@rule("NET007", ERROR, on=Environment, source="eks-network", final=True)
def control_plane_zones(environment: Environment) -> Problems:
    """Control plane in fewer than two zones."""
    cluster, needed = environment.cluster, limits().eks.control_plane_zones
    if cluster.orchestrator == "eks" and cluster.eks.existing is None and len(set(cluster.zones)) < needed:
        path = ("cluster", "zones") if len(environment.network.zones) >= needed else ("network", "zones")
        yield Problem(
            path,
            f"the control plane is in {listed(cluster.zones, 'and')}; EKS needs {needed} zones",
            "add a zone to network.zones; it needs no group and costs no node",
        )


@rule("NET008", ERROR, on=Environment, source="eks-network", final=True)
def control_plane_subnets(environment: Environment) -> Problems:
    """Control-plane zone without a subnet."""
    network, cluster = environment.network, environment.cluster
    for index, name in enumerate(cluster.zones):
        path, other = ("cluster", "zones", index), f"choose two of {listed(filter(takes_control_plane, network.zones))}"
        adopted = network.vpc.subnets.get(name) if network.vpc else None
        if name not in network.zones:
            yield Problem(path, f"{name} is not in network.zones", other)
        elif cluster.orchestrator != "eks":
            continue
        elif not takes_control_plane(name):
            refused = f"Local Zones and {listed(without_control_plane(), 'and')}"
            yield Problem(path, f"EKS takes no control-plane subnet in {name}; refused are {refused}", other)
        elif adopted and adopted.control_plane is None and cluster.eks.existing is None:
            yield Problem(
                path, f"network.vpc.subnets.{name} has no control_plane subnet", "add it, or name other zones"
            )


@rule("NET009", ERROR, on=Environment, source="fsx-efa")
def efa_file_system_clients(environment: Environment, types: Catalog) -> Problems:
    """EFA file system without an EFA group in its zone."""
    near = {name for _, group in sections(environment) if with_efa(group, types) for name in group.zone_ids}
    for name, lustre in environment.storage.lustres.items():
        if lustre.efa and lustre.zone not in near:
            yield Problem(
                (*lustre_path(name), "zone"),
                f"the file system serves EFA in {lustre.zone}, and groups with EFA are in "
                f"{listed(sorted(near), 'and')}; EFA does not leave a zone",
                "move it to the zone of its clients, or turn efa off",
            )


@rule("NET010", WARNING, on=Environment, source="local-zones fsx-efa")
def near_file_system(environment: Environment, types: Catalog) -> Problems:
    """Accelerated group and file system in different zones."""
    lustre = environment.storage.lustre
    if lustre is None:
        return
    for path, group in sections(environment):
        away = [name for name in group.zone_ids if name != lustre.zone]
        if away and accelerated(group, types):
            yield Problem(
                (*path, "zone"),
                f"nodes in {listed(away, 'and')} read a file system in {lustre.zone}: slower by an order "
                "of magnitude, over TCP, and paid for as traffic between zones",
                "put both into one zone, or give this zone a file system under additional_lustre",
            )


@rule("NET011", ERROR, on=Environment, source="", final=True)
def subnets_of_zones(environment: Environment) -> Problems:
    """Subnets for a zone outside the network."""
    network = environment.network
    for name in network.subnets.keys() - set(network.zones):
        yield Problem(
            ("network", "subnets", name),
            f"{name} is not in network.zones, so its ranges would not be used",
            f"add {name} to network.zones, or remove it here",
        )
    if network.vpc:
        for name in set(network.zones) - network.vpc.subnets.keys():
            yield Problem(
                ("network", "vpc", "subnets"),
                f"{name} is in network.zones and has no subnet here; given are {listed(network.vpc.subnets, 'and')}",
                f"add the subnets of {name}, or remove it from network.zones",
            )


@rule("NET012", WARNING, on=Environment, source="local-zones")
def file_systems_in_local_zone(environment: Environment) -> Problems:
    """New file system in a Local Zone."""
    for name, lustre in environment.storage.lustres.items():
        if lustre.existing is None and is_local(lustre.zone):
            yield Problem(
                (*lustre_path(name), "zone"),
                f"{lustre.zone} is a Local Zone, and not all of them have PERSISTENT_2 file systems",
                "ask `aws fsx` or your account team before you deploy",
            )
    homes = (each for each in file_system_zones(environment) if "openzfs" in each[0])
    for path, name in homes:
        if is_local(name):
            yield Problem(
                path,
                f"{name} is a Local Zone, and AWS does not publish which of them offer OpenZFS",
                "ask `aws fsx` or your account team before you deploy, or put it into an Availability Zone",
            )


def lustre_path(name: str) -> Path:
    """Where a file system of `Storage.lustres` stands in the file."""
    return ("storage", "lustre") if name == "lustre" else ("storage", "additional_lustre", name)
