"""Creates the existing resources that an environment file refers to, an operation of the sandbox.

`PUT /podwright/adopted` takes a JSON object of `Adopted` and creates missing resources with the ids that it contains.
"""

import ipaddress
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from moto.ec2 import ec2_backends
from moto.ec2.models import security_groups, subnets, vpcs
from moto.kms import kms_backends
from moto.kms import models as kms
from pydantic import BaseModel, ConfigDict, ValidationError
from werkzeug.wrappers import Request, Response

from ..eks.service import Eks
from ..protocol.known_names import check_known
from ..protocol.service import Refusal
from ..services.fsx import Fsx
from ..services.zones import ZONE_IDS

PATH = "/podwright/adopted"
_ADMINISTRATORS: Final = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
_POLL_SECONDS: Final = 0.2
# Prefix length of a subnet for which the file has no range.
_PREFIX: Final = 28


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Subnet(_Part):
    """A subnet in a zone, by the zone's id."""

    id: str
    zone: str
    cidr: str | None = None


class Vpc(_Part):
    """A VPC with its subnets and security groups."""

    id: str
    cidr: str
    subnets: list[Subnet]
    security_groups: list[str]


class Cluster(_Part):
    """An EKS cluster with an administrator's role and existing namespaces."""

    name: str
    security_group: str
    authentication: str
    admin: str
    namespaces: list[str]


class FileSystem(_Part):
    """A Lustre file system."""

    id: str
    mount_name: str
    zone: str
    security_group: str


class Adopted(_Part):
    """The existing resources of an environment, in one region."""

    region: str
    vpc: Vpc | None = None
    cluster: Cluster | None = None
    file_systems: list[FileSystem] = []
    keys: list[str] = []


class AdoptedResources:
    """Creates the resources in an account: in its EKS and FSx, and in moto's EC2 and KMS."""

    def __init__(self, eks: Eks, fsx: Fsx):
        self.eks, self.fsx, self.clients = eks, fsx, eks.clients

    def serve(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve one request."""
        request = Request(environ)
        try:
            adopted = Adopted.model_validate_json(request.get_data())
            check_known("region", [adopted.region], ZONE_IDS)
            made = list(self._make(adopted))
        except (ValidationError, ValueError, Refusal) as error:
            return Response(f"{error}\n", 400)(environ, start_response)
        return Response(json.dumps(made), content_type="application/json")(environ, start_response)

    def _make(self, adopted: Adopted) -> Iterator[str]:
        """Create missing resources. Yields their ids."""
        region = adopted.region
        for arn in adopted.keys:
            yield from self._key(region, arn)
        if vpc := adopted.vpc:
            yield from self._vpc(region, vpc)
            for system in adopted.file_systems:
                yield from self._file_system(region, vpc, system)
            if adopted.cluster:
                yield from self._cluster(region, vpc, adopted.cluster)

    def _key(self, region: str, arn: str) -> Iterator[str]:
        backend, identifier = kms_backends[self.clients.account][region], arn.rpartition("/")[2]
        if identifier in backend.keys:
            return
        with _named(kms, "generate_key_id", identifier):
            backend.create_key("", "ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT", "A key that exists already", [])
        yield arn

    def _vpc(self, region: str, vpc: Vpc) -> Iterator[str]:
        """Create a VPC with its subnets and groups. Yields the ids of missing resources."""
        backend = ec2_backends[self.clients.account][region]
        if vpc.id not in backend.vpcs:
            with _named(vpcs, "random_vpc_id", vpc.id):
                backend.create_vpc(vpc.cidr)
            self.clients.client("ec2", region).modify_vpc_attribute(VpcId=vpc.id, EnableDnsHostnames={"Value": True})
            yield vpc.id
        existing = {subnet.id for each in backend.subnets.values() for subnet in each.values()}
        taken = [subnet.cidr for subnet in vpc.subnets if subnet.cidr]
        for subnet in [subnet for subnet in vpc.subnets if subnet.id not in existing]:
            if not subnet.cidr:
                taken.append(_free(vpc.cidr, taken))
            zone = next((zone for zone in backend.describe_availability_zones() if zone.zone_id == subnet.zone), None)
            if zone is None:
                raise ValueError(f"{region} has no zone {subnet.zone}")
            with _named(subnets, "random_subnet_id", subnet.id):
                backend.create_subnet(vpc.id, subnet.cidr or taken[-1], availability_zone=zone.name)
            yield subnet.id
        for group in vpc.security_groups:
            if backend.get_security_group_from_id(group) is None:
                with _named(security_groups, "random_security_group_id", group):
                    backend.create_security_group(group, "A security group that exists already", vpc.id)
                yield group

    def _file_system(self, region: str, vpc: Vpc, system: FileSystem) -> Iterator[str]:
        if (region, system.id) in self.fsx.file_systems:
            return
        values = {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": 1200,
            "SubnetIds": [next(subnet.id for subnet in vpc.subnets if subnet.zone == system.zone)],
            "SecurityGroupIds": [system.security_group],
            "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
        }
        made = self.fsx.create(region, values, system.id)
        made.description["LustreConfiguration"]["MountName"] = system.mount_name
        yield system.id

    def _cluster(self, region: str, vpc: Vpc, cluster: Cluster) -> Iterator[str]:
        """Create a cluster, and wait until its API server answers."""
        if (region, cluster.name) in self.eks.clusters:
            return
        values = {
            "name": cluster.name,
            "roleArn": cluster.admin,
            "accessConfig": {"authenticationMode": cluster.authentication},
            "resourcesVpcConfig": {"subnetIds": [subnet.id for subnet in vpc.subnets]},
        }
        description = self.eks.create(region, values, cluster.admin, cluster.security_group).description
        while description["status"] == "CREATING":
            time.sleep(_POLL_SECONDS)
        if description["status"] != "ACTIVE":
            raise ValueError(f"the EKS cluster {cluster.name} is {description['status']}: {description['health']}")
        eks = self.clients.client("eks", region)
        principal = {"clusterName": cluster.name, "principalArn": cluster.admin}
        eks.create_access_entry(**principal)
        eks.associate_access_policy(**principal, policyArn=_ADMINISTRATORS, accessScope={"type": "cluster"})
        objects = self.eks.kubernetes.objects(region, cluster.name)
        for name in cluster.namespaces:
            objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield cluster.name


@contextmanager
def _named(module: Any, function: str, identifier: str) -> Iterator[None]:
    """Let moto use this id for the next resource of this thread."""
    here, usual = threading.get_ident(), getattr(module, function)
    chosen: Callable[..., str] = lambda *arguments: (  # noqa: E731
        identifier if threading.get_ident() == here else usual(*arguments)
    )
    with patch.object(module, function, chosen):
        yield


def _free(cidr: str, taken: list[str]) -> str:
    """Return the last small range of a network that overlaps no used range."""
    others = [ipaddress.ip_network(each) for each in taken]
    network = ipaddress.ip_network(cidr)
    count = 2 ** (_PREFIX - network.prefixlen)
    for index in reversed(range(count)):
        candidate = ipaddress.ip_network((int(network.network_address) + index * 2 ** (32 - _PREFIX), _PREFIX))
        if not any(candidate.overlaps(other) for other in others):
            return str(candidate)
    raise ValueError(f"{cidr} has no room for another subnet")
