"""Faults that can be drilled: what each does to a node, and what HyperPod answers it with."""

from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, cast

from .facts import Citation, cited, table

HEALTH_LABEL: Final = "sagemaker.amazonaws.com/node-health-status"
"""Label, and key of the taint, with which HyperPod marks a node.

Source: SageMaker Developer Guide, resilience-related Kubernetes labels, 2026-11.
"""
GROUP_LABEL: Final = "sagemaker.amazonaws.com/instance-group-name"
"""Label that names a node's instance group."""
HEALTHY: Final = "Schedulable"
"""Value of the health label of a node that takes work."""
FAULT_LABELS: Final = "sagemaker.amazonaws.com/fault-"
"""What labels and annotations that give the reason begin with: AWS's pages write both fault-type and fault-types."""


@dataclass(frozen=True, slots=True)
class DrillKind:
    """One fault."""

    name: str
    """Such as xid-replace."""
    orchestrator: Literal["eks", "slurm"]
    """Where it works."""
    way: Literal["log", "label", "pods", "by_hand"]
    """log: a line in the node's kernel log. label: HyperPod's label. pods: deleted pods. by_hand: somebody runs it."""
    accelerator: str
    """Vendor of the accelerators that it needs; empty for any node."""
    action: Literal["reboot", "replace", "none"]
    """What HyperPod is to answer with."""
    label: str
    """Value that the health label is to get; empty where none is."""
    text: str
    """What is written: of a log line the part after the PCI address."""
    what: str
    """In words."""
    sources: tuple[Citation, ...]
    """Where it can be read."""


@cache
def drill_kinds() -> dict[str, DrillKind]:
    """Every fault by name."""
    return {
        row["kind"]: DrillKind(
            row["kind"],
            "slurm" if row["orchestrator"] == "slurm" else "eks",
            cast(Literal["log", "label", "pods", "by_hand"], row["way"]),
            row["accelerator"],
            cast(Literal["reboot", "replace", "none"], row["action"]),
            row["label"],
            row["text"],
            row["what"],
            cited(row["source"]),
        )
        for row in table("drills")
    }
