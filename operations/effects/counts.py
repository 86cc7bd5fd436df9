"""How many nodes each group really has, and which groups a deployment would make smaller.

CloudFormation compares templates with templates. But whenever it touches the cluster for whatever reason, it sends the
counts of the template along, so a group that somebody enlarged by hand shrinks with a change of a label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..aws.account import Account
from ..aws.clusters import Cluster
from ..aws.clusters import cluster as find_cluster
from .changes import ResourceChange

CLUSTER: Final = "AWS::SageMaker::Cluster"


@dataclass(frozen=True, slots=True)
class Group:
    """A group as it is now."""

    target: int
    """Nodes that HyperPod keeps it at. Unlike the nodes that run, it stays while one is replaced."""
    scaled: bool
    """Whether Karpenter sets that number."""


@dataclass(frozen=True, slots=True)
class CountDecrease:
    """A group that would have fewer nodes afterwards."""

    group: str
    before: int
    after: int
    removed: bool = False
    """Whether the whole group goes."""

    def __str__(self) -> str:
        return f"{self.group} {self.before} → {self.after}"


def live_groups(account: Account, cluster: str) -> dict[str, Group]:
    """The groups of a cluster; none when there is no such cluster."""
    resolved_cluster = find_cluster(account, cluster)
    return groups_of(resolved_cluster) if resolved_cluster else {}


def groups_of(cluster: Cluster) -> dict[str, Group]:
    """The groups of a cluster.

    With autoscaling on, Karpenter may scale every ordinary group: which ones, only its node classes in Kubernetes say.
    Restricted groups are never its.

    Source: SageMaker Developer Guide, "Autoscaling on SageMaker HyperPod EKS", 2026-11.
    """
    return {group.name: Group(group.target, cluster.scales and not group.restricted) for group in cluster.groups}


def counts(properties: Mapping[str, Any]) -> dict[str, int]:
    """The counts that a template gives the groups of a cluster."""
    groups = [*properties.get("InstanceGroups", ()), *properties.get("RestrictedInstanceGroups", ())]
    return {group["InstanceGroupName"]: int(group["InstanceCount"]) for group in groups}


def falls(changes: Sequence[ResourceChange], live: Mapping[str, Group]) -> list[CountDecrease]:
    """The groups that a deployment would make smaller: by the template, or because it was enlarged since.

    Without a cluster that runs, the counts of the old template stand for the nodes.
    """
    results = []
    for change in changes:
        if change.type != CLUSTER or change.action not in ("update", "replace"):
            continue
        old, new = counts(change.old), counts(change.new)
        was_scaled = change.old.get("AutoScaling", {}).get("Mode") == "Enable"
        # What HyperPod holds, and not the template: somebody may have changed the count by hand since.
        groups = live or {name: Group(count, was_scaled) for name, count in old.items()}
        for name, group in groups.items():
            if name not in new and name not in old:
                # Not CloudFormation's: it deletes only what its own template had.
                continue
            after = new.get(name, 0)
            # Karpenter lowers and raises its groups by itself; that a whole group goes is the template's doing.
            if group.target > after and not (group.scaled and name in new):
                results.append(CountDecrease(name, group.target, after, name not in new))
    return results
