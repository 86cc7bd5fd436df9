"""The stack of Amazon Managed Grafana, which fails alone."""

import aws_cdk as cdk
from constructs import Construct

from ..constructs.observability.cluster_grafana import ClusterGrafana
from ..planning.resolved import ResolvedEnvironment
from .network import NetworkStack
from .observability import ObservabilityStack


class GrafanaStack(cdk.Stack):
    """Dashboards in Managed Grafana, apart from all that measures and alerts.

    A workspace comes late and depends on what an account's owner switches on, IAM Identity Center: what cannot be made
    must not take collectors, rules and alerts back with it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resolved: ResolvedEnvironment,
        network: NetworkStack,
        observability: ObservabilityStack,
    ) -> None:
        """Defines the stack of an environment with metrics and `observability.grafana`.

        Raises:
            ValueError: an environment without either.
        """
        super().__init__(scope, construct_id, description="Dashboards in Managed Grafana")
        environment, monitoring, workspace = resolved.environment, resolved.monitoring, observability.workspace
        if monitoring is None or monitoring.grafana is None or workspace is None:
            raise ValueError(f"environment {environment.name} has no metrics, or no Grafana that shows them")
        # Dashboards are of no use before there is something to look at, and rules are loaded first.
        self.add_stack_dependency(observability, "its dashboards show what that measures")
        ClusterGrafana(
            self,
            # Left out of logical ids by the CDK.
            "Default",
            settings=monitoring.grafana,
            monitoring=monitoring,
            name=environment.name,
            cluster_name=environment.cluster.name,
            workspace=workspace,
            key=network.key,
            protection=environment.protection,
        )
