"""FSx for Lustre: the file system that all nodes share."""

from collections.abc import Iterable, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from constructs import Construct

from ...config.catalog.limits import limits
from ...config.settings.storage import AdoptedLustre, DataRepository, Lustre, ReadCache
from ...planning.rules import check
from ..common.protection import Protection, removal_policy
from ..network.traffic import ALL, Ports, Traffic

_CACHE_MODES = {
    "none": "NO_CACHE",
    "proportional": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY",
    "provisioned": "USER_PROVISIONED",
}


class LustreFileSystem(Construct):
    """A Lustre file system of deployment type PERSISTENT_2, on SSD or with intelligent tiering; or an existing one.

    Decided for you: the file system has a security group of its own. Without EFA it opens Lustre's ports to itself
    and, both ways, to the clients; with EFA it opens everything to those two, as FSx demands before it creates the
    file system (FSx for Lustre User Guide, "File system access control with Amazon VPC", 2026-11). The rules are
    there before the file system is. Daily backups carry its tags. A data repository shows what the bucket already
    holds as soon as it is linked; taking one out of the settings unlinks it and leaves the bucket as it is. The
    associations follow the file system, so a long import of metadata does not hold up its creation.
    With protection `retain` the file system, its group and the rules within the group survive their stack.

    Of an existing file system only the ports between its group and the clients are opened.

    Example:
        LustreFileSystem(
            stack, "Lustre", settings=Lustre(zone="usw2-az2", capacity_gib=9600, throughput=500, efa=True), vpc=vpc,
            subnet=vpc.private_subnets[0], clients=clients, key=key, protection="retain")
    """

    file_system_id: str
    """Its id."""
    dns_name: str
    """The name that clients mount."""
    mount_name: str
    """The name of the Lustre file system behind that."""
    security_group: ec2.ISecurityGroup
    """Group of its servers."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Lustre,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        clients: ec2.ISecurityGroup,
        key: kms.IKey,
        protection: Protection,
    ) -> None:
        """Defines the file system.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The file system.
            vpc: The VPC.
            subnet: The one subnet that it is in. With EFA, that of the nodes or another of their zone.
            clients: Security group of the nodes.
            key: Encrypts it.
            protection: Whether it survives its stack.

        Raises:
            Refused: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        ports = [ALL] if settings.efa else [Ports.of("tcp", text) for text in limits().lustre.ports]
        if settings.existing is None:
            self._create(settings, vpc, subnet, clients, key, protection, ports)
        else:
            self._adopt(settings.existing, clients, ports)

    def _create(
        self,
        settings: Lustre,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        clients: ec2.ISecurityGroup,
        key: kms.IKey,
        protection: Protection,
        ports: Sequence[Ports],
    ) -> None:
        lasting = removal_policy(protection)
        group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, allow_all_outbound=False, description="FSx for Lustre servers"
        )
        group.apply_removal_policy(lasting)
        self.security_group = group
        among_servers = Traffic(
            self,
            "AmongServers",
            source=group,
            target=group,
            ports=ports,
            description="Lustre among servers",
            removal_policy=lasting,
        )
        tiering = settings.type == "intelligent_tiering"
        resource = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="LUSTRE",
            file_system_type_version=settings.version,
            storage_type="INTELLIGENT_TIERING" if tiering else "SSD",
            storage_capacity=None if tiering else settings.capacity_gib,
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[group.security_group_id],
            kms_key_id=key.key_arn,
            lustre_configuration=_configuration(settings),
        )
        resource.apply_removal_policy(lasting)
        resource.node.add_dependency(among_servers, *self._open(clients, ports))
        cdk.Tags.of(self).add("Name", self.node.path)
        for repository in settings.repositories:
            _associate(self, resource, repository)

        self.file_system_id = resource.ref
        self.dns_name = resource.attr_dns_name
        self.mount_name = resource.attr_lustre_mount_name

    def _adopt(self, existing: AdoptedLustre, clients: ec2.ISecurityGroup, ports: Sequence[Ports]) -> None:
        self.security_group = ec2.SecurityGroup.from_security_group_id(self, "SecurityGroup", existing.security_group)
        self._open(clients, ports)

        stack = cdk.Stack.of(self)
        self.file_system_id = existing.id
        self.dns_name = f"{existing.id}.fsx.{stack.region}.{stack.url_suffix}"
        self.mount_name = existing.mount_name

    def _open(self, clients: ec2.ISecurityGroup, ports: Iterable[Ports]) -> list[Traffic]:
        """Lustre connects both ways: servers call back their clients."""
        ends = {"FromClients": (clients, self.security_group), "ToClients": (self.security_group, clients)}
        return [
            Traffic(self, name, source=source, target=target, ports=ports, description="Lustre, clients and servers")
            for name, (source, target) in ends.items()
        ]


def _configuration(settings: Lustre) -> fsx.CfnFileSystem.LustreConfigurationProperty:
    backups: dict[str, Any] = {}
    if settings.backups is not None:
        backups = {
            "automatic_backup_retention_days": settings.backups.retention_days,
            "daily_automatic_backup_start_time": settings.backups.start,
            "copy_tags_to_backups": True,
        }
    performance: dict[str, Any] = {"per_unit_storage_throughput": settings.throughput}
    if settings.type == "intelligent_tiering":
        performance = {
            "throughput_capacity": settings.throughput_capacity,
            "data_read_cache_configuration": _read_cache(settings.read_cache or ReadCache()),
        }
    return fsx.CfnFileSystem.LustreConfigurationProperty(
        deployment_type="PERSISTENT_2",
        efa_enabled=settings.efa,
        metadata_configuration=_metadata(settings),
        data_compression_type=settings.compression.upper(),
        weekly_maintenance_start_time=settings.maintenance,
        **performance,
        **backups,
    )


def _read_cache(settings: ReadCache) -> fsx.CfnFileSystem.DataReadCacheConfigurationProperty:
    return fsx.CfnFileSystem.DataReadCacheConfigurationProperty(
        sizing_mode=_CACHE_MODES[settings.mode], size_gib=settings.size_gib
    )


def _metadata(settings: Lustre) -> fsx.CfnFileSystem.MetadataConfigurationProperty | None:
    """Older versions of Lustre know no metadata configuration; FSx then sizes the metadata servers by itself."""
    if settings.version != limits().lustre.metadata_version:
        return None
    if settings.metadata_iops == "automatic":
        return fsx.CfnFileSystem.MetadataConfigurationProperty(mode="AUTOMATIC")
    return fsx.CfnFileSystem.MetadataConfigurationProperty(mode="USER_PROVISIONED", iops=settings.metadata_iops)


def _associate(scope: Construct, file_system: fsx.CfnFileSystem, repository: DataRepository) -> None:
    kind = fsx.CfnDataRepositoryAssociation
    imported = [event.upper() for event in repository.import_events]
    exported = [event.upper() for event in repository.export_events]
    kind(
        scope,
        f"Repository{repository.path}",
        file_system_id=file_system.ref,
        file_system_path=repository.path,
        data_repository_path=repository.s3,
        # Fixed, because a change of it would replace the association while the old one still holds the path.
        batch_import_meta_data_on_create=True,
        s3=kind.S3Property(
            auto_import_policy=kind.AutoImportPolicyProperty(events=imported) if imported else None,
            auto_export_policy=kind.AutoExportPolicyProperty(events=exported) if exported else None,
        ),
    )
