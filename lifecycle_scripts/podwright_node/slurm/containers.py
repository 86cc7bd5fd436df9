"""Where enroot keeps images and containers, so that pyxis' `srun --container-image` does not fill the root volume.

HyperPod's image brings enroot and pyxis since July 2026 (awslabs/awsome-distributed-ai, pull request 1218); a second
pyxis beside it makes every srun complain, so none is installed here. An image without them is named in the log.
"""

from __future__ import annotations

import re

from ..runner.applies import Only
from ..runner.mounts import is_mount_point
from ..runner.node import Node
from ..runner.steps import Step

CONF = "/etc/enroot/enroot.conf"
# The better one first: NVMe on the instance, then the EBS volume.
DISKS = ("/opt/dlami/nvme", "/opt/sagemaker")
HEAD = "# podwright: the first value of a setting is the one that counts."
TAIL = "# podwright ends here."


def disk(node: Node) -> str | None:
    """The large disk that is mounted, if any."""
    return next((path for path in DISKS if is_mount_point(node, path)), None)


def conf_text(node: Node, present: str) -> str:
    """enroot.conf with our lines on top; without a large disk, without them."""
    rest = re.sub(rf"^{re.escape(HEAD)}\n.*?^{re.escape(TAIL)}\n", "", present, flags=re.MULTILINE | re.DOTALL)
    where = disk(node)
    if where is None:
        return rest
    settings = {
        # Runtime state of a container is small and has to vanish with a reboot: /run is memory.
        "ENROOT_RUNTIME_PATH": "/run/enroot/user-$(id -u)",
        "ENROOT_CACHE_PATH": f"{where}/enroot/cache/user-$(id -u)",
        "ENROOT_DATA_PATH": f"{where}/enroot/data/user-$(id -u)",
        "ENROOT_TEMP_PATH": f"{where}/enroot/tmp",
    }
    rows = "".join(f"{name} {value}\n" for name, value in settings.items())
    return f"{HEAD}\n{rows}{TAIL}\n{rest}"


def _folders(node: Node) -> list[str]:
    where = disk(node)
    return ["/run/enroot", *(f"{where}/enroot/{name}" for name in ("cache", "data", "tmp") if where)] if where else []


def is_set(node: Node) -> bool:
    """Whether enroot is there and points at the large disk, or is not there at all."""
    present = node.read(CONF)
    if present is None:
        return True
    ready = all(
        # The sticky bit: everybody writes there, and nobody deletes what is another's.
        node.path(path).is_dir() and node.path(path).stat().st_mode & 0o7777 == 0o1777
        for path in _folders(node)
    )
    return (
        present == conf_text(node, present) and ready and (not _folders(node) or node.read(TMPFILES) == TMPFILES_TEXT)
    )


TMPFILES = "/etc/tmpfiles.d/podwright-enroot.conf"
TMPFILES_TEXT = "d /run/enroot 1777 root root -\n"
"""/run is empty after a reboot, when lifecycle scripts do not run."""


def point(node: Node) -> None:
    """Make the folders, which every user writes to, and point enroot at them."""
    for path in _folders(node):
        folder = node.path(path)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)
    # /run is memory and the folder has to be there before the first job after a reboot.
    if _folders(node):
        node.write(TMPFILES, TMPFILES_TEXT)
    present = node.read(CONF) or ""
    node.write(CONF, conf_text(node, present))


def _has_enroot(node: Node) -> bool:
    if node.read(CONF) is not None:
        return True
    node.log.say("warning", step="slurm-containers", note=f"no {CONF}: this image runs no containers through Slurm")
    return False


STEP = Step(
    "slurm-containers",
    applies_to=Only(orchestrator="slurm", roles=("compute",), also=_has_enroot),
    check=is_set,
    apply=point,
    needs=("local-nvme",),
)
