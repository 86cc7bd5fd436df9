"""Shared file systems and buckets of an environment."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, StringConstraints, model_validator

from ..catalog.limits import limits
from .base import (
    BucketName,
    Cidr,
    FileSystemId,
    KmsKeyArn,
    MountPath,
    RouteTableId,
    S3Uri,
    SecurityGroupId,
    Settings,
    ZoneId,
)

ImportExportEvent = Literal["new", "changed", "deleted"]
# What pydantic reads as true; the scalars of a file are still text when defaults are derived.
_TRUE = ("true", "t", "yes", "y", "on", "1")


class DataRepository(Settings):
    """An S3 prefix that appears as a folder of the file system (FSx data repository association)."""

    path: MountPath
    """Folder of the file system, such as /datasets."""
    s3: S3Uri
    """The prefix it shows."""
    import_events: tuple[ImportExportEvent, ...] = Field(default=("new", "changed"), alias="import")
    """S3 changes that appear in the file system."""
    export_events: tuple[ImportExportEvent, ...] = Field(default=(), alias="export")
    """File changes that are written back to S3."""


class ReadCache(Settings):
    """SSD read cache of an intelligent-tiering file system."""

    mode: Literal["none", "proportional", "provisioned"] = "proportional"
    """none, sized by FSx with the throughput capacity, or of a size of your own."""
    size_gib: int | None = Field(default=None, ge=32)
    """GiB; only with mode provisioned."""


class Backups(Settings):
    """Automatic daily backups."""

    retention_days: int = Field(default=7, ge=1, le=90)
    """Days that a daily backup is kept."""
    start: Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")] = "05:00"
    """Start in UTC, HH:MM."""


class AdoptedLustre(Settings):
    """An existing FSx for Lustre file system."""

    id: FileSystemId
    """Its id."""
    mount_name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,8}$")]
    """Its mount name, as DescribeFileSystems prints it."""
    security_group: SecurityGroupId
    """A security group of it, to which Lustre's ports are opened from the nodes."""


class LustreClaim(Settings):
    """A volume of a Lustre file system and a claim of it, for pods that belong to no team."""

    namespace: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)] = "default"
    """Namespace of the claim. It has to be there, as `default` is."""
    path: MountPath | None = None
    """Folder that pods see, which has to be there; the whole file system when absent."""
    read_only: bool = False
    """Whether pods can only read."""


class NamedLustreClaim(NamedTuple):
    """A claim with where the file names it."""

    file_system: str
    name: str
    claim: LustreClaim


LustreClaimName = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63)]


def lustre_defaults(specified: Mapping[str, Any]) -> dict[str, Any]:
    """What a Lustre file system gets that says nothing of it, from what it does say.

    An SSD file system has the smallest capacity that throughput and EFA allow; one with intelligent tiering the
    smallest throughput capacity, the read cache that FSx sizes, and the fewest metadata operations. An existing one
    gets nothing, and values that validation will refuse lead to nothing.
    """
    facts = limits().lustre
    if specified.get("existing") is not None:
        return {}
    if specified.get("type") == "intelligent_tiering":
        results: dict[str, Any] = {
            "throughput_capacity": facts.tiering_throughput_step,
            "read_cache": {},
            "metadata_iops": facts.tiering_metadata_iops[0],
        }
    elif str(specified.get("efa", "false")).lower() not in _TRUE:
        results = {"capacity_gib": facts.capacity_first_gib}
    else:
        throughput = {str(step): step for step in facts.throughput}.get(str(specified.get("throughput", 250)))
        results = {"capacity_gib": facts.capacity_step(throughput, efa=True)} if throughput else {}
    return {name: value for name, value in results.items() if specified.get(name) is None}


class Lustre(Settings):
    """FSx for Lustre, deployment type PERSISTENT_2."""

    zone: ZoneId
    """Zone id. EFA needs the zone of the groups that mount it. Default: the cluster's first zone."""
    type: Literal["ssd", "intelligent_tiering"] = "ssd"
    """SSD of a fixed capacity, or intelligent tiering that grows and shrinks with the data."""
    capacity_gib: int | None = Field(default=None, ge=1200)
    """SSD capacity in GiB. Default: the smallest step that throughput and EFA allow."""
    throughput: int = 250
    """SSD throughput in MB/s per TiB: 125, 250, 500 or 1000."""
    throughput_capacity: int | None = None
    """Intelligent tiering: MB/s in all, 4000 or a multiple."""
    read_cache: ReadCache | None = None
    """Intelligent tiering: the SSD read cache. Default: proportional to the throughput capacity."""
    efa: bool = False
    """Serve clients over EFA (and GPUDirect Storage). Fixed at creation."""
    metadata_iops: int | Literal["automatic"] = "automatic"
    """Metadata operations per second, or sized by FSx with the capacity (SSD only)."""
    compression: Literal["lz4", "none"] = "lz4"
    """Compression of data at rest."""
    version: Literal["2.12", "2.15"] = "2.15"
    """Lustre version of the servers."""
    backups: Backups | None = None
    """Daily backups; not possible beside repositories."""
    repositories: tuple[DataRepository, ...] = Field(default=(), max_length=8)
    """S3 prefixes shown as folders; at most eight."""
    mount: MountPath = "/fsx"
    """Where nodes and pods mount it."""
    maintenance: Annotated[str, StringConstraints(pattern=r"^[1-7]:([01][0-9]|2[0-3]):[0-5][0-9]$")] = "7:04:00"
    """Weekly maintenance start in UTC, day:HH:MM with Monday as 1."""
    claims: dict[LustreClaimName, LustreClaim] = {}
    """Volumes and claims of it in Kubernetes, by the claim's name, for pods without a team; only with EKS. Those of
    teams are under `access.storage`."""
    existing: AdoptedLustre | None = None
    """An existing file system to mount instead; zone and mount still apply."""

    # Here and not only for whole files, so that `Lustre(zone=…, efa=True)` in Python is what the same file says.
    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        return {**data, **lustre_defaults(data)} if isinstance(data, Mapping) else data


