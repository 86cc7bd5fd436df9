"""Compute quotas and scheduler configurations: SageMaker's side of task governance.

Both have an id, a version that each update must name, and a status that is calculated from the time of the last
request. Source: botocore 1.44.5 service model of SageMaker (shapes, status values, errors). Messages are podwright's.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from ...config.settings.governance.task_governance import ADDON
from ..eks.service import Eks
from ..eks.task_governance import apply_policy, apply_quota, installed, remove_quota
from ..eks.task_governance import settings as kueue_settings
from ..hyperpod.cluster import Cluster, Timing
from ..kubernetes.cluster_objects import ClusterObjects
from ..protocol.arns import account_of
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject, tags_of
from ..protocol.service import refuse

Kind = Literal["ComputeQuota", "ClusterSchedulerConfig"]
_WORDS: dict[Kind, str] = {"ComputeQuota": "compute-quota", "ClusterSchedulerConfig": "cluster-scheduler-config"}
_SETTINGS = ("ComputeQuotaConfig", "ComputeQuotaTarget", "SchedulerConfig", "ActivationState", "Description")
_SECONDS = 0.4


@dataclass
class SchedulerObject:
    """One quota or configuration."""

    kind: Kind
    region: str
    name: str
    cluster_arn: str
    settings: JsonObject
    tags: dict[str, str]
    verb: Literal["Creat", "Updat", "Delet"] = "Creat"
    until: datetime = field(default_factory=now)
    version: int = 1
    created: datetime = field(default_factory=now)
    modified: datetime = field(default_factory=now)
    identifier: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    @property
    def arn(self) -> str:
        """Its ARN."""
        return f"arn:aws:sagemaker:{self.region}:{account_of(self.cluster_arn)}:{_WORDS[self.kind]}/{self.identifier}"

    def status(self, timestamp: datetime) -> str:
        """Its status."""
        return f"{self.verb}{'ing' if timestamp < self.until else 'ed'}"

    def answer(self, timestamp: datetime) -> JsonObject:
        """Return it in the form of the Describe and List operations."""
        return {
            f"{self.kind}Arn": self.arn,
            f"{self.kind}Id": self.identifier,
            f"{self.kind}Version": self.version,
            "Name": self.name,
            "ClusterArn": self.cluster_arn,
            "Status": self.status(timestamp),
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
            **self.settings,
        }


class Schedulers:
    """The quotas and configurations of all regions. `find_cluster` raises for an unknown cluster."""

    def __init__(self, eks: Eks, find_cluster: Callable[[str, str], Cluster], timing: Timing):
        self.eks, self.find_cluster, self.timing = eks, find_cluster, timing
        self.objects: dict[str, SchedulerObject] = {}

    def all(self, kind: Kind, region: str) -> list[SchedulerObject]:
        """Return those of a kind in a region, except for deleted ones."""
        for arn, item in list(self.objects.items()):
            if item.status(now()) == "Deleted":
                del self.objects[arn]
        return [item for item in self.objects.values() if (item.kind, item.region) == (kind, region)]

    def find(self, kind: Kind, region: str, identifier: str) -> SchedulerObject:
        """Return one by its id. Raises ResourceNotFound."""
        for item in self.all(kind, region):
            if item.identifier == identifier:
                return item
        raise refuse("ResourceNotFound", f"{kind} with id {identifier} not found (sandbox)")

    def create(self, kind: Kind, region: str, values: JsonObject) -> SchedulerObject:
        """Create one with the add-on's objects. Raises the API's errors."""
        objects = self._objects(region, values["ClusterArn"])
        # Kueue's webhooks refuse all objects until its controller runs.
        if not installed(objects):
            raise refuse(
                "ValidationException",
                "The task governance add-on is not installed on the cluster, or its Kueue is not ready (sandbox)",
            )
        settings = {name: values[name] for name in _SETTINGS if name in values}
        for other in self.all(kind, region):
            if other.cluster_arn == values["ClusterArn"]:
                self._refuse_double(other, values)
        made = SchedulerObject(kind, region, values["Name"], values["ClusterArn"], settings, tags_of(values))
        self._apply(region, values["ClusterArn"], {}, settings)
        self._begin(made, "Creat")
        self.objects[made.arn] = made
        return made

    def update(self, kind: Kind, region: str, values: JsonObject) -> SchedulerObject:
        """Change one. The request must name the latest version, and no operation may be in progress."""
        item = self.find(kind, region, values[f"{kind}Id"])
        target = int(values["TargetVersion"])
        # The version prevents a change that is based on an older state.
        if target != item.version or now() < item.until:
            raise refuse(
                "ConflictException",
                f"{kind} {item.name} is {item.status(now())} in version {item.version}, and the request is about "
                f"version {target} (sandbox)",
            )
        before = item.settings
        item.settings = before | {name: values[name] for name in _SETTINGS if name in values}
        self._apply(region, item.cluster_arn, before, item.settings)
        item.version += 1
        self._begin(item, "Updat")
        return item

    def delete(self, kind: Kind, region: str, identifier: str) -> None:
        """Delete one with the add-on's objects."""
        item = self.find(kind, region, identifier)
        if now() < item.until:
            raise refuse("ConflictException", f"{kind} {item.name} is {item.status(now())} (sandbox)")
        objects = self._objects(region, item.cluster_arn)
        if item.kind == "ComputeQuota":
            remove_quota(objects, item.settings)
        else:
            apply_policy(objects, item.settings["SchedulerConfig"], {})
        self._begin(item, "Delet")

    def _begin(self, item: SchedulerObject, verb: Literal["Creat", "Updat", "Delet"]) -> None:
        item.verb, item.modified = verb, now()
        item.until = item.modified + timedelta(seconds=_SECONDS * self.timing.scale)

    def _refuse_double(self, other: SchedulerObject, values: JsonObject) -> None:
        team = other.settings.get("ComputeQuotaTarget", {}).get("TeamName")
        if other.name == values["Name"]:
            raise refuse("ConflictException", f"{other.kind} {other.name} already exists on the cluster (sandbox)")
        if team is None or team == values["ComputeQuotaTarget"]["TeamName"]:
            what = f"team {team}" if team else "the cluster"
            raise refuse("ConflictException", f"{other.kind} {other.name} is there for {what} already (sandbox)")

    def _apply(self, region: str, cluster_arn: str, before: JsonObject, after: JsonObject) -> None:
        """Apply a compute quota or the cluster's policy."""
        objects = self._objects(region, cluster_arn)
        if "ComputeQuotaTarget" in after:
            apply_quota(objects, after)
        else:
            apply_policy(objects, before.get("SchedulerConfig", {}), after["SchedulerConfig"])
            self.eks.control_planes.start_operators(
                region, self._eks_name(region, cluster_arn), ADDON, kueue_settings(after["SchedulerConfig"])
            )

    def _objects(self, region: str, cluster_arn: str) -> ClusterObjects:
        return self.eks.kubernetes.objects(region, self._eks_name(region, cluster_arn))

    def _eks_name(self, region: str, cluster_arn: str) -> str:
        cluster = self.find_cluster(region, cluster_arn)
        eks = self.eks.by_arn(cluster.request.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", ""))
        if eks is None:
            raise refuse("ValidationException", f"Cluster {cluster.name} is not orchestrated by Amazon EKS (sandbox)")
        return eks.description["name"]
