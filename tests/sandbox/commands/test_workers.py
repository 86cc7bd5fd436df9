"""The way between the networks of a MultiKueue manager and a worker in another region, made and taken away."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.config.errors import CommandError
from podwright.config.settings.environment import Environment
from podwright.operations.aws.account import Account
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.workers.network_path import Side, make_path, remove_path
from synthesis import environment_of

FILE = """
name: %s
account: "123456789012"
region: %s
network: {%s}
cluster: {eks: {endpoint: %s}}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""
ZONES = {"us-west-2": "usw2-az1, usw2-az2", "us-east-2": "use2-az1, use2-az2"}
ADOPTED = "vpc: {id: %s, cidr: %s, subnets: {usw2-az1: {nodes: %s, nodes_cidr: %s}}}"
_numbers = itertools.count(1)
Messages = list[tuple[str, str]]


@pytest.fixture
def side(sandbox: Running) -> Callable[..., Side]:
    """Makes one side: a VPC with a subnet, a route table of its own and a security group, and an environment."""

    def make(region: str, *, endpoint: str = "private", adopted: bool = False) -> Side:
        number = next(_numbers)
        account, cidr = Account(SANDBOX_ACCOUNT, region, sandbox.endpoint, {}), f"10.{number}.0.0/16"
        ec2 = account.client("ec2")
        vpc = ec2.create_vpc(CidrBlock=cidr)["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr)["Subnet"]["SubnetId"]
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        ec2.associate_route_table(SubnetId=subnet, RouteTableId=table)
        group = ec2.create_security_group(GroupName="control", Description="plane", VpcId=vpc)["GroupId"]
        network = f"zones: [{ZONES[region]}], " + (ADOPTED % (vpc, cidr, subnet, cidr) if adopted else f"cidr: {cidr}")
        environment: Environment = environment_of(FILE % (f"env{number}", region, network, endpoint))
        return Side(environment, account, {"resourcesVpcConfig": {"vpcId": vpc, "clusterSecurityGroupId": group}})

    return make


def routes(side: Side) -> dict[str, str]:
    """Where the routes of a side's own table lead beyond it."""
    tables = side.account.client("ec2").describe_route_tables(
        Filters=[{"Name": "vpc-id", "Values": [side.vpc]}, {"Name": "association.main", "Values": ["false"]}]
    )["RouteTables"]
    return {
        route["DestinationCidrBlock"]: route["VpcPeeringConnectionId"]
        for table in tables
        for route in table["Routes"]
        if "VpcPeeringConnectionId" in route
    }


def let_in(side: Side) -> list[tuple[int, str]]:
    group = side.cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
    held: list[dict[str, Any]] = side.account.client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"]
    return [(rule["FromPort"], item["CidrIp"]) for rule in held[0]["IpPermissions"] for item in rule["IpRanges"]]


def test_networks_of_two_regions_are_peered_once_and_parted(side: Callable[..., Side]) -> None:
    manager, worker, messages = side("us-west-2"), side("us-east-2"), Messages()

    def say(name: str, text: str) -> None:
        messages.append((name, text))

    way = make_path(manager, worker, say)
    connection = way.removeprefix("peering ")
    assert routes(manager) == {worker.ranges[0]: connection}
    assert routes(worker) == {manager.ranges[0]: connection}
    assert let_in(worker) == [(443, manager.ranges[0])]
    before = len(messages)
    assert (make_path(manager, worker, say), len(messages)) == (way, before)
    remove_path(manager, worker, say)
    assert (routes(manager), routes(worker), let_in(worker)) == ({}, {}, [])
    before = len(messages)
    remove_path(manager, worker, say)
    assert len(messages) == before
    # What was parted is connected anew, by another connection.
    assert make_path(manager, worker, say) not in (way, "routes of your own")


def test_a_public_endpoint_needs_no_way(side: Callable[..., Side]) -> None:
    manager, worker = side("us-west-2"), side("us-west-2", endpoint="public_and_private")
    assert make_path(manager, worker, lambda *_: None) == "public endpoint"
    assert let_in(worker) == []


def test_clusters_in_one_network_need_a_rule_alone(side: Callable[..., Side]) -> None:
    manager = side("us-west-2")
    assert make_path(manager, manager, lambda *_: None) == "one VPC"
    assert let_in(manager) == [(443, manager.ranges[0])]


def test_nothing_is_changed_in_an_adopted_network(side: Callable[..., Side]) -> None:
    manager, worker = side("us-west-2", adopted=True), side("us-west-2")
    with pytest.raises(CommandError, match=rf"missing are\n    {manager.environment.name}: rtb-\w+ to 10\.") as refusal:
        make_path(manager, worker, lambda *_: None)
    assert "transit gateway" in refusal.value.hint
    assert (routes(manager), routes(worker), let_in(worker)) == ({}, {}, [])
    # Once its owners have connected both, the rule is all that is missing.
    ec2 = manager.account.client("ec2")
    connection = ec2.create_vpc_peering_connection(VpcId=manager.vpc, PeerVpcId=worker.vpc)
    identifier = connection["VpcPeeringConnection"]["VpcPeeringConnectionId"]
    ec2.accept_vpc_peering_connection(VpcPeeringConnectionId=identifier)
    for one in (manager, worker):
        tables = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [one.vpc]}])["RouteTables"]
        for table in tables:
            way = {"DestinationCidrBlock": "10.0.0.0/8", "VpcPeeringConnectionId": identifier}
            ec2.create_route(RouteTableId=table["RouteTableId"], **way)
    assert make_path(manager, worker, lambda *_: None) == f"peering {identifier}"
    assert let_in(worker) == [(443, manager.ranges[0])]
    remove_path(manager, worker, lambda *_: None)
    assert set(routes(manager).values()) == {identifier}
