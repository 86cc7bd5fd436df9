"""What several checks ask of an account, and what they read from an environment."""

from collections.abc import Iterator
from typing import Any

from ...config.catalog.instance_types import Catalog
from ...config.catalog.regions import UnknownRegion
from ...config.catalog.regions import region as known_region
from ...config.findings import Path
from ...config.settings.environment import Environment
from ...config.settings.groups import AnyGroup, InstanceGroup
from ...planning.rules.capacity.zones import sections
from ...planning.rules.groups.groups import known
from .check import Ask

STACK_PARTS = ("network", "storage", "eks", "capacity", "cluster", "platform", "governance")
"""The stacks that an environment may have; their names begin with its own."""


def stack(ask: Ask, part: str) -> dict[str, Any] | None:
    """CloudFormation's description of a stack of the environment; None when there is none."""
    name = f"{ask.environment.name}-{part}"
    result = ask.aws.find("cloudformation", "describe_stacks", {"ValidationError"}, StackName=name)
    return result["Stacks"][0] if result and result["Stacks"] else None


def cluster(ask: Ask, name: str | None = None) -> dict[str, Any] | None:
    """A HyperPod cluster, by default that of the environment; None when there is none."""
    desired = name or ask.environment.cluster.name
    return ask.aws.find("sagemaker", "describe_cluster", {"ResourceNotFound"}, ClusterName=desired)


def other_clusters(ask: Ask) -> Iterator[dict[str, Any]]:
    """The HyperPod clusters of the account that are not the environment's."""
    for summary in ask.aws.pages("sagemaker", "list_clusters", "ClusterSummaries"):
        if summary["ClusterName"] != ask.environment.cluster.name and (result := cluster(ask, summary["ClusterName"])):
            yield result


def running(ask: Ask) -> dict[str, int]:
    """The nodes that each group of the environment has today."""
    existing = cluster(ask) or {}
    groups = (*existing.get("InstanceGroups", ()), *existing.get("RestrictedInstanceGroups", ()))
    return {group["InstanceGroupName"]: group["CurrentCount"] for group in groups}


def own_groups(environment: Environment) -> Iterator[tuple[Path, InstanceGroup]]:
    """The ordinary groups with their paths."""
    for path, group in sections(environment):
        if isinstance(group, InstanceGroup):
            yield path, group


def addresses(group: AnyGroup, types: Catalog, environment: Environment) -> int:
    """Addresses that one node of the group takes, of mixed types the most."""
    interface = group.network_interface if isinstance(group, InstanceGroup) else None
    orchestrator = environment.cluster.orchestrator
    return max((row.addresses(orchestrator, interface or "efa").total for row in known(group, types)), default=0)


def partition(region: str) -> str:
    """The partition in ARNs of a region."""
    try:
        return known_region(region).partition
    except UnknownRegion:
        return "aws"
