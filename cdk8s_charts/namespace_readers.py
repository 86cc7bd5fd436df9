"""A Kubernetes group whose members may see certain namespaces and nothing else."""

from collections.abc import Sequence
from typing import Any, Final

from .named_readers import named_readers

TEAM_NAMESPACE_READERS: Final = "podwright-team-namespace-readers"
"""What podwright calls those of the namespaces of teams."""


def namespace_readers(name: str, *, group: str, namespaces: Sequence[str]) -> list[dict[str, Any]]:
    """A role and its binding, both called `name`, that let `group` get these namespaces, and nothing in them."""
    return named_readers(name, group=group, api_group="", resource="namespaces", names=namespaces)
