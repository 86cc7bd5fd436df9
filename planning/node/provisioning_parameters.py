"""provisioning_parameters.json: the older way to tell HyperPod what the groups of a Slurm cluster are.

Source: SageMaker Developer Guide, "SageMaker HyperPod Slurm configuration", and "Preparing and uploading lifecycle
scripts" for several controllers, 2026-11.
"""

from collections.abc import Mapping
from typing import Any, Final

from ...config.settings.groups import InstanceGroup
from ...config.settings.slurm import Slurm
from .facts import LustreMount
from .slurm_facts import AccountingFacts

FILE: Final = "provisioning_parameters.json"
"""Its name, beside the lifecycle scripts. HyperPod refuses it together with configuration by the API."""


def provisioning_parameters(
    *,
    settings: Slurm,
    groups: Mapping[str, InstanceGroup],
    lustre: LustreMount | None,
    accounting: AccountingFacts | None,
    database_user: str = "",
) -> dict[str, Any]:
    """The content of the file.

    Args:
        settings: The orchestrator.
        groups: Instance groups by name, each with its part in Slurm. One is the controllers'.
        lustre: The file system that all nodes mount.
        accounting: The database outside the controllers; with several controllers there has to be one.
        database_user: The user that its secret holds.
    """
    parts = {name: group.slurm for name, group in sorted(groups.items()) if group.slurm}
    parameters: dict[str, Any] = {
        "version": "1.0.0",
        "workload_manager": "slurm",
        "controller_group": next(name for name, part in parts.items() if part.node_type == "controller"),
        "worker_groups": [
            {"instance_group_name": name, "partition_name": part.partition}
            for name, part in parts.items()
            if part.node_type == "compute"
        ],
    }
    for name, part in parts.items():
        if part.node_type == "login":
            parameters["login_group"] = name
    if lustre:
        parameters |= {"fsx_dns_name": lustre.dns_name, "fsx_mountname": lustre.mount_name}
    if settings.shared_directory and accounting:
        parameters["slurm_configurations"] = {
            "slurm_database_endpoint": accounting.host,
            "slurm_database_secret_arn": accounting.secret_arn,
            "slurm_database_user": database_user,
            "slurm_shared_directory": settings.shared_directory,
            **({"slurm_sns_arn": settings.failover_topic} if settings.failover_topic else {}),
        }
    return parameters
