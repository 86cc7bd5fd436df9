"""Quotas of teams on a HyperPod cluster, from what the teams are guaranteed."""

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from ...config.catalog.regions import UnknownRegion, region
from ...config.settings.base import Tags
from ...config.settings.governance.teams import Governance
from ...config.settings.groups import InstanceGroup
from ...planning.quota.policy import quota_policy
from ...planning.rules.parts import Parts, complete
from ..common.arguments import annotate, checked, refusal
from ..hyperpod.cluster_interface import IHyperPodCluster
from .compute_quotas import ComputeQuotas


class TeamQuotas(Construct):
    """Priorities and quotas of teams, kept by task governance on the cluster's EKS cluster.

    The cluster may be made here or elsewhere; its instance groups say what a quota of instances comes to, and are held
    against the quotas as in an environment file. It needs the task-governance add-on (see `TaskGovernance`).

    Example:
        from podwright.config.settings.governance.teams import Team
        from podwright.constructs.hyperpod.hyperpod_cluster import HyperPodCluster
        prod = HyperPodCluster.from_cluster_attributes(stack, "Prod", cluster_name="prod", cluster_arn=arn,
                                                       eks_cluster=cluster)
        groups = {"system": InstanceGroup(instance_type="ml.m5.4xlarge", count=2),
                  "h200": InstanceGroup(instance_type="ml.p5en.48xlarge", count=4)}
        TeamQuotas(stack, "Quotas", cluster=prod, instance_groups=groups,
                   governance=Governance(priorities={"training": 70}, teams={"llm": Team(quota={"h200": 2})}))
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: IHyperPodCluster,
        governance: Governance,
        instance_groups: Mapping[str, InstanceGroup] | None = None,
        instance_types: Mapping[str, Mapping[str, Any]] | None = None,
        key: kms.IKey | None = None,
        tags: Tags | None = None,
        acknowledge: Mapping[str, str] | None = None,
    ) -> None:
        """Defines the quotas.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster: The cluster, which EKS orchestrates.
            governance: Teams and priorities.
            instance_groups: The cluster's groups by name; those of a `HyperPodCluster` are known.
            instance_types: Facts that replace or complete those of the catalog, by type and field.
            key: Encrypts the logs of a function where CloudFormation lacks the types.
            tags: Tags of the quotas.
            acknowledge: Findings that are accepted: reasons by rule id.

        Raises:
            InvalidSettings: what the same settings in an environment file would be refused for.
        """
        super().__init__(scope, construct_id)
        groups = instance_groups if instance_groups is not None else getattr(cluster, "instance_groups", None)
        if groups is None:
            hint = "pass instance_groups={name: InstanceGroup(...)} as the cluster has them"
            raise refusal("instance_groups", "the groups of a cluster that is made elsewhere are unknown", hint)
        if cluster.eks_cluster is None:
            raise refusal(
                "cluster", "the cluster has no EKS cluster", "name it, or let Slurm keep its quotas", "GOV026"
            )
        stack = cdk.Stack.of(self)
        completed = complete(
            Parts(
                zones=_zones(groups, stack),
                cluster={"name": cluster.cluster_name},
                instance_groups=groups,
                governance=governance,
                instance_types=instance_types or {},
                region=None if cdk.Token.is_unresolved(stack.region) else stack.region,
                acknowledge=acknowledge or {},
            )
        )
        if completed.environment.governance.engine != "hyperpod":
            engine = completed.environment.governance.engine
            raise refusal("governance.engine", f"engine is {engine}; allowed: hyperpod", "name teams or priorities")
        annotate(self, [finding for finding in completed.findings if finding.path.startswith("governance")])

        made = ComputeQuotas(
            self,
            "Default",
            governance=completed.environment.governance,
            policy=quota_policy(
                completed.environment.governance, completed.environment.instance_groups, completed.types
            ),
            cluster_name=cluster.cluster_name,
            cluster_arn=cluster.cluster_arn,
            eks_cluster=cluster.eks_cluster,
            key=key,
            tags=tags,
        )
        self.scheduler_config = made.scheduler_config
        """The scheduler configuration."""
        self.quotas = made.quotas
        """The quotas by team."""


def _zones(groups: Any, stack: cdk.Stack) -> list[str]:
    """The zones that the groups name; else one of the region, since quotas do not depend on them."""
    named = {zone for group in groups.values() for zone in getattr(group, "zone_ids", ())} if groups else set()
    try:
        prefix = region(stack.region).zone_prefix
    except UnknownRegion:
        prefix = None
    return sorted(named) or [f"{prefix or 'usw2'}-az1"]
