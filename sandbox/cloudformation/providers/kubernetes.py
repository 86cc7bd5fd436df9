"""The CDK's kubectl and Helm provider as a double: manifests and charts go to the Kubernetes double, no Lambda runs.

Source of the properties: the kubectl-provider handler of aws-cdk-lib 2.275.0. Charts are rendered by the real
`helm template`; what Helm would store about a release is stored.
"""

import base64
import gzip
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
from ....operations.programs.helm import helm
from ...eks.service import Eks
from ...kubernetes.store import ApiError, KubernetesStore
from ...protocol.json_objects import JsonObject, merged
from .base import HandlerError, Outcome, Provider, Request

_RELEASE_TYPE = "helm.sh/release.v1"
# What `kubectl apply --prune` looks for without an allow list of its own; everything else stays.
# Source: kubectl 1.35, default list of pruned resources.
_PRUNED = {
    *("/ConfigMap", "/Endpoints", "/Namespace", "/PersistentVolume", "/PersistentVolumeClaim", "/Pod"),
    *("/ReplicationController", "/Secret", "/Service", "batch/CronJob", "batch/Job", "networking.k8s.io/Ingress"),
    *("apps/DaemonSet", "apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet"),
}


class KubectlResource(ABC):
    """What the handlers below share: the cluster's store and the words of failures."""

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
    def run(self, request: Request, store: KubernetesStore, kind: str) -> JsonObject:
        """Do it; returns the attributes."""

    def _eks(self, request: Request) -> Eks:
        return self.eks[request.clients.account]

    def _guarded(self, request: Request, kind: str) -> JsonObject:
        try:
            self._authorize(request)
            store = self._eks(request).kubernetes.store(request.region, request.properties["ClusterName"])
            return self.run(request, store, kind)
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


def _failed(message: str) -> HandlerError:
    return HandlerError(
        f"Received response status [FAILED] from custom resource. Message returned: Error: {message} "
        f"(RequestId: {uuid.uuid4()})"
    )


class Manifest(KubectlResource):
    """Custom::AWSCDK-EKS-KubernetesResource: `kubectl create`, `apply --prune` and `delete`."""

    def run(self, request: Request, store: KubernetesStore, kind: str) -> JsonObject:
        """Apply or delete the manifests."""
        manifests: list[JsonObject] = json.loads(request.properties["Manifest"])
        if kind == "Delete":
            for manifest in reversed(manifests):
                if store.key(manifest) in store.objects:
                    store.delete(manifest)
            return {}
        overwrite = str(request.properties.get("Overwrite", "false")).lower() == "true"
        for manifest in manifests:
            if kind == "Create" and not overwrite:
                store.create(manifest)
            else:
                store.apply(manifest)
        label = request.properties.get("PruneLabel")
        if kind == "Update" and label:
            retained = {store.key(manifest) for manifest in manifests}
            for item in store.labelled(label):
                if store.key(item) not in retained and store.key(item)[0] in _PRUNED:
                    store.delete(item)
        return {}


class Patch(KubectlResource):
    """Custom::AWSCDK-EKS-KubernetesPatch."""

    def run(self, request: Request, store: KubernetesStore, kind: str) -> JsonObject:
        """Apply the patch, or on delete the one that restores."""
        name = request.properties["ResourceName"]
        kind_name, _, object_name = name.partition("/")
        current = _find(store, kind_name, object_name, request.properties["ResourceNamespace"])
        text = request.properties["RestorePatchJson" if kind == "Delete" else "ApplyPatchJson"]
        store.apply(merged(current, json.loads(text)))
        return {}


