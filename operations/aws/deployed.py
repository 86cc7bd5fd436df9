"""What the stacks of an environment made, found by type: no name is ours to guess."""

from typing import Any
from urllib.parse import urlsplit

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from .account import Account
from .calls import get
from .stacks import stack_resources


def physical_id(account: Account, name: str, resource_type: str) -> str:
    """The physical id of the only resource of a type in a stack. Raises CommandError without stack or resource."""
    from botocore.exceptions import ClientError

    try:
        held = stack_resources(account, name)
    except ClientError:
        raise CommandError(f"there is no stack {name} in {account}", "deploy the environment first") from None
    names = [item.name for item in held if item.type == resource_type and item.name]
    if len(names) != 1:
        raise CommandError(f"{name} has {len(names)} resources of type {resource_type}", "deploy the environment again")
    return names[0]


def eks_cluster_name(account: Account, environment: Environment) -> str:
    """The name of the environment's EKS cluster, new or existing."""
    existing = environment.cluster.eks.existing
    return existing.name if existing else physical_id(account, f"{environment.name}-eks", "AWS::EKS::Cluster")


def eks_cluster(account: Account, environment: Environment) -> dict[str, Any]:
    """The environment's EKS cluster as EKS describes it."""
    return get(account, "eks", "describe_cluster", name=eks_cluster_name(account, environment))["cluster"]


def stand_in_version(cluster: dict[str, Any]) -> str:
    """The Kubernetes, such as 1.34.4, that the sandbox runs a cluster on where its own minor version is another."""
    marker, _, version = cluster["platformVersion"].partition(".")
    return version if marker == "kubernetes" and not version.startswith(f"{cluster['version']}.") else ""


def is_store(cluster: dict[str, Any]) -> bool:
    """Whether an EKS cluster is one of the sandbox that stores objects: those share a server, each below a path."""
    return bool(urlsplit(cluster["endpoint"]).path)
