"""A way from the nodes of a MultiKueue manager to the control plane of a worker, where that has a private endpoint.

The name of a private endpoint resolves everywhere to addresses of its VPC, so routes and one rule of the control
plane's security group are all that is missing. Networks of podwright's own are peered; in an adopted one nothing is
changed.

Sources: Amazon EKS User Guide, "Cluster private endpoint"; Amazon VPC Peering Guide, 2026-11.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, Final, NamedTuple

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.quota.links import is_private, ranges
from ..aws.account import Account
from ..aws.calls import change, find, make, pages
from ..aws.route_tables import table_of

Say = Callable[[str, str], object]
_HTTPS: Final = 443
_POLL_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 120.0
_ENDED: Final = ("deleted", "deleting", "expired", "failed", "rejected")
_UNKNOWN: Final = "InvalidVpcPeeringConnectionID.NotFound"
_TARGETS: Final = ("VpcPeeringConnectionId", "TransitGatewayId", "GatewayId", "CoreNetworkArn")


@dataclass(frozen=True, slots=True)
class Side:
    """A cluster at one end."""

    environment: Environment
    account: Account
    cluster: dict[str, Any]
    """As EKS describes it."""

    @property
    def vpc(self) -> str:
        """The id of its VPC."""
        return self.cluster["resourcesVpcConfig"]["vpcId"]

    @property
    def ranges(self) -> tuple[str, ...]:
        """The ranges of its VPC."""
        return ranges(self.environment.network)


def make_path(manager: Side, worker: Side, say: Say) -> str:
    """Make what is missing on the way. Returns what the way is.

    Raises:
        CommandError: An adopted network has no way, or a peering connection does not become active.
    """
    if not is_private(manager.environment, worker.environment):
        return "public endpoint"
    kind = "one VPC" if manager.vpc == worker.vpc else _route(manager, worker, say)
    group = worker.cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
    if make(
        worker.account,
        "ec2",
        "authorize_security_group_ingress",
        ("InvalidPermission.Duplicate",),
        **_rule(manager, group),
    ):
        say(worker.environment.name, f"{group} lets {', '.join(manager.ranges)} in on port {_HTTPS}")
    return kind


def remove_path(manager: Side, worker: Side, say: Say) -> None:
    """Take away what `make_path` made; somebody else's routes and connections stay."""
    from botocore.exceptions import ClientError

    group = worker.cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
    try:
        change(worker.account, "ec2", "revoke_security_group_ingress", **_rule(manager, group))
        say(worker.environment.name, f"{group} no longer lets {', '.join(manager.ranges)} in")
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidPermission.NotFound":
            raise
    connection = _connection(manager, worker, ours=True)
    if connection is None:
        return
    for side in (manager, worker):
        for table in _tables(side):
            for route in [route for route in table["Routes"] if route.get("VpcPeeringConnectionId") == connection]:
                at = {"RouteTableId": table["RouteTableId"], "DestinationCidrBlock": route["DestinationCidrBlock"]}
                change(side.account, "ec2", "delete_route", **at)
    change(manager.account, "ec2", "delete_vpc_peering_connection", VpcPeeringConnectionId=connection)
    say(manager.environment.name, f"deleted {connection}, the peering with {worker.environment.name}")


def _rule(manager: Side, group: str) -> dict[str, Any]:
    """One rule for all ranges of the manager; a group of another region cannot be named."""
    description = f"Kueue of {manager.environment.name} hands on work"
    networks = [{"CidrIp": cidr, "Description": description} for cidr in manager.ranges]
    permission = {"IpProtocol": "tcp", "FromPort": _HTTPS, "ToPort": _HTTPS, "IpRanges": networks}
    return {"GroupId": group, "IpPermissions": [permission]}


def _route(manager: Side, worker: Side, say: Say) -> str:
    """Make the routes between two networks that are missing, over a peering of both. Returns what the way is."""
    missing = [*_missing(manager, worker), *_missing(worker, manager)]
    connection = _connection(manager, worker)
    if not missing:
        return f"peering {connection}" if connection else "routes of your own"
    if adopted := [side.environment.name for side in (manager, worker) if side.environment.network.vpc]:
        lines = "\n".join(f"    {route.side.environment.name}: {route.table} to {route.cidr}" for route in missing)
        raise CommandError(
            f"podwright makes no routes in the adopted network of {' and of '.join(adopted)}; missing are\n{lines}",
            "connect both networks by peering or a transit gateway, then run this again",
        )
    connection = connection or _peer(manager, worker, say)
    for route in missing:
        at = {"RouteTableId": route.table, "DestinationCidrBlock": route.cidr, "VpcPeeringConnectionId": connection}
        change(route.side.account, "ec2", "create_route", **at)
    say(manager.environment.name, f"{len(missing)} routes lead over {connection}")
    return f"peering {connection}"


