"""The network construct, by what its template says."""

from typing import Any, get_args

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Annotations, Match, Template

from podwright.config.settings.network import Network
from podwright.constructs.common.protection import Protection
from podwright.constructs.network.network import EnvironmentNetwork
from podwright.planning.network.cidrs import plan
from podwright.stacks.feature_flags import FEATURE_FLAGS

ZONES = ("usw2-az2", "usw2-az3")
FEATURES = frozenset({"nodes", "kubectl", "lustre"})
ADOPTED = {
    "id": "vpc-0123456789abcdef0",
    "cidr": "10.0.0.0/16",
    "subnets": {
        "usw2-az2": {
            "nodes": "subnet-0123456789abcdef2",
            "control_plane": "subnet-0123456789abcde22",
            "nodes_cidr": "10.0.0.0/18",
        },
        "usw2-az3": {"nodes": "subnet-0123456789abcdef3", "nodes_cidr": "10.0.64.0/18"},
    },
}
Resources = dict[str, dict[str, Any]]


def network(
    scope: cdk.Stack, protection: Protection = "retain", key: kms.IKey | None = None, **settings: Any
) -> EnvironmentNetwork:
    return EnvironmentNetwork(
        scope,
        "Network",
        settings=Network.model_validate({"zones": ZONES, **settings}),
        features=FEATURES,
        protection=protection,
        key=key,
    )


def resources(scope: cdk.Stack, kind: str) -> Resources:
    return {id: dict(actual) for id, actual in Template.from_stack(scope).find_resources(kind).items()}


def of(region: str = "us-west-2", **settings: Any) -> Resources:
    """All resources of a network in a stack of its own."""
    app = cdk.App(context=FEATURE_FLAGS)
    stack = cdk.Stack(app, "Test", env=cdk.Environment(account="111122223333", region=region))
    network(stack, **settings)
    return Template.from_stack(stack).to_json()["Resources"]


def named(subnets: Resources, role: str) -> dict[str, str]:
    """Logical ids of the subnets of one role by zone id."""
    return {
        properties["Properties"]["AvailabilityZoneId"]: logical_id
        for logical_id, properties in subnets.items()
        if any(tag["Value"].endswith(f"-{role}") for tag in properties["Properties"]["Tags"])
    }


def test_subnets_have_zone_ids_and_the_planned_ranges(stack: cdk.Stack) -> None:
    made = network(stack)
    subnets = resources(stack, "AWS::EC2::Subnet")
    assert {
        (subnet["Properties"]["AvailabilityZoneId"], subnet["Properties"]["CidrBlock"]) for subnet in subnets.values()
    } == {(zone, str(block)) for (zone, _), block in plan(Network(zones=ZONES)).items()}
    assert all(subnet["Properties"]["MapPublicIpOnLaunch"] is False for subnet in subnets.values())
    assert not any("AvailabilityZone" in subnet["Properties"] for subnet in subnets.values())
    assert set(made.node_subnets) == set(made.control_plane_subnets) == set(ZONES)
    assert {zone: stack.resolve(interface.subnet_id) for zone, interface in made.node_subnets.items()} == {
        zone: {"Ref": logical_id} for zone, logical_id in named(subnets, "nodes").items()
    }


def test_load_balancers_find_their_subnets(stack: cdk.Stack) -> None:
    network(stack, zones=[*ZONES, "usw2-phx2-az1"])
    tagged = {
        (subnet["Properties"]["AvailabilityZoneId"], tag["Key"])
        for subnet in resources(stack, "AWS::EC2::Subnet").values()
        for tag in subnet["Properties"]["Tags"]
        if tag["Key"] != "Name"
    }
    assert tagged == {(zone, f"kubernetes.io/role/{kind}") for zone in ZONES for kind in ("elb", "internal-elb")}


