"""Moves the data of the container services from the root volume to the node's large disk.

The root volume of a HyperPod node is 100 GB and does not grow; images of training jobs fill it. The disk is the local
NVMe (/opt/dlami/nvme) or, without one, the further EBS volume (/opt/sagemaker). Each folder is bind-mounted over its
usual place, so the image's own configuration of the services stays as it is, and whatever else looks there finds it.
That holds for containerd and kubelet on Amazon Linux 2023 and for containerd and docker on Ubuntu alike.

Three kinds of units keep it so after a reboot, when lifecycle scripts do not run: one waits for the disk, one mounts
each folder, and a drop-in lets no service start before its folder is mounted.

State on the root volume makes a second run end as the first would have: the disk once chosen, the services that have
to be started again, the folders whose data has moved for good. New software brings a new root volume and with it no
state, so what an earlier life left on the disk is replaced.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from ..runner import deadline
from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.mounts import is_mount_point
from ..runner.node import Node
from ..runner.steps import Step
from ..runner.units import install, installed, is_active, mount_unit, uninstall
from .local_nvme import NVME

EBS = "/opt/sagemaker"
FOLDERS = {
    "eks": {"containerd": "/var/lib/containerd", "kubelet": "/var/lib/kubelet"},
    "slurm": {"containerd": "/var/lib/containerd", "docker": "/var/lib/docker"},
}
"""Folder by the service that owns it. The second service needs the first: it stops first and starts last."""
SOCKETS = {"docker": "docker.socket"}
"""What would start a service again while its folder moves."""
DISK_UNIT = "podwright-disk.service"
PATIENCE_SECONDS = 60


def moved(node: Node) -> bool:
    """Whether there is no disk to move to, or both folders are mounted from it for good."""
    state = node.remembered("storage")
    disk = state.get("disk")
    if disk is None:
        return "disk" in state
    folders = FOLDERS[node.orchestrator]
    # What stands in the state decides, as well as what is mounted: a later run that finds a folder not mounted and not
    # known as moved would copy over newer data.
    return (
        state.get("restart") == []
        and state.get("moved") == sorted(folders)
        and all(_is_mounted(node, disk, service) for service in folders)
        and installed(node, units(disk, folders))
    )


def move(node: Node) -> None:
    """Choose the disk, stop what runs, copy the folders, mount the copies over them, and start again what ran."""
    if "disk" not in node.remembered("storage"):
        node.remember("storage", disk=_choose(node))
    disk = node.remembered("storage")["disk"]
    node.log.say("disk", disk=disk or "none", expected=expected(node))
    if disk is None:
        return
    folders = FOLDERS[node.orchestrator]
    try:
        _stop(node, folders)
        _move(node, disk, folders)
    except (Failure, OSError, deadline.Late):
        with deadline.clean_up():
            _leave(node, disk, folders)
        raise
    _restart(node, folders)


STEP = Step("storage", applies_to=Only(), check=moved, apply=move, needs=("local-nvme",), seconds=900)


def _move(node: Node, disk: str, folders: Mapping[str, str]) -> None:
    for service in folders:
        # A folder that is mounted shows the copy itself: copying again would first delete what it copies.
        if service not in node.remembered("storage").get("moved", []) and not _is_mounted(node, disk, service):
            _copy(node, disk, service)
    install(node, units(disk, folders))
    for service, folder in folders.items():
        node.run("systemctl", "start", mount_unit(folder))
        node.remember("storage", moved=sorted({*node.remembered("storage").get("moved", []), service}))


def _leave(node: Node, disk: str, folders: Mapping[str, str]) -> None:
    """Let what has not moved stay on the root volume, and start again what ran: the node joins all the same."""
    moved = node.remembered("storage").get("moved", [])
    left = {service: folder for service, folder in folders.items() if service not in moved}
    # The disk's own unit stays for folders that have moved.
    names = {name: text for name, text in units(disk, left).items() if name != DISK_UNIT}
    for service, folder in left.items():
        if _is_mounted(node, disk, service):
            node.succeeds("systemctl", "stop", mount_unit(folder))
    uninstall(node, names)
    _restart(node, folders)


def _restart(node: Node, folders: Mapping[str, str]) -> None:
    for service in _services(folders):
        if service in node.remembered("storage").get("restart", []):
            node.run("systemctl", "start", service)
    node.remember("storage", restart=[])


def expected(node: Node) -> list[str]:
    """Disks that the group of the node has by its facts, best first."""
    if node.group is None or node.instance_type is None:
        return []
    return [NVME] * (node.type_facts["nvme_gb"] > 0) + [EBS] * bool(node.group_facts["volumes_gib"])


def _choose(node: Node) -> str | None:
    """The best disk that is mounted. Waits for one that should come; settles for another that is there."""
    best = next(iter(expected(node)), None)
    left = float(PATIENCE_SECONDS)
    while best and not is_mount_point(node, best) and left > 0:
        deadline.pause(0.5)
        left -= 0.5
    result = next((disk for disk in (NVME, EBS) if is_mount_point(node, disk)), None)
    if best and result != best:
        node.log.say("warning", note=f"{best} is not mounted after {PATIENCE_SECONDS} s")
    return result


def _services(folders: Mapping[str, str]) -> list[str]:
    """The services and their sockets, in the order in which they start."""
    return [name for service in folders for name in (SOCKETS.get(service), service) if name]


def _stop(node: Node, folders: Mapping[str, str]) -> None:
    """Stop the services, and remember those that ran before any of them is stopped."""
    # Remembered before anything stops: a run that is killed between has to know what to start again.
    active = [service for service in _services(folders) if is_active(node, service)]
    if active:
        node.remember("storage", restart=sorted({*node.remembered("storage").get("restart", []), *active}))
        # In the reverse order: what needs another stops before it.
        node.run("systemctl", "stop", *reversed(active))


def _copy(node: Node, disk: str, service: str) -> None:
    """Copy a service's folder to the disk, if there is room."""
    folder = FOLDERS[node.orchestrator][service]
    source, target = node.path(folder), node.path(_target(disk, service))
    # Left by a copy that was killed, or by an earlier life of the node on this disk.
    if target.exists():
        shutil.rmtree(target)
    source.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    # --one-file-system: mounts of running containers lie below, and are no data of the folder.
    used = int(node.run("du", "--summarize", "--one-file-system", "--block-size=1", str(source)).split()[0])
    free = shutil.disk_usage(target.parent).free
    if used > free:
        raise Failure(f"{source} holds {used} bytes and {disk} has {free} free", "give the group a larger volume")
    # --archive keeps owners, links, times and extended attributes, which overlay layers live by.
    node.run("cp", "--archive", "--one-file-system", str(source), str(target), timeout=600)


def units(disk: str, folders: Mapping[str, str]) -> dict[str, str]:
    """Files below the unit folder, by name."""
    files = {DISK_UNIT: _disk_unit(disk)}
    for service, folder in folders.items():
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
    """The unit that binds a service's data folder to the large disk before the service starts."""
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


def _is_mounted(node: Node, disk: str, service: str) -> bool:
    target, folder = node.path(_target(disk, service)), node.path(FOLDERS[node.orchestrator][service])
    return target.is_dir() and folder.is_dir() and target.samefile(folder)
