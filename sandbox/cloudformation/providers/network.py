"""EC2 networking: moto's EC2 holds the resources, so boto3 sees them."""

from ipaddress import IPv4Network
from typing import Any

from ...protocol.json_objects import JsonObject
from .api import Api, call
from .base import HandlerError, Outcome, Provider, Request
from .security_groups import refuse_while_in_use, tag


def _true(value: Any) -> bool:
    return value is True or str(value).lower() == "true"


def _finish_vpc(request: Request, physical_id: str) -> JsonObject:
    """Settings that CreateVpc does not take, and the attributes of what comes with a VPC."""
    ec2 = request.client("ec2")
    # CloudFormation's default differs from the API's only for hostnames of a non-default VPC, which both leave off.
    for name, default in (("EnableDnsSupport", True), ("EnableDnsHostnames", False)):
        ec2.modify_vpc_attribute(VpcId=physical_id, **{name: {"Value": _true(request.properties.get(name, default))}})
    tag(request, physical_id)
    by_vpc = [{"Name": "vpc-id", "Values": [physical_id]}]
    groups = ec2.describe_security_groups(Filters=[*by_vpc, {"Name": "group-name", "Values": ["default"]}])
    acls = ec2.describe_network_acls(Filters=by_vpc)["NetworkAcls"]
    return {
        "DefaultSecurityGroup": groups["SecurityGroups"][0]["GroupId"],
        "DefaultNetworkAcl": acls[0]["NetworkAclId"] if acls else "",
        "CidrBlockAssociations": [],
        "Ipv6CidrBlocks": [],
    }


def _finish_subnet(request: Request, physical_id: str) -> JsonObject:
    ec2 = request.client("ec2")
    if "MapPublicIpOnLaunch" in request.properties:
        ec2.modify_subnet_attribute(
            SubnetId=physical_id, MapPublicIpOnLaunch={"Value": _true(request.properties["MapPublicIpOnLaunch"])}
        )
    return tag(request, physical_id)


class NatGateway(Api):
    """AWS::EC2::NatGateway. moto leaves its network interface behind, which would keep the subnet alive."""

    def delete(self, request: Request) -> None:
        """Delete the gateway and its interface."""
        ec2 = request.client("ec2")
        gateways = ec2.describe_nat_gateways(NatGatewayIds=[request.physical_id])["NatGateways"]
        super().delete(request)
        for address in [address for gateway in gateways for address in gateway["NatGatewayAddresses"]]:
            ec2.delete_network_interface(NetworkInterfaceId=address["NetworkInterfaceId"])


class Subnet(Api):
    """AWS::EC2::Subnet; it cannot be deleted while network interfaces are in it."""

    def delete(self, request: Request) -> None:
        """Delete the subnet, unless something still uses it."""
        refuse_while_in_use(request, "subnet-id", "subnet")
        super().delete(request)


class Vpc(Api):
    """AWS::EC2::VPC; moto minds its subnets and route tables, EC2 also endpoints, groups and peerings."""

    def delete(self, request: Request) -> None:
        """Delete the VPC, unless something that no template of it names is still there."""
        ec2, of_vpc = request.client("ec2"), [{"Name": "vpc-id", "Values": [request.physical_id]}]
        endpoints = ec2.describe_vpc_endpoints(Filters=of_vpc)["VpcEndpoints"]
        groups = ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"]
        peerings = [
            peering
            for end in ("requester", "accepter")
            for peering in ec2.describe_vpc_peering_connections(
                Filters=[{"Name": f"{end}-vpc-info.vpc-id", "Values": [request.physical_id]}]
            )["VpcPeeringConnections"]
        ]
        if (
            any(item["State"].lower() != "deleted" for item in endpoints)
            or any(group["GroupName"] != "default" for group in groups)
            or any(item["Status"]["Code"] != "deleted" for item in peerings)
        ):
            # Source of the words: EC2's DependencyViolation error.
            raise HandlerError.saying(f"The vpc '{request.physical_id}' has dependencies and cannot be deleted.")
        super().delete(request)