def test_zones_come_go_and_change_places_without_touching_the_others() -> None:
    template = of()
    assert of(zones=list(reversed(ZONES))) == template
    more = of(zones=["usw2-az1", *ZONES])
    lasting = {
        logical_id: resource
        for logical_id, resource in template.items()
        if resource["Type"] != "AWS::EC2::VPCEndpoint"  # they gain a subnet
    }
    assert {logical_id: more[logical_id] for logical_id in lasting} == lasting
    assert template.keys() - of(zones=["usw2-az1", "usw2-az2"]).keys() == {
        logical_id for logical_id in template if "usw2az3" in logical_id
    }


def test_everything_behind_the_internet_gateway_waits_for_its_attachment(stack: cdk.Stack) -> None:
    """Otherwise a deployment fails by chance."""
    network(stack)
    template = Template.from_stack(stack)
    (attachment,) = template.find_resources("AWS::EC2::VPCGatewayAttachment")
    routes = template.find_resources("AWS::EC2::Route")
    out = [route for route in routes.values() if "GatewayId" in route["Properties"]]
    assert [route["DependsOn"] for route in out] == [[attachment]] * len(ZONES)
    assert [address["DependsOn"] for address in template.find_resources("AWS::EC2::EIP").values()] == [
        [attachment]
    ] * len(ZONES)
    for gateway in template.find_resources("AWS::EC2::NatGateway").values():
        associated = template.find_resources("AWS::EC2::SubnetRouteTableAssociation").keys() & set(gateway["DependsOn"])
        assert len(associated) == 1
        (route,) = set(gateway["DependsOn"]) - associated
        assert routes[route] in out


@pytest.mark.parametrize(("nat", "gateways"), [("per_zone", 2), ("single", 1)])
def test_private_subnets_leave_through_nat(stack: cdk.Stack, nat: str, gateways: int) -> None:
    network(stack, nat=nat, zones=[*ZONES, "usw2-phx2-az1"])
    template = Template.from_stack(stack)
    template.resource_count_is("AWS::EC2::NatGateway", gateways)
    used = [
        route["Properties"]["NatGatewayId"]["Ref"]
        for route in template.find_resources("AWS::EC2::Route").values()
        if "NatGatewayId" in route["Properties"]
    ]
    assert len(used) == 5  # nodes and control plane of two zones, and nodes of the Local Zone
    assert set(used) == set(template.find_resources("AWS::EC2::NatGateway"))


def test_a_nat_gateway_serves_its_own_zone() -> None:
    template = of()
    for logical_id, resource in template.items():
        if resource["Type"] == "AWS::EC2::Route" and "NatGatewayId" in resource["Properties"]:
            zone = next(zone.replace("-", "") for zone in ZONES if zone.replace("-", "") in logical_id)
            assert zone in resource["Properties"]["NatGatewayId"]["Ref"]


@pytest.mark.parametrize("endpoints", ["standard", "closed"])
def test_nodes_may_do_anything_among_themselves(stack: cdk.Stack, endpoints: str) -> None:
    """By group id and at both ends, or EFA stays silent however far an address range reaches."""
    made = network(stack, endpoints=endpoints)
    group = stack.resolve(made.node_security_group.security_group_id)
    template = Template.from_stack(stack)
    for kind, peer in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        template.has_resource_properties(
            f"AWS::EC2::SecurityGroup{kind}",
            {"GroupId": group, peer: group, "IpProtocol": "-1", "FromPort": Match.absent(), "ToPort": Match.absent()},
        )


