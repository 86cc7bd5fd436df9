"""HyperPod task governance: the quota engine that comes as an EKS add-on and takes its quotas from SageMaker's API."""

from typing import Annotated, Final, Literal

from pydantic import StringConstraints

from ..base import Settings

ADDON: Final = "amazon-sagemaker-hyperpod-taskgovernance"
"""The EKS add-on, with a Kueue of its own inside."""
NAMESPACE: Final = "kueue-system"
"""Where the add-on's Kueue runs. Source: Terraform of awslabs/awsome-distributed-ai, 2026-07-23."""
CONTROLLER: Final = "kueue-controller-manager"
"""The Deployment that serves Kueue's webhooks; no quota can be made before it is ready. Source: the same."""

NAMED_REGIONS: Final = ("ap-southeast-3",)
"""Regions that the description of AWS::SageMaker::ComputeQuota names and the lists of both types lack. Source: its
CloudFormation schema, 2026-10-20."""

QuotaType = Literal["compute_quota", "scheduler_config"]

TYPES: Final[dict[QuotaType, str]] = {
    "compute_quota": "AWS::SageMaker::ComputeQuota",
    "scheduler_config": "AWS::SageMaker::ClusterSchedulerConfig",
}
"""CloudFormation's types for them."""


# Source: CloudFormation schemas of both types, 2026-10-20.
ObjectName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$", max_length=63)]
Description = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=1024)]


class ComputeQuota(Settings):
    """What a team's compute quota of engine hyperpod is called, and whether it holds."""

    name: ObjectName | None = None
    """Its name. Default: the team's. A change replaces the quota."""
    description: Description | None = None
    """What it is for, as the SageMaker console shows it."""
    state: Literal["enabled", "disabled"] | None = None
    """disabled keeps the quota and turns it off. SageMaker's default is enabled."""


class TaskGovernance(Settings):
    """Settings of engine hyperpod."""

    name: ObjectName | None = None
    """Name of the scheduler configuration. Default: the cluster's. A change replaces it."""
    description: Description | None = None
    """What the scheduler configuration is for, as the SageMaker console shows it."""

    fallback: tuple[QuotaType, ...] = ()
    """Resource types that CloudFormation lacks in your region. A function of ours makes what they would, through
    SageMaker's API."""
