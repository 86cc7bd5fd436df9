"""Loads GDRCopy's kernel module, by which small messages go to GPU memory without a detour."""

from __future__ import annotations

from ..runner.applies import Only
from ..runner.node import Node
from ..runner.steps import Step

MODULE = "gdrdrv"
AT_BOOT = "/etc/modules-load.d/podwright-gdrcopy.conf"


def available(node: Node) -> bool:
    """Whether the image has the module; says so where it has not."""
    result = node.succeeds("modinfo", MODULE)
    if not result:
        node.log.say("warning", note=f"the image has no module {MODULE}: NCCL's small messages are slower without")
    return result


def is_loaded(node: Node) -> bool:
    """Whether it is loaded, now and after a reboot."""
    return node.path(f"/sys/module/{MODULE}").is_dir() and node.read(AT_BOOT) == f"{MODULE}\n"


def load(node: Node) -> None:
    """Load it, and have systemd load it at boot."""
    node.run("modprobe", MODULE)
    node.write(AT_BOOT, f"{MODULE}\n")


STEP = Step(
    "gdrcopy",
    applies_to=Only(accelerator="nvidia", also=lambda node: node.type_facts["efa_interfaces"] > 0 and available(node)),
    check=is_loaded,
    apply=load,
    needs=("gpus", "gdrcopy-software"),
)
