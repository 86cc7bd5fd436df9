"""Amazon EKS: clusters, add-ons, access entries and pod identity associations.

A real control plane or a store keeps a cluster's objects. moto's EKS lacks access entries, add-ons and pod identity, so
this service replaces it completely.
"""

import base64
import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...config.errors import CommandError
from ...planning.cost.cost_tags import ENVIRONMENT_TAG
from ..kubernetes.clusters import Kubernetes
from ..protocol.clients import Clients
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from ..protocol.service import refuse
from .control_planes import ControlPlanes

# EKS's default changes. This is the newest version in HyperPod's documentation of November 2026.
_DEFAULT_VERSION = "1.34"


@dataclass
class EksCluster:
    """One cluster with its add-ons, entries and associations, as answers of the API."""

    description: JsonObject
    addons: dict[str, JsonObject] = field(default_factory=dict)
    entries: dict[str, JsonObject] = field(default_factory=dict)
    policies: dict[str, dict[str, JsonObject]] = field(default_factory=dict)
    identities: dict[str, JsonObject] = field(default_factory=dict)
    updates: dict[str, JsonObject] = field(default_factory=dict)
    interfaces: list[str] = field(default_factory=list)
    creator: str = ""
    """ARN of the creator, an administrator unless the request excludes that."""


