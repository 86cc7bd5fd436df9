"""The stack of observability: metrics, what is made of them, and who is told."""

from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from ..config.environment import Environment
from .cluster import ClusterStack
from .eks import EksStack
from .network import NetworkStack
from .storage import StorageStack

if TYPE_CHECKING:
    from ..constructs.prometheus_workspace import PrometheusWorkspace


class ObservabilityStack(cdk.Stack):
    """Workspace and collectors, then rules, dashboards, alerts and the budget.

    It comes last, and is imported only by environments that have an `observability:`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        network: NetworkStack,
        storage: StorageStack,
        eks: EksStack | None,
        cluster: ClusterStack | None,
    ) -> None:
        """Defines the stack of `environment`.

        Args:
            scope: The stage.
            construct_id: Id within the stage.
            environment: The environment, which has an `observability:`.
            network: Its network.
            storage: Its storage.
            eks: Its control plane, where it has one.
            cluster: Its HyperPod cluster; None where it has queues of training jobs alone.

        Raises:
            ValueError: an environment without `observability:`.
        """
        super().__init__(scope, construct_id, description="Metrics, dashboards, alerts and budget")
        settings = environment.observability
        if settings is None:
            raise ValueError(f"environment {environment.name} has no observability")
        self._environment, self._settings, self._key = environment, settings, network.key

        self.workspace = self._workspace() if settings.metrics != "off" and cluster else None
        """Where metrics go, unless they are off."""

    def _workspace(self) -> "PrometheusWorkspace":
        # What an environment does not have, it does not import.
        from ..constructs.prometheus_workspace import PrometheusWorkspace

        environment = self._environment
        return PrometheusWorkspace(
            self,
            "Metrics",
            settings=self._settings,
            name=environment.name,
            key=self._key,
            protection=environment.protection,
        )
