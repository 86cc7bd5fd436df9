"""Checks of a network that exists already: its subnets, security groups, routes and endpoints."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network
from math import ceil
from typing import Any, Final, NamedTuple

from ...config.findings import Path, listed
from ...config.settings.network import AdoptedVpc
from ...planning.network.endpoints import GATEWAY_SERVICE, features, services
from ...planning.rules.capacity.zones import sections
from ...planning.rules.framework.rule import Problem
from ...planning.rules.groups.groups import with_efa
from ..aws.route_tables import EVERYWHERE, default_route, is_public, table_of
from .check import Answers, Ask, Note, Skip, check
from .shared import addresses, own_groups, running

_HTTPS: Final = 443
_SUBNET: Final = ("network", "vpc", "subnets")
_GROUP: Final = ("network", "vpc", "security_group")


@dataclass(frozen=True, slots=True)
class _Subnet:
    """A subnet that the file names."""

    path: Path
    id: str
    zone: str | None
    cidr: str | None
    for_nodes: bool = True


@check("PRE020")
def subnets(ask: Ask) -> Answers:
    """Existing subnets and their VPC against what the file says of them."""
    vpc, named = ask.environment.network.vpc, list(_named(ask))
    if not named:
        return
    existing = _described(ask)
    for subnet in named:
        result = existing.get(subnet.id)
        if result is None:
            yield Problem(subnet.path, f"there is no subnet {subnet.id} in {ask.environment.region}", "correct its id")
            continue
        if vpc and result["VpcId"] != vpc.id:
            yield Problem(
                subnet.path,
                f"{subnet.id} lies in {result['VpcId']}, and network.vpc.id is {vpc.id}",
                "name a subnet of that VPC",
            )
        if subnet.zone and result["AvailabilityZoneId"] != subnet.zone:
            yield Problem(
                subnet.path,
                f"{subnet.id} is in {result['AvailabilityZoneId']} ({result['AvailabilityZone']}), and the file has it "
                f"under {subnet.zone}",
                f"move the entry to {result['AvailabilityZoneId']}, or name a subnet of {subnet.zone}",
            )
        if subnet.cidr and result["CidrBlock"] != subnet.cidr:
            field = "nodes_cidr" if subnet.path[-1] == "nodes" else subnet.id
            yield Problem(
                (*subnet.path[:-1], field),
                f"{subnet.id} has the range {result['CidrBlock']}, and {field} is {subnet.cidr}",
                f"write {field}: {result['CidrBlock']}",
            )
    yield Note(f"{len(named)} subnets")


@check("PRE021")
def free_addresses(ask: Ask) -> Answers:
    """Free addresses of existing subnets against what the nodes that are not there yet will take."""
    named = {subnet.id: subnet for subnet in _named(ask) if subnet.for_nodes}
    if not named:
        return
    existing, nodes = _described(ask), running(ask)
    # An unknown id is a finding of the check before this one.
    for id, subnet in named.items():
        if id not in existing:
            continue
        parts = list(_new_nodes(ask, subnet, nodes))
        needed, free = sum(part.nodes * part.addresses for part in parts), existing[id]["AvailableIpAddressCount"]
        if needed > free:
            sums = ", ".join(str(part) for part in parts if part.nodes)
            yield Problem(
                subnet.path,
                f"{id} has {free:,} free addresses; new nodes take {needed:,} ({sums})",
                "free addresses, use a larger subnet, or set `network_interface: efa-only` on EFA groups",
            )
        else:
            yield Note(f"{id}: {needed:,} of {free:,} free addresses")


@check("PRE022")
def security_groups(ask: Ask) -> Answers:
    """Existing security groups: that they are there, in the VPC, and let nodes talk among themselves."""
    vpc, named = ask.environment.network.vpc, dict(_named_security_groups(ask))
    if not named:
        return
    existing = _security_groups(ask, sorted(set(named.values())))
    for path, id in named.items():
        group = existing.get(id)
        if group is None:
            yield Problem(path, f"there is no security group {id} in {ask.environment.region}", "correct its id")
        elif vpc and group["VpcId"] != vpc.id:
            yield Problem(
                path, f"{id} belongs to {group['VpcId']}, and network.vpc.id is {vpc.id}", "name a group of that VPC"
            )
        elif path == _GROUP:
            yield from _talks_to_itself(ask, path, group)
    yield Note(f"{len(named)} security groups")


@check("PRE023")
def routes(ask: Ask) -> Answers:
    """Where existing subnets of nodes lead: in a standard network out, through a NAT gateway or another network."""
    vpc = ask.environment.network.vpc
    # A closed network has no way out, and another check looks at its endpoints.
    if vpc is None or ask.environment.network.endpoints == "closed":
        return
    tables = _route_tables(ask, vpc)
    for subnet in (each for each in _named(ask) if each.for_nodes and each.zone):
        path, table = subnet.path, table_of(tables, subnet.id)
        if table is None:
            yield Skip(f"no route table of {subnet.id} is shown")
            continue
        route = default_route(table)
        if route is None:
            yield Problem(
                path,
                f"{subnet.id} has no route to {EVERYWHERE} ({table['RouteTableId']}), so nodes reach no service",
                "add a route through a NAT gateway or your own network, or give the VPC endpoints and set "
                "`network.endpoints: closed`",
            )
        elif is_public(route):
            yield Problem(
                path,
                f"{subnet.id} is public (default route {route['GatewayId']}), and nodes have no public address",
                "name a private subnet, whose default route is a NAT gateway",
            )
        elif route.get("State") == "blackhole":
            yield Problem(
                path,
                f"the default route of {subnet.id} leads nowhere: its target is gone",
                f"point it to a NAT gateway that exists ({table['RouteTableId']})",
            )
        else:
            yield Note(f"{subnet.zone} leads out")


@check("PRE027")
def ways_home(ask: Ask) -> Answers:
    """Route tables of a home in two zones: whether those of all existing subnets of nodes are among them."""
    vpc, home = ask.environment.network.vpc, ask.environment.storage.home
    if vpc is None or home is None or home.openzfs.existing or not home.openzfs.in_two_zones:
        return
    tables = _route_tables(ask, vpc)
    for subnet in (each for each in _named(ask) if each.for_nodes and each.zone):
        table = table_of(tables, subnet.id)
        if table is None:
            yield Skip(f"no route table of {subnet.id} is shown")
        elif table["RouteTableId"] not in home.openzfs.route_tables:
            yield Problem(
                ("storage", "home", "openzfs", "route_tables"),
                f"{subnet.id} follows {table['RouteTableId']}, which is not among them: its nodes have no way to the "
                "home folders",
                f"add {table['RouteTableId']}, before the file system is made",
            )
        else:
            yield Note(f"{subnet.zone} leads to the home folders")


@check("PRE024")
def endpoints(ask: Ask) -> Answers:
    """The private endpoints of an existing VPC without a way out."""
    vpc = ask.environment.network.vpc
    if vpc is None or ask.environment.network.endpoints != "closed":
        return
    filters = [{"Name": "vpc-id", "Values": [vpc.id]}]
    rows = ask.aws.pages("ec2", "describe_vpc_endpoints", "VpcEndpoints", Filters=filters)
    desired = services(features(ask.environment))
    path = ("network", "vpc", "id")
    for service in desired:
        suffix = f".{ask.environment.region}.{service}"
        # An endpoint that is pending or rejected answers nobody.
        matches = [row for row in rows if row["ServiceName"].endswith(suffix) and row["State"] == "available"]
        if not matches:
            kind = "gateway" if service == GATEWAY_SERVICE else "interface"
            yield Problem(
                path,
                f"{vpc.id} has no available endpoint of com.amazonaws{suffix}, and no other way to it",
                f"create a VPC endpoint ({kind}{'' if kind == 'gateway' else ', with private DNS names'}) for it",
            )
        elif all(row["VpcEndpointType"] == "Interface" and not row.get("PrivateDnsEnabled") for row in matches):
            yield Problem(
                path,
                f"the endpoint {matches[0]['VpcEndpointId']} of com.amazonaws{suffix} has no private DNS names, so "
                "programs do not find it",
                "turn its private DNS names on",
            )
    # A gateway endpoint has no security group.
    yield from _closed_to_nodes(ask, vpc, [row for row in rows if row["VpcEndpointType"] == "Interface"])
    yield Note(f"{len(desired)} services")


@check("PRE026")
def offered_endpoints(ask: Ask) -> Answers:
    """Zones in which the services of our own endpoints are offered; what is seen is kept for the synthesis."""
    network, region = ask.environment.network, ask.environment.region
    if network.vpc is not None:
        return
    prefix = f"com.amazonaws.{region}."
    desired = [name for name in services(features(ask.environment)) if name != GATEWAY_SERVICE]
    filters = [{"Name": "service-name", "Values": [f"{prefix}{name}" for name in desired]}]
    rows = ask.aws.pages("ec2", "describe_vpc_endpoint_services", "ServiceDetails", Filters=filters)
    observed = {
        row["ServiceName"].removeprefix(prefix): tuple(sorted(row.get("AvailabilityZoneIds", ())))
        for row in rows
        if {"ServiceType": "Interface"} in row.get("ServiceType", ())
    }
    for name in desired:
        if name not in observed:
            yield Problem(
                "network", f"{region} has no endpoint service {prefix}{name}", "leave out the part that calls it"
            )
            continue
        zones = [zone for zone in network.zones if zone in observed[name]]
        if not observed[name]:
            yield Skip(f"EC2 does not say in which zones {name} is")
            continue
        ask.endpoint_zones[name] = observed[name]
        if not zones:
            yield Problem(
                ("network", "zones"),
                f"{prefix}{name} is offered in {listed(observed[name], 'and')}, and in no zone of the network",
                f"add {observed[name][0]} to network.zones",
            )
        elif len(zones) < len(network.zones):
            yield Note(f"{name} in {listed(zones, 'and')} alone")
    yield Note(f"{len(observed)} services")


@check("PRE025")
def dns(ask: Ask) -> Answers:
    """DNS of an existing VPC, which EKS and private endpoints need."""
    vpc = ask.environment.network.vpc
    if vpc is None:
        return
    for attribute, key in (("enableDnsSupport", "EnableDnsSupport"), ("enableDnsHostnames", "EnableDnsHostnames")):
        answer = ask.aws.get("ec2", "describe_vpc_attribute", VpcId=vpc.id, Attribute=attribute)
        if not answer[key]["Value"]:
            yield Problem(
                ("network", "vpc", "id"),
                f"{attribute} of {vpc.id} is off; EKS and private endpoints need it",
                f"`aws ec2 modify-vpc-attribute --vpc-id {vpc.id} "
                f"--{'enable-dns-support' if key == 'EnableDnsSupport' else 'enable-dns-hostnames'}`",
            )
    yield Note(f"DNS of {vpc.id}")


def _named(ask: Ask) -> Iterator[_Subnet]:
    vpc = ask.environment.network.vpc
    for zone, subnet in vpc.subnets.items() if vpc else ():
        yield _Subnet((*_SUBNET, zone, "nodes"), subnet.nodes, zone, subnet.nodes_cidr)
        for id, cidr in subnet.more_nodes.items():
            yield _Subnet((*_SUBNET, zone, "more_nodes", id), id, zone, cidr)
        if subnet.control_plane:
            yield _Subnet((*_SUBNET, zone, "control_plane"), subnet.control_plane, zone, None, for_nodes=False)
    for path, group in own_groups(ask.environment):
        for index, id in enumerate(group.subnet_ids):
            yield _Subnet((*path, "subnet_ids", index), id, None, None)


def _described(ask: Ask) -> dict[str, dict[str, Any]]:
    # By a filter, because a list of ids fails as a whole for one that is unknown.
    filters = [{"Name": "subnet-id", "Values": sorted({subnet.id for subnet in _named(ask)})}]
    return {row["SubnetId"]: row for row in ask.aws.pages("ec2", "describe_subnets", "Subnets", Filters=filters)}


class _NewNodes(NamedTuple):
    """Nodes of a group that are still to come in one subnet."""

    group: str
    nodes: int
    addresses: int
    """Of each."""

    def __str__(self) -> str:
        return f"{self.group} {self.nodes} × {self.addresses} = {self.nodes * self.addresses:,}"


def _new_nodes(ask: Ask, subnet: _Subnet, nodes: dict[str, int]) -> Iterator[_NewNodes]:
    """Of the groups in a subnet; shares of several are equal."""
    own = dict(own_groups(ask.environment))
    for path, group in sections(ask.environment):
        subnet_ids = own[path].subnet_ids if path in own else ()
        # A group with subnets of its own lies in these, whatever the zones say.
        subnet_ids = subnet_ids or group.zone_ids
        if subnet.id in subnet_ids or (subnet.zone and subnet.zone in subnet_ids):
            name, share = str(path[-1]), len(subnet_ids)
            # Nodes that are there hold their addresses already.
            count = max(0, ceil(group.count / share) - nodes.get(name, 0) // share)
            yield _NewNodes(name, count, addresses(group, ask.types, ask.environment))


def _named_security_groups(ask: Ask) -> Iterator[tuple[Path, str]]:
    environment = ask.environment
    vpc, eks = environment.network.vpc, environment.cluster.eks.existing
    if vpc and vpc.security_group:
        yield _GROUP, vpc.security_group
    if environment.cluster.orchestrator == "eks" and eks:
        yield ("cluster", "eks", "existing", "security_group"), eks.security_group
    for name, lustre in environment.storage.lustres.items():
        if lustre.existing:
            location = ("lustre",) if name == "lustre" else ("additional_lustre", name)
            yield ("storage", *location, "existing", "security_group"), lustre.existing.security_group


def _security_groups(ask: Ask, ids: list[str]) -> dict[str, dict[str, Any]]:
    filters = [{"Name": "group-id", "Values": ids}]
    rows = ask.aws.pages("ec2", "describe_security_groups", "SecurityGroups", Filters=filters)
    return {row["GroupId"]: row for row in rows}


def _talks_to_itself(ask: Ask, path: Path, group: dict[str, Any]) -> Answers:
    """Directions in which a security group does not let its own traffic pass; outbound matters to EFA alone."""
    id, efa = group["GroupId"], any(with_efa(each, ask.types) for _, each in sections(ask.environment))
    for direction, key in (("inbound", "IpPermissions"), ("outbound", "IpPermissionsEgress")):
        itself = any(rule["IpProtocol"] == "-1" and _names_group(rule, id) for rule in group.get(key, []))
        # EFA traffic is no IP traffic: a rule for 0.0.0.0/0 lets none of it out.
        if not itself and (efa or direction == "inbound"):
            yield Problem(
                path,
                # Without EFA all outbound traffic is covered by the usual rule for 0.0.0.0/0.
                f"{id} has no {direction} rule for all traffic {'from' if direction == 'inbound' else 'to'} itself; "
                f"{'EFA' if efa else 'nodes among themselves'} cannot work without it",
                f"add it: protocol all, {'source' if direction == 'inbound' else 'destination'} {id}",
            )


def _names_group(rule: dict[str, Any], id: str) -> bool:
    """Whether a rule is for traffic of a security group, rather than of a range of addresses."""
    return any(pair.get("GroupId") == id for pair in rule.get("UserIdGroupPairs", []))


def _route_tables(ask: Ask, vpc: AdoptedVpc) -> list[dict[str, Any]]:
    filters = [{"Name": "vpc-id", "Values": [vpc.id]}]
    return ask.aws.pages("ec2", "describe_route_tables", "RouteTables", Filters=filters)


def _closed_to_nodes(ask: Ask, vpc: AdoptedVpc, rows: list[dict[str, Any]]) -> Answers:
    """Endpoints whose security groups let nodes of an existing security group not in."""
    if vpc.security_group is None:
        return
    groups = _security_groups(ask, sorted({group["GroupId"] for row in rows for group in row.get("Groups", [])}))
    texts = [text for each in vpc.subnets.values() for text in (each.nodes_cidr, *each.more_nodes.values())]
    blocks = [IPv4Network(text) for text in texts]
    for row in rows:
        mine = [groups[group["GroupId"]] for group in row.get("Groups", []) if group["GroupId"] in groups]
        rules = [rule for group in mine for rule in group.get("IpPermissions", [])]
        # Groups that AWS does not show cannot be judged.
        if mine and not any(_lets_in(rule, vpc.security_group, blocks) for rule in rules):
            yield Problem(
                ("network", "vpc", "security_group"),
                f"the endpoint {row['VpcEndpointId']} ({row['ServiceName']}) does not let {vpc.security_group} in",
                f"allow port {_HTTPS} from {vpc.security_group} in "
                f"{listed((group['GroupId'] for group in mine), 'or')}",
            )


def _lets_in(rule: dict[str, Any], group: str, blocks: list[IPv4Network]) -> bool:
    all_ports = rule["IpProtocol"] == "-1"
    # Rules for all protocols have no ports.
    if not all_ports and not (rule["IpProtocol"] == "tcp" and rule["FromPort"] <= _HTTPS <= rule["ToPort"]):
        return False
    ranges = [IPv4Network(item["CidrIp"]) for item in rule.get("IpRanges", [])]
    # A range may be let in as a whole or by parts; each subnet of nodes has to lie in one of them.
    return _names_group(rule, group) or all(any(map(block.subnet_of, ranges)) for block in blocks)
