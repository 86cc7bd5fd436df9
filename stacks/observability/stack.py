"""The stack of observability: metrics, what is made of them, and who is told."""

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from ...constructs.observability.alert_topics import AlertTopics
from ...constructs.observability.budget import Budget
from ...constructs.observability.chat_channels import ChatChannels
from ...constructs.observability.cluster_events.construct import ClusterEvents
from ...constructs.observability.prometheus_rules import PrometheusRules
from ...constructs.observability.prometheus_workspace import PrometheusWorkspace
from ...constructs.observability.upkeep_alarms import UpkeepAlarms
from ...planning.monitoring.resolve import ResolvedMonitoring
from ...planning.resolved import ResolvedEnvironment
from ..capacity import CapacityStack
from ..cluster import ClusterStack
from ..eks import EksStack
from ..network import NetworkStack
from ..storage import StorageStack
from .collection import collect
from .logs import keep_logs
from .pages import show


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
            self.add_stack_dependency(earlier, "collectors run on its nodes and look for what to measure")
        environment, monitoring, key = resolved.environment, resolved.monitoring, network.key
        if monitoring is None:
            raise ValueError(f"environment {environment.name} has no observability")
        settings, name = monitoring.settings, environment.name
        protection = environment.protection
        self.workspace = (
            PrometheusWorkspace(self, "Metrics", settings=settings, name=name, key=key, protection=protection)
            if monitoring.measured
            else None
        )
        """Where metrics go, unless they are off."""
        functions: dict[str, lambda_.IFunction] = {}
        if cluster and self.workspace:
            functions["FleetMetrics"] = collect(
                self,
                resolved=resolved,
                monitoring=monitoring,
                workspace=self.workspace,
                key=key,
                storage=storage,
                capacity=capacity,
                eks=eks,
                cluster=cluster,
            )
        self.alert_topics = AlertTopics(self, "Alerts", settings=settings.alerts, protection=protection)
        """Where alerts of every kind go."""
        topics = self.alert_topics.arns
        if chat := self.alert_topics.chat:
            ChatChannels(self, "Chat", settings=settings.alerts.chat, name=name, topic_arn=chat)
        if self.workspace:
            watched = monitoring.watched
            PrometheusRules(
                self, "Rules", settings=settings, workspace=self.workspace, name=name, watched=watched, topics=topics
            )
        if cluster:
            log_group = keep_logs(self, monitoring=monitoring, key=key, eks=eks, cluster=cluster)
            show(
                self,
                resolved=resolved,
                monitoring=monitoring,
                workspace=self.workspace,
                key=key,
                storage=storage,
                log_group=log_group,
            )
            arn = cluster.cluster.cluster_arn
            events = ClusterEvents(self, "Events", environment=name, cluster_arn=arn, topics=self.alert_topics, key=key)
            functions["ClusterEvents"] = events.function
        self._alarms(monitoring, storage, functions)
        if usd := settings.budget_usd_per_month:
            emails, tags = settings.alerts.emails, environment.tags
            Budget(self, "Budget", environment=name, usd_per_month=usd, topics=topics, emails=emails, tags=tags)

    def _alarms(
        self, monitoring: ResolvedMonitoring, storage: StorageStack, functions: Mapping[str, lambda_.IFunction]
    ) -> None:
        """Alarms on what watches the rest, and on file systems that fill up."""
        alarms = UpkeepAlarms(self, "Upkeep", topics=list(self.alert_topics.arns.values()))
        for name, function in functions.items():
            alarms.function(name, function, each_minute=name == "FleetMetrics")
        if self.workspace and self.workspace.resource:
            alarms.alert_manager(self.workspace.workspace_id)
        for name, capacity_gib in monitoring.lustre_capacity.items():
            file_system = storage.lustre[name].file_system_id
            alarms.lustre(name, file_system_id=file_system, capacity_gib=capacity_gib)
