"""The network of an environment: a VPC of its own or an existing one, with what nodes need to talk."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

from ...config.settings.network import AdoptedVpc, Network
from ...planning.rules import check
from ..common.arguments import checked
from ..common.protection import Protection, removal_policy
from .endpoints import Endpoints
from .flow_logs import FlowLogs
from .traffic import ALL, Traffic
from .vpc import ZonedVpc

_NO_ROUTE_TABLE = "@aws-cdk/aws-ec2:noSubnetRouteTableId"


class INetwork(Protocol):
    """A network: an `EnvironmentNetwork`, or one that `EnvironmentNetwork.from_network_attributes` names."""

    vpc: ec2.IVpc
    """The VPC."""
    node_subnets: dict[str, ec2.ISubnet]
    """Private subnets of the instance groups, by zone id: the first of each zone, which file systems stand in too."""
    more_node_subnets: dict[str, list[ec2.ISubnet]]
    """Further private subnets of the instance groups, by zone id; zones with one subnet are not in it."""
    control_plane_subnets: dict[str, ec2.ISubnet]
    """Subnets of EKS control-plane interfaces and of interface endpoints, by zone id."""
    node_security_group: ec2.ISecurityGroup
    """Group of all nodes."""

    @property
    def connections(self) -> ec2.Connections:
        """Security group of the nodes."""
        ...


@jsii.implements(ec2.IConnectable)
class ImportedNetwork(Construct):
    """A network that is made elsewhere. `EnvironmentNetwork.from_network_attributes` makes one.

    Example:
        ImportedNetwork(stack, "Given", vpc=vpc, node_subnets={"usw2-az2": subnet}, node_security_group=nodes)
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        node_subnets: Mapping[str, ec2.ISubnet],
        node_security_group: ec2.ISecurityGroup,
        control_plane_subnets: Mapping[str, ec2.ISubnet] | None = None,
        more_node_subnets: Mapping[str, Sequence[ec2.ISubnet]] | None = None,
    ) -> None:
        """Defines nothing: it only names.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            vpc: The VPC.
            node_subnets: Private subnets of the nodes by zone id.
            node_security_group: Group of all nodes, in which EFA works.
            control_plane_subnets: Subnets of control planes by zone id; those of the nodes when absent.
            more_node_subnets: Further private subnets of the nodes by zone id, of zones that have several.

        Raises:
            InvalidSettings: an argument that is no such thing.
        """
        super().__init__(scope, construct_id)
        self.vpc = vpc
        self.node_subnets = dict(node_subnets)
        self.more_node_subnets = {zone: list(subnets) for zone, subnets in (more_node_subnets or {}).items()}
        self.control_plane_subnets = dict(control_plane_subnets or node_subnets)
        self.node_security_group = node_security_group

    @property
    def connections(self) -> ec2.Connections:
        """Security group of the nodes."""
        return ec2.Connections(security_groups=[self.node_security_group])


