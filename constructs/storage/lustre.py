"""FSx for Lustre: the file system that all nodes share."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import aws_cdk as cdk
import jsii
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from constructs import Construct

from ...config.catalog.limits import limits
from ...config.settings.storage import AdoptedLustre, DataRepository, Lustre, ReadCache, Storage
from ...planning.rules import check
from ..common.arguments import checked
from ..common.protection import Protection, removal_policy
from ..network.traffic import ALL, Ports, Traffic
from .key import EnvironmentKey

_CACHE_MODES = {
    "none": "NO_CACHE",
    "proportional": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY",
    "provisioned": "USER_PROVISIONED",
}


class ILustreFileSystem(Protocol):
    """A Lustre file system: a `LustreFileSystem`, or one that `from_lustre_file_system_attributes` names."""

    settings: Lustre
    """Its zone and mount, and whether it serves EFA."""
    file_system_id: str
    """Its id."""
    dns_name: str
    """The name that clients mount."""
    mount_name: str
    """The name of the Lustre file system behind that."""
    security_group: ec2.ISecurityGroup
    """Security group of its servers."""

    @property
    def connections(self) -> ec2.Connections:
        """Security group of its servers."""
        ...

    def open_to(self, scope: Construct, clients: ec2.ISecurityGroup) -> None:
        """Open it to clients, by rules in `scope`."""
        ...

    def metric_free_storage(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Bytes that are free."""
        ...


class LustreAccess:
    """Connections and metrics of a file system, from its id and security group.

    Source of the metrics: FSx for Lustre User Guide, "Monitoring with Amazon CloudWatch", 2026-11. Every server reports
    each minute, so the sum of a minute is the whole.
    """

    settings: Lustre
    file_system_id: str
    dns_name: str
    mount_name: str
    security_group: ec2.ISecurityGroup
    _clients: list[ec2.ISecurityGroup]

    @property
    def connections(self) -> ec2.Connections:
        """Security group of its servers. Clients need rules both ways: `open_to` makes them."""
        return ec2.Connections(security_groups=[self.security_group])

    def open_to(self, scope: Construct, clients: ec2.ISecurityGroup) -> None:
        """Open it to clients, by rules in `scope`. Those that it is open to already are left alone."""
        # By reference: the same group as another object is another construct.
        if any(known is clients for known in self._clients):
            return
        self._clients.append(clients)
        location = Construct(scope, f"Lustre-{self._number(scope)}")
        _open(location, self.security_group, clients, _ports(self.settings))

    def metric_free_storage(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Bytes that are free."""
        return self._metric("FreeDataStorageCapacity", period)

    def metric_read_bytes(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Bytes that clients read."""
        return self._metric("DataReadBytes", period)

    def metric_written_bytes(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Bytes that clients write."""
        return self._metric("DataWriteBytes", period)

    def metric_metadata_operations(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Operations on metadata."""
        return self._metric("MetadataOperations", period)

    def _number(self, scope: Construct) -> int:
        return sum(child.node.id.startswith("Lustre-") for child in scope.node.children)

    def _metric(self, name: str, period: cdk.Duration | None) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace="AWS/FSx",
            metric_name=name,
            dimensions_map={"FileSystemId": self.file_system_id},
            statistic="Sum",
            period=period or cdk.Duration.minutes(1),
        )


@jsii.implements(ec2.IConnectable)
class LustreFileSystem(LustreAccess, Construct):
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

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Lustre,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        clients: ec2.ISecurityGroup | None = None,
        key: kms.IKey | None = None,
        protection: Protection = "retain",
    ) -> None:
        """Defines the file system.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The file system.
            vpc: The VPC.
            subnet: The one subnet that it is in. With EFA, that of the nodes or another of their zone.
            clients: Security group of the nodes; a `HyperPodCluster` that mounts it opens it to its own.
            key: Encrypts it; a new key when absent.
            protection: Whether it survives its stack.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        self.settings = settings
        self._clients = [clients] if clients else []
        ports = _ports(settings)
        if settings.existing is None:
            key = key or EnvironmentKey(self, "Key", settings=Storage(), protection=protection).key
            self._create(settings, vpc, subnet, clients, key, protection, ports)
        else:
            self._adopt(settings.existing, clients, ports)

    @staticmethod
    @checked
    def from_lustre_file_system_attributes(
        scope: Construct,
        construct_id: str,
        *,
        file_system_id: str,
        mount_name: str,
        security_group: ec2.ISecurityGroup,
        zone: str,
        mount: str = "/fsx",
        efa: bool = False,
    ) -> ILustreFileSystem:
        """A file system that is made elsewhere, by its attributes (see `ImportedLustre`)."""
        settings = Lustre(zone=zone, mount=mount, efa=efa)
        return ImportedLustre(
            scope,
            construct_id,
            file_system_id=file_system_id,
            mount_name=mount_name,
            security_group=security_group,
            settings=settings,
        )

    def _create(
        self,
        settings: Lustre,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        clients: ec2.ISecurityGroup | None,
        key: kms.IKey,
        protection: Protection,
        ports: Sequence[Ports],
    ) -> None:
        """A file system of its own in one subnet, which `clients` reach, with its links to S3."""
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
            # Intelligent tiering grows with the data, and a capacity is refused.
            storage_capacity=None if tiering else settings.capacity_gib,
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[group.security_group_id],
            kms_key_id=key.key_arn,
            lustre_configuration=_configuration(settings),
        )
        resource.apply_removal_policy(lasting)
        opened = _open(self, group, clients, ports) if clients else []
        # FSx inspects the rules of the group when it creates the file system.
        resource.node.add_dependency(among_servers, *opened)
        cdk.Tags.of(self).add("Name", self.node.path)
        for repository in settings.repositories:
            _associate(self, resource, repository)

        self.file_system_id = resource.ref
        self.dns_name = resource.attr_dns_name
        self.mount_name = resource.attr_lustre_mount_name

    def _adopt(self, adopted: AdoptedLustre, clients: ec2.ISecurityGroup | None, ports: Sequence[Ports]) -> None:
        self.security_group = ec2.SecurityGroup.from_security_group_id(self, "SecurityGroup", adopted.security_group)
        if clients:
            _open(self, self.security_group, clients, ports)

        stack = cdk.Stack.of(self)
        self.file_system_id = adopted.id
        # FSx makes the name of a file system from its id.
        self.dns_name = f"{adopted.id}.fsx.{stack.region}.{stack.url_suffix}"
        self.mount_name = adopted.mount_name


@jsii.implements(ec2.IConnectable)
class ImportedLustre(LustreAccess, Construct):
    """A Lustre file system that is made elsewhere. `LustreFileSystem.from_lustre_file_system_attributes` makes one.

    Example:
        settings = Lustre(zone="usw2-az2", efa=True)
        ImportedLustre(stack, "Given", file_system_id="fs-0123456789abcdef0", mount_name="abcdefgh",
                       security_group=group, settings=settings).metric_free_storage()
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        file_system_id: str,
        mount_name: str,
        security_group: ec2.ISecurityGroup,
        settings: Lustre,
    ) -> None:
        """Defines nothing: it only names.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            file_system_id: Its id.
            mount_name: Its mount name, as DescribeFileSystems prints it.
            security_group: A security group of its servers.
            settings: Its zone and mount, and whether it serves EFA.
        """
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        self.settings = settings
        self.file_system_id = file_system_id
        self.dns_name = f"{file_system_id}.fsx.{stack.region}.{stack.url_suffix}"
        self.mount_name = mount_name
        self.security_group = security_group
        self._clients = []