@pytest.mark.parametrize(
    ("endpoints", "egress"),
    [
        ("standard", {"CidrIp": "0.0.0.0/0", "IpProtocol": "-1"}),
        ("closed", {"CidrIp": "0.0.0.0/0", "IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}),
    ],
)
def test_what_nodes_may_open_beyond_themselves(stack: cdk.Stack, endpoints: str, egress: dict[str, Any]) -> None:
    made = network(stack, endpoints=endpoints)
    logical_id = stack.resolve(made.node_security_group.security_group_id)["Fn::GetAtt"][0]
    properties = Template.from_stack(stack).to_json()["Resources"][logical_id]["Properties"]
    (rule,) = properties["SecurityGroupEgress"]
    assert {key: value for key, value in rule.items() if key != "Description"} == egress
    assert "SecurityGroupIngress" not in properties


def test_endpoints_take_https_from_every_range_of_the_vpc_and_open_nothing(stack: cdk.Stack) -> None:
    made = network(stack, secondary_cidrs=["100.64.0.0/16"])
    assert made.endpoint_security_group is not None
    logical_id = stack.resolve(made.endpoint_security_group.security_group_id)["Fn::GetAtt"][0]
    properties = Template.from_stack(stack).to_json()["Resources"][logical_id]["Properties"]
    assert [(rule["CidrIp"], rule["IpProtocol"], rule["FromPort"]) for rule in properties["SecurityGroupIngress"]] == [
        ("10.16.0.0/16", "tcp", 443),
        ("100.64.0.0/16", "tcp", 443),
    ]
    assert [rule["CidrIp"] for rule in properties["SecurityGroupEgress"]] == ["255.255.255.255/32"]


def test_interfaces_stand_in_the_control_plane_subnets_of_every_zone(stack: cdk.Stack) -> None:
    network(stack)
    template = Template.from_stack(stack)
    expected = [
        {"Ref": logical_id} for logical_id in named(resources(stack, "AWS::EC2::Subnet"), "control-plane").values()
    ]
    for endpoint in template.find_resources("AWS::EC2::VPCEndpoint").values():
        properties = endpoint["Properties"]
        if properties["VpcEndpointType"] == "Interface":
            assert properties["SubnetIds"] == expected
            assert properties["PrivateDnsEnabled"] is True
    template.has_resource_properties("AWS::EC2::VPC", {"EnableDnsSupport": True, "EnableDnsHostnames": True})


@pytest.mark.parametrize("region", ["us-west-2", "eu-north-1"])
def test_endpoint_names_of_the_region(region: str) -> None:
    names = [
        resource["Properties"]["ServiceName"] for resource in of(region).values() if "VPCEndpoint" in resource["Type"]
    ]
    assert f"com.amazonaws.{region}.sts" in names


def test_an_unknown_feature_is_no_missing_endpoint(stack: cdk.Stack) -> None:
    with pytest.raises(ValueError, match=r"no such feature: nodse; known are .*kubectl, lustre, nodes"):
        EnvironmentNetwork(stack, "Network", settings=Network(zones=ZONES), features={"nodse"}, protection="retain")


def test_further_ranges_are_there_before_the_subnets_in_them(stack: cdk.Stack) -> None:
    network(stack, secondary_cidrs=["100.64.0.0/16"], subnets={"usw2-az3": {"nodes": "100.64.0.0/18"}})
    template = Template.from_stack(stack)
    (association,) = template.find_resources("AWS::EC2::VPCCidrBlock")
    waiting = {
        subnet["Properties"]["CidrBlock"]: subnet.get("DependsOn")
        for subnet in template.find_resources("AWS::EC2::Subnet").values()
    }
    assert waiting.pop("100.64.0.0/18") == [association]
    assert set(waiting.values()) == {None}


def test_flow_logs(stack: cdk.Stack) -> None:
    key = kms.Key.from_key_arn(
        stack, "Key", "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
    )
    network(stack, key=key, flow_logs_days=30)
    template = Template.from_stack(stack)
    (vpc,) = template.find_resources("AWS::EC2::VPC")
    template.has_resource_properties("AWS::EC2::FlowLog", {"ResourceId": {"Ref": vpc}, "TrafficType": "ALL"})
    template.has_resource_properties("AWS::Logs::LogGroup", {"RetentionInDays": 30, "KmsKeyId": key.key_arn})


def test_no_flow_logs(stack: cdk.Stack) -> None:
    network(stack, flow_logs_days=0)
    template = Template.from_stack(stack)
    template.resource_count_is("AWS::EC2::FlowLog", 0)
    template.resource_count_is("AWS::Logs::LogGroup", 0)


@pytest.mark.parametrize("protection", get_args(Protection))
def test_what_survives(protection: Protection) -> None:
    """What file systems need to live on; not what only costs money."""
    retained = {
        logical_id
        for logical_id, resource in of(protection=protection, secondary_cidrs=["100.64.0.0/16"]).items()
        if resource.get("DeletionPolicy") == "RetainExceptOnCreate" and resource["UpdateReplacePolicy"] == "Retain"
    }
    if protection == "destroy":
        assert retained == set()
    else:
        starts = (
            "NetworkVpc7",
            "NetworkVpcrange",
            "NetworkNodeSecurityGroup",
            "NetworkAmongNodes",
            "NetworkFlowLogsGroup",
        )
        assert {logical_id for logical_id in retained if not logical_id.startswith(starts)} == {
            logical_id for logical_id in retained if "nodesSubnet" in logical_id
        }
        assert len(retained) == 8


def test_an_existing_vpc_gets_a_node_security_group_only(stack: cdk.Stack) -> None:
    made = network(stack, vpc=ADOPTED)
    kinds = {resource["Type"] for resource in Template.from_stack(stack).to_json()["Resources"].values()}
    assert kinds == {f"AWS::EC2::SecurityGroup{part}" for part in ("", "Ingress", "Egress")}
    assert made.vpc.vpc_id == ADOPTED["id"]
    assert made.endpoint_security_group is None
    assert {zone: interface.subnet_id for zone, interface in made.node_subnets.items()} == {
        "usw2-az2": "subnet-0123456789abcdef2",
        "usw2-az3": "subnet-0123456789abcdef3",
    }
    assert set(made.control_plane_subnets) == {"usw2-az2"}
    assert Annotations.from_stack(stack).find_warning("*", Match.any_value()) == []


def test_an_existing_vpc_and_security_group_need_nothing(stack: cdk.Stack) -> None:
    made = network(stack, vpc={**ADOPTED, "security_group": "sg-0123456789abcdef0"})
    assert made.node_security_group.security_group_id == "sg-0123456789abcdef0"
    assert "Resources" not in Template.from_stack(stack).to_json()


def test_the_vpc_shows_the_nodes_subnets_to_other_constructs(stack: cdk.Stack) -> None:
    made = network(stack)
    assert len(made.vpc.private_subnets) == len(ZONES)
    assert made.vpc.public_subnets == []
    assert Annotations.from_stack(stack).find_warning("*", Match.any_value()) == []


def test_an_endpoint_has_interfaces_only_where_its_service_is_offered() -> None:
    app = cdk.App(context=FEATURE_FLAGS)
    stack = cdk.Stack(app, "Test", env=cdk.Environment(account="111122223333", region="us-west-2"))
    made = EnvironmentNetwork(
        stack,
        "Network",
        settings=Network(zones=ZONES),
        features=FEATURES,
        endpoint_zones={"fsx": ("usw2-az1", "usw2-az3"), "logs": ("usw2-az4",)},
        protection="destroy",
    )
    zones = {stack.resolve(subnet.subnet_id)["Ref"]: zone for zone, subnet in made.control_plane_subnets.items()}
    actual: dict[str, tuple[str, ...]] = {}
    for resource in resources(stack, "AWS::EC2::VPCEndpoint").values():
        properties = resource["Properties"]
        service = properties["ServiceName"].removeprefix("com.amazonaws.us-west-2.")
        actual[service] = tuple(zones[each["Ref"]] for each in properties.get("SubnetIds", ()))
    assert actual.pop("s3") == ()
    assert actual.pop("fsx") == ("usw2-az3",)
    # Nobody asked for the others, and what is offered in no zone of ours is for preflight to say.
    assert "logs" in actual
    assert set(actual.values()) == {ZONES}
