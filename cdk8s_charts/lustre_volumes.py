"""Volumes of FSx for Lustre and the claims that they are kept for."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..config.settings.storage import Lustre
from ..planning.kubernetes.deployed_values import LustreValues


def lustre_claims(file_systems: Mapping[str, Lustre], values: Mapping[str, LustreValues]) -> list[dict[str, Any]]:
    """The volumes and claims that file systems name themselves, for pods without a team.

    Args:
        file_systems: File systems by name.
        values: What the deployment knows of each.
    """
    objects = list[dict[str, Any]]()
    for file_system, settings in file_systems.items():
        for name, claim in settings.claims.items():
            value, path = values[file_system], claim.path or ""
            objects += lustre_volume(claim.namespace, name, value, path=path, read_only=claim.read_only)
    return objects


def lustre_volume(
    namespace: str,
    name: str,
    file_system: LustreValues,
    *,
    path: str,
    read_only: bool,
    labels: Mapping[str, str] | None = None,
) -> Iterator[dict[str, Any]]:
    """A volume of one folder, and the claim that it is kept for.

    Args:
        namespace: Namespace of the claim.
        name: Its name.
        file_system: What the deployment knows of the file system.
        path: The folder; empty for the file system's root.
        read_only: Whether pods can only read.
        labels: Labels of both.
    """
    # Static volumes have the size that somebody writes down; nothing measures it.
    shared = {"accessModes": ["ReadOnlyMany" if read_only else "ReadWriteMany"], "storageClassName": ""}
    size, volume = {"storage": "1200Gi"}, f"{namespace}-{name}"
    common = {"labels": dict(labels)} if labels else {}
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume, **common},
        "spec": {
            **shared,
            "capacity": size,
            "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": "Retain",
            "mountOptions": ["flock", *(["ro"] if read_only else [])],
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name},
            "csi": {
                "driver": "fsx.csi.aws.com",
                # Kubernetes takes two volumes of one handle for one, and mounts the second nowhere.
                "volumeHandle": f"{file_system.id}:{namespace}:{name}",
                "volumeAttributes": {"dnsname": file_system.dns_name, "mountname": f"{file_system.mount_name}{path}"},
            },
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, **common},
        "spec": {**shared, "volumeName": volume, "resources": {"requests": size}},
    }
