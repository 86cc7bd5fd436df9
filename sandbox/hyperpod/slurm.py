"""HyperPod's requirements for clusters with Slurm.

Sources: SageMaker Developer Guide, "SageMaker HyperPod Slurm configuration", "Migrating to API-driven Slurm
configuration" (messages of errors) and "Continuous provisioning for enhanced cluster operations with Slurm",
2026-11. Messages without a source end with "(sandbox)".
"""

from typing import Any

from botocore.exceptions import ClientError

from ..protocol.json_objects import JsonObject
from ..protocol.service import refuse
from .cluster import Group


def check(cluster: str, request: JsonObject, groups: list[Group]) -> None:
    """Raise the API's error for a cluster without EKS that it refuses."""
    orchestrator = request.get("Orchestrator", {})
    if "Eks" in orchestrator:
        return
    types = [group.slurm_type for group in groups if group.slurm_type]
    settings, continuous = orchestrator.get("Slurm", {}), request.get("NodeProvisioningMode") == "Continuous"
    controllers = types.count("Controller")
    if (types or "Slurm" in orchestrator) and controllers == 0:
        raise refuse("ValidationException", f"Cluster {cluster} has no InstanceGroup with Controller node type.")
    if controllers > 1:
        raise refuse(
            "ValidationException",
            f"{controllers} Controller Groups found: SlurmConfig for InstanceGroups may only have one Controller "
            "Group.",
        )
    if types.count("Login") > 1:
        raise refuse("ValidationException", "At most one instance group can have node type Login (sandbox)")
    for group in groups:
        partitions = group.specification.get("SlurmConfig", {}).get("PartitionNames", [])
        if partitions and group.slurm_type != "Compute":
            raise refuse("ValidationException", "Partitions can only be assigned to Compute node types")
        if group.slurm_type == "Compute" and not partitions:
            raise refuse("ValidationException", f"Instance group {group.name} has no PartitionNames (sandbox)")
    if continuous and "SlurmConfigStrategy" in settings:
        raise refuse(
            "ValidationException", "SlurmConfigStrategy is not supported with continuous provisioning (sandbox)"
        )
    if "AccountingDatabase" in settings and not continuous:
        raise refuse("ValidationException", "AccountingDatabase needs NodeProvisioningMode Continuous (sandbox)")


def check_immutable(before: dict[str, Group], groups: list[Group]) -> None:
    """Raise the API's error for a change of a group's Slurm node type."""
    for group in groups:
        old = before.get(group.name)
        if old and old.slurm_type != group.slurm_type:
            raise refuse(
                "ValidationException",
                f"NodeType of instance group {group.name} is {old.slurm_type} and cannot be changed (sandbox)",
            )


def two_masters(s3: Any, groups: list[Group]) -> str | None:
    """Return the error of a cluster that both the API and a file next to the scripts configure; None otherwise."""
    for group in groups:
        source = group.specification.get("LifeCycleConfig", {}).get("SourceS3Uri")
        if group.slurm_type and source:
            bucket, _, prefix = source.removeprefix("s3://").partition("/")
            key = "/".join(filter(None, [prefix.strip("/"), "provisioning_parameters.json"]))
            try:
                s3.head_object(Bucket=bucket, Key=key)
            except ClientError:
                continue
            return (
                "The LifeCycleConfig cannot include both a SLURM Orchestrator Config and a "
                "provisioning_parameters.json file simultaneously."
            )
    return None
