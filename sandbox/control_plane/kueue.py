"""Kueue outside of a pod: upstream's release with its services on loopback, and what a kubelet would do for it."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .kubectl import get, read_objects
from .processes import Ports

NAMESPACE = "kueue-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:kueue-controller-manager"
_WEBHOOKS, _VISIBILITY = "kueue-webhook-service", "kueue-visibility-server"
_SECRET = "kueue-webhook-server-cert"
_CONFIGURATION = "controller_manager_config.yaml"
_FRAMEWORKS = ("batch/job",)


def release(file: Path, ports: Ports) -> list[dict[str, Any]]:
    """The objects of upstream's release, less its Deployment: its services lead to the ports of the process instead."""
    objects = [item for item in read_objects(file) if item["kind"] != "Deployment"]
    for item in objects:
        if item["kind"] == "Service":
            item["spec"] = {"type": "ExternalName", "externalName": "localhost"}
        for service in _references(item):
            # An ExternalName leaves the port as it is.
            service["port"] = ports.kueue_visibility if service["name"] == _VISIBILITY else ports.kueue_webhooks
    return objects


def configuration(file: Path, ports: Ports, certificates: Path) -> dict[str, Any]:
    """The manager's configuration of the release, for one process on loopback and for kinds that the server has."""
    configured = next(item for item in read_objects(file) if _CONFIGURATION in item.get("data", {}))
    settings = yaml.safe_load(configured["data"][_CONFIGURATION])
    return settings | {
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports.kueue_health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": ports.kueue_webhooks, "certDir": str(certificates)},
        "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": ports.kueue_visibility},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True, "webhookServiceName": _WEBHOOKS, "webhookSecretName": _SECRET},
        "integrations": {"frameworks": list(_FRAMEWORKS)},
    }


def mount_certificates(kubeconfig: Path, folder: Path) -> bool:
    """Write the certificates that Kueue made of its own to where it reads them, as the kubelet does with a Secret.

    Returns:
        Whether Kueue has made them.
    """
    data = get(kubeconfig, "secret", NAMESPACE, _SECRET).get("data", {})
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, value in data.items():
        (folder / name).write_bytes(base64.b64decode(value))
    return bool(data)


def _references(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Where an object names a service that the API server calls: webhooks, conversions and extension API servers."""
    if item["kind"] == "APIService":
        yield item["spec"]["service"]
    for webhook in item.get("webhooks", ()):
        yield webhook["clientConfig"]["service"]
    if item["kind"] == "CustomResourceDefinition" and "conversion" in item["spec"]:
        yield item["spec"]["conversion"]["webhook"]["clientConfig"]["service"]
