"""What the stacks of an environment made, found by type: no name is ours to guess."""

from ...config.settings.environment import Environment
from ..output.console import Stop
from .account import Account


def physical_id(account: Account, stack: str, resource_type: str) -> str:
    """The physical id of the only resource of a type in a stack. Raises Stop when there is no stack or no resource."""
    client = account.client("cloudformation")
    try:
        pages = client.get_paginator("list_stack_resources").paginate(StackName=stack)
        found = [
            item["PhysicalResourceId"]
            for page in pages
            for item in page["StackResourceSummaries"]
            if item["ResourceType"] == resource_type and item.get("PhysicalResourceId")
        ]
    except client.exceptions.ClientError:
        raise Stop(f"there is no stack {stack} in {account}", "deploy the environment first") from None
    if len(found) != 1:
        raise Stop(f"{stack} has {len(found)} resources of type {resource_type}", "deploy the environment again")
    return found[0]


def eks_cluster_name(account: Account, environment: Environment) -> str:
    """The name of the environment's EKS cluster, new or existing."""
    existing = environment.cluster.eks.existing
    return existing.name if existing else physical_id(account, f"{environment.name}-eks", "AWS::EKS::Cluster")
