"""The first deployment of a fleet: one node of each instance group, and the rest when these have shown themselves."""

from collections.abc import Mapping
from typing import Any

from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup


def canary_counts(environment: Environment, deployed: Mapping[str, int]) -> dict[str, int]:
    """Nodes of each instance group for a canary deployment.

    One node, with two exceptions: a group that is deployed keeps the nodes that it has, and one on a training plan gets
    all of its nodes, which are paid for. A group that the file leaves without nodes has none.

    Args:
        environment: The environment.
        deployed: Target of each group that the cluster has already.
    """
    return {
        name: deployed.get(name, group.count if _is_paid(group) else min(group.count, 1))
        for name, group in environment.groups.items()
    }


def counts_text(counts: Mapping[str, int]) -> str:
    """Counts as one word of a command line: `h200=1,system=1`."""
    return ",".join(f"{name}={count}" for name, count in sorted(counts.items()))


def with_counts(environment: Environment, text: str | None) -> Environment:
    """The environment with the numbers of nodes that `counts_text` has written; itself without any."""
    if not text:
        return environment
    words = [word.partition("=") for word in text.split(",")]
    counts = {name: int(count) for name, _, count in words}
    own, restricted = environment.instance_groups, environment.restricted_instance_groups
    return environment.model_copy(
        update={"instance_groups": _with(own, counts), "restricted_instance_groups": _with(restricted, counts)}
    )


def _with(groups: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, Any]:
    return {name: _sized(group, counts.get(name, group.count)) for name, group in groups.items()}


def _is_paid(group: Any) -> bool:
    return isinstance(group, InstanceGroup) and group.plan is not None


def _sized(group: Any, count: int) -> Any:
    changes: dict[str, int] = {"count": count}
    if isinstance(group, InstanceGroup) and group.min_count is not None:
        changes["min_count"] = min(group.min_count, count)
    return group.model_copy(update=changes)
