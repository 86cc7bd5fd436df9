"""The CDK's kubectl and Helm provider as a double: manifests and charts go to the cluster's objects, no Lambda runs.

Source of the properties: the kubectl-provider handler of aws-cdk-lib 2.275.0.
"""

import json
import tempfile
import uuid
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ....config.errors import CommandError
from ...eks.service import Eks
from ...kubernetes.cluster_objects import ApiError, ClusterObjects, Release
from ...protocol.json_objects import JsonObject
from .base import HandlerError, Outcome, Provider, Request

# What `kubectl apply --prune` looks for without an allow list of its own, namespaces last; everything else stays.
# Endpoints are left out: they have the labels of their Service, and kubectl prunes only what was applied.
# Source: kubectl 1.35, default list of pruned resources.
_PRUNED: dict[str, tuple[str, ...]] = {
    "apps/v1": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "batch/v1": ("CronJob", "Job"),
    "networking.k8s.io/v1": ("Ingress",),
    "v1": (
        *("ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "Pod", "ReplicationController", "Secret"),
        *("Service", "Namespace"),
    ),
}


class KubectlResource(ABC):
    """What the handlers below share: the cluster's objects and the words of failures."""

    eks: Mapping[str, Eks]
    """The clusters, by account; set once when the server starts."""

    def create(self, request: Request) -> Outcome:
        """Carry out a Create."""
        return Outcome(str(uuid.uuid4()), self._guarded(request, "Create"))

    def update(self, request: Request) -> Outcome:
        """Carry out an Update."""
        return Outcome(request.physical_id, self._guarded(request, "Update"))

    def delete(self, request: Request) -> None:
        """Carry out a Delete; a cluster that is gone took everything along."""
        if (request.region, request.properties["ClusterName"]) in self._eks(request).clusters:
            self._guarded(request, "Delete")

    @abstractmethod
    def run(self, request: Request, objects: ClusterObjects, kind: str) -> JsonObject:
        """Do it; returns the attributes."""

    def _eks(self, request: Request) -> Eks:
        return self.eks[request.clients.account]

    def _guarded(self, request: Request, kind: str) -> JsonObject:
        try:
            self._authorize(request)
            objects = self._eks(request).kubernetes.objects(request.region, request.properties["ClusterName"])
            return self.run(request, objects, kind)
        except ApiError as error:
            raise _failed(f"Error from server ({error.reason}): {error}") from error
        except CommandError as error:
            raise _failed(str(error)) from error

    def _authorize(self, request: Request) -> None:
        """The role of the kubectl function needs an access entry on the cluster, as in AWS."""
        client = request.client("lambda")
        framework = client.get_function(FunctionName=request.properties["ServiceToken"])["Configuration"]
        handler = framework.get("Environment", {}).get("Variables", {}).get("USER_ON_EVENT_FUNCTION_ARN")
        role = (client.get_function(FunctionName=handler)["Configuration"] if handler else framework)["Role"]
        if role not in self._eks(request).cluster(request.region, request.properties["ClusterName"]).entries:
            raise ApiError(
                401,
                "Unauthorized",
                f"the server has asked for the client to provide credentials; {role} has no access entry (sandbox)",
            )


def _is_set(request: Request, flag: str) -> bool:
    return str(request.properties.get(flag, "false")).lower() == "true"


def _failed(message: str) -> HandlerError:
    return HandlerError(
        f"Received response status [FAILED] from custom resource. Message returned: Error: {message} "
        f"(RequestId: {uuid.uuid4()})"
    )


class Manifest(KubectlResource):
    """Custom::AWSCDK-EKS-KubernetesResource: `kubectl create`, `apply --prune` and `delete`."""

    def run(self, request: Request, objects: ClusterObjects, kind: str) -> JsonObject:
        """Apply or delete the manifests."""
        manifests: list[JsonObject] = json.loads(request.properties["Manifest"])
        if kind == "Delete":
            for manifest in reversed(manifests):
                objects.remove(manifest)
            return {}
        write = objects.create if kind == "Create" and not _is_set(request, "Overwrite") else objects.apply
        retained = {write(manifest)["metadata"]["uid"] for manifest in manifests}
        label = request.properties.get("PruneLabel")
        if kind == "Update" and label:
            self._prune(objects, label, retained)
        return {}

    def _prune(self, objects: ClusterObjects, label: str, retained: set[str]) -> None:
        """Remove what has the label and is not retained, by uid."""
        for api_version, kinds in _PRUNED.items():
            for kind in kinds:
                for item in objects.all(api_version, kind, labels=label):
                    if item["metadata"]["uid"] not in retained:
                        objects.remove(item)


class Patch(KubectlResource):
    """Custom::AWSCDK-EKS-KubernetesPatch."""

    def run(self, request: Request, objects: ClusterObjects, kind: str) -> JsonObject:
        """Apply the patch, or on delete the one that restores."""
        properties = request.properties
        resource, _, name = properties["ResourceName"].partition("/")
        current = objects.named(resource, name, properties["ResourceNamespace"])
        change = json.loads(properties["RestorePatchJson" if kind == "Delete" else "ApplyPatchJson"])
        objects.patch(current, change, properties.get("PatchType", "strategic"))
        return {}


class ObjectValue(KubectlResource):
    """Custom::AWSCDK-EKS-KubernetesObjectValue: reads one field as it is now, and does not wait for it."""

    def run(self, request: Request, objects: ClusterObjects, kind: str) -> JsonObject:
        """Read the value."""
        if kind == "Delete":
            return {}
        properties = request.properties
        value: Any = objects.named(properties["ObjectType"], properties["ObjectName"], properties["ObjectNamespace"])
        for part in properties["JsonPath"].strip("{}.").split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            raise ApiError(
                408,
                "Timeout",
                f"Timeout waiting for output from kubectl command: {properties['JsonPath']} of "
                f"{properties['ObjectType']}/{properties['ObjectName']} is not set",
            )
        return {"Value": value if isinstance(value, str) else json.dumps(value)}


class HelmChart(KubectlResource):
    """Custom::AWSCDK-EKS-HelmChart: `helm upgrade --install` and `helm uninstall`."""

    def run(self, request: Request, objects: ClusterObjects, kind: str) -> JsonObject:
        """Install, change or delete the release."""
        name, namespace = request.properties["Release"], request.properties.get("Namespace") or "default"
        eks, at = self._eks(request), (request.region, request.properties["ClusterName"])
        if kind == "Delete":
            objects.uninstall(name, namespace)
            eks.control_planes.uninstall(*at, name)
            return {}
        with tempfile.TemporaryDirectory(prefix="podwright-chart-") as folder:
            chart, values = Path(folder) / "chart", Path(folder) / "values.json"
            self._download(request, chart)
            values.write_text(request.properties.get("Values") or "{}")
            makes_namespace, skips_crds = _is_set(request, "CreateNamespace"), _is_set(request, "SkipCrds")
            # A stand-in gives way to the chart that the control plane carries.
            chart = (_is_stand_in(chart) and eks.control_planes.chart(*at, name)) or chart
            eks.control_planes.apply_releases(*at, name, json.loads(values.read_text()))
            objects.upgrade(Release(name, namespace, chart, values, makes_namespace, skips_crds))
            eks.control_planes.start_operators(*at, name)
        return {}

    def _download(self, request: Request, chart: Path) -> None:
        """Unpack a chart from its asset."""
        url = request.properties.get("ChartAssetURL")
        if not url:
            raise CommandError(
                f"chart {request.properties.get('Chart')} comes from a repository, which the sandbox does not reach",
                "give the chart as an asset (sandbox)",
            )
        bucket, _, key = url.removeprefix("s3://").partition("/")
        file = chart.with_suffix(".zip")
        request.client("s3").download_file(bucket, key, str(file))
        with zipfile.ZipFile(file) as archive:
            archive.extractall(chart)


def _is_stand_in(chart: Path) -> bool:
    """Whether it is one of podwright's own, which have no version."""
    return yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))["version"] == "0.0.0"


KUBERNETES: dict[str, Provider] = {
    "Custom::AWSCDK-EKS-KubernetesResource": Manifest(),
    "Custom::AWSCDK-EKS-KubernetesPatch": Patch(),
    "Custom::AWSCDK-EKS-KubernetesObjectValue": ObjectValue(),
    "Custom::AWSCDK-EKS-HelmChart": HelmChart(),
}
