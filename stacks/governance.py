"""The stack of governance: who keeps the quotas, the quotas themselves, and what keeps teams apart."""

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import Construct

from ..config.artifacts import ChartArchive
from ..config.environment import Environment
from ..config.images import Image
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
        """
        super().__init__(scope, construct_id, description="Quota engine, quotas and isolation of teams")
        self._environment, self._cluster, self._charts, self._mirror = environment, cluster, charts, mirror
        control_plane = eks.control_plane
        self._place = Place(
            eks_cluster=control_plane.cluster,
            vpc=network.network.vpc,
            subnets=tuple(control_plane.subnets),
            security_group=control_plane.security_group,
            key=network.key,
        )
        engines = {"hyperpod": self._hyperpod}

        self.quotas = engines[environment.governance.engine or "hyperpod"]()
        """What needs the teams' quotas and namespaces depends on all of these."""

    def _hyperpod(self) -> list[cdk.CfnResource]:
        """Task governance: the add-on, then what it takes from SageMaker."""
        governance = TaskGovernance(self, "TaskGovernance", settings=self._environment.cluster.eks, place=self._place)
        return [governance.ready]