@jsii.implements(ec2.IConnectable)
class EnvironmentNetwork(Construct):
    """VPC, subnets by zone id, security group of the nodes, private endpoints and flow logs.

    Decided for you: AWS services are reached through VPC endpoints of the features in use; all else leaves through
    NAT gateways (`endpoints: standard`) or not at all (`endpoints: closed`). Nodes may do anything among themselves,
    by rules that name the group, as EFA needs. Beyond that they may open any connection in a standard network, and
    HTTPS only in a closed one: S3 answers at public addresses of its gateway endpoint, whose prefix list has another
    id in each region, so the group allows port 443 to every address and the routes let it reach the VPC and S3 alone.
    DNS, time and instance metadata pass security groups anyway (Amazon VPC User Guide, "Security groups", 2026-11);
    file systems open their own ports. The VPC's default group stays as AWS made it, and nothing uses it.

    In an existing VPC only a missing node security group is made. CDK's subnets of it carry zone ids where CDK
    expects zone names, because names differ between accounts.

    Example:
        network = EnvironmentNetwork(stack, "Network", settings=Network(zones=("usw2-az2", "usw2-az3")),
                                     features={"nodes", "lustre"}, protection="retain")
        nodes = network.node_subnets["usw2-az2"]
    """

    vpc: ec2.IVpc
    """The VPC. Its private subnets are those of the nodes."""
    node_subnets: dict[str, ec2.ISubnet]
    """Private subnets of the instance groups, by zone id: the first of each zone, which file systems stand in too."""
    more_node_subnets: dict[str, list[ec2.ISubnet]]
    """Further private subnets of the instance groups, by zone id; zones with one subnet are not in it."""
    control_plane_subnets: dict[str, ec2.ISubnet]
    """Subnets of EKS control-plane interfaces and of interface endpoints, by zone id."""
    node_route_tables: list[str]
    """Ids of the route tables of all subnets of instance groups; empty in an existing VPC, which keeps its own."""
    node_security_group: ec2.ISecurityGroup
    """Group of all nodes. Stacks that use it open further ports with `Traffic` in their own scope."""
    further_security_groups: list[ec2.ISecurityGroup]
    """Existing groups that nodes have besides."""
    endpoint_security_group: ec2.ISecurityGroup | None
    """Group of the interface endpoints; None in an existing VPC."""

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Network,
        features: AbstractSet[str] = frozenset({"nodes"}),
        endpoint_zones: Mapping[str, Collection[str]] | None = None,
        protection: Protection = "retain",
        key: kms.IKey | None = None,
    ) -> None:
        """Defines the network.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The network.
            features: Features of `config.endpoints` whose services need an endpoint.
            endpoint_zones: Zone ids in which endpoint services are offered; others are taken to be in all zones.
            protection: What survives the stack.
            key: Encrypts the flow logs; CloudWatch's own key when None.

        Raises:
            InvalidSettings: settings that cannot be built.
            InvalidValue: a feature that the table of endpoints does not know.
        """
        super().__init__(scope, construct_id)
        check(settings)

        if settings.vpc is None:
            self._create(settings, features, endpoint_zones or {}, protection, key)
            existing = None
        else:
            self._adopt(settings.vpc)
            existing = settings.vpc.security_group
        closed = settings.endpoints == "closed"

        self.node_security_group = (
            # For a group of somebody's the CDK has to know whether to add outgoing rules.
            ec2.SecurityGroup.from_security_group_id(self, "Nodes", existing, allow_all_outbound=not closed)
            if existing is not None
            else self._node_security_group(closed, protection)
        )
        self.further_security_groups = [
            ec2.SecurityGroup.from_security_group_id(self, id, id, mutable=False)
            for id in settings.node_security_groups
        ]

    @staticmethod
    @checked
    def from_network_attributes(
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        node_subnets: Mapping[str, ec2.ISubnet],
        node_security_group: ec2.ISecurityGroup,
        control_plane_subnets: Mapping[str, ec2.ISubnet] | None = None,
        more_node_subnets: Mapping[str, Sequence[ec2.ISubnet]] | None = None,
    ) -> INetwork:
        """A network that is made elsewhere, by its attributes (see `ImportedNetwork`)."""
        return ImportedNetwork(
            scope,
            construct_id,
            vpc=vpc,
            node_subnets=node_subnets,
            node_security_group=node_security_group,
            control_plane_subnets=control_plane_subnets,
            more_node_subnets=more_node_subnets,
        )

    @property
    def connections(self) -> ec2.Connections:
        """Security group of the nodes. What else they talk to is added here."""
        return ec2.Connections(security_groups=[self.node_security_group])

    def _create(
        self,
        settings: Network,
        features: AbstractSet[str],
        endpoint_zones: Mapping[str, Collection[str]],
        protection: Protection,
        key: kms.IKey | None,
    ) -> None:
        """A VPC of its own with subnets by zone and endpoints; flow logs unless they are turned off."""
        vpc = ZonedVpc(self, "Vpc", settings=settings, protection=protection)
        self.vpc = vpc.interface
        self.node_subnets = vpc.interfaces("nodes")
        self.more_node_subnets = vpc.further_nodes()
        self.control_plane_subnets = vpc.interfaces("control_plane")
        self.node_route_tables = vpc.route_tables("nodes")
        self.endpoint_security_group = Endpoints(
            self,
            "Endpoints",
            vpc=vpc.interface,
            ranges=[settings.cidr, *settings.secondary_cidrs],
            features=features,
            interfaces=self.control_plane_subnets,
            offered=endpoint_zones,
            route_tables=vpc.route_tables("nodes", "control_plane"),
        ).security_group
        if settings.flow_logs_days:
            FlowLogs(
                self,
                "FlowLogs",
                vpc_id=vpc.interface.vpc_id,
                days=settings.flow_logs_days,
                key=key,
                protection=protection,
            )
        else:
            cdk.Validations.of(vpc.resource).acknowledge(
                cdk.Acknowledgment(id="AwsSolutions-VPC7", reason="The environment turns flow logs off.")
            )

    def _adopt(self, adopted: AdoptedVpc) -> None:
        """An existing VPC by the ids in the settings; it gets no subnets, routes or endpoints."""
        # Nothing here reads route tables of an existing VPC, and asking AWS for their ids would tie synthesis to it.
        cdk.Annotations.of(self).acknowledge_warning(_NO_ROUTE_TABLE)
        subnets = adopted.subnets
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Existing",
            vpc_id=adopted.id,
            vpc_cidr_block=adopted.cidr,
            # Zone ids where the CDK wants names; see the docstring.
            availability_zones=list(subnets),
            private_subnet_ids=[subnet.nodes for subnet in subnets.values()],
        )
        self.node_subnets = {zone: self._subnet(zone, "nodes", subnet.nodes) for zone, subnet in subnets.items()}
        further = {zone: sorted(subnet.more_nodes) for zone, subnet in subnets.items() if subnet.more_nodes}
        self.more_node_subnets = {zone: self._further(zone, ids) for zone, ids in further.items()}
        self.control_plane_subnets = {
            zone: self._subnet(zone, "control-plane", subnet.control_plane)
            for zone, subnet in subnets.items()
            if subnet.control_plane is not None
        }
        self.node_route_tables = []
        # Endpoints of an existing network are its owner's, and so is who may reach them.
        self.endpoint_security_group = None

    def _further(self, zone: str, subnet_ids: Sequence[str]) -> list[ec2.ISubnet]:
        return [self._subnet(zone, f"nodes-{subnet_id}", subnet_id) for subnet_id in subnet_ids]

    def _subnet(self, zone: str, role: str, subnet_id: str) -> ec2.ISubnet:
        return ec2.Subnet.from_subnet_attributes(self, f"{zone}-{role}", subnet_id=subnet_id, availability_zone=zone)

    def _node_security_group(self, closed: bool, protection: Protection) -> ec2.ISecurityGroup:
        """Everything among nodes, as EFA needs; outwards everything, or only HTTPS in a closed network."""
        lasting = removal_policy(protection)
        outside = ec2.CfnSecurityGroup.EgressProperty(
            cidr_ip="0.0.0.0/0",
            ip_protocol="tcp" if closed else "-1",
            from_port=443 if closed else None,
            to_port=443 if closed else None,
            description="HTTPS; the routes lead to the VPC and S3 only" if closed else "Everywhere",
        )
        group = ec2.CfnSecurityGroup(
            self,
            "NodeSecurityGroup",
            group_description="Nodes: everything among themselves, as EFA needs",
            vpc_id=self.vpc.vpc_id,
            security_group_egress=[outside],
        )
        group.apply_removal_policy(lasting)
        cdk.Tags.of(group).add("Name", self.node.path)
        # As an imported group: a rule of the CDK's own class would be left out where all outbound traffic is allowed.
        endpoint = ec2.SecurityGroup.from_security_group_id(
            self, "Nodes", group.attr_group_id, allow_all_outbound=not closed
        )
        Traffic(
            self,
            "AmongNodes",
            source=endpoint,
            target=endpoint,
            ports=[ALL],
            description="EFA and all else among nodes",
            removal_policy=lasting,
        )
        return endpoint
