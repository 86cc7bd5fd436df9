"""Local NVMe under /opt/dlami/nvme.

AWS's images bring a service that joins the disks and mounts them there; where it is, it does the work. On an image
without it the disks become one RAID 0 with XFS, and a mount unit keeps it over reboots.
"""

from __future__ import annotations

from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.mounts import is_mount_point
from ..runner.node import Node
from ..runner.retry import wait_until
from ..runner.steps import Step
from ..runner.units import install, is_loaded, mount_unit

NVME = "/opt/dlami/nvme"
MODEL = "Amazon EC2 NVMe Instance Storage"
IMAGE_SERVICE = "dlami-nvme.service"
ARRAY = "/dev/md/podwright"
LABEL = "podwright"
PATIENCE_SECONDS = 60


def is_mounted(node: Node) -> bool:
    """Whether the disks are where they belong."""
    return is_mount_point(node, NVME)


def mount(node: Node) -> None:
    """Let the image's service mount them, or do it ourselves."""
    if is_loaded(node, IMAGE_SERVICE):
        node.run("systemctl", "start", IMAGE_SERVICE, timeout=180)
        wait_until(
            node,
            lambda: is_mounted(node),
            seconds=PATIENCE_SECONDS,
            what=f"{IMAGE_SERVICE} has mounted {NVME}",
            next_step=f"see `journalctl -u {IMAGE_SERVICE}`, and let HyperPod replace a node with a dead disk",
        )
        return
    if _in_use(node):
        wait_until(
            node,
            lambda: is_mounted(node),
            seconds=PATIENCE_SECONDS,
            what=f"whoever joins the local disks has mounted them at {NVME}",
            next_step="see `lsblk`; the image uses them for something else, so give such groups a volume instead",
        )
        return
    device = _device(node)
    name = mount_unit(NVME)
    install(node, {name: unit()}, enabled=[name])
    # A format that was cut short leaves a label on what cannot be mounted.
    if not (_label(node, device) == LABEL and node.succeeds("systemctl", "start", name, timeout=120)):
        node.run("mkfs.xfs", "-f", "-q", "-L", LABEL, device, timeout=180)
        node.run("udevadm", "settle")
        node.run("systemctl", "start", name)


STEP = Step(
    "local-nvme",
    applies_to=Only(also=lambda node: node.type_facts.get("nvme_gb", 0) > 0),
    check=is_mounted,
    apply=mount,
)


def unit() -> str:
    """The mount unit, for images without a service of their own."""
    return f"""\
[Unit]
Description=Local NVMe

[Mount]
What=/dev/disk/by-label/{LABEL}
Where={NVME}
Type=xfs
Options=noatime,nofail

[Install]
WantedBy=local-fs.target
"""


def _disks(node: Node) -> list[str]:
    return [
        model.parent.parent.name
        for model in sorted(node.path("/sys/block").glob("nvme*/device/model"))
        if model.read_text(encoding="ascii").strip() == MODEL
    ]


def _in_use(node: Node) -> bool:
    """Whether LVM or an array that is not ours has one of the disks."""
    holders = {path.name for disk in _disks(node) for path in node.path(f"/sys/block/{disk}/holders").glob("*")}
    return bool(holders) and not node.path(ARRAY).exists()


def _device(node: Node) -> str:
    disks = [f"/dev/{disk}" for disk in _disks(node)]
    if not disks:
        raise Failure(
            f"{node.instance_type} has {node.type_facts['nvme_gb']} GB of local NVMe, and the kernel shows no {MODEL}",
            "let HyperPod replace the node",
        )
    if len(disks) == 1:
        return disks[0]
    if not node.path(ARRAY).exists():
        # --run and --force: also over what a run that was killed has left on some of the disks.
        level = ("--run", "--force", "--level=0", "--homehost=any", f"--raid-devices={len(disks)}")
        node.run("mdadm", "--create", ARRAY, *level, *disks)
    return ARRAY


def _label(node: Node, device: str) -> str:
    if not node.succeeds("blkid", device):
        return ""
    return node.run("blkid", "--output", "value", "--match-tag", "LABEL", device).strip()
