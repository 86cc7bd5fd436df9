"""What the stacks of an environment made, found by type: no name is ours to guess."""

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from .account import Account


def physical_id(account: Account, stack: str, resource_type: str) -> str:
    """The physical id of the only resource of a type in a stack. Raises CommandError without stack or resource."""
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
        raise CommandError(f"there is no stack {stack} in {account}", "deploy the environment first") from None
    if len(found) != 1:
        raise CommandError(
            f"{stack} has {len(found)} resources of type {resource_type}", "deploy the environment again"
        )
    return found[0]


def eks_cluster_name(account: Account, environment: Environment) -> str:
    """The name of the environment's EKS cluster, new or existing."""
    existing = environment.cluster.eks.existing
    return existing.name if existing else physical_id(account, f"{environment.name}-eks", "AWS::EKS::Cluster")
