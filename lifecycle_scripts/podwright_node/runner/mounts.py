"""What is mounted here."""

from __future__ import annotations

from pathlib import Path

from .node import Node


def is_mount_point(node: Node, path: str) -> bool:
    """Whether something is mounted there. Asks the kernel's list, which no dead server can make hang."""
    desired = str(node.path(path))
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    # The kernel writes a space of a path as \040.
    return any(line.split()[4].replace("\\040", " ") == desired for line in lines)
