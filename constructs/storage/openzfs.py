"""FSx for OpenZFS: home folders that all nodes share."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from constructs import Construct

from ...config.errors import InvalidValue
from ...config.settings.storage import AdoptedOpenZfs, OpenZfs
from ...planning.rules import check
from ..common.arguments import checked
from ..common.protection import Protection, removal_policy
from ..network.traffic import Ports, Traffic

# Port mapper, NFS, and mount, status and lock daemons.
# Source: FSx for OpenZFS User Guide, "File system access control with Amazon VPC", 2026-11.
_PORTS = [Ports.of(protocol, ports) for protocol in ("tcp", "udp") for ports in ("111", "2049", "20001-20003")]
# Root on a node makes the home folders of new users. Writes are on disk before they are acknowledged.
_EXPORT_OPTIONS = ["rw", "crossmnt", "sync", "no_root_squash"]


class OpenZfsHome(Construct):
    """An OpenZFS file system in one zone or two, exported by NFS.

    Decided for you: SSD, and records of 128 KiB. Who
    may mount it is decided by its security group, which lets in the clients' group and nobody else; root on a client
    is root on the file system, as the set-up of home folders needs. Backups and volumes carry its tags.
    With protection `retain` the file system and its group survive their stack; with `destroy` child volumes and
    snapshots go with it. An existing one is only opened to the clients.

    Example:
        OpenZfsHome(
            stack, "Home", settings=OpenZfs(zone="usw2-az2"), vpc=vpc, subnet=vpc.private_subnets[0],
            clients=clients, key=key, protection="retain")
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: OpenZfs,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        clients: ec2.ISecurityGroup,
        key: kms.IKey,
        protection: Protection,
        standby: ec2.ISubnet | None = None,
        route_table_ids: Sequence[str] = (),
    ) -> None:
        """Defines the file system.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The file system.
            vpc: The VPC.
            subnet: The subnet of its server; of the preferred one, if there are two.
            clients: Security group of the nodes.
            key: Encrypts it.
            protection: Whether it survives its stack.
            standby: The subnet of the second server, which multi_az_1 needs; no other deployment reads it.
            route_table_ids: Route tables of the clients' subnets, which multi_az_1 needs unless the settings name them.

        Raises:
            InvalidSettings: settings that cannot be built.
            InvalidValue: multi_az_1 without a second subnet or without route tables.
        """
        super().__init__(scope, construct_id)
        check(settings)

        self.settings = settings
        """What it was made from: its zone and mount."""
        if settings.existing:
            self._adopt(settings.existing, clients)
        else:
            self._create(settings, vpc, subnet, clients, key, protection, standby, route_table_ids)

    def _adopt(self, adopted: AdoptedOpenZfs, clients: ec2.ISecurityGroup) -> None:
        """A file system that is made elsewhere, which `clients` reach."""
        group = ec2.SecurityGroup.from_security_group_id(self, "SecurityGroup", adopted.security_group)
        Traffic(self, "FromClients", source=clients, target=group, ports=_PORTS, description="NFS from nodes")
        stack = cdk.Stack.of(self)
        self.file_system_id: str = adopted.id
        """Its id."""
        # FSx makes the name of a file system from its id.
        self.dns_name: str = f"{adopted.id}.fsx.{stack.region}.{stack.url_suffix}"
        """The server's name; nodes mount `<dns_name>:/fsx`."""
        self.security_group: ec2.ISecurityGroup = group
        """Group of its server."""

    def _create(
        self,
        settings: OpenZfs,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        clients: ec2.ISecurityGroup,
        key: kms.IKey,
        protection: Protection,
        standby: ec2.ISubnet | None,
        route_table_ids: Sequence[str],
    ) -> None:
        """A file system of its own, which `clients` reach."""
        subnets, tables = [subnet.subnet_id], list[str]()
        if settings.in_two_zones:
            tables = [*(settings.route_tables or route_table_ids)]
            if standby is None or not tables:
                raise InvalidValue("deployment is multi_az_1, which needs standby and route_table_ids")
            subnets.append(standby.subnet_id)

        group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, allow_all_outbound=False, description="FSx for OpenZFS server"
        )
        way = Traffic(self, "FromClients", source=clients, target=group, ports=_PORTS, description="NFS from nodes")
        kind = fsx.CfnFileSystem
        # The security group decides who gets this far.
        everyone = kind.ClientConfigurationsProperty(clients="*", options=_EXPORT_OPTIONS)
        resource = kind(
            self,
            "Resource",
            file_system_type="OPENZFS",
            storage_type="SSD",
            storage_capacity=settings.capacity_gib,
            subnet_ids=subnets,
            security_group_ids=[group.security_group_id],
            kms_key_id=key.key_arn,
            open_zfs_configuration=kind.OpenZFSConfigurationProperty(
                deployment_type=settings.deployment.upper(),
                preferred_subnet_id=subnet.subnet_id if tables else None,
                endpoint_ip_address_range=settings.endpoint_cidr,
                route_table_ids=tables or None,
                throughput_capacity=settings.throughput,
                disk_iops_configuration=(
                    None
                    if settings.iops == "automatic"
                    else kind.DiskIopsConfigurationProperty(mode="USER_PROVISIONED", iops=settings.iops)
                ),
                automatic_backup_retention_days=settings.backup_days,
                copy_tags_to_backups=True,
                copy_tags_to_volumes=True,
                # Otherwise FSx refuses to delete a file system that has volumes or snapshots.
                options=["DELETE_CHILD_VOLUMES_AND_SNAPSHOTS"] if protection == "destroy" else None,
                root_volume_configuration=kind.RootVolumeConfigurationProperty(
                    data_compression_type=settings.compression.upper(),
                    record_size_kib=128,
                    nfs_exports=[kind.NfsExportsProperty(client_configurations=[everyone])],
                ),
            ),
        )
        for rule in way.rules:
            resource.add_resource_dependency(rule)
        for lasting in (group, resource):
            lasting.apply_removal_policy(removal_policy(protection))
        cdk.Tags.of(self).add("Name", self.node.path)

        self.file_system_id = resource.ref
        self.dns_name = resource.attr_dns_name
        self.security_group = group
