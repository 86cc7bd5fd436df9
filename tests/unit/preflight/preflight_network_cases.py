"""What has to be wrong for preflight's checks of networks to speak, and what they say."""

from typing import Any

from preflight_answers import SERVICES, SUBNETS, endpoint, endpoint_services, filtered, security_group, subnet
from preflight_case import Case


def attribute_off(name: str):
    return lambda **request: {
        f"{request['Attribute'][0].upper()}{request['Attribute'][1:]}": {"Value": request["Attribute"] != name}
    }


def route(**target: str) -> dict[str, Any]:
    default = {"DestinationCidrBlock": "0.0.0.0/0"} | target
    return {
        "RouteTables": [
            {
                "RouteTableId": "rtb-22222222",
                "Associations": [{"SubnetId": "subnet-11111111"}],
                "Routes": [default] if target else [],
            },
            {"RouteTableId": "rtb-11111111", "Associations": [{"Main": True}], "Routes": [default]},
        ]
    }


CASES = [
    Case(
        "PRE020",
        "adopted",
        "no subnet subnet-22222222",
        "correct",
        {("ec2", "describe_subnets"): filtered("Subnets", [SUBNETS[0], SUBNETS[2]], "SubnetId")},
    ),
    *(
        Case(
            "PRE020",
            "adopted",
            says,
            fix,
            {("ec2", "describe_subnets"): filtered("Subnets", [wrong, *SUBNETS[1:]], "SubnetId")},
        )
        for wrong, says, fix in (
            (
                subnet(1, "usw2-az1"),
                "is in usw2-az1 (us-west-2a), and the file has it under usw2-az2",
                "move the entry",
            ),
            (subnet(1, "usw2-az2", VpcId="vpc-2"), "lies in vpc-2", "of that VPC"),
            (
                subnet(1, "usw2-az2", CidrBlock="10.9.0.0/20"),
                "has the range 10.9.0.0/20",
                "write nodes_cidr: 10.9.0.0/20",
            ),
        )
    ),
    Case(
        "PRE021",
        "adopted",
        "subnet-11111111 has 100 free addresses; new nodes take",
        "efa-only",
        {
            ("ec2", "describe_subnets"): filtered(
                "Subnets", [subnet(1, "usw2-az2", AvailableIpAddressCount=100), *SUBNETS[1:]], "SubnetId"
            )
        },
    ),
    Case(
        "PRE022",
        "adopted",
        "no security group sg-22222222",
        "correct",
        {
            ("ec2", "describe_security_groups"): filtered(
                "SecurityGroups", [security_group(1), security_group(3)], "GroupId"
            )
        },
    ),
    *(
        Case(
            "PRE022",
            "adopted",
            says,
            fix,
            {
                ("ec2", "describe_security_groups"): filtered(
                    "SecurityGroups", [wrong, security_group(2), security_group(3)], "GroupId"
                )
            },
        )
        for wrong, says, fix in (
            (security_group(1, VpcId="vpc-2"), "belongs to vpc-2", "of that VPC"),
            (security_group(1, IpPermissions=[]), "no inbound rule", "source sg-11111111"),
            (
                security_group(1, IpPermissionsEgress=[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]),
                "no outbound rule for all traffic to itself; EFA cannot",
                "destination sg-11111111",
            ),
        )
    ),
    Case("PRE023", "adopted", "has no route to 0.0.0.0/0", "NAT gateway", {("ec2", "describe_route_tables"): route()}),
    Case(
        "PRE023",
        "adopted",
        "subnet-11111111 is public (default route igw-1)",
        "private subnet",
        {("ec2", "describe_route_tables"): route(GatewayId="igw-1")},
    ),
    Case(
        "PRE023",
        "adopted",
        "leads nowhere",
        "rtb-22222222",
        {("ec2", "describe_route_tables"): route(NatGatewayId="nat-1", State="blackhole")},
    ),
    Case(
        "PRE027",
        "adopted",
        "subnet-11111111 follows rtb-22222222, which is not among them",
        "add rtb-22222222",
        {("ec2", "describe_route_tables"): route(NatGatewayId="nat-1")},
    ),
    Case(
        "PRE024",
        "closed",
        "no available endpoint of com.amazonaws.us-west-2.sts",
        "with private DNS",
        {("ec2", "describe_vpc_endpoints"): {"VpcEndpoints": [endpoint(name) for name in SERVICES if name != "sts"]}},
    ),
    Case(
        "PRE024",
        "closed",
        "vpce-sts of com.amazonaws.us-west-2.sts has no private DNS names",
        "turn",
        {
            ("ec2", "describe_vpc_endpoints"): {
                "VpcEndpoints": [endpoint(name, PrivateDnsEnabled=name != "sts") for name in SERVICES]
            }
        },
    ),
    Case(
        "PRE024",
        "closed",
        "vpce-sts (com.amazonaws.us-west-2.sts) does not let sg-11111111 in",
        "allow port 443 from sg-11111111 in sg-44444444",
        {
            ("ec2", "describe_security_groups"): filtered(
                "SecurityGroups",
                [security_group(1), security_group(2), security_group(3), security_group(4)],
                "GroupId",
            )
        },
    ),
    Case(
        "PRE025",
        "adopted",
        "enableDnsHostnames of vpc-11111111 is off",
        "--enable-dns-hostnames",
        {("ec2", "describe_vpc_attribute"): attribute_off("enableDnsHostnames")},
    ),
    *(
        Case("PRE026", "new", says, fix, {("ec2", "describe_vpc_endpoint_services"): answer})
        for says, fix, answer in (
            ("us-west-2 has no endpoint service com.amazonaws.us-west-2.sts", "leave out", endpoint_services("sts")),
            (
                "com.amazonaws.us-west-2.sts is offered in usw2-az4, and in no zone of the network",
                "add usw2-az4",
                endpoint_services(sts=("usw2-az4",)),
            ),
        )
    ),
]
