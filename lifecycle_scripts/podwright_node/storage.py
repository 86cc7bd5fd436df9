"""Moves the data of containerd and kubelet from the root volume to the node's large disk.

The root volume of a HyperPod node is 100 GB and does not grow; images of training jobs fill it. The disk is the local
NVMe (/opt/dlami/nvme) or, without one, the further EBS volume (/opt/sagemaker). Each folder is bind-mounted over its
usual place, so the image's own configuration of both services stays as it is, and whatever else looks there finds it.

Three units keep it so after a reboot, when lifecycle scripts do not run: one waits for the disk, one mounts each
folder, and a drop-in lets neither service start before its folder is mounted.

State on the root volume makes a second run end as the first would have: the disk once chosen, the services that have
to be started again, the folders whose data has moved for good. New software brings a new root volume and with it no
state, so what an earlier life left on the disk is replaced.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from .failure import Failure
from .node import Node
from .steps import Step

NVME = "/opt/dlami/nvme"
EBS = "/opt/sagemaker"
FOLDERS = {"containerd": "/var/lib/containerd", "kubelet": "/var/lib/kubelet"}
"""Folder by the service that owns it. kubelet needs containerd: it stops first and starts last."""
STATE = "/var/lib/podwright/storage.json"
UNITS = "/etc/systemd/system"
DISK_UNIT = "podwright-disk.service"
PATIENCE_SECONDS = 60


def moved(node: Node) -> bool:
    """Whether there is no disk to move to, or both folders are mounted from it for good."""
    state = _state(node)
    disk = state.get("disk")
    if disk is None:
        return "disk" in state
    return (
        not state.get("restart")
        and all(_is_mounted(node, disk, service) for service in FOLDERS)
        and all(_text(node.path(f"{UNITS}/{name}")) == text for name, text in units(disk).items())
    )


def move(node: Node) -> None:
    """Choose the disk, stop what runs, copy the folders, mount the copies over them, and start again what ran."""
    if "disk" not in _state(node):
        _remember(node, disk=_choose(node))
    disk = _state(node)["disk"]
    node.log.say("disk", step=STEP.name, disk=disk or "none", expected=expected(node))
    if disk is None:
        return
    _stop(node)
    for service in FOLDERS:
        # A folder that is mounted shows the copy itself: copying again would first delete what it copies.
        if service not in _state(node).get("moved", []) and not _is_mounted(node, disk, service):
            _copy(node, disk, service)
    for name, text in units(disk).items():
        node.write(f"{UNITS}/{name}", text)
    node.run("systemctl", "daemon-reload")
    for service, folder in FOLDERS.items():
        node.run("systemctl", "start", mount_unit(folder))
        _remember(node, moved=sorted({*_state(node).get("moved", []), service}))
    for service in FOLDERS:
        if service in _state(node).get("restart", []):
            node.run("systemctl", "start", service)
    _remember(node, restart=[])


STEP = Step("storage", applies_to=lambda node: node.facts["cluster"]["orchestrator"] == "eks", check=moved, apply=move)


def expected(node: Node) -> list[str]:
    """Disks that the group of the node has by its facts, best first."""
    if node.group is None or node.instance_type is None:
        return []
    local = node.facts["instance_types"][node.instance_type]["nvme_gb"] > 0
    volumes = node.facts["groups"][node.group]["volumes_gib"]
    return [NVME] * local + [EBS] * bool(volumes)


def _choose(node: Node) -> str | None:
    """The best disk that is mounted. Waits for one that should come; settles for another that is there."""
    best = next(iter(expected(node)), None)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while best and not _is_mount_point(node.path(best)) and time.monotonic() < deadline:
        time.sleep(1)
    found = next((disk for disk in (NVME, EBS) if _is_mount_point(node.path(disk))), None)
    if best and found != best:
        node.log.say("warning", step=STEP.name, note=f"{best} is not mounted after {PATIENCE_SECONDS} s")
    return found


def _stop(node: Node) -> None:
    """Stop both services, and remember those that ran before any of them is stopped."""
    active = [service for service in FOLDERS if _is_active(node, service)]
    if active:
        _remember(node, restart=sorted({*_state(node).get("restart", []), *active}))
        node.run("systemctl", "stop", *reversed(FOLDERS))


def _copy(node: Node, disk: str, service: str) -> None:
    source, target = node.path(FOLDERS[service]), node.path(_target(disk, service))
    if target.exists():
        shutil.rmtree(target)
    source.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    used = int(node.run("du", "--summarize", "--one-file-system", "--block-size=1", str(source)).split()[0])
    free = shutil.disk_usage(target.parent).free
    if used > free:
        raise Failure(f"{source} holds {used} bytes and {disk} has {free} free", "give the group a larger volume")
    # --archive keeps owners, links, times and extended attributes, which overlay layers live by.
    node.run("cp", "--archive", "--one-file-system", str(source), str(target))


def units(disk: str) -> dict[str, str]:
    """Files below the unit folder, by name."""
    files = {DISK_UNIT: _disk_unit(disk)}
    for service, folder in FOLDERS.items():
        files[mount_unit(folder)] = _mount_unit_text(disk, service, folder)
        files[f"{service}.service.d/50-podwright-storage.conf"] = f"[Unit]\nRequiresMountsFor={folder}\n"
    return files


def _disk_unit(disk: str) -> str:
    # The image mounts its NVMe by a script, so no mount unit exists that systemd could wait for.
    return f"""\
[Unit]
Description=Waits for the disk under {disk}
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/timeout 300 /usr/bin/sh -c 'until mountpoint -q {disk}; do sleep 1; done'
"""


def _mount_unit_text(disk: str, service: str, folder: str) -> str:
    # Without default dependencies: local-fs.target would wait for this mount, which waits for a disk that a service
    # mounts after local-fs.target.
    return f"""\
[Unit]
Description=Data of {service} on {disk}
DefaultDependencies=no
Requires={DISK_UNIT}
After={DISK_UNIT}
Conflicts=umount.target
Before=umount.target

[Mount]
What={_target(disk, service)}
Where={folder}
Type=none
Options=bind
"""


def _target(disk: str, service: str) -> str:
    return f"{disk}/podwright/{service}"


def mount_unit(folder: str) -> str:
    """Name of the systemd unit that mounts `folder`; systemd derives it from the path."""
    return folder.strip("/").replace("/", "-") + ".mount"


def _is_active(node: Node, service: str) -> bool:
    state = node.run("systemctl", "show", "--property=ActiveState", "--value", service).strip()
    # A kubelet that waits for its configuration restarts again and again: systemd calls that activating.
    return state not in ("inactive", "failed", "deactivating")


def _is_mount_point(path: Path) -> bool:
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return str(path) in (line.split()[4] for line in mounts)


def _is_mounted(node: Node, disk: str, service: str) -> bool:
    target = node.path(_target(disk, service))
    return target.is_dir() and target.samefile(node.path(FOLDERS[service]))


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _state(node: Node) -> dict[str, Any]:
    return json.loads(_text(node.path(STATE)) or "{}")


def _remember(node: Node, **facts: Any) -> None:
    node.write(STATE, json.dumps({**_state(node), **facts}) + "\n")
