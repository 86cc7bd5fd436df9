"""HyperPod task governance: the quota engine that comes as an EKS add-on and takes its quotas from SageMaker's API."""

from typing import Final, Literal

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


class TaskGovernance(Settings):
    """Settings of engine hyperpod."""

    fallback: tuple[QuotaType, ...] = ()
    """Resource types that CloudFormation lacks in your region. A function of ours makes what they would, through
    SageMaker's API."""