class VpcCidrBlock:
    """AWS::EC2::VPCCidrBlock: a further IPv4 range of a VPC, which goes once no subnet lies in it."""

    def create(self, request: Request) -> Outcome:
        """Associate the range."""
        vpc, block = request.properties["VpcId"], request.properties["CidrBlock"]
        answer = request.client("ec2").associate_vpc_cidr_block(VpcId=vpc, CidrBlock=block)
        association = answer["CidrBlockAssociation"]["AssociationId"]
        return Outcome(f"{association}|{vpc}", {"Id": association})

    def update(self, request: Request) -> Outcome:
        """Keep it: a change of any property replaces it."""
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Take the range off the VPC, unless a subnet lies in it."""
        ec2, block = request.client("ec2"), IPv4Network(request.properties["CidrBlock"])
        of_vpc = [{"Name": "vpc-id", "Values": [request.properties["VpcId"]]}]
        held = [IPv4Network(subnet["CidrBlock"]) for subnet in ec2.describe_subnets(Filters=of_vpc)["Subnets"]]
        if any(subnet.subnet_of(block) for subnet in held):
            raise HandlerError.saying(f"The vpc CIDR block '{block}' has subnets and cannot be disassociated.")
        ec2.disassociate_vpc_cidr_block(AssociationId=request.attributes["Id"])


class Route:
    """AWS::EC2::Route."""

    def create(self, request: Request) -> Outcome:
        """Add the route to its table."""
        call(request, "ec2", "create_route", request.properties)
        target = self._destination(request.properties)
        return Outcome(f"{request.properties['RouteTableId']}|{next(iter(target.values()))}")

    def update(self, request: Request) -> Outcome:
        """Point the route at its new target."""
        call(request, "ec2", "replace_route", request.properties)
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Take the route out."""
        request.client("ec2").delete_route(
            RouteTableId=request.properties["RouteTableId"], **self._destination(request.properties)
        )

    def _destination(self, properties: JsonObject) -> dict[str, str]:
        return {key: value for key, value in properties.items() if key.startswith("Destination")}


class GatewayAttachment:
    """AWS::EC2::VPCGatewayAttachment of an internet gateway."""

    def create(self, request: Request) -> Outcome:
        """Attach."""
        gateway, vpc = request.properties["InternetGatewayId"], request.properties["VpcId"]
        request.client("ec2").attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
        return Outcome(f"IGW|{vpc}", {"AttachmentType": "IGW"})

    def update(self, request: Request) -> Outcome:
        """Move to another gateway."""
        self._detach(request, request.previous)
        return self.create(request)

    def delete(self, request: Request) -> None:
        """Detach."""
        self._detach(request, request.properties)

    def _detach(self, request: Request, properties: JsonObject) -> None:
        request.client("ec2").detach_internet_gateway(
            InternetGatewayId=properties["InternetGatewayId"], VpcId=properties["VpcId"]
        )


class ElasticIp:
    """AWS::EC2::EIP; `Ref` is the address, the allocation id an attribute."""

    def create(self, request: Request) -> Outcome:
        """Allocate."""
        address = request.client("ec2").allocate_address(Domain="vpc")
        tag(request, address["AllocationId"])
        return Outcome(address["PublicIp"], {"AllocationId": address["AllocationId"], "PublicIp": address["PublicIp"]})

    def update(self, request: Request) -> Outcome:
        """Only tags can change."""
        tag(request, request.attributes["AllocationId"])
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Release."""
        request.client("ec2").release_address(AllocationId=request.attributes["AllocationId"])


class VpcEndpoint:
    """AWS::EC2::VPCEndpoint, gateway or interface."""

    def create(self, request: Request) -> Outcome:
        """Create the endpoint."""
        endpoint = call(request, "ec2", "create_vpc_endpoint", request.properties)["VpcEndpoint"]
        physical_id = endpoint["VpcEndpointId"]
        tag(request, physical_id)
        entries = [
            f"{entry.get('HostedZoneId', '')}:{entry.get('DnsName', '')}" for entry in endpoint.get("DnsEntries", [])
        ]
        return Outcome(
            physical_id,
            {
                "Id": physical_id,
                "DnsEntries": entries,
                "CreationTimestamp": "",
                "NetworkInterfaceIds": endpoint.get("NetworkInterfaceIds", []),
            },
        )

    def update(self, request: Request) -> Outcome:
        """Change subnets, groups and route tables."""
        values: JsonObject = {"VpcEndpointId": request.physical_id}
        for key, plural in (
            ("SubnetIds", "SubnetIds"),
            ("RouteTableIds", "RouteTableIds"),
            ("SecurityGroupIds", "SecurityGroupIds"),
        ):
            before, after = set(request.previous.get(key, [])), set(request.properties.get(key, []))
            values |= {f"Add{plural}": sorted(after - before)} if after - before else {}
            values |= {f"Remove{plural}": sorted(before - after)} if before - after else {}
        call(request, "ec2", "modify_vpc_endpoint", values)
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Delete the endpoint."""
        request.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[request.physical_id])


