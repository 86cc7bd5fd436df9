# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""Amazon FSx: file systems and data repository associations, with the rules of the service.

It replaces moto's FSx, which accepts everything and has no associations. As in AWS, a file system has a network
interface in its subnet, so that subnet and its security groups cannot be deleted while it exists.

Sources: botocore 1.44.5's documentation of FSx (capacity, throughput, metadata, EFA, associations).
"""

import uuid
from dataclasses import dataclass, field
from typing import ClassVar

from moto.core.responses import ActionResult

from ..protocol.clients import Clients
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from ..protocol.service import OwnResponse, Refusal, refuse

# Capacity step in GiB of a file system with EFA, by MB/s/TiB of PERSISTENT_2 SSD storage.
_EFA_STEPS = {125: 38_400, 250: 19_200, 500: 9_600, 1000: 4_800}
# Maximum number of data repository associations of a file system.
_MOST_ASSOCIATIONS = 8


@dataclass
class FileSystem:
    """A file system as DescribeFileSystems returns it, and its network interfaces."""

    description: JsonObject
    interfaces: list[str] = field(default_factory=list)


class Fsx:
    """The file systems and associations of all regions."""

    def __init__(self, clients: Clients):
        self.clients = clients
        self.file_systems: dict[tuple[str, str], FileSystem] = {}
        self.associations: dict[tuple[str, str], JsonObject] = {}

    def find(self, region: str, identifier: str) -> FileSystem:
        """Return a file system. Raises FileSystemNotFound."""
        result = self.file_systems.get((region, identifier))
        if result is None:
            raise refuse("FileSystemNotFound", f"File system '{identifier}' does not exist.")
        return result

    def create(self, region: str, values: JsonObject, identifier: str = "") -> FileSystem:
        """Create a file system, with a random id unless one is given. Raises BadRequest."""
        kind = values["FileSystemType"]
        if kind == "LUSTRE":
            check_lustre(values)
        elif kind == "OPENZFS":
            check_openzfs(values)
        ec2 = self.clients.client("ec2", region)
        subnets = ec2.describe_subnets(SubnetIds=values["SubnetIds"])["Subnets"]
        if len({subnet["AvailabilityZoneId"] for subnet in subnets}) != len(subnets):
            raise _bad("the subnets of MULTI_AZ_1 have to be in two zones")
        identifier = identifier or f"fs-{uuid.uuid4().hex[:17]}"
        groups = {"Groups": values["SecurityGroupIds"]} if values.get("SecurityGroupIds") else {}
        about = f"Created by Amazon FSx for {identifier}"
        interfaces = [
            ec2.create_network_interface(SubnetId=subnet, Description=about, **groups)["NetworkInterface"]
            for subnet in values["SubnetIds"]
        ]
        ids = [interface["NetworkInterfaceId"] for interface in interfaces]
        description: JsonObject = {
            **{key: values[key] for key in ("FileSystemType", "StorageCapacity", "SubnetIds", "KmsKeyId", "Tags",
                                            "FileSystemTypeVersion", "NetworkType") if key in values},
            "FileSystemId": identifier, "OwnerId": self.clients.account, "CreationTime": now(),
            "StorageType": values.get("StorageType", "SSD"), "VpcId": subnets[0]["VpcId"], "Lifecycle": "AVAILABLE",
            "NetworkInterfaceIds": ids, "DNSName": f"{identifier}.fsx.{region}.amazonaws.com",
            "ResourceARN": f"arn:aws:fsx:{region}:{self.clients.account}:file-system/{identifier}",
        }  # fmt: skip
        if kind == "LUSTRE":
            description["LustreConfiguration"] = {
                **values.get("LustreConfiguration", {}),
                "MountName": uuid.uuid4().hex[:8],
            }
        elif kind == "OPENZFS":
            description["OpenZFSConfiguration"] = {
                **{
                    key: value
                    for key, value in values.get("OpenZFSConfiguration", {}).items()
                    if key != "RootVolumeConfiguration"
                },
                "RootVolumeId": f"fsvol-{uuid.uuid4().hex[:17]}",
            }
        self.file_systems[region, identifier] = FileSystem(description, ids)
        return self.file_systems[region, identifier]

    def delete(self, region: str, identifier: str) -> JsonObject:
        """Delete a file system with its interfaces and associations."""
        file_system = self.find(region, identifier)
        for interface in file_system.interfaces:
            self.clients.client("ec2", region).delete_network_interface(NetworkInterfaceId=interface)
        self.associations = {key: item for key, item in self.associations.items() if item["FileSystemId"] != identifier}
        del self.file_systems[region, identifier]
        return {"FileSystemId": identifier, "Lifecycle": "DELETING"}

    def associate(self, region: str, values: JsonObject) -> JsonObject:
        """Create a data repository association."""
        system = self.find(region, values["FileSystemId"]).description
        lustre = system.get("LustreConfiguration", {})
        existing = [item for item in self.associations.values() if item["FileSystemId"] == values["FileSystemId"]]
        if lustre.get("DeploymentType") == "SCRATCH_1" or system.get("StorageType") == "INTELLIGENT_TIERING":
            raise _bad("this file system takes no data repository associations")
        if int(lustre.get("AutomaticBackupRetentionDays", 0)) > 0:
            raise _bad("a file system with automatic backups takes no data repository associations")
        if len(existing) >= _MOST_ASSOCIATIONS:
            raise _bad(f"a file system takes at most {_MOST_ASSOCIATIONS} data repository associations")
        path = values.get("FileSystemPath", "/")
        if any(_overlap(path, item.get("FileSystemPath", "/")) for item in existing):
            raise _bad(f"the path {path} overlaps another association")
        identifier, owner = f"dra-{uuid.uuid4().hex[:17]}", values["FileSystemId"]
        item = {
            **values,
            "AssociationId": identifier,
            "Lifecycle": "AVAILABLE",
            "CreationTime": now(),
            "ResourceARN": f"arn:aws:fsx:{region}:{self.clients.account}:association/{owner}/{identifier}",
        }
        self.associations[region, identifier] = item
        return item


def _overlap(first: str, second: str) -> bool:
    # With a slash at the end, since /data2 is outside of /data.
    a, b = (path.rstrip("/") + "/" for path in (first, second))
    return a.startswith(b) or b.startswith(a)


def _bad(message: str) -> Refusal:
    return refuse("BadRequest", f"{message[0].upper()}{message[1:]} (sandbox)")


def check_openzfs(values: JsonObject) -> None:
    """Raise BadRequest for subnets and routes that this deployment type of OpenZFS does not accept."""
    settings = values["OpenZFSConfiguration"]
    if settings["DeploymentType"] == "MULTI_AZ_1":
        if len(values["SubnetIds"]) != 2 or settings.get("PreferredSubnetId") not in values["SubnetIds"]:
            raise _bad("MULTI_AZ_1 takes two subnets, and PreferredSubnetId that is one of them")
        return
    more = sorted({"PreferredSubnetId", "EndpointIpAddressRange", "RouteTableIds"} & settings.keys())
    if len(values["SubnetIds"]) != 1 or more:
        raise _bad(f"{settings['DeploymentType']} takes exactly one subnet, and none of {more}")


def check_lustre(values: JsonObject) -> None:
    """Check the rules of FSx for Lustre for a new file system. Raises BadRequest."""
    lustre, storage = values.get("LustreConfiguration", {}), values.get("StorageType", "SSD")
    deployment, capacity = lustre.get("DeploymentType", "SCRATCH_1"), values.get("StorageCapacity")
    efa, metadata = bool(lustre.get("EfaEnabled")), lustre.get("MetadataConfiguration")
    if len(values["SubnetIds"]) != 1:
        raise _bad("a Lustre file system has exactly one subnet")
    if (efa or metadata) and deployment != "PERSISTENT_2":
        raise _bad("EfaEnabled and MetadataConfiguration need deployment type PERSISTENT_2")
    if storage == "INTELLIGENT_TIERING":
        _check_tiering(values)
        return
    if capacity is None:
        raise _bad("StorageCapacity is required for this storage type")
    if "ThroughputCapacity" in lustre or "DataReadCacheConfiguration" in lustre:
        raise _bad("ThroughputCapacity and DataReadCacheConfiguration are for storage type INTELLIGENT_TIERING")
    if deployment == "PERSISTENT_2":
        throughput = lustre.get("PerUnitStorageThroughput")
        if throughput not in _EFA_STEPS:
            raise _bad(f"PerUnitStorageThroughput {throughput} is not one of {sorted(_EFA_STEPS)}")
        if efa and not metadata:
            raise _bad("EfaEnabled on SSD storage needs a MetadataConfiguration")
        if efa and capacity % _EFA_STEPS[throughput]:
            raise _bad(
                f"StorageCapacity {capacity} is not a multiple of {_EFA_STEPS[throughput]} GiB, the step with EFA "
                f"at {throughput} MB/s/TiB"
            )
    if capacity != 1200 and capacity % 2400:
        raise _bad(f"StorageCapacity {capacity} is neither 1200 nor a multiple of 2400 GiB")


def _check_tiering(values: JsonObject) -> None:
    lustre = values["LustreConfiguration"]
    if lustre.get("DeploymentType") != "PERSISTENT_2":
        raise _bad("storage type INTELLIGENT_TIERING needs deployment type PERSISTENT_2")
    if "StorageCapacity" in values or "PerUnitStorageThroughput" in lustre:
        raise _bad("StorageCapacity and PerUnitStorageThroughput are not for storage type INTELLIGENT_TIERING")
    if not lustre.get("ThroughputCapacity") or lustre["ThroughputCapacity"] % 4000:
        raise _bad("ThroughputCapacity must be a multiple of 4000 MB/s")
    if "DataReadCacheConfiguration" not in lustre:
        raise _bad("DataReadCacheConfiguration is required for storage type INTELLIGENT_TIERING")


class FsxResponse(OwnResponse):
    """The FSx API."""

    api_name = "fsx"
    service: ClassVar[Fsx]

    def create_file_system(self) -> ActionResult:
        return ActionResult({"FileSystem": self.service.create(self.region, self.arguments()).description})

    def describe_file_systems(self) -> ActionResult:
        requested = self._get_param("FileSystemIds")
        if requested:
            return ActionResult(
                {"FileSystems": [self.service.find(self.region, name).description for name in requested]}
            )
        return self.page(
            [item.description for (region, _), item in self.service.file_systems.items() if region == self.region],
            "FileSystems",
        )

    def update_file_system(self) -> ActionResult:
        values = self.arguments()
        description = self.service.find(self.region, values["FileSystemId"]).description
        for key in ("LustreConfiguration", "OpenZFSConfiguration"):
            if key in values:
                description[key] = {**description.get(key, {}), **values[key]}
        for key in ("StorageCapacity", "FileSystemTypeVersion"):
            if key in values:
                if key == "StorageCapacity" and values[key] < description[key]:
                    raise _bad(f"StorageCapacity cannot shrink from {description[key]} to {values[key]} GiB")
                description[key] = values[key]
        return ActionResult({"FileSystem": description})

    def delete_file_system(self) -> ActionResult:
        return ActionResult(self.service.delete(self.region, self._get_param("FileSystemId")))

    def describe_backups(self) -> ActionResult:
        # The sandbox makes no backups by schedule.
        return ActionResult({"Backups": []})

    def create_data_repository_association(self) -> ActionResult:
        return ActionResult({"Association": self.service.associate(self.region, self.arguments())})

    def describe_data_repository_associations(self) -> ActionResult:
        """Return data repository associations by id or by file system."""
        systems = {
            value
            for item in self._get_param("Filters") or []
            if item["Name"] == "file-system-id"
            for value in item["Values"]
        }
        requested = set(self._get_param("AssociationIds") or [])
        return self.page(
            [
                item
                for (region, name), item in self.service.associations.items()
                if region == self.region
                and (not requested or name in requested)
                and (not systems or item["FileSystemId"] in systems)
            ],
            "Associations",
        )

    def update_data_repository_association(self) -> ActionResult:
        item = self._association()
        item.update({key: value for key, value in self.arguments().items() if key in ("S3", "ImportedFileChunkSize")})
        return ActionResult({"Association": item})

    def delete_data_repository_association(self) -> ActionResult:
        item = self._association()
        del self.service.associations[self.region, item["AssociationId"]]
        return ActionResult({"AssociationId": item["AssociationId"], "Lifecycle": "DELETING"})

    def _association(self) -> JsonObject:
        result = self.service.associations.get((self.region, self._get_param("AssociationId")))
        if result is None:
            raise refuse(
                "DataRepositoryAssociationNotFound",
                f"Data repository association '{self._get_param('AssociationId')}' does not exist (sandbox)",
            )
        return result

    def list_tags_for_resource(self) -> ActionResult:
        tags = [
            item.description.get("Tags", [])
            for item in self.service.file_systems.values()
            if item.description["ResourceARN"] == self._get_param("ResourceARN")
        ]
        return ActionResult({"Tags": tags[0] if tags else []})
