"""Builds GDRCopy: its kernel module for the running kernel and, unless pods bring it, its library.

The step `gdrcopy` loads the module. HyperPod changes the kernel only together with the root volume, which is built
anew by these scripts then, so a module for the running kernel is enough.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.steps import Step
from .archives import unpacked
from .install import installation, installs, prefix, require_tools, satisfied

COMPONENT = "gdrcopy"
MODULE = "gdrdrv"
RULE = "/etc/udev/rules.d/70-podwright-gdrdrv.rules"
# The device's number is given out when the module is loaded, and stands in /proc/devices.
# Releases before 2.6 leave the device node to whoever loads the module.
RULE_TEXT = """\
KERNEL=="gdrdrv", MODE="0666"
ACTION=="add", SUBSYSTEM=="module", KERNEL=="gdrdrv", \
RUN+="/bin/sh -c '[ -e /dev/gdrdrv ] || mknod -m 0666 /dev/gdrdrv c $$(sed -n s/.gdrdrv$$//p /proc/devices) 0'"
"""
BUILD_SECONDS = 900


def install(node: Node) -> None:
    """Build, put the module in the place of the image's, and let go of the one that is loaded."""
    release = node.run("uname", "-r").strip()
    modules = node.path(f"/lib/modules/{release}")
    require_tools(node, COMPONENT, "make", "gcc")
    if not (modules / "build").exists():
        raise Failure(
            f"{modules}/build is missing: the image has no headers of its kernel, so no module can be built",
            "use an image with kernel headers, or leave gdrcopy out of cluster.node_software.versions",
        )
    with installation(node, COMPONENT), unpacked(node, COMPONENT) as source, prefix(node, COMPONENT) as folder:
        node.run("make", "-C", str(source), "driver", timeout=BUILD_SECONDS)
        if not node.group_facts["software"]["kernel_only"]:
            node.run("make", "-C", str(source), "lib", timeout=BUILD_SECONDS)
            node.run("make", "-C", str(source), f"prefix={folder}", "lib_install", timeout=BUILD_SECONDS)
        _replace_module(node, modules, source / f"src/gdrdrv/{MODULE}.ko")
        node.run("depmod", "-a", release)
        node.write(RULE, RULE_TEXT)
        node.run("udevadm", "control", "--reload")
        # The step `gdrcopy` loads the new one; two versions cannot be loaded beside each other.
        if node.path(f"/sys/module/{MODULE}").is_dir():
            node.run("modprobe", "-r", MODULE)


STEP = Step(
    "gdrcopy-software",
    applies_to=installs(COMPONENT),
    check=lambda node: satisfied(node, COMPONENT),
    apply=install,
    needs=("nccl-software", "gpus"),
    seconds=2400,
)


def _replace_module(node: Node, modules: Path, built: Path) -> None:
    target = modules / "updates" / built.name
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside it and then over it: a killed copy must not leave half a module under the name that is loaded.
    new = target.with_name(f".{target.name}.new")
    shutil.copyfile(built, new)
    new.replace(target)
    # Two modules of one name: which one is loaded would be left to depmod.
    for other in sorted(modules.rglob(f"{MODULE}.ko*")):
        if other != target:
            node.log.say("replaced", step=STEP.name, module=str(other))
            other.unlink()