class Eks:
    """The clusters of all regions."""

    def __init__(
        self, clients: Clients, kubernetes: Kubernetes, api: str, authority: str, control_planes: ControlPlanes
    ):
        self.clients, self.kubernetes, self.api, self.authority = clients, kubernetes, api, authority
        self.clusters: dict[tuple[str, str], EksCluster] = {}
        self.control_planes = control_planes
        self.update_seconds = 1.0
        """Seconds of a version update; real clusters need ten minutes."""
        self.nodes: Callable[[str, str], list[JsonObject]] = lambda _region, _name: []
        """Returns the Node objects of a cluster, by region and name."""

    def cluster(self, region: str, name: str) -> EksCluster:
        """Return a cluster by name. Raises ResourceNotFoundException."""
        result = self.clusters.get((region, name))
        if result is None:
            raise refuse("ResourceNotFoundException", f"No cluster found for name: {name}.")
        return result

    def by_arn(self, arn: str) -> EksCluster | None:
        """Return the cluster with this ARN."""
        return next((cluster for cluster in self.clusters.values() if cluster.description["arn"] == arn), None)

    def create(self, region: str, values: JsonObject, creator: str, group: str = "") -> EksCluster:
        """Create a cluster with its security group, unless there is one, and its interfaces in its subnets."""
        name, vpc = values["name"], values["resourcesVpcConfig"]
        if (region, name) in self.clusters:
            raise refuse("ResourceInUseException", f"Cluster already exists with name: {name}")
        try:
            real = self.control_planes.becomes_real(_environment(values))
        except CommandError as error:
            raise refuse("InvalidRequestException", f"{error} (sandbox)\n    → {error.hint}") from None
        subnets = self._subnets(region, vpc["subnetIds"])
        arn = f"arn:aws:eks:{region}:{self.clients.account}:cluster/{name}"
        ec2, vpc_id = self.clients.client("ec2", region), subnets[0]["VpcId"]
        if not group:
            group = ec2.create_security_group(
                GroupName=f"eks-cluster-sg-{name}-{uuid.uuid4().int % 10**9}",
                VpcId=vpc_id,
                Description="EKS created security group applied to ENI that is attached to EKS Control Plane master "
                "nodes",
            )["GroupId"]
        identity = uuid.uuid4().hex.upper()
        access = {
            # The API's default, which HyperPod does not support.
            "authenticationMode": "CONFIG_MAP",
            "bootstrapClusterCreatorAdminPermissions": True,
            **values.get("accessConfig", {}),
        }
        description: JsonObject = {
            **{
                key: values[key]
                for key in (
                    "name",
                    "roleArn",
                    "tags",
                    "encryptionConfig",
                    "logging",
                    "upgradePolicy",
                    "zonalShiftConfig",
                    "computeConfig",
                    "storageConfig",
                    "deletionProtection",
                    "remoteNetworkConfig",
                )
                if key in values
            },
            "version": values.get("version", _DEFAULT_VERSION),
            "arn": arn,
            "createdAt": now(),
            "status": "ACTIVE",
            "platformVersion": "eks.1",
            "accessConfig": access,
            "endpoint": f"{self.api}{region}/{name}",
            "certificateAuthority": {"data": self.authority},
            "health": {"issues": []},
            "identity": {"oidc": {"issuer": f"https://oidc.eks.{region}.amazonaws.com/id/{identity}"}},
            "kubernetesNetworkConfig": {
                "serviceIpv4Cidr": "172.20.0.0/16",
                "ipFamily": "ipv4",
                **values.get("kubernetesNetworkConfig", {}),
            },
            "resourcesVpcConfig": {
                "endpointPublicAccess": True,
                "endpointPrivateAccess": False,
                "publicAccessCidrs": ["0.0.0.0/0"],
                **vpc,
                "vpcId": vpc_id,
                "clusterSecurityGroupId": group,
            },
        }
        cluster = EksCluster(description, creator=creator)
        cluster.interfaces = [
            ec2.create_network_interface(SubnetId=subnet["SubnetId"], Groups=[group], Description=f"Amazon EKS {name}")[
                "NetworkInterface"
            ]["NetworkInterfaceId"]
            # EKS has interfaces in at least two zones, however many subnets the request names.
            for subnet in subnets[:2]
        ]
        self.clusters[region, name] = cluster
        if not real:
            self.kubernetes.open(region, name, description["version"])
        else:
            # CreateCluster answers before the control plane exists; clients wait with DescribeCluster.
            description |= {"status": "CREATING", "endpoint": "", "certificateAuthority": {}}
            threading.Thread(target=self.start, args=(region, name), daemon=True, name=f"starts {name}").start()
        return cluster

    def start(self, region: str, name: str) -> None:
        """Start a cluster's real control plane. The cluster becomes ACTIVE when its API server answers."""
        description = self.cluster(region, name).description
        try:
            plane = self.control_planes.start(region, name, description["version"], _environment(description))
        except (CommandError, OSError) as error:
            logging.exception("the control plane of %s did not start", name)
            hint = f"\n    → {error.hint}" if isinstance(error, CommandError) and error.hint else ""
            issue = {"code": "InternalFailure", "message": f"{error} (sandbox){hint}", "resourceIds": [name]}
            description |= {"status": "FAILED", "health": {"issues": [issue]}}
            return
        self.kubernetes.connect(region, name, plane.objects)
        authority = base64.b64encode(plane.authority).decode()
        description |= {"endpoint": plane.endpoint, "certificateAuthority": {"data": authority}, "status": "ACTIVE"}
        description["health"] = {"issues": []}
        # The installed version, which may have another minor version than the cluster.
        description["platformVersion"] = f"kubernetes.{plane.version}"

    def control_plane(self, name: str) -> JsonObject:
        """Return a cluster's present or future kind, `real` or `store`, and its missing parts.

        An existing real cluster also has `real_nodes`, the number of its real nodes, and `why_simulated`.

        Args:
            name: Name of the cluster or its environment.
        """
        planes = self.control_planes
        described = {at: cluster.description for at, cluster in list(self.clusters.items())}
        clusters = [at for at, item in described.items() if name in (item["name"], _environment(item))]
        if clusters:
            real = any(planes.is_real(*at) for at in clusters)
        else:
            real = planes.new_clusters != "store" and (planes.new_clusters == "real" or not planes.missing(name))
        asked = real or (not clusters and planes.new_clusters == "installed")
        nodes = dict[str, Any]()
        if clusters and real:
            granted = planes.granted_nodes(*clusters[0])
            nodes = {"real_nodes": granted.count, "why_simulated": granted.why_not_more}
        missing = planes.missing(name) if asked else []
        return {"kubernetes": "real" if real else "store", "missing": missing} | nodes

    def resume(self) -> list[str]:
        """Start at the same time all control planes that ran when the sandbox was stopped, and wait for them.

        Returns:
            Reasons of those that did not start. They start with the sandbox once the reason is fixed.
        """
        real = [at for at in self.clusters if self.control_planes.is_real(*at)]
        threads = [threading.Thread(target=self.start, args=at) for at in real]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        described = [self.clusters[at].description for at in real]
        return [
            f"the cluster {item['name']} has no Kubernetes API: {item['health']['issues'][0]['message']}"
            for item in described
            if item["status"] == "FAILED"
        ]

    def delete(self, region: str, name: str) -> JsonObject:
        """Delete a cluster with its resources in the VPC."""
        cluster = self.cluster(region, name)
        # CloudFormation must be able to roll back a cluster that never became ACTIVE.
        if cluster.description.get("deletionProtection") and (region, name) in self.kubernetes.clusters:
            raise refuse(
                "InvalidRequestException", "Cluster cannot be deleted while deletion protection is enabled (sandbox)"
            )
        ec2 = self.clients.client("ec2", region)
        # A security group cannot be deleted while an interface uses it.
        for interface in cluster.interfaces:
            ec2.delete_network_interface(NetworkInterfaceId=interface)
        ec2.delete_security_group(GroupId=cluster.description["resourcesVpcConfig"]["clusterSecurityGroupId"])
        self.kubernetes.close(region, name)
        self.control_planes.delete(region, name)
        del self.clusters[region, name]
        return {**cluster.description, "status": "DELETING"}

    def _subnets(self, region: str, identifiers: list[str]) -> list[JsonObject]:
        subnets = self.clients.client("ec2", region).describe_subnets(SubnetIds=identifiers)["Subnets"]
        if len({subnet["AvailabilityZoneId"] for subnet in subnets}) < 2:
            raise refuse("InvalidParameterException", "Subnets specified must be in at least two different AZs")
        return subnets


def _environment(cluster: JsonObject) -> str:
    """Return the environment in a cluster's tags; the cluster's name if podwright did not create it."""
    return cluster.get("tags", {}).get(ENVIRONMENT_TAG, cluster["name"])
