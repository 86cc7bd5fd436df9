"""A check of the node before and after each job: the health check that Slurm runs as prolog and epilog."""

from __future__ import annotations

import shlex

from ..devices.efa import efa_devices
from ..runner.applies import Only
from ..runner.mounts import is_mount_point
from ..runner.node import Node
from ..runner.steps import Step
from . import control

SCRIPT = "slurm/health_check.sh"
"""In the bundle."""
NAME = "500_podwright_health.sh"
"""In the two folders; those of HyperPod's own scripts are numbered too."""
FOLDERS = {"Prolog": f"{control.ETC}/prolog.d", "Epilog": f"{control.ETC}/epilog.d"}
EXPECTED = f"{control.ETC}/podwright-health.conf"
SPACE_MIB = 512
EFA_FOLDER = "/sys/class/infiniband"


def settings(node: Node, present: dict[str, str]) -> dict[str, str]:
    """Prolog and epilog of slurm.conf, where the image has none of its own."""
    ours = {name: f"{folder}/*" for name, folder in FOLDERS.items() if name.lower() not in present}
    # On all nodes of a job before it begins, instead of on each when its first step gets there.
    return {**ours, "PrologFlags": control.joined(present.get("prologflags"), "Alloc")}


def skipped(present: dict[str, str]) -> list[str]:
    """What slurm.conf runs in the place of our folders, as `Prolog=/other/script`."""
    return [
        f"{name}={present[name.lower()]}"
        for name, folder in FOLDERS.items()
        if name.lower() in present and not present[name.lower()].startswith(folder)
    ]


def expected(node: Node) -> str:
    """What the node has to have, in bash."""
    facts = node.type_facts
    accelerators = {facts.get("accelerator_vendor", "none"): facts.get("accelerator_count", 0)}
    systems = node.facts["file_systems"]
    paths = [
        *(lustre["path"] for lustre in systems["lustre"].values()),
        *([systems["home"]["path"]] if systems["home"] else []),
    ]
    # Those that are not mounted now are the business of other steps, and would drain the node after every job.
    mounts = [str(node.path(path)) for path in paths if is_mount_point(node, path)]
    scontrol = node.path("/opt/slurm/bin/scontrol")
    values = {
        "GPUS": str(accelerators.get("nvidia", 0)),
        "NEURON": str(accelerators.get("neuron", 0)),
        "NEURON_DEVICES": shlex.quote(f"{node.path('/dev/neuron')}[0-9]*"),
        # Those that were there when the node joined; the step efa has found them right.
        "EFA_DEVICES": f"({' '.join(efa_devices(node))})",
        "EFA_FOLDER": shlex.quote(str(node.path(EFA_FOLDER))),
        "MOUNTS": f"({' '.join(shlex.quote(mount) for mount in mounts)})",
        "SPACE_FOLDER": shlex.quote(str(node.path("/var"))),
        "SPACE_MIB": str(SPACE_MIB),
        "SCONTROL": shlex.quote(str(scontrol)) if scontrol.exists() else "scontrol",
    }
    return "# Written by podwright.\n" + "".join(f"{name}={value}\n" for name, value in values.items())


def is_installed(node: Node) -> bool:
    """Whether both folders have the script, and it knows what to expect."""
    script = node.shipped(SCRIPT)
    paths = [f"{folder}/{NAME}" for folder in FOLDERS.values()]
    return (
        node.read(EXPECTED) == expected(node)
        and all(node.read(path) == script for path in paths)
        and all(node.path(path).stat().st_mode & 0o111 for path in paths)
    )


def install(node: Node) -> None:
    """Put the script into both folders."""
    node.write(EXPECTED, expected(node))
    for folder in FOLDERS.values():
        node.write(f"{folder}/{NAME}", node.shipped(SCRIPT), mode=0o755)


STEP = Step(
    "slurm-health", applies_to=Only(orchestrator="slurm", roles=("compute",)), check=is_installed, apply=install
)
