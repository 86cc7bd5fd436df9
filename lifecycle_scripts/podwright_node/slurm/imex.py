"""NVLink between instances for jobs of Slurm: a prolog tells NVIDIA's IMEX which nodes a job has."""

from __future__ import annotations

import shlex

from ..runner.applies import Only
from ..runner.node import Node
from ..runner.steps import Step
from . import control, health

SCRIPT = "slurm/imex_prolog.sh"
"""In the bundle."""
PROLOG = f"{health.FOLDERS['Prolog']}/600_podwright_imex.sh"
"""After the health check, which has found the GPUs right."""
EXPECTED = f"{control.ETC}/podwright-imex.conf"
NODES_CONFIG = "/etc/nvidia-imex/nodes_config.cfg"
"""Where IMEX looks for its nodes by default."""
PATIENCE_SECONDS = 120
"""All nodes of a job start their services at the same time, and each waits for the others."""


def expected(node: Node) -> str:
    """Where things are on the node, in bash."""
    results = {name: node.path(f"/opt/slurm/bin/{name}") for name in ("scontrol", "squeue")}
    values = {
        "NODES_CONFIG": shlex.quote(str(node.path(NODES_CONFIG))),
        "PATIENCE_SECONDS": str(PATIENCE_SECONDS),
        **{name.upper(): shlex.quote(str(path)) if path.exists() else name for name, path in results.items()},
    }
    return "# Written by podwright.\n" + "".join(f"{name}={value}\n" for name, value in values.items())


def is_installed(node: Node) -> bool:
    """Whether the prolog is there, and knows where things are."""
    return (
        node.read(EXPECTED) == expected(node)
        and node.read(PROLOG) == node.shipped(SCRIPT)
        and bool(node.path(PROLOG).stat().st_mode & 0o111)
    )


def install(node: Node) -> None:
    """Put the prolog into its folder."""
    node.write(EXPECTED, expected(node))
    node.write(PROLOG, node.shipped(SCRIPT), mode=0o755)


STEP = Step(
    "slurm-imex",
    applies_to=Only(orchestrator="slurm", roles=("compute",), also=lambda node: bool(node.type_facts.get("imex"))),
    check=is_installed,
    apply=install,
)
