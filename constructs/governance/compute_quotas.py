"""What task governance takes from SageMaker: the cluster's scheduler configuration and a quota for each team."""

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_kms as kms
from constructs import Construct

from ...config.settings.base import Tags
from ...config.settings.governance.task_governance import TYPES, QuotaType
from ...config.settings.governance.teams import Governance
from ...planning.quota.compute_quotas import compute_quotas, scheduler_config
from ...planning.quota.policy import QuotaPolicy
from ...planning.rules import check
from .compute_quota_fallback.construct import ComputeQuotaFallback


class ComputeQuotas(Construct):
    """`AWS::SageMaker::ClusterSchedulerConfig` of a cluster, then `AWS::SageMaker::ComputeQuota` of each team.

    With a quota the service makes the team's namespace `hyperpod-ns-<team>` with its queue in it, and with the
    configuration the priority classes that jobs name. Both need the task-governance add-on with its Kueue running.

    Decided for you: every default is written out, so that a difference between a template and the cluster is a real
    one; a quota is called as its team is, the configuration as the cluster is, unless the file names them. A new
    name of a team is a new quota and a new namespace; what becomes of the old one and of what runs in it is not
    documented, so empty it first.
    Source: CloudFormation schemas of both types, 2026-10-20.

    Example:
        from podwright.config.catalog.instance_types import catalog
        from podwright.config.settings.groups import InstanceGroup
        from podwright.planning.quota.policy import quota_policy
        from podwright.config.settings.governance.teams import Governance
        governance = Governance.model_validate({"engine": "hyperpod", "teams": {"llm": {"quota": {"h200": 2}}}})
        groups = {"h200": InstanceGroup(instance_type="ml.p5en.48xlarge", count=4, zone="usw2-az2")}
        ComputeQuotas(stack, "Quotas", governance=governance, policy=quota_policy(governance, groups, catalog()),
                      cluster_name="prod", cluster_arn="arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl",
                      eks_cluster=cluster)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        governance: Governance,
        policy: QuotaPolicy,
        cluster_name: str,
        cluster_arn: str,
        eks_cluster: eks.ICluster,
        after: Sequence[cdk.CfnResource] = (),
        key: kms.IKey | None = None,
        tags: Tags | None = None,
    ) -> None:
        """Defines the configuration and the quotas.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            governance: Teams and priorities, for engine hyperpod.
            policy: What they come to.
            cluster_name: Name of the HyperPod cluster.
            cluster_arn: Its ARN.
            eks_cluster: EKS cluster that orchestrates it.
            after: What has to be there first: Kueue's controller.
            key: Encrypts the logs of the function that takes the place of CloudFormation's types.
            tags: Tags of all of them.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(governance)
        self._tags = [{"Key": name, "Value": value} for name, value in (tags or {}).items()]
        self._cluster_arn, fallback = cluster_arn, governance.task_governance.fallback
        description = governance.task_governance.description
        self._fallback = (
            ComputeQuotaFallback(self, "Fallback", cluster_arn=cluster_arn, eks_cluster=eks_cluster, key=key)
            if fallback
            else None
        )
        self._by_api = fallback
        if len(fallback) < len(TYPES):
            cdk.Validations.of(self).acknowledge(
                cdk.Acknowledgment(
                    id="CloudFormation-Validate::F3006",
                    reason="The validator does not know compute quotas at all, and AWS's lists of regions of the two "
                    "types contradict each other; a rule says where both lack one, and preflight asks the region.",
                )
            )

        self.scheduler_config = self._define(
            "SchedulerConfig",
            "scheduler_config",
            {
                "Name": governance.task_governance.name or cluster_name,
                **({"Description": description} if description else {}),
                "SchedulerConfig": scheduler_config(governance, policy),
            },
            after,
        )
        """The scheduler configuration."""
        self.quotas = {
            team: self._define(f"Quota-{team}", "compute_quota", properties, [self.scheduler_config])
            for team, properties in compute_quotas(governance, policy).items()
        }
        """The quotas by team; what lies in a team's namespace depends on its quota."""

    def _define(
        self, construct_id: str, kind: QuotaType, properties: Mapping[str, Any], after: Sequence[cdk.CfnResource]
    ) -> cdk.CfnResource:
        full = {**properties, "ClusterArn": self._cluster_arn, **({"Tags": self._tags} if self._tags else {})}
        if self._fallback and kind in self._by_api:
            resource = self._fallback.resource(self, construct_id, resource_type=TYPES[kind], properties=full)
        else:
            resource = cdk.CfnResource(self, construct_id, type=TYPES[kind], properties=full)
            # Who lints the template hears the same contradiction of lists.
            resource.add_metadata("cfn-lint", {"config": {"ignore_checks": ["E3006"]}})
        for earlier in after:
            resource.add_resource_dependency(earlier)
        return resource
