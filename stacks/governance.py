"""The stack of governance: who keeps the quotas, the quotas themselves, and what keeps teams apart."""

from collections.abc import Sequence

import aws_cdk as cdk
from constructs import Construct

from ..cdk8s_charts.namespace_readers import TEAM_NAMESPACE_READERS, namespace_readers
from ..cdk8s_charts.priority_classes import priority_classes
from ..cdk8s_charts.team import team_namespaces, team_objects, team_roles
from ..cdk8s_charts.team_folders import team_folders
from ..cdk8s_charts.team_guard import team_guard
from ..config.catalog.kubernetes_groups import NAMESPACE_READERS
from ..constructs.eks.manifests import Manifests
from ..constructs.hyperpod.nodes_ready.namespaces import NamespacesReady
from ..planning.helm.chart_values import system_placement
from ..planning.jobs.queue import pod_priorities
from ..planning.kubernetes.deployed_values import DeployedValues
from ..planning.kubernetes.isolation import awaited_namespaces, pod_freedoms
from ..planning.resolved import ResolvedEnvironment
from .cluster import ClusterStack
from .eks import EksStack
from .platform import PlatformStack
from .quota_engines import quota_engine
from .storage import StorageStack


class GovernanceStack(cdk.Stack):
    """Quota engine, the teams' quotas, and what lies in the teams' namespaces: in that order. Stateless.

    With engine hyperpod the service makes a team's namespace when it gets the team's quota, so what lies in namespaces
    comes after the quotas. With the others namespaces are ours, and come first, because queues lie in them.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resolved: ResolvedEnvironment,
        storage: StorageStack,
        eks: EksStack,
        cluster: ClusterStack,
        platform: PlatformStack | None,
    ) -> None:
        """Defines the stack of an environment with a quota engine, which runs on the nodes of `cluster`."""
        super().__init__(scope, construct_id, description="Quota engine, quotas and isolation of teams")
        # Nothing of it refers to the cluster stack, so CloudFormation would not see the order.
        self.add_stack_dependency(cluster, "the quota engine runs on its nodes")
        if platform:
            self.add_stack_dependency(platform, "the quota engine looks for kinds of jobs when it starts")
        governance = resolved.environment.governance
        # Roles of service accounts are left out: no object here names one, and the stack that makes them comes later.
        values = DeployedValues(
            cluster_arn=cluster.cluster.cluster_arn,
            eks_cluster_name=eks.control_plane.cluster.cluster_name,
            checkpoint_bucket=storage.checkpoint_bucket.bucket_name,
            lustre=storage.lustre_values,
            roles={},
            mlflow=(platform.mlflow_arn if platform else None) or "",
        )
        own_namespaces = governance.engine != "hyperpod"
        self.isolation = self._isolate(resolved, eks, values) if own_namespaces else None
        """The teams' namespaces and what lies in them, if anything of it is ours."""
        after = [self.isolation.applied] if self.isolation else []
        quotas = quota_engine(self, resolved=resolved, api_access=eks.api_access, cluster=cluster.cluster, after=after)
        if priorities := pod_priorities(governance, resolved.environment.jobs.values()):
            classes = priority_classes(priorities)
            Manifests(self, "PodPriorities", cluster=eks.api_access.eks_cluster, objects=classes)
        # The service makes namespaces some time after it has answered that the quotas are there.
        if namespaces := awaited_namespaces(governance):
            teams = NamespacesReady(
                self,
                "TeamNamespaces",
                api_access=eks.api_access,
                namespaces=namespaces,
                made_by=quotas,
                group=NAMESPACE_READERS,
                readers=namespace_readers(TEAM_NAMESPACE_READERS, group=NAMESPACE_READERS, namespaces=namespaces),
            )
            self.isolation = self._isolate(resolved, eks, values, after=[teams.ready])

    def _isolate(
        self,
        resolved: ResolvedEnvironment,
        eks: EksStack,
        values: DeployedValues,
        after: Sequence[cdk.CfnResource] = (),
    ) -> Manifests:
        """Namespaces of teams, folders, roles and what else lies in them."""
        environment = resolved.environment
        teams, engine = environment.governance.teams, environment.governance.engine or "hyperpod"
        placement = system_placement(environment.cluster, environment.instance_groups)
        objects = [
            *team_roles(),
            *team_folders(teams, values, placement, resolved.mirror),
            *team_namespaces(engine, teams),
            *team_objects(engine, teams, values),
            *team_guard(engine, pod_freedoms(environment.governance, environment.jobs.values())),
        ]
        return Manifests(self, "Isolation", cluster=eks.api_access.eks_cluster, objects=objects, after=after)