class FlowLog:
    """AWS::EC2::FlowLog."""

    def create(self, request: Request) -> Outcome:
        """Switch the flow log on; EC2 reports a refusal in its answer, not as an error."""
        answer = call(
            request,
            "ec2",
            "create_flow_logs",
            {**request.properties, "ResourceIds": [request.properties["ResourceId"]]},
        )
        if answer.get("Unsuccessful"):
            raise HandlerError.saying(answer["Unsuccessful"][0]["Error"]["Message"])
        physical_id = answer["FlowLogIds"][0]
        tag(request, physical_id)
        return Outcome(physical_id, {"Id": physical_id})

    def update(self, request: Request) -> Outcome:
        """Only tags can change."""
        tag(request, request.physical_id)
        return Outcome(request.physical_id, request.attributes)

    def delete(self, request: Request) -> None:
        """Switch it off."""
        request.client("ec2").delete_flow_logs(FlowLogIds=[request.physical_id])


NETWORK: dict[str, Provider] = {
    "AWS::EC2::VPC": Vpc(
        "ec2",
        "create_vpc",
        "Vpc.VpcId",
        {"VpcId": ""},
        "delete_vpc",
        after=_finish_vpc,
        attributes={"VpcId": "Vpc.VpcId", "CidrBlock": "Vpc.CidrBlock"},
        translate=lambda request: _without_tags(request.properties),
    ),
    "AWS::EC2::Subnet": Subnet(
        "ec2",
        "create_subnet",
        "Subnet.SubnetId",
        {"SubnetId": ""},
        "delete_subnet",
        after=_finish_subnet,
        translate=lambda request: _without_tags(request.properties),
        attributes={
            "SubnetId": "Subnet.SubnetId",
            "VpcId": "Subnet.VpcId",
            "CidrBlock": "Subnet.CidrBlock",
            "AvailabilityZone": "Subnet.AvailabilityZone",
            "AvailabilityZoneId": "Subnet.AvailabilityZoneId",
        },
    ),
    "AWS::EC2::InternetGateway": Api(
        "ec2",
        "create_internet_gateway",
        "InternetGateway.InternetGatewayId",
        {"InternetGatewayId": ""},
        "delete_internet_gateway",
        after=tag,
        attributes={"InternetGatewayId": "InternetGateway.InternetGatewayId"},
        translate=lambda request: {},
    ),
    "AWS::EC2::RouteTable": Api(
        "ec2",
        "create_route_table",
        "RouteTable.RouteTableId",
        {"RouteTableId": ""},
        "delete_route_table",
        after=tag,
        attributes={"RouteTableId": "RouteTable.RouteTableId"},
        translate=lambda request: _without_tags(request.properties),
    ),
    "AWS::EC2::SubnetRouteTableAssociation": Api(
        "ec2",
        "associate_route_table",
        "AssociationId",
        {"AssociationId": ""},
        "disassociate_route_table",
        after=lambda request, physical_id: {"Id": physical_id},
    ),
    "AWS::EC2::NatGateway": NatGateway(
        "ec2",
        "create_nat_gateway",
        "NatGateway.NatGatewayId",
        {"NatGatewayId": ""},
        "delete_nat_gateway",
        after=tag,
        attributes={"NatGatewayId": "NatGateway.NatGatewayId"},
        translate=lambda request: _without_tags(request.properties),
    ),
    "AWS::EC2::VPCCidrBlock": VpcCidrBlock(),
    "AWS::EC2::VPCGatewayAttachment": GatewayAttachment(),
    "AWS::EC2::Route": Route(),
    "AWS::EC2::EIP": ElasticIp(),
    "AWS::EC2::VPCEndpoint": VpcEndpoint(),
    "AWS::EC2::FlowLog": FlowLog(),
}


def _without_tags(properties: JsonObject) -> JsonObject:
    """EC2's create operations take tags in another shape; they are put on afterwards."""
    return {key: value for key, value in properties.items() if key != "Tags"}
