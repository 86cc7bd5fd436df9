"""Lifting every protection of an environment in the sandbox, where none of them protects anything."""

from ..aws.account import Account
from ..aws.calls import change, get
from ..aws.stacks import Stack, protect
from .contents import bucket_content
from .data import Say, empty_bucket
from .stacks import resources_of


def lift_protection(account: Account, stacks: list[Stack], say: Say) -> None:
    """Lift the protection of stacks and clusters against deletion, and empty the buckets that go with their stacks.

    Args:
        account: An account of the sandbox.
        stacks: All stacks of the environment.
        say: Is told what happens, by name.
    """
    for stack in [stack for stack in stacks if stack.protected]:
        protect(account, stack.name, protected=False)
        say(stack.name, "is no longer protected")
    for item in [item for items in resources_of(account, stacks).values() for item in items]:
        if item.type == "AWS::EKS::Cluster":
            if get(account, "eks", "describe_cluster", name=item.name)["cluster"].get("deletionProtection"):
                change(account, "eks", "update_cluster_config", name=item.name, deletionProtection=False)
                say(item.name, "is no longer protected")
        elif item.type == "AWS::RDS::DBCluster":
            change(account, "rds", "modify_db_cluster", DBClusterIdentifier=item.name, DeletionProtection=False)
            say(item.name, "is no longer protected")
        elif item.type == "AWS::S3::Bucket" and not item.retained and bucket_content(account, item.name):
            empty_bucket(account, item.name, say)
