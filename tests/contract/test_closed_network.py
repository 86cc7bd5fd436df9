"""A closed network is closed: read off the templates of every environment that asks for one.

No route leads out, and whatever runs in its subnets finds an endpoint for each service that its role lets it call.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from podwright.config.catalog.zones import takes_control_plane
from podwright.planning.network.endpoints import features, services
from synthesis import NAMES, Synthesis, environment, synthesis

CLOSED = [name for name in NAMES if environment(name).network.endpoints == "closed"]
WAYS_OUT = (
    "AWS::EC2::Route",
    "AWS::EC2::InternetGateway",
    "AWS::EC2::EgressOnlyInternetGateway",
    "AWS::EC2::CarrierGateway",
    "AWS::EC2::LocalGatewayRoute",
    "AWS::EC2::VPCGatewayAttachment",
    "AWS::EC2::NatGateway",
    "AWS::EC2::EIP",
    "AWS::EC2::TransitGatewayAttachment",
    "AWS::EC2::TransitGatewayVpcAttachment",
    "AWS::EC2::VPCPeeringConnection",
    "AWS::EC2::VPNGateway",
)
# Endpoint services by the prefix of IAM actions. None: nothing in the VPC calls it with these permissions.
CALLED: dict[str, tuple[str, ...] | None] = {
    "aps": ("aps-workspaces",),
    "cloudwatch": ("monitoring",),
    "ec2": ("ec2",),
    "ecr": ("ecr.api", "ecr.dkr"),
    "eks": ("eks",),
    "eks-auth": ("eks-auth",),
    "fsx": ("fsx",),
    "kms": None,  # S3, FSx, EBS and CloudWatch use keys on the caller's behalf
    "lambda": ("lambda",),
    "logs": ("logs",),
    "s3": ("s3",),
    "sagemaker": ("sagemaker.api",),
    "ssm": ("ssm",),
    "ssmmessages": ("ssmmessages",),
    "sts": ("sts",),
}
# What the AWS managed policies on our roles let a caller in the VPC call.
MANAGED = {
    "AmazonEC2ContainerRegistryReadOnly": {"ecr"},
    "AmazonEKS_CNI_Policy": {"ec2"},
    "AmazonSageMakerClusterInstanceRolePolicy": {"logs", "cloudwatch", "s3", "ssmmessages"},
    "AWSLambdaBasicExecutionRole": set[str](),  # the Lambda service writes the log, not the function
    "AWSLambdaVPCAccessExecutionRole": set[str](),  # the Lambda service makes the interfaces
}
# Whoever takes on a role for one of these runs in the VPC; of Lambda functions, those that have a VpcConfig.
IN_THE_VPC = {"sagemaker.amazonaws.com", "codebuild.amazonaws.com", "pods.eks.amazonaws.com"}


@cache
def exports(name: str) -> dict[str, tuple[str, str]]:
    """(stack, logical id) behind each export that refers to a resource."""
    actual: dict[str, tuple[str, str]] = {}
    for stack, template in synthesis(name).templates.items():
        for output in template.get("Outputs", {}).values():
            if "Export" in output and "Ref" in output["Value"]:
                actual[output["Export"]["Name"]] = (stack, output["Value"]["Ref"])
    return actual


def target(name: str, stack: str, value: Any) -> tuple[str, str]:
    """The resource that a property refers to, in its own stack or by import."""
    if "Fn::ImportValue" in value:
        return exports(name)[value["Fn::ImportValue"]]
    return stack, value["Ref"]


def subnets(properties: Any) -> Iterator[Any]:
    """Every value that stands for a subnet, however deep."""
    if isinstance(properties, dict):
        for key, value in properties.items():
            if key in ("Subnets", "SubnetIds"):
                yield from value
            elif key == "SubnetId":
                yield value
            else:
                yield from subnets(value)
    elif isinstance(properties, list):
        for item in properties:
            yield from subnets(item)


def endpoints(actual: Synthesis) -> dict[str, dict[str, Any]]:
    """Properties of the VPC endpoints by service, such as ecr.api."""

    def service(value: Any) -> str:
        text = value if isinstance(value, str) else "".join(map(str, value["Fn::Join"][1]))
        return text.partition("com.amazonaws.")[2].partition(".")[2]

    resources = actual.resources("AWS::EC2::VPCEndpoint").values()
    return {service(resource["Properties"]["ServiceName"]): resource["Properties"] for resource in resources}


def callers(actual: Synthesis) -> dict[str, set[str]]:
    """Prefixes of the actions that each role in the VPC may take."""
    allowed: dict[str, set[str]] = {}
    for stack, template in actual.templates.items():
        resources = template["Resources"]
        inside = {
            resource["Properties"]["Role"]["Fn::GetAtt"][0]
            for resource in resources.values()
            if resource["Type"] == "AWS::Lambda::Function" and "VpcConfig" in resource["Properties"]
        }
        for logical_id, resource in resources.items():
            if resource["Type"] == "AWS::IAM::Role" and (logical_id in inside or trusted(resource) & IN_THE_VPC):
                allowed[f"{stack}/{logical_id}"] = set(prefixes(resources, logical_id))
    return allowed


def trusted(role: dict[str, Any]) -> set[str]:
    statements = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    names = [statement["Principal"].get("Service", []) for statement in statements]
    return {name for listed in names for name in (listed if isinstance(listed, list) else [listed])}


def prefixes(resources: dict[str, Any], role: str) -> Iterator[str]:
    properties = resources[role]["Properties"]
    documents = [policy["PolicyDocument"] for policy in properties.get("Policies", [])]
    documents += [
        policy["Properties"]["PolicyDocument"]
        for policy in resources.values()
        if policy["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
        and {"Ref": role} in policy["Properties"].get("Roles", [])
    ]
    for statement in (statement for document in documents for statement in document["Statement"]):
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        yield from (action.partition(":")[0] for action in actions)
    for arn in properties.get("ManagedPolicyArns", []):
        text = arn if isinstance(arn, str) else "".join(map(str, arn["Fn::Join"][1]))
        yield from MANAGED[text.rpartition("/")[2]]


def test_an_environment_is_closed() -> None:
    assert CLOSED


def test_no_route_leads_out() -> None:
    """A route table without a route of its own leads to the VPC, and by a gateway endpoint to S3."""
    ways = [
        f"{name}/{address}: {kind}"
        for name in CLOSED
        for kind in WAYS_OUT
        for address in synthesis(name).resources(kind)
    ]
    assert not ways, "\n".join(ways)


def test_no_subnet_gives_public_addresses() -> None:
    public = [
        f"{name}/{address}"
        for name in CLOSED
        for address, subnet in synthesis(name).resources("AWS::EC2::Subnet").items()
        if subnet["Properties"]["MapPublicIpOnLaunch"] is not False
    ]
    assert not public, "\n".join(public)


def test_every_route_table_leads_to_s3() -> None:
    for name in CLOSED:
        actual = synthesis(name)
        tables = {address.partition("/")[2] for address in actual.resources("AWS::EC2::RouteTable")}
        assert {table["Ref"] for table in endpoints(actual)["s3"]["RouteTableIds"]} == tables, name
        associated = [
            association["Properties"]["SubnetId"]["Ref"]
            for association in actual.resources("AWS::EC2::SubnetRouteTableAssociation").values()
        ]
        subnet_ids = [address.partition("/")[2] for address in actual.resources("AWS::EC2::Subnet")]
        assert sorted(associated) == sorted(subnet_ids), name


def test_every_feature_in_use_has_its_endpoints() -> None:
    actual = {name: set(endpoints(synthesis(name))) for name in CLOSED}
    assert actual == {name: set(services(features(environment(name)))) for name in CLOSED}


def test_interfaces_answer_under_the_services_own_names() -> None:
    """In one subnet of each zone, with DNS that needs no settings at the client."""
    for name in CLOSED:
        actual = synthesis(name)
        zones = {
            address.partition("/")[2]: subnet["Properties"]["AvailabilityZoneId"]
            for address, subnet in actual.resources("AWS::EC2::Subnet").items()
        }
        expected = sorted(filter(takes_control_plane, environment(name).network.zones))
        for service, properties in endpoints(actual).items():
            if service != "s3":
                assert properties["PrivateDnsEnabled"] is True, (name, service)
                assert sorted(zones[subnet["Ref"]] for subnet in properties["SubnetIds"]) == expected, (name, service)


def test_whatever_stands_in_a_subnet_stands_in_one_of_these() -> None:
    """Nodes, control plane, file systems, functions and builds."""
    for name in CLOSED:
        known = {tuple(address.split("/")) for address in synthesis(name).resources("AWS::EC2::Subnet")}
        placed = {
            (resource["Type"], target(name, stack, subnet))
            for stack, template in synthesis(name).templates.items()
            for resource in template["Resources"].values()
            for subnet in subnets(resource.get("Properties", {}))
        }
        assert {(kind, subnet) for kind, subnet in placed if subnet not in known} == set(), name
        assert {"AWS::EKS::Cluster", "AWS::SageMaker::Cluster", "AWS::Lambda::Function", "AWS::CodeBuild::Project"} <= {
            kind for kind, _ in placed
        }, name


def test_every_caller_in_the_vpc_finds_an_endpoint() -> None:
    """The functions that apply charts and wait for nodes count too."""
    for name in CLOSED:
        actual = synthesis(name)
        existing = set(endpoints(actual))
        allowed = callers(actual)
        assert len(allowed) >= 4, f"{name}: kubectl, waiter, runner and nodes have a role each"
        missing = [
            f"{name}: {role} may call {prefix}"
            for role, actions in allowed.items()
            for prefix in actions
            if not set(CALLED[prefix] or ()) <= existing
        ]
        assert not missing, "\n".join(missing)
