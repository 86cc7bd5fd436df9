"""Who hears of it when another controller takes over: slurmctld tells an SNS topic."""

from __future__ import annotations

import shlex

from ..runner.applies import Only
from ..runner.node import Node
from ..runner.steps import Step
from . import control

SCRIPT = "slurm/failover.sh"
"""In the bundle."""
PROGRAMS = {
    "SlurmctldPrimaryOnProg": f"{control.ETC}/podwright-failover-on.sh",
    "SlurmctldPrimaryOffProg": f"{control.ETC}/podwright-failover-off.sh",
}
"""Settings of slurm.conf; slurmctld runs the first when it takes charge, the second when it ends that."""
TOLD = f"{control.ETC}/podwright-failover.conf"


def settings(node: Node, present: dict[str, str]) -> dict[str, str]:
    """Both programs, where there is a topic and slurm.conf has none of its own."""
    if not node.facts["slurm"]["failover_topic"]:
        return {}
    # A program that somebody has set stays: slurmctld runs one and no more.
    return {name: path for name, path in PROGRAMS.items() if name.lower() not in present}


def told(node: Node) -> str:
    """Topic and cluster, in bash."""
    values = {"TOPIC": node.facts["slurm"]["failover_topic"], "CLUSTER": node.facts["cluster"]["name"]}
    return "# Written by podwright.\n" + "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())


def is_installed(node: Node) -> bool:
    """Whether both programs are there, and know whom to tell."""
    script = node.shipped(SCRIPT)
    # Both settings run the same script, which knows by its own name which of them it is.
    return node.read(TOLD) == told(node) and all(
        node.read(path) == script and node.path(path).stat().st_mode & 0o111 for path in PROGRAMS.values()
    )


def install(node: Node) -> None:
    """Put both programs beside slurm.conf."""
    node.write(TOLD, told(node))
    for path in PROGRAMS.values():
        node.write(path, node.shipped(SCRIPT), mode=0o755)


STEP = Step(
    "slurm-failover",
    applies_to=Only(
        orchestrator="slurm", roles=("controller",), also=lambda node: bool(node.facts["slurm"]["failover_topic"])
    ),
    check=is_installed,
    apply=install,
)
