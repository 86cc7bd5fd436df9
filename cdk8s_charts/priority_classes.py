"""Kubernetes' own priority classes, for the engines that schedule pods themselves."""

from collections.abc import Mapping
from typing import Any

from ..planning.quota.team_names import pod_priority_class


def priority_classes(priorities: Mapping[str, int]) -> list[dict[str, Any]]:
    """A PriorityClass for each priority, with its weight as value; pods without one have 0, as ever.

    Values stay far below those of other software on the cluster, so Kubernetes' own scheduler stops nobody else's pods
    for them.
    """
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": pod_priority_class(name, weight)},
            "value": weight,
            "globalDefault": False,
            "description": f"Weight {weight} of the quota policy.",
        }
        for name, weight in priorities.items()
    ]
