"""Connects operators outside of pods: services with ports on loopback, and Secrets with certificate files."""

import base64
import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from .cluster_api import find

Manifest = dict[str, Any]
_CERTIFICATE: Final = "tls.crt"


def on_loopback(objects: Sequence[Manifest], services: Mapping[str, int]) -> list[Manifest]:
    """Return objects whose services are processes on loopback.

    Args:
        objects: Objects of a release.
        services: Ports of the processes by the names of their services. Other services remain unchanged.
    """
    adapted = copy.deepcopy(list(objects))
    for item in adapted:
        if item["kind"] == "Service" and item["metadata"]["name"] in services:
            # Endpoints may not have loopback addresses.
            item["spec"] = {"type": "ExternalName", "externalName": "localhost"}
        for service in called_services(item):
            # With an ExternalName, the port remains the same.
            service["port"] = services.get(service["name"], service.get("port", 443))
    return adapted


def called_services(item: Manifest) -> Iterator[Manifest]:
    """Return the references to services that the API server calls: webhooks, conversions and extension API servers."""
    if item["kind"] == "APIService" and "service" in item["spec"]:
        yield item["spec"]["service"]
    for webhook in item.get("webhooks", ()):
        if "service" in webhook["clientConfig"]:
            yield webhook["clientConfig"]["service"]
    if item["kind"] == "CustomResourceDefinition" and "webhook" in item["spec"].get("conversion", {}):
        yield item["spec"]["conversion"]["webhook"]["clientConfig"]["service"]


def mount_secret(kubeconfig: Path, namespace: str, name: str, folder: Path) -> bool:
    """Write a Secret's data into a folder, as the kubelet does. Returns False if it has no data."""
    secret = find(kubeconfig, "Secret", namespace, name)
    return write_files((secret or {}).get("data", {}), folder)


def write_files(data: Mapping[str, str], folder: Path) -> bool:
    """Write a Secret's data into changed files of a folder. Returns False if it has no data."""
    if not all(data.values()):
        return False
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Operators wait for the certificate, so it is written last.
    for file in sorted(data, key=lambda file: file == _CERTIFICATE):
        content = base64.b64decode(data[file])
        if not (folder / file).exists() or (folder / file).read_bytes() != content:
            new = folder / f"{file}.new"
            new.write_bytes(content)
            new.replace(folder / file)
    return bool(data)
