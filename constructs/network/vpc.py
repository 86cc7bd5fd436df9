"""A VPC laid out by zone ids: subnets, routes and NAT gateways."""

from collections.abc import Mapping
from ipaddress import IPv4Network

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ...config.catalog.zones import is_local
from ...config.settings.network import Network, SubnetRole
from ...planning.network.cidrs import Subnet, SubnetKey, all_subnets, nat_zones
from ...planning.rules import check
from ..common.protection import Protection, removal_policy

# Which subnets the AWS load balancer controller uses, found by these tags. A Local Zone has none of the network kind.
# Source: Amazon EKS User Guide, "VPC and subnet requirements", 2026-11.
_LOAD_BALANCER_TAG = {"public": "kubernetes.io/role/elb", "nodes": "kubernetes.io/role/internal-elb"}
_EVERYWHERE = "0.0.0.0/0"


class ZonedSubnet(Construct):
    """One subnet with a route table of its own, in the zone with the given id.

    Example:
        vpc = ec2.CfnVPC(stack, "Vpc", cidr_block="10.0.0.0/16")
        block = IPv4Network("10.0.80.0/20")
        subnet = ZonedSubnet(stack, "usw2-az2", "nodes", vpc_id=vpc.ref, block=block, protection="retain")
    """

    def __init__(
        self,
        scope: Construct,
        zone: str,
        role: SubnetRole,
        *,
        vpc_id: str,
        block: IPv4Network,
        protection: Protection,
        further: bool = False,
    ) -> None:
        """Defines the subnet; zone and role are its construct id, so nothing else can ever rename it.

        Args:
            scope: Parent construct.
            zone: Zone id, such as usw2-az2.
            role: What it is for.
            vpc_id: Id of the VPC.
            block: Its range.
            protection: Whether the subnet survives its stack.
            further: Whether it stands beside the zone's first subnet of nodes. Its range, which never changes, is then
                part of its construct id.
        """
        name = f"{zone}-{role.replace('_', '-')}"
        super().__init__(scope, f"{name}-{str(block).replace('/', '-')}" if further else name)

        self.name = cdk.CfnTag(key="Name", value=self.node.path)
        """Tag of everything in the subnet."""
        for_load_balancers = role in _LOAD_BALANCER_TAG and not is_local(zone)
        self.resource = ec2.CfnSubnet(
            self,
            "Subnet",
            vpc_id=vpc_id,
            cidr_block=str(block),
            # By id and not by name: names of zones differ from account to account.
            availability_zone_id=zone,
            # Nothing gets an address by accident; gateways have theirs by themselves.
            map_public_ip_on_launch=False,
            tags=[self.name, *([cdk.CfnTag(key=_LOAD_BALANCER_TAG[role], value="1")] if for_load_balancers else [])],
        )
        self.resource.apply_removal_policy(removal_policy(protection))
        self.subnet_id = self.resource.ref
        self.availability_zone = self.resource.attr_availability_zone
        """Name of the zone, which only a deployment knows."""
        self.route_table_id = ec2.CfnRouteTable(self, "RouteTable", vpc_id=vpc_id, tags=[self.name]).ref
        self.association = ec2.CfnSubnetRouteTableAssociation(
            self, "Association", route_table_id=self.route_table_id, subnet_id=self.subnet_id
        )
        """Without it the subnet has the routes of the VPC's main table, which lead nowhere."""

        self.interface = ec2.Subnet.from_subnet_attributes(
            self,
            "Face",
            subnet_id=self.subnet_id,
            availability_zone=self.availability_zone,
            ipv4_cidr_block=str(block),
            route_table_id=self.route_table_id,
        )
        """The subnet as other constructs take it."""

    def route_out(self, *, gateway_id: str | None = None, nat_gateway_id: str | None = None) -> ec2.CfnRoute:
        """The default route, to an internet gateway or a NAT gateway."""
        return ec2.CfnRoute(
            self,
            "DefaultRoute",
            route_table_id=self.route_table_id,
            destination_cidr_block=_EVERYWHERE,
            gateway_id=gateway_id,
            nat_gateway_id=nat_gateway_id,
        )