class _MissingRoute(NamedTuple):
    """A range to which a route table of a side does not lead."""

    side: Side
    table: str
    cidr: str


def _missing(side: Side, other: Side) -> Iterator[_MissingRoute]:
    """The routes of one side to ranges of the other that are not there."""
    for table in _tables(side):
        for cidr in other.ranges:
            if not any(_leads(route, cidr) for route in table["Routes"]):
                yield _MissingRoute(side, table["RouteTableId"], cidr)


def _leads(route: dict[str, Any], cidr: str) -> bool:
    destination = route.get("DestinationCidrBlock")
    # A route without a prefix leads to the Internet, where private addresses are nowhere.
    if not destination or destination == "0.0.0.0/0" or route.get("State") == "blackhole":
        return False
    if not any(route.get(target, "local") != "local" for target in _TARGETS):
        return False
    return IPv4Network(cidr).subnet_of(IPv4Network(destination))


def _tables(side: Side) -> list[Mapping[str, Any]]:
    """The route tables of a side's subnets; of an adopted VPC those of the subnets that the file names."""
    in_vpc = [{"Name": "vpc-id", "Values": [side.vpc]}]
    adopted = side.environment.network.vpc
    if adopted:
        held = [(each.nodes, *each.more_nodes, each.control_plane) for each in adopted.subnets.values()]
        subnets = {name for names in held for name in names if name}
    else:
        held = pages(side.account, "ec2", "describe_subnets", "Subnets", Filters=in_vpc)
        subnets = {subnet["SubnetId"] for subnet in held}
    tables = pages(side.account, "ec2", "describe_route_tables", "RouteTables", Filters=in_vpc)
    chosen = [table_of(tables, subnet) for subnet in sorted(subnets)]
    return list({table["RouteTableId"]: table for table in chosen if table}.values())


def _connection(manager: Side, worker: Side, *, ours: bool = False) -> str | None:
    """The peering connection of two networks, whoever asked for it; with `ours` one that podwright made."""
    both, name = {manager.vpc, worker.vpc}, {"Key": "Name", "Value": _name(manager, worker)}
    for item in pages(manager.account, "ec2", "describe_vpc_peering_connections", "VpcPeeringConnections"):
        ends = {item["RequesterVpcInfo"]["VpcId"], item["AccepterVpcInfo"]["VpcId"]}
        if ends == both and item["Status"]["Code"] not in _ENDED and (not ours or name in item.get("Tags", ())):
            return item["VpcPeeringConnectionId"]
    return None


def _name(manager: Side, worker: Side) -> str:
    return f"podwright-{manager.environment.name}-{worker.environment.name}"


def _peer(manager: Side, worker: Side, say: Say) -> str:
    """Peer two networks. Returns the id of the connection once it is active."""
    tags = [{"Key": "Name", "Value": _name(manager, worker)}]
    connection = change(
        manager.account,
        "ec2",
        "create_vpc_peering_connection",
        VpcId=manager.vpc,
        PeerVpcId=worker.vpc,
        PeerOwnerId=worker.account.id,
        PeerRegion=worker.account.region,
        TagSpecifications=[{"ResourceType": "vpc-peering-connection", "Tags": tags}],
    )["VpcPeeringConnection"]["VpcPeeringConnectionId"]
    say(manager.environment.name, f"{connection} asks for a peering with {worker.environment.name}")
    # The other region comes to know of it a little later.
    _wait(worker.account, connection, "pending-acceptance")
    change(worker.account, "ec2", "accept_vpc_peering_connection", VpcPeeringConnectionId=connection)
    _wait(manager.account, connection, "active")
    return connection


def _wait(account: Account, connection: str, status: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        ids = {"VpcPeeringConnectionIds": [connection]}
        answer = find(account, "ec2", "describe_vpc_peering_connections", (_UNKNOWN,), **ids)
        current = answer["VpcPeeringConnections"][0]["Status"] if answer else {"Code": "unknown"}
        if current["Code"] in (status, "active"):
            return
        if current["Code"] in _ENDED or time.monotonic() > deadline:
            raise CommandError(
                f"the peering connection {connection} is {current['Code']}: {current.get('Message', '')}",
                "see the VPC console; then run this again, it resumes from here",
            )
        time.sleep(_POLL_SECONDS)