def _ports(settings: Lustre) -> list[Ports]:
    # FSx demands all traffic for EFA, for which no ports exist.
    return [ALL] if settings.efa else [Ports.of("tcp", text) for text in limits().lustre.ports]


def _open(
    scope: Construct, servers: ec2.ISecurityGroup, clients: ec2.ISecurityGroup, ports: Iterable[Ports]
) -> list[Traffic]:
    """Lustre connects both ways: servers call back their clients."""
    ends = {"FromClients": (clients, servers), "ToClients": (servers, clients)}
    return [
        Traffic(scope, name, source=source, target=target, ports=ports, description="Lustre, clients and servers")
        for name, (source, target) in ends.items()
    ]


def _configuration(settings: Lustre) -> fsx.CfnFileSystem.LustreConfigurationProperty:
    """The properties that differ by type: SSD has a throughput per TiB, intelligent tiering a total and a cache."""
    backups: dict[str, Any] = {}
    if settings.backups is not None:
        backups = {
            "automatic_backup_retention_days": settings.backups.retention_days,
            "daily_automatic_backup_start_time": settings.backups.start,
            # So that a backup is counted to the same environment on the bill.
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
    """Link a folder of the file system to an S3 prefix, with the events that keep both in step."""
    kind = fsx.CfnDataRepositoryAssociation
    imported = [event.upper() for event in repository.import_events]
    exported = [event.upper() for event in repository.export_events]
    kind(
        scope,
        # By the folder: another order of repositories renames none.
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
