"""Helm releases in a store: rendered by `helm template`, applied, and recorded in Secrets as Helm does."""

import base64
import gzip
import json

import yaml

from ...operations.programs.helm import helm
from ..protocol.json_objects import JsonObject
from .cluster_objects import ClusterObjects, Release, ensure_namespace

_TYPE = "helm.sh/release.v1"


def upgrade(objects: ClusterObjects, release: Release) -> None:
    """Render a release's chart, apply its objects, and delete those that only the former revision had."""
    name, namespace = release.name, release.namespace
    if release.makes_namespace:
        ensure_namespace(objects, namespace)
    rendered = _rendered(release, objects.version)
    objects.install(name)
    retained = {objects.apply(manifest, namespace)["metadata"]["uid"] for manifest in _documents(rendered)}
    former = _revisions(objects, name, namespace)
    for item in _documents(_manifest(former[-1])) if former else []:
        current = objects.find(
            item["apiVersion"], item["kind"], item["metadata"]["name"], item["metadata"].get("namespace") or namespace
        )
        if current and current["metadata"]["uid"] not in retained:
            objects.remove(current)
    chart = yaml.safe_load((release.chart / "Chart.yaml").read_text())
    _remember(objects, release, rendered, chart, former)


def uninstall(objects: ClusterObjects, name: str, namespace: str) -> None:
    """Delete the objects of a release and its record."""
    former = _revisions(objects, name, namespace)
    for item in reversed(_documents(_manifest(former[-1]))) if former else []:
        objects.remove(item, namespace)
    for secret in former:
        objects.remove(secret)


def _rendered(release: Release, version: str) -> str:
    crds = [] if release.skips_crds else ["--include-crds"]
    options = ["--namespace", release.namespace, "--values", str(release.values), "--kube-version", version]
    return helm("template", release.name, str(release.chart), *options, "--no-hooks", *crds)


def _documents(text: str) -> list[JsonObject]:
    return [item for item in yaml.safe_load_all(text) if item]


def _revisions(objects: ClusterObjects, name: str, namespace: str) -> list[JsonObject]:
    secrets = objects.all("v1", "Secret", namespace, f"owner=helm,name={name}")
    return sorted(secrets, key=lambda item: int(item["metadata"]["labels"]["version"]))


def _manifest(secret: JsonObject) -> str:
    packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    return json.loads(gzip.decompress(packed))["manifest"]


def _remember(
    objects: ClusterObjects, release: Release, manifest: str, chart: JsonObject, former: list[JsonObject]
) -> None:
    """Record the release in a Secret as Helm does, so that `helm list` can read it."""
    for item in former:
        item["metadata"]["labels"]["status"] = "superseded"
        objects.apply(item)
    revision = len(former) + 1
    content = {
        "name": release.name,
        "namespace": release.namespace,
        "version": revision,
        "manifest": manifest,
        "info": {"status": "deployed"},
        "chart": {"metadata": chart},
    }
    packed = base64.b64encode(gzip.compress(json.dumps(content).encode(), mtime=0))
    metadata = {
        "name": f"sh.helm.release.v1.{release.name}.v{revision}",
        "namespace": release.namespace,
        "labels": {"name": release.name, "owner": "helm", "status": "deployed", "version": str(revision)},
    }
    data = {"release": base64.b64encode(packed).decode()}
    objects.apply({"apiVersion": "v1", "kind": "Secret", "type": _TYPE, "metadata": metadata, "data": data})
