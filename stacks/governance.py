"""The stack of governance: who keeps the quotas, the quotas themselves, and what keeps teams apart."""

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from constructs import Construct

from ..cdk8s_charts.deployment_readers import deployment_readers
from ..cdk8s_charts.team import team_namespaces, team_objects, team_roles
from ..cdk8s_charts.team_folders import team_folders
from ..config.catalog.charts import KAI, KUEUE, YUNIKORN
from ..config.catalog.images import Image
from ..config.catalog.instance_types import environment_types
from ..config.catalog.kubernetes_groups import KAI_CONTROLLER, KAI_READERS, KUEUE_READERS
from ..config.loading.artifacts import ChartArchive
from ..config.settings.environment import Environment
from ..config.settings.governance.task_governance import CONTROLLER
from ..config.settings.governance.teams import Engine
from ..constructs.eks.manifests import Manifests
from ..constructs.governance.compute_quotas import ComputeQuotas
from ..constructs.governance.task_governance import TaskGovernance
from ..constructs.hyperpod.nodes_ready.waiter import Place
from ..planning.helm.chart_values import system_placement
from ..planning.helm.wanted_charts import wanted_chart
from ..planning.jobs.queue import pod_priorities
from ..planning.kubernetes.deployed_values import DeployedValues
from ..planning.kubernetes.isolation import team_access
from ..planning.quota.policy import countable_groups, environment_policy
from .cluster import ClusterStack
from .eks import EksStack
from .network import NetworkStack


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
        environment: Environment,
        network: NetworkStack,
        eks: EksStack,
        cluster: ClusterStack,
        values: DeployedValues,
        charts: Mapping[str, ChartArchive],
        mirror: Mapping[str, Image],
    ) -> None:
        """Defines the stack of `environment`, which has an engine.

        Args:
            scope: The stage.
            construct_id: Id within the stage.
            environment: The environment.
            network: Its network.
            eks: Its control plane.
            cluster: Its HyperPod cluster, on whose nodes the engine runs.
            values: What the other stacks know of file systems.
            charts: The environment's charts by name; the engine's is installed from here.
            mirror: Where mirrored images lie, by the original's name.

        Raises:
            ValueError: an environment without an engine.
        """
        super().__init__(scope, construct_id, description="Quota engine, quotas and isolation of teams")
        engine = environment.governance.engine
        if engine is None:
            raise ValueError(f"environment {environment.name} has no quota engine")
        self._environment, self._cluster, self._charts, self._mirror = environment, cluster, charts, mirror
        control_plane = eks.control_plane
        self._place = Place(
            eks_cluster=control_plane.cluster,
            vpc=network.network.vpc,
            subnets=tuple(control_plane.subnets),
            security_group=control_plane.security_group,
            key=network.key,
        )
        self._policy = environment_policy(environment, environment_types(environment.instance_types))
        engines = {"hyperpod": self._hyperpod, "kueue": self._kueue, "kai": self._kai, "yunikorn": self._yunikorn}

        own_namespaces = engine != "hyperpod"
        self.isolation = self._isolate(engine, values) if own_namespaces else None
        """The teams' namespaces and what lies in them, if anything of it is ours."""
        self.quotas = engines[engine]()
        """What needs the teams' quotas depends on all of these."""
        if priorities := pod_priorities(environment.governance, environment.jobs.values()):
            from ..cdk8s_charts.priority_classes import priority_classes

            classes = priority_classes(priorities)
            Manifests(self, "PodPriorities", cluster=self._place.eks_cluster, objects=classes)
        if not own_namespaces and team_access(environment.governance):
            self.isolation = self._isolate(engine, values, after=self.quotas)

    def _isolate(self, engine: Engine, values: DeployedValues, after: Sequence[cdk.CfnResource] = ()) -> Manifests:
        teams = self._environment.governance.teams
        place = system_placement(self._environment.cluster, self._environment.instance_groups)
        objects = [
            *team_roles(),
            *team_folders(teams, values, place, self._mirror),
            *team_namespaces(engine, teams),
            *team_objects(engine, teams, values),
        ]
        return Manifests(self, "Isolation", cluster=self._place.eks_cluster, objects=objects, after=after)

    def _hyperpod(self) -> list[cdk.CfnResource]:
        """Task governance: the add-on, then what it takes from SageMaker."""
        environment, cluster = self._environment, self._cluster.cluster
        add_on = TaskGovernance(
            self,
            "TaskGovernance",
            settings=environment.cluster.eks,
            place=self._place,
            readers=deployment_readers("podwright-kueue-readers", group=KUEUE_READERS, deployment=CONTROLLER),
        )
        quotas = ComputeQuotas(
            self,
            "Quotas",
            governance=environment.governance,
            policy=self._policy,
            cluster_name=cluster.cluster_name,
            cluster_arn=cluster.cluster_arn,
            eks_cluster=self._place.eks_cluster,
            after=[add_on.ready],
            key=self._place.key,
            tags={"podwright:environment": environment.name, **environment.tags},
        )
        return [quotas.scheduler_config, *quotas.quotas.values()]

    def _kueue(self) -> list[cdk.CfnResource]:
        """Kueue of one's own, then its queues in the teams' namespaces."""
        from ..cdk8s_charts.kueue import kueue_objects
        from ..constructs.governance.kueue import KueueQueues

        environment = self._environment
        types = environment_types(environment.instance_types)
        kueue = KueueQueues(
            self,
            "Kueue",
            cluster=self._place.eks_cluster,
            archive=self._charts[KUEUE],
            values=self._values(KUEUE),
            objects=kueue_objects(self._policy, environment.governance.kueue, countable_groups(environment), types),
            after=[self.isolation.applied] if self.isolation else [],
        )
        return [kueue.applied]

    def _kai(self) -> list[cdk.CfnResource]:
        """KAI with a pool and a tree of queues for each group that teams use."""
        from ..cdk8s_charts.kai import kai_objects
        from ..constructs.governance.kai import Kai

        governance = self._environment.governance
        types = environment_types(self._environment.instance_types)
        values = self._values(KAI)
        objects = kai_objects(self._policy, governance.kai, types, governance.wait_for_pods)
        readers = deployment_readers("podwright-kai-readers", group=KAI_READERS, deployment=KAI_CONTROLLER)
        archive = self._charts[KAI]
        kai = Kai(self, "Kai", place=self._place, archive=archive, values=values, readers=readers, objects=objects)
        return [kai.applied]

    def _yunikorn(self) -> list[cdk.CfnResource]:
        """YuniKorn, or only its queues where the cluster runs it already."""
        from ..cdk8s_charts.yunikorn import yunikorn_objects
        from ..constructs.governance.yunikorn import YuniKorn

        settings = self._environment.governance.yunikorn
        yunikorn = YuniKorn(
            self,
            "YuniKorn",
            cluster=self._place.eks_cluster,
            archive=None if settings.existing else self._charts[YUNIKORN],
            values={} if settings.existing else self._values(YUNIKORN),
            objects=yunikorn_objects(self._policy, settings),
        )
        return [yunikorn.applied]

    def _values(self, name: str) -> Mapping[str, Any]:
        """The values of one of the environment's charts."""
        wanted = wanted_chart(self._environment, name, self._mirror)
        return wanted.values if wanted else {}
