"""Kubernetes groups and labels by which parts of podwright know each other's objects."""

from typing import Final

NODE_READERS: Final = "podwright:node-readers"
"""May see nodes and nothing else. EKS's own view policies show either no nodes or every secret.

Source: Amazon EKS User Guide, "Review access policy permissions", 2026-11.
"""

NODE_MARKERS: Final = "podwright:node-markers"
"""May get nodes and put the mark of a quarantine on them, so that one that fails again and again gets no more work."""

TEAM_LABEL: Final = "podwright/team"
"""Label of everything in Kubernetes that belongs to one team; its value is the team's name."""

KUEUE_READERS: Final = "podwright:kueue-readers"
"""May see the Deployment of Kueue's controller and nothing else."""

NAMESPACE_READERS: Final = "podwright:namespace-readers"
"""May see the namespaces of teams and nothing in them."""

KAI_CONTROLLER: Final = "queue-controller"
"""Deployment of KAI's that checks every queue. Its operator starts it after the release is there."""

KAI_READERS: Final = "podwright:kai-readers"
"""May see the Deployment of KAI's queue controller and nothing else."""


def team_group(team: str, role: str) -> str:
    """The Kubernetes group of those who may `edit` or `view` in a team's namespace."""
    return f"podwright:team:{team}:{role}"
