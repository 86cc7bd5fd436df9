"""The environment variables of jobs, for every login shell and every job that a shell starts.

A variable that is set already stays: a user knows better. With EKS pods bring their own.
"""

from __future__ import annotations

import shlex

from .applies import Only
from .node import Node
from .steps import Step

FILE = "/etc/profile.d/podwright-jobs.sh"


def text(node: Node) -> str:
    """The file, in POSIX shell."""
    lines = [
        f"export {name}=${{{name}-{shlex.quote(value)}}}"
        for name, value in node.group_facts.get("software", {}).get("variables", {}).items()
    ]
    return "".join(
        f"{line}\n" for line in ["# What jobs on this cluster find set, unless they set it themselves.", *lines]
    )


STEP = Step(
    "job-variables",
    applies_to=Only(orchestrator="slurm"),
    check=lambda node: node.read(FILE) == text(node),
    apply=lambda node: node.write(FILE, text(node)),
)
