"""The state that Slurm gives to this node: open to jobs, closed to them, or to be replaced."""

from __future__ import annotations

from ..runner.failure import Failure
from ..runner.node import Node
from . import control

MEASURING = "podwright measures this node"
REPLACE = "Action:Replace"
"""HyperPod acts on this text and no other. Source: SageMaker Developer Guide, "Manually replace or reboot a node", read
2026-11."""


def own_name(node: Node) -> str | None:
    """The name under which Slurm knows this node; None when it does not."""
    for line in control.command(node, "scontrol", "show", "nodes", "--oneliner").splitlines():
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if node.address and node.address in (words.get("NodeAddr"), words.get("NodeHostName")):
            return words["NodeName"]
    return None


def shown(node: Node, name: str) -> str:
    """What Slurm says about a node, in one line."""
    return control.command(node, "scontrol", "show", "node", name, "--oneliner")


def close(node: Node) -> None:
    """Keep jobs away while the node is measured. A node that is closed already stays so, for its own reason."""
    name = own_name(node)
    if name and "DRAIN" not in shown(node, name).upper():
        _update(node, name, "DRAIN", MEASURING)


def reopen(node: Node) -> None:
    """Let jobs in again, if it was `close` that kept them away."""
    name = own_name(node)
    # Whoever closed it for another reason has written that reason over ours.
    if name and f"Reason={MEASURING}" in shown(node, name):
        _update(node, name, "RESUME", None)


def replace(node: Node) -> None:
    """Have HyperPod replace the node.

    Raises:
        Failure: Slurm does not know it, or does not answer.
    """
    name = own_name(node)
    if name is None:
        raise Failure(f"Slurm knows no node with the address {node.address}", "see `scontrol show nodes`")
    _update(node, name, "FAIL", REPLACE)


def _update(node: Node, name: str, state: str, reason: str | None) -> None:
    why = () if reason is None else (f"Reason={reason}",)
    control.command(node, "scontrol", "update", f"NodeName={name}", f"State={state}", *why)
