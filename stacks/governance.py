"""The stack of governance: who keeps the quotas, the quotas themselves, and what keeps teams apart."""

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import Construct

from ..config.artifacts import ChartArchive
from ..config.environment import Environment
from ..config.images import Image
from ..config.quota_policy import environment_policy
from ..config.rules.run import environment_types
from ..constructs.compute_quotas import ComputeQuotas
from ..constructs.nodes_ready.waiter import Place
from ..constructs.task_governance import TaskGovernance
from .cluster import ClusterStack
from .eks import EksStack
from .network import NetworkStack


class GovernanceStack(cdk.Stack):
    """Quota engine, the teams' quotas, and what lies in the teams' namespaces: in that order. Stateless.

    With engine hyperpod the service makes a team's namespace when it gets the team's quota, so what lies in namespaces
    comes after the quotas, whatever the engine.
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
        engines = {"hyperpod": self._hyperpod}

        self.quotas = engines[engine]()
        """What needs the teams' quotas and namespaces depends on all of these."""

    def _hyperpod(self) -> list[cdk.CfnResource]:
        """Task governance: the add-on, then what it takes from SageMaker."""
        environment, cluster = self._environment, self._cluster.cluster
        add_on = TaskGovernance(self, "TaskGovernance", settings=environment.cluster.eks, place=self._place)
        quotas = ComputeQuotas(
            self,
            "Quotas",
            governance=environment.governance,
            policy=self._policy,
            cluster_name=cluster.cluster_name,
            cluster_arn=cluster.cluster_arn,
            after=[add_on.ready],
            key=self._place.key,
            tags={"podwright:environment": environment.name, **environment.tags},
        )
        return [quotas.scheduler_config, *quotas.quotas.values()]
