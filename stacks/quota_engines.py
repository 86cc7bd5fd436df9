"""The quota engines, each with the teams' quotas in its own terms. An environment has one of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk

from ..cdk8s_charts.deployment_readers import deployment_readers
from ..cdk8s_charts.kai import kai_objects
from ..cdk8s_charts.kueue import kueue_objects
from ..cdk8s_charts.yunikorn import yunikorn_objects
from ..config.catalog.charts import KAI, KUEUE, YUNIKORN
from ..config.catalog.kubernetes_groups import KAI_CONTROLLER, KAI_READERS, KUEUE_READERS
from ..config.settings.governance.task_governance import CONTROLLER
from ..constructs.governance.compute_quotas import ComputeQuotas
from ..constructs.governance.kai import Kai
from ..constructs.governance.kueue import KueueQueues
from ..constructs.governance.task_governance import TaskGovernance
from ..constructs.governance.yunikorn import YuniKorn
from ..constructs.hyperpod.cluster_interface import IHyperPodCluster
from ..constructs.hyperpod.nodes_ready.waiter import KubernetesApiAccess
from ..planning.quota.policy import QuotaPolicy, countable_groups
from ..planning.resolved import ResolvedEnvironment


@dataclass(frozen=True)
class _Site:
    """What every engine stands on."""

    stack: cdk.Stack
    resolved: ResolvedEnvironment
    policy: QuotaPolicy
    api_access: KubernetesApiAccess
    cluster: IHyperPodCluster
    after: Sequence[cdk.CfnResource]


def quota_engine(
    stack: cdk.Stack,
    *,
    resolved: ResolvedEnvironment,
    api_access: KubernetesApiAccess,
    cluster: IHyperPodCluster,
    after: Sequence[cdk.CfnResource],
) -> list[cdk.CfnResource]:
    """Add the environment's engine and quotas; returns what makes namespaces of teams, where that is not podwright.

    Args:
        stack: Where it lies.
        resolved: The environment.
        api_access: Where functions run that wait for it.
        cluster: The HyperPod cluster.
        after: Namespaces that have to be there before.

    Raises:
        ValueError: an environment without an engine.
    """
    engine, policy = resolved.environment.governance.engine, resolved.quota_policy
    if engine is None or policy is None:
        raise ValueError(f"environment {resolved.environment.name} has no quota engine")
    site = _Site(stack, resolved, policy, api_access, cluster, after)
    if engine == "hyperpod":
        return _task_governance(site)
    {"kueue": _kueue, "kai": _kai, "yunikorn": _yunikorn}[engine](site)
    return []


def _task_governance(site: _Site) -> list[cdk.CfnResource]:
    """Task governance: the add-on, then what it takes from SageMaker."""
    environment = site.resolved.environment
    readers = deployment_readers("podwright-kueue-readers", group=KUEUE_READERS, deployment=CONTROLLER)
    add_on = TaskGovernance(
        site.stack, "TaskGovernance", settings=environment.cluster.eks, api_access=site.api_access, readers=readers
    )
    quotas = ComputeQuotas(
        site.stack,
        "Quotas",
        governance=environment.governance,
        policy=site.policy,
        cluster_name=site.cluster.cluster_name,
        cluster_arn=site.cluster.cluster_arn,
        eks_cluster=site.api_access.eks_cluster,
        after=[add_on.ready],
        key=site.api_access.key,
        tags=site.resolved.tags,
    )
    return [quotas.scheduler_config, *quotas.quotas.values()]


def _kueue(site: _Site) -> None:
    """Kueue of one's own, then its queues in the teams' namespaces."""
    environment, chart = site.resolved.environment, site.resolved.charts[KUEUE]
    groups = countable_groups(environment)
    objects = kueue_objects(site.policy, environment.governance.kueue, groups, site.resolved.types)
    cluster, archive = site.api_access.eks_cluster, chart.archive
    KueueQueues(
        site.stack, "Kueue", cluster=cluster, archive=archive, values=chart.values, objects=objects, after=site.after
    )


def _kai(site: _Site) -> None:
    """KAI with a pool and a tree of queues for each group that teams use."""
    governance, chart, stack = site.resolved.environment.governance, site.resolved.charts[KAI], site.stack
    objects = kai_objects(site.policy, governance.kai, site.resolved.types, governance.wait_for_pods)
    readers = deployment_readers("podwright-kai-readers", group=KAI_READERS, deployment=KAI_CONTROLLER)
    access, archive = site.api_access, chart.archive
    Kai(stack, "Kai", api_access=access, archive=archive, values=chart.values, readers=readers, objects=objects)


def _yunikorn(site: _Site) -> None:
    """YuniKorn, or only its queues where the cluster runs it already."""
    settings, chart = site.resolved.environment.governance.yunikorn, site.resolved.charts.get(YUNIKORN)
    YuniKorn(
        site.stack,
        "YuniKorn",
        cluster=site.api_access.eks_cluster,
        archive=chart.archive if chart else None,
        values=chart.values if chart else {},
        objects=yunikorn_objects(site.policy, settings),
    )
