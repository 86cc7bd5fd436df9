"""Which nodes need a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from .node import Node


@dataclass(frozen=True)
class Only:
    """Nodes for which all holds that is given; `Only()` is every node.

    Used as `Step(applies_to=Only(orchestrator="slurm", roles=("controller",)), …)`.
    """

    orchestrator: str | None = None
    """`eks` or `slurm`."""
    roles: tuple[str, ...] = ()
    """Some of `worker` (EKS), `controller`, `login`, `compute` (Slurm)."""
    families: tuple[str, ...] = ()
    """Instance families, such as `p5en`."""
    systems: tuple[str, ...] = ()
    """Operating systems as `Node.system` writes them, or beginnings of that: `ubuntu`, `amzn2023`."""
    accelerator: str | None = None
    """`nvidia`, `neuron` or `none`."""
    also: Callable[[Node], bool] | None = None
    """A further condition."""

    def __call__(self, node: Node) -> bool:
        """Whether the node is one of them."""
        return (
            self.orchestrator in (None, node.orchestrator)
            and (not self.roles or node.role in self.roles)
            and (not self.families or node.family in self.families)
            and (not self.systems or node.system.startswith(self.systems))
            and (self.accelerator is None or node.type_facts.get("accelerator_vendor") == self.accelerator)
            and (self.also is None or self.also(node))
        )