class ZonedVpc(Construct):
    """A VPC whose subnets are told apart by zone id and role, so an edit of the settings never moves one.

    Decided for you: DNS on, as private endpoints need; no public address on any interface; NAT gateways and an
    internet gateway only where `settings` lets traffic out, otherwise no route leads further than the VPC.
    With protection `retain` the VPC, its ranges and the nodes subnets survive their stack, because file systems that
    survive hold them. A nodes subnet whose zone is taken out of the settings survives as well: delete it by hand
    before the zone comes back.

    Example:
        vpc = ZonedVpc(stack, "Vpc", settings=Network(zones=("usw2-az2", "usw2-az3")), protection="retain")
        nodes = vpc.interfaces("nodes")["usw2-az2"]
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Network, protection: Protection) -> None:
        """Defines the VPC.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The network; its `vpc` is not read.
            protection: What survives the stack.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        self.resource = ec2.CfnVPC(
            self,
            "Resource",
            cidr_block=settings.cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=[cdk.CfnTag(key="Name", value=self.node.path)],
        )
        self._id = self.resource.ref
        secondary = {
            IPv4Network(text): ec2.CfnVPCCidrBlock(self, f"range-{text}", vpc_id=self._id, cidr_block=text)
            for text in settings.secondary_cidrs
        }
        for ranged in (self.resource, *secondary.values()):
            ranged.apply_removal_policy(removal_policy(protection))
        self._subnets: dict[SubnetKey, ZonedSubnet] = {}
        self._further: list[tuple[str, ZonedSubnet]] = []
        for planned in all_subnets(settings):
            subnet = self._subnet(planned, secondary, protection)
            if planned.further:
                self._further.append((planned.zone, subnet))
            else:
                self._subnets[planned.zone, planned.role] = subnet
        self._route_out(nat_zones(settings))

        self.interface = self._interface(settings)
        """The VPC as other constructs take it. Its private subnets are those of the nodes; it has no public ones."""

    def interfaces(self, role: SubnetRole) -> dict[str, ec2.ISubnet]:
        """The subnets of one role by zone id; of nodes the first of each zone."""
        return {zone: subnet.interface for (zone, held), subnet in self._subnets.items() if held == role}

    def further_nodes(self) -> dict[str, list[ec2.ISubnet]]:
        """The subnets of nodes beside the first by zone id, in the order of their ranges."""
        results: dict[str, list[ec2.ISubnet]] = {}
        for zone, subnet in self._further:
            results.setdefault(zone, []).append(subnet.interface)
        return results

    def route_tables(self, *roles: SubnetRole) -> list[str]:
        """Ids of the route tables of all subnets of these roles, which cost the CDK more to find."""
        first = [subnet.route_table_id for role in roles for (_, held), subnet in self._subnets.items() if held == role]
        return first + [subnet.route_table_id for _, subnet in self._further if "nodes" in roles]

    def _subnet(
        self, planned: Subnet, secondary: Mapping[IPv4Network, ec2.CfnVPCCidrBlock], protection: Protection
    ) -> ZonedSubnet:
        """A subnet, once the range that it lies in belongs to the VPC."""
        subnet = ZonedSubnet(
            self,
            planned.zone,
            planned.role,
            vpc_id=self._id,
            block=planned.block,
            protection=protection if planned.role == "nodes" else "destroy",
            further=planned.further,
        )
        for range_, association in secondary.items():
            if planned.block.subnet_of(range_):
                subnet.resource.add_resource_dependency(association)
        return subnet

    def _route_out(self, zones: tuple[str, ...]) -> None:
        """Internet and NAT gateways, one of these in each of `zones`; other zones route through the first."""
        if not zones:
            return
        internet = ec2.CfnInternetGateway(self, "InternetGateway", tags=[cdk.CfnTag(key="Name", value=self.node.path)])
        attachment = ec2.CfnVPCGatewayAttachment(
            self, "InternetGatewayAttachment", vpc_id=self._id, internet_gateway_id=internet.ref
        )
        gateways: dict[str, ec2.CfnNatGateway] = {}
        for zone in zones:
            public = self._subnets[zone, "public"]
            route = public.route_out(gateway_id=internet.ref)
            address = ec2.CfnEIP(public, "Address", domain="vpc", tags=[public.name])
            # Without the attachment EC2 refuses both, and CloudFormation would find out only by chance.
            for resource in (route, address):
                resource.add_resource_dependency(attachment)
            gateways[zone] = ec2.CfnNatGateway(
                public,
                "NatGateway",
                subnet_id=public.subnet_id,
                allocation_id=address.attr_allocation_id,
                tags=[public.name],
            )
            for resource in (route, public.association):
                gateways[zone].add_resource_dependency(resource)
        private = [(zone, subnet) for (zone, role), subnet in self._subnets.items() if role != "public"]
        for zone, subnet in (*private, *self._further):
            subnet.route_out(nat_gateway_id=gateways.get(zone, gateways[zones[0]]).ref)

    def _interface(self, settings: Network) -> ec2.IVpc:
        nodes = [subnet for (_, role), subnet in self._subnets.items() if role == "nodes"]
        return ec2.Vpc.from_vpc_attributes(
            self,
            "Face",
            vpc_id=self._id,
            vpc_cidr_block=settings.cidr,
            availability_zones=[subnet.availability_zone for subnet in nodes],
            private_subnet_ids=[subnet.subnet_id for subnet in nodes],
            private_subnet_route_table_ids=[subnet.route_table_id for subnet in nodes],
        )
