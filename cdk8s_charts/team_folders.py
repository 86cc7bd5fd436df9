"""The folders that claims of teams mount, made by a job: a mount of a folder that is missing fails."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from ..config.catalog.images import Image
from ..config.settings.governance.teams import Team
from ..planning.helm.chart_values import SystemPlacement
from ..planning.helm.own_images import BENCHMARK_LABELS_IMAGE
from ..planning.kubernetes.deployed_values import DeployedValues
from ..planning.kubernetes.isolation import team_gid

_NAMESPACE: Final = "kube-system"
# Each argument is MODE:GID:FOLDER. Mode and owner are set on a folder that was there before, too, and on nothing in it.
# A folder without a mode belongs to somebody else, and is only made where it is missing.
_MAKE: Final = """\
import os, sys
for text in sys.argv[1:]:
    mode, gid, folder = text.split(":", 2)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    if mode:
        os.chown(folder, -1, int(gid))
        os.chmod(folder, int(mode, 8))
"""


def team_folders(
    teams: Mapping[str, Team],
    values: DeployedValues,
    placement: SystemPlacement,
    mirror: Mapping[str, Image] | None = None,
) -> list[dict[str, Any]]:
    """For each file system with claims: its root as a volume, a claim of that, and a job that makes the folders.

    The job is called after the folders, because a job cannot change; with other folders another one comes. Folders that
    no team names any more stay, with what is in them.

    A folder that one team writes in belongs to the team's group: mode 2770, so that files in it do too, or 2775 where
    other teams read it. What several teams write in is open to all with the sticky bit, as /tmp is. A folder that all
    only read is somebody else's: it is made where it is missing.

    Args:
        teams: Teams by name.
        values: What the deployment knows of the file systems.
        placement: Where controllers of the cluster run.
        mirror: Where mirrored images lie, by the original's name.
    """
    folders: dict[str, dict[str, dict[str, bool]]] = {}
    for name, team in teams.items():
        for claim in team.access.storage.values() if team.access else ():
            users = folders.setdefault(claim.file_system, {}).setdefault(claim.path, {})
            users[name] = users.get(name, False) or not claim.read_only
    original = Image.parse(BENCHMARK_LABELS_IMAGE)
    image = (mirror or {}).get(original.name, original)
    return [
        item
        for name in sorted(folders)
        for item in _objects(name, _folders(name, teams, folders[name]), values, placement, str(image))
    ]


def _folders(file_system: str, teams: Mapping[str, Team], users: Mapping[str, Mapping[str, bool]]) -> list[str]:
    """MODE:GID:FOLDER for each folder of a file system, in the order of the folders."""
    return [f"{_owner(teams, users[path])}:/root-of-{file_system}{path}" for path in sorted(users)]


def _owner(teams: Mapping[str, Team], users: Mapping[str, bool]) -> str:
    """MODE:GID of a folder, by the teams that use it and whether each of them writes."""
    writers = [name for name, writes in users.items() if writes]
    if not writers:
        return ":"
    if len(writers) > 1:
        return "1777:0"
    return f"{'2775' if len(users) > 1 else '2770'}:{team_gid(writers[0], teams[writers[0]].access)}"


def _objects(
    name: str, folders: list[str], values: DeployedValues, placement: SystemPlacement, image: str
) -> list[dict[str, Any]]:
    """A job that makes the teams' folders on a file system. Another content is a job of another name."""
    root, file_system = f"podwright-{name}-root", values.lustre[name]
    digest = hashlib.sha256(json.dumps([folders, image]).encode()).hexdigest()[:10]
    shared = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    size = {"storage": "1200Gi"}
    container = {
        "name": "folders",
        "image": image,
        "command": ["python3", "-c", _MAKE, *folders],
        "volumeMounts": [{"name": "root", "mountPath": f"/root-of-{name}"}],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
    }
    pod = {
        "restartPolicy": "OnFailure",
        "nodeSelector": dict(placement.node_selector),
        "tolerations": [dict(toleration) for toleration in placement.tolerations],
        "containers": [container],
        "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": root}}],
    }
    csi = {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": f"{file_system.id}:{_NAMESPACE}:{root}",
        "volumeAttributes": {"dnsname": file_system.dns_name, "mountname": file_system.mount_name},
    }
    volume = {
        **shared,
        "capacity": size,
        "volumeMode": "Filesystem",
        "persistentVolumeReclaimPolicy": "Retain",
        "mountOptions": ["flock"],
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": _NAMESPACE, "name": root},
        "csi": csi,
    }
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": root}, "spec": volume},
        _placed("v1", "PersistentVolumeClaim", root, {**shared, "volumeName": root, "resources": {"requests": size}}),
        _placed(
            "batch/v1", "Job", f"podwright-{name}-folders-{digest}", {"backoffLimit": 20, "template": {"spec": pod}}
        ),
    ]


def _placed(api_version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": _NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
