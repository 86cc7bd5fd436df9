"""VPC endpoints: how private subnets reach AWS services without leaving the AWS network."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ...planning.network.endpoints import GATEWAY_SERVICE, services


class Endpoints(Construct):
    """An endpoint for every service that the given features call.

    Decided for you: S3 through a gateway endpoint, which costs nothing and carries image layers, scripts and
    checkpoints; every other service through interfaces with private DNS, so that clients need no settings. The
    endpoints have AWS's default policy, because buckets and repositories of the services themselves (ECR layers,
    HyperPod, Systems Manager) are reached through them too. Names are those of the partitions where HyperPod is: in the
    China regions some services have another prefix.

    Example:
        from podwright.config.settings.network import Network
        from podwright.constructs.network.vpc import ZonedVpc
        vpc = ZonedVpc(stack, "Vpc", settings=Network(zones=("usw2-az2", "usw2-az3")), protection="destroy")
        Endpoints(stack, "Endpoints", vpc=vpc.interface, ranges=["10.16.0.0/16"], features={"nodes"},
                  interfaces=vpc.interfaces("control_plane"), route_tables=vpc.route_tables("nodes"))
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        ranges: Iterable[str],
        features: Iterable[str],
        interfaces: Mapping[str, ec2.ISubnet],
        route_tables: Sequence[str],
        offered: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Defines the endpoints.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            vpc: The VPC.
            ranges: Ranges whose hosts may call: all of the VPC.
            features: Features of `config.endpoints`.
            interfaces: Subnets that hold the interfaces, one in each zone, by zone id.
            route_tables: Ids of the route tables that lead to S3.
            offered: Zone ids in which a service is offered. An endpoint gets interfaces in these alone; one of a
                service that is not named here, or that is in none of the zones, in all.

        Raises:
            ValueError: a feature that the table of endpoints does not know.
        """
        super().__init__(scope, construct_id)

        group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, allow_all_outbound=False, description="VPC endpoints: HTTPS from the VPC"
        )
        path = self.node.path
        cdk.Tags.of(group).add("Name", path)
        self.security_group = cast(ec2.ISecurityGroup, group)
        """The group of all interfaces."""
        for text in ranges:
            group.add_ingress_rule(cast(ec2.IPeer, ec2.Peer.ipv4(text)), ec2.Port.tcp(443), f"HTTPS from {text}")
        # The CDK's own classes need six calls an endpoint where one is enough.
        vpc_id, group_id, region = vpc.vpc_id, group.security_group_id, cdk.Stack.of(self).region
        subnet_ids = {zone: subnet.subnet_id for zone, subnet in interfaces.items()}
        for service in services(features):
            gateway = service == GATEWAY_SERVICE
            name = service.replace(".", "-")
            # EC2 refuses an endpoint for a single subnet in a zone that lacks the service.
            zones = [zone for zone in interfaces if zone in (offered or {}).get(service, interfaces)]
            ec2.CfnVPCEndpoint(
                self,
                name,
                vpc_id=vpc_id,
                service_name=f"com.amazonaws.{region}.{service}",
                vpc_endpoint_type="Gateway" if gateway else "Interface",
                route_table_ids=list(route_tables) if gateway else None,
                subnet_ids=None if gateway else [subnet_ids[zone] for zone in zones or interfaces],
                security_group_ids=None if gateway else [group_id],
                private_dns_enabled=None if gateway else True,
                # Endpoints have no name besides this tag.
                tags=[cdk.CfnTag(key="Name", value=f"{path}/{name}")],
            )