class AdoptedOpenZfs(Settings):
    """An existing FSx for OpenZFS file system."""

    id: FileSystemId
    """Its id. Nodes mount its root volume, `/fsx`."""
    security_group: SecurityGroupId
    """A security group of it, to which NFS's ports are opened from the nodes."""


class OpenZfs(Settings):
    """FSx for OpenZFS, for home folders."""

    zone: ZoneId
    """Zone id; with multi_az_1 that of the preferred server. Default: the cluster's first zone."""
    standby_zone: ZoneId | None = None
    """Only with multi_az_1, which needs it: zone id of the second server. A change replaces the file system."""
    endpoint_cidr: Cidr | None = None
    """Only with multi_az_1: range of the server's addresses, which overlaps no subnet. Default: one that FSx chooses
    from the VPC's ranges. A change replaces the file system."""
    route_tables: tuple[RouteTableId, ...] = ()
    """Only with multi_az_1: route tables of all subnets of nodes, where FSx keeps the way to the server that serves.
    Default: those that podwright makes; of an existing VPC they have to be given. A change may replace the file
    system."""
    capacity_gib: int = Field(default=512, ge=64, le=524288)
    """SSD capacity in GiB."""
    deployment: Literal["single_az_1", "single_az_2", "single_az_ha_1", "single_az_ha_2", "multi_az_1"] = "single_az_2"
    """Generation of its servers; with ha a second server takes over within the zone, with multi_az_1 in another zone,
    which has the data as well. A change replaces it."""
    throughput: int = 160
    """Throughput capacity in MB/s."""
    iops: int | Literal["automatic"] = "automatic"
    """SSD operations per second, or three for each GiB."""
    compression: Literal["lz4", "zstd", "none"] = "lz4"
    """Compression of what is written. A change replaces the file system, whose root volume holds it."""
    mount: MountPath = "/home"
    """Where nodes mount it."""
    backup_days: int = Field(default=7, ge=0, le=90)
    """Days that a daily backup is kept; 0 turns backups off."""
    existing: AdoptedOpenZfs | None = None
    """An existing file system to mount instead; zone and mount still apply."""

    @property
    def in_two_zones(self) -> bool:
        """Whether a second zone has a server and the data."""
        return self.deployment == "multi_az_1"


class Home(Settings):
    """Home folders shared by all nodes."""

    openzfs: OpenZfs
    """The file system behind them. Default: every default of its own."""


class Buckets(Settings):
    """S3 buckets of the environment. Each is created when no existing name is given."""

    lifecycle: BucketName | None = None
    """Existing bucket for lifecycle scripts; HyperPod's managed policy reads only names that begin with sagemaker-."""
    checkpoints: BucketName | None = None
    """Existing bucket for checkpoints."""


class Storage(Settings):
    """File systems and buckets. They outlive the cluster unless `protection: destroy` says otherwise."""

    kms_key: KmsKeyArn | None = None
    """Existing KMS key for file systems, volumes and buckets; a rotating key of ours when absent."""
    lustre: Lustre | None = None
    """The file system that all groups mount."""
    additional_lustre: dict[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,30}$")], Lustre] = {}
    """Further Lustre file systems by name, each with a mount of its own."""
    home: Home | None = None
    """Home folders."""
    buckets: Buckets = Buckets.model_construct()
    """Lifecycle and checkpoint buckets."""

    @property
    def lustres(self) -> dict[str, Lustre]:
        """All Lustre file systems by name; the main one is called `lustre`."""
        return ({"lustre": self.lustre} if self.lustre else {}) | self.additional_lustre

    @property
    def claims(self) -> tuple[NamedLustreClaim, ...]:
        """All claims of pods without a team."""
        return tuple(
            NamedLustreClaim(system, name, claim)
            for system, each in self.lustres.items()
            for name, claim in each.claims.items()
        )