class ObjectValue(KubectlResource):
    """Custom::AWSCDK-EKS-KubernetesObjectValue: reads one field. Nothing here ever fills a status."""

    def run(self, request: Request, store: KubernetesStore, kind: str) -> JsonObject:
        """Read the value."""
        if kind == "Delete":
            return {}
        properties = request.properties
        value: Any = _find(store, properties["ObjectType"], properties["ObjectName"], properties["ObjectNamespace"])
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

    def run(self, request: Request, store: KubernetesStore, kind: str) -> JsonObject:
        """Render the chart, apply what comes out and remove what the former revision had."""
        release, namespace = request.properties["Release"], request.properties.get("Namespace") or "default"
        former = _releases(store, release, namespace)
        if kind == "Delete":
            for item in reversed(_documents(_manifest(former[-1]))) if former else []:
                if store.key(item, namespace) in store.objects:
                    store.delete(item, namespace)
            for secret in former:
                store.delete(secret)
            return {}
        if str(request.properties.get("CreateNamespace", "false")).lower() == "true":
            store.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        rendered, chart = self._render(request, release, namespace, store.version)
        store.install(release)
        manifests = _documents(rendered)
        for manifest in manifests:
            store.apply(manifest, namespace)
        retained = {store.key(manifest, namespace) for manifest in manifests}
        for item in _documents(_manifest(former[-1])) if former else []:
            if store.key(item, namespace) not in retained and store.key(item, namespace) in store.objects:
                store.delete(item, namespace)
        _remember(store, release, namespace, rendered, chart, len(former) + 1)
        return {}

    def _render(self, request: Request, release: str, namespace: str, version: str) -> tuple[str, JsonObject]:
        """A Helm chart from its asset, rendered with its values."""
        url = request.properties.get("ChartAssetURL")
        if not url:
            raise CommandError(
                f"chart {request.properties.get('Chart')} comes from a repository, which the sandbox does not reach",
                "give the chart as an asset (sandbox)",
            )
        bucket, _, key = url.removeprefix("s3://").partition("/")
        with tempfile.TemporaryDirectory(prefix="podwright-chart-") as folder:
            object_key = Path(folder)
            request.client("s3").download_file(bucket, key, str(object_key / "chart.zip"))
            with zipfile.ZipFile(object_key / "chart.zip") as archive:
                archive.extractall(object_key / "chart")
            (object_key / "values.json").write_text(request.properties.get("Values") or "{}")
            crds = [] if str(request.properties.get("SkipCrds", "false")).lower() == "true" else ["--include-crds"]
            rendered = helm(
                "template",
                release,
                str(object_key / "chart"),
                "--namespace",
                namespace,
                "--values",
                str(object_key / "values.json"),
                "--kube-version",
                version,
                "--no-hooks",
                *crds,
            )
            return rendered, yaml.safe_load((object_key / "chart" / "Chart.yaml").read_text())


def _documents(text: str) -> list[JsonObject]:
    return [item for item in yaml.safe_load_all(text) if item]


def _releases(store: KubernetesStore, release: str, namespace: str) -> list[JsonObject]:
    items = [
        item
        for (kind, object_key, _), item in store.objects.items()
        if kind == "/Secret"
        and object_key == namespace
        and item.get("type") == _RELEASE_TYPE
        and item["metadata"]["labels"]["name"] == release
    ]
    return sorted(items, key=lambda item: int(item["metadata"]["labels"]["version"]))


def _manifest(secret: JsonObject) -> str:
    packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    return json.loads(gzip.decompress(packed))["manifest"]


def _remember(
    store: KubernetesStore, release: str, namespace: str, manifest: str, chart: JsonObject, revision: int
) -> None:
    """Store the release as Helm does, in a Secret; the real `helm list` can read it."""
    for former in _releases(store, release, namespace):
        former["metadata"]["labels"]["status"] = "superseded"
    content = {
        "name": release,
        "namespace": namespace,
        "version": revision,
        "manifest": manifest,
        "info": {"status": "deployed"},
        "chart": {"metadata": chart},
    }
    packed = base64.b64encode(gzip.compress(json.dumps(content).encode(), mtime=0))
    store.put(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": _RELEASE_TYPE,
            "metadata": {
                "name": f"sh.helm.release.v1.{release}.v{revision}",
                "namespace": namespace,
                "labels": {"name": release, "owner": "helm", "status": "deployed", "version": str(revision)},
            },
            "data": {"release": base64.b64encode(packed).decode()},
        }
    )


def _find(store: KubernetesStore, kind: str, name: str, namespace: str) -> JsonObject:
    for (key, object_key, result), item in store.objects.items():
        if (
            result == name
            and object_key in ("", namespace)
            and key.rsplit("/", 1)[-1].lower() == kind.lower().rstrip("s")
        ):
            return item
    raise ApiError(404, "NotFound", f'{kind} "{name}" not found')


KUBERNETES: dict[str, Provider] = {
    "Custom::AWSCDK-EKS-KubernetesResource": Manifest(),
    "Custom::AWSCDK-EKS-KubernetesPatch": Patch(),
    "Custom::AWSCDK-EKS-KubernetesObjectValue": ObjectValue(),
    "Custom::AWSCDK-EKS-HelmChart": HelmChart(),
}
