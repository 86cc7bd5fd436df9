"""The stack of observability: metrics, what is made of them, and who is told."""

from collections.abc import Sequence

import aws_cdk as cdk
from constructs import Construct

from ..constructs.observability.cluster_observability import ClusterObservability, ObservedCluster
from ..planning.resolved import ResolvedEnvironment
from .capacity import CapacityStack
from .cluster import ClusterStack
from .eks import EksStack
from .network import NetworkStack
from .storage import StorageStack


class ObservabilityStack(cdk.Stack):
    """Workspace and collectors, then rules, dashboards, alerts and the budget."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resolved: ResolvedEnvironment,
        network: NetworkStack,
        storage: StorageStack,
        capacity: CapacityStack | None,
        eks: EksStack | None,
        cluster: ClusterStack | None,
        after: Sequence[cdk.Stack],
    ) -> None:
        """Defines the stack of an environment with `observability:`; without a cluster it has queues of training jobs.

        Raises:
            ValueError: an environment without `observability:`.
        """
        super().__init__(scope, construct_id, description="Metrics, dashboards, alerts and budget")
        for earlier in after:
            # In templates nothing refers to the nodes on which collectors run.
            self.add_stack_dependency(earlier, "collectors run on its nodes and look for what to measure")
        environment, monitoring = resolved.environment, resolved.monitoring
        if monitoring is None:
            raise ValueError(f"environment {environment.name} has no observability")
        observed = None
        if cluster:
            observed = ObservedCluster(
                cluster.cluster,
                settings=environment.cluster,
                results_bucket=storage.lifecycle_bucket,
                execution_role=cluster.cluster.execution_role,
                api_access=eks.api_access if eks else None,
                plan_arns=capacity.arns if capacity else {},
            )
        made = ClusterObservability(
            self,
            # Left out of logical ids by the CDK.
            "Default",
            monitoring=monitoring,
            name=environment.name,
            key=network.key,
            cluster=observed,
            lustre=storage.lustre,
            protection=environment.protection,
            tags=resolved.tags,
            cost_tags=environment.tags,
            with_grafana=False,
        )
        self.workspace = made.workspace
        """Where metrics go, unless they are off."""
