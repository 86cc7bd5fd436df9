"""The network of an environment: a VPC of ours laid out by zone id, or an existing one."""

from typing import Literal

from pydantic import Field

from .base import Cidr, SecurityGroupId, Settings, SubnetId, VpcId, ZoneId, ZoneIds

SubnetRole = Literal["public", "control_plane", "nodes"]


class SubnetCidrs(Settings):
    """CIDRs of one zone that replace the computed ones. A range outside `cidr` must lie in a secondary CIDR."""

    public: Cidr | None = None
    """Range of the NAT gateway's public subnet."""
    control_plane: Cidr | None = None
    """Range of the subnet for EKS control-plane interfaces and interface endpoints."""
    nodes: Cidr | None = None
    """Range of the private subnet of all instance groups in this zone."""
    more_nodes: tuple[Cidr, ...] = Field(default=(), max_length=15)
    """Ranges of further private subnets of all instance groups in this zone, for more nodes than one subnet holds. A
    subnet belongs to its range: order and later additions never move another one."""


class AdoptedSubnets(Settings):
    """Existing subnets of one zone."""

    nodes: SubnetId
    """Private subnet of the instance groups in this zone."""
    control_plane: SubnetId | None = None
    """Subnet for EKS control-plane interfaces; needed in two zones unless the EKS cluster is adopted too."""
    nodes_cidr: Cidr
    """Range of the nodes subnet, so that addresses can be counted without asking AWS."""
    more_nodes: dict[SubnetId, Cidr] = Field(default={}, max_length=15)
    """Further private subnets of the instance groups in this zone, with their ranges."""


class AdoptedVpc(Settings):
    """An existing VPC. podwright creates no route, gateway or endpoint in it."""

    id: VpcId
    """Id of the VPC."""
    cidr: Cidr
    """Its primary range."""
    subnets: dict[ZoneId, AdoptedSubnets] = Field(min_length=1)
    """Subnets by zone id."""
    security_group: SecurityGroupId | None = None
    """Node security group with all-protocol rules to and from itself; created when absent."""


class Network(Settings):
    """VPC by zone ids, because accelerated capacity is bound to zones and zone names differ between accounts."""

    cidr: Cidr = "10.16.0.0/16"
    """Primary range of the VPC, /16 to /20."""
    secondary_cidrs: tuple[Cidr, ...] = ()
    """Further ranges, for node subnets that outgrow the primary one."""
    zones: ZoneIds = Field(min_length=1, max_length=8)
    """Zone ids such as usw2-az2. Order and later additions never move an existing subnet."""
    subnets: dict[ZoneId, SubnetCidrs] = {}
    """Explicit ranges by zone; all others are computed."""
    endpoints: Literal["standard", "closed"] = "standard"
    """standard: NAT gateways plus private endpoints. closed: no route leads out, every service has an endpoint."""
    nat: Literal["per_zone", "single"] = "per_zone"
    """One NAT gateway in each zone, or a single one in the first zone (cheaper, and a shared fate)."""
    flow_logs_days: int = Field(default=90, ge=0, le=3653)
    """Days that VPC flow logs are kept; 0 turns them off."""
    node_security_groups: tuple[SecurityGroupId, ...] = ()
    """Existing security groups that all nodes have beside their own, in which EFA works. A change replaces the
    cluster."""
    vpc: AdoptedVpc | None = None
    """An existing network to use instead of a new one."""
