"""The environment variables of jobs, for every login shell.

Slurm hands a job the variables of the shell that it is submitted from. So login nodes and controllers set what all
groups with accelerators or EFA agree on, and compute nodes set their own group's, for whoever works there. A variable
that is set already stays: a user knows better. With EKS pods bring their own.
"""

from __future__ import annotations

import shlex

from ..runner.applies import Only
from ..runner.node import Node
from ..runner.steps import Step

FILE = "/etc/profile.d/podwright-jobs.sh"


def variables(node: Node) -> dict[str, str]:
    """Those that this node sets."""
    if node.role == "compute":
        return node.group_facts["software"]["variables"]
    first, *others = [
        group["software"]["variables"] for group in node.facts["groups"].values() if group["software"]["variables"]
    ] or [{}]
    shared = set(first.items()).intersection(*(other.items() for other in others))
    return {name: value for name, value in first.items() if (name, value) in shared}


def text(node: Node) -> str:
    """The file, in POSIX shell."""
    lines = [f"export {name}=${{{name}-{shlex.quote(value)}}}" for name, value in variables(node).items()]
    return "".join(
        f"{line}\n" for line in ["# What jobs on this cluster find set, unless they set it themselves.", *lines]
    )


STEP = Step(
    "job-variables",
    applies_to=Only(orchestrator="slurm", also=lambda node: node.group is not None),
    check=lambda node: node.read(FILE) == text(node),
    apply=lambda node: node.write(FILE, text(node)),
)
