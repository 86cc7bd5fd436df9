"""The stack of observability: metrics, what is made of them, and who is told."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from ..config.catalog.instance_types import environment_types
from ..config.catalog.names import benchmark_prefix, cluster_log_group
from ..config.catalog.prices import hourly
from ..config.settings.environment import Environment
from .cluster import ClusterStack
from .eks import EksStack
from .network import NetworkStack
from .storage import StorageStack

if TYPE_CHECKING:
    from ..config.settings.observability import Grafana
    from ..constructs.observability.alert_topics import AlertTopics
    from ..constructs.observability.prometheus_workspace import PrometheusWorkspace
    from ..planning.monitoring.dashboards.panel import Dashboard


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
        training_plan_arns: Mapping[str, str],
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
            training_plan_arns: ARNs of its training plans by name.

        Raises:
            ValueError: an environment without `observability:`.
        """
        super().__init__(scope, construct_id, description="Metrics, dashboards, alerts and budget")
        settings = environment.observability
        if settings is None:
            raise ValueError(f"environment {environment.name} has no observability")
        self._environment, self._settings, self._key = environment, settings, network.key
        self._training_plan_arns = training_plan_arns
        self._functions: dict[str, lambda_.IFunction] = {}

        self.workspace = self._workspace() if settings.metrics != "off" and cluster else None
        """Where metrics go, unless they are off."""
        if cluster:
            self._keep_logs(eks, cluster)
        if cluster and self.workspace:
            self._collect(self.workspace, network, storage, eks, cluster)
        self.alert_topics = self._topics()
        """Where alerts of every kind go."""
        if self.workspace:
            self._rules(self.workspace)
        if cluster:
            self._dashboards(storage, cluster)
            self._events(cluster)
        self._alarms(storage)
        if settings.budget_usd_per_month:
            self._budget(settings.budget_usd_per_month)

    def _workspace(self) -> "PrometheusWorkspace":
        # What an environment does not have, it does not import.
        from ..constructs.observability.prometheus_workspace import PrometheusWorkspace

        environment = self._environment
        return PrometheusWorkspace(
            self,
            "Metrics",
            settings=self._settings,
            name=environment.name,
            key=self._key,
            protection=environment.protection,
        )

    def _collect(
        self,
        workspace: "PrometheusWorkspace",
        network: NetworkStack,
        storage: StorageStack,
        eks: EksStack | None,
        cluster: ClusterStack,
    ) -> None:
        """Exporters on nodes with what collects them, and what asks SageMaker."""
        environment, settings = self._environment, self._settings
        nodes_write = eks is None or bool(environment.restricted_instance_groups)
        if nodes_write and cluster.execution_role:
            # A policy of this stack: the role is there before the workspace is.
            write = iam.PolicyStatement(actions=["aps:RemoteWrite"], resources=[workspace.arn])
            iam.Policy(self, "NodesWriteMetrics", roles=[cluster.execution_role], statements=[write])
        if eks:
            from ..constructs.observability.metric_collector import MetricCollector

            MetricCollector(
                self,
                "Collector",
                settings=settings,
                eks=environment.cluster.eks,
                cluster_name=eks.control_plane.cluster.cluster_name,
                hyperpod_name=environment.cluster.name,
                workspace=workspace,
            )
        else:
            from ..constructs.hyperpod.cluster_extension.construct import ClusterExtension
            from ..planning.monitoring.metric_levels import EXTENSION, extension_configuration

            ClusterExtension(
                self,
                "Collector",
                cluster_arn=cluster.cluster.cluster_arn,
                name=EXTENSION,
                settings=extension_configuration(settings),
                version=settings.slurm_extension_version,
                key=self._key,
                tags={"podwright:environment": environment.name, **environment.tags},
            )
        self._measure(workspace, network, storage, eks, cluster)

    def _measure(
        self,
        workspace: "PrometheusWorkspace",
        network: NetworkStack,
        storage: StorageStack,
        eks: EksStack | None,
        cluster: ClusterStack,
    ) -> None:
        from ..constructs.hyperpod.nodes_ready.waiter import Place
        from ..constructs.observability.fleet_metrics.construct import Fleet, FleetMetrics

        environment = self._environment
        types = {kind for group in environment.groups.values() for kind in group.types}
        prices = {kind: hourly(kind, environment.region, environment.prices) for kind in sorted(types)}
        fleet = FleetMetrics(
            self,
            "Fleet",
            fleet=Fleet(
                name=environment.cluster.name,
                arn=cluster.cluster.cluster_arn,
                continuous=environment.cluster.provisioning == "continuous",
                prices={kind: price.usd for kind, price in prices.items() if price},
                plans=self._training_plan_arns,
                budget=self._settings.budget_usd_per_month,
            ),
            workspace=workspace,
            key=self._key,
            place=Place(
                eks.control_plane.cluster,
                network.network.vpc,
                tuple(eks.control_plane.subnets),
                eks.control_plane.security_group,
                self._key,
            )
            if eks
            else None,
            results=(storage.lifecycle_bucket, benchmark_prefix(environment.cluster.name)),
        )
        self._functions["FleetMetrics"] = fleet.function.function

    def _keep_logs(self, eks: EksStack | None, cluster: ClusterStack) -> None:
        """Logs that HyperPod and EKS write, kept and encrypted as the environment says."""
        from ..constructs.observability.service_logs.construct import ServiceLogs

        groups, patterns = {"HyperPod": self._log_group(cluster)}, [cluster_log_group(self._environment.cluster.name)]
        if eks and self._environment.cluster.eks.existing is None and self._environment.cluster.eks.logs:
            groups["ControlPlane"] = f"/aws/eks/{eks.control_plane.cluster.cluster_name}/cluster"
            patterns.append(groups["ControlPlane"])
        days = self._settings.log_retention_days
        ServiceLogs(self, "ServiceLogs", groups=groups, patterns=patterns, days=days, key=self._key)

    def _log_group(self, cluster: ClusterStack) -> str:
        identity = cdk.Fn.select(1, cdk.Fn.split("/", cluster.cluster.cluster_arn))
        return cluster_log_group(self._environment.cluster.name, identity)

    def _topics(self) -> "AlertTopics":
        from ..constructs.observability.alert_topics import AlertTopics

        settings = self._settings.alerts
        topics = AlertTopics(self, "Alerts", settings=settings, protection=self._environment.protection)
        if topics.chat:
            from ..constructs.observability.chat_channels import ChatChannels

            name = self._environment.name
            ChatChannels(self, "Chat", settings=settings.chat, name=name, topic_arn=topics.chat)
        return topics

    def _rules(self, workspace: "PrometheusWorkspace") -> None:
        from ..constructs.observability.prometheus_rules import PrometheusRules
        from ..planning.monitoring.alerts import watched

        PrometheusRules(
            self,
            "Rules",
            settings=self._settings,
            workspace=workspace,
            name=self._environment.name,
            watched=watched(self._environment, environment_types(self._environment.instance_types)),
            topics=self.alert_topics.arns,
        )

    def _dashboards(self, storage: StorageStack, cluster: ClusterStack) -> None:
        """Pages in Managed Grafana where it is wanted, else in CloudWatch; what AWS measures itself always there."""
        from ..constructs.observability.cloudwatch_dashboards.construct import CloudWatchDashboards
        from ..planning.monitoring.collected import collected
        from ..planning.monitoring.dashboards import dashboards

        environment, settings = self._environment, self._settings
        found = collected(environment, environment_types(environment.instance_types))
        pages = dashboards(settings, cluster=environment.cluster.name, metrics=found)
        grafana = settings.managed_grafana if self.workspace else None
        if grafana and self.workspace:
            self._grafana(grafana, self.workspace, pages)
        CloudWatchDashboards(
            self,
            "Dashboards",
            workspace=self.workspace,
            pages=() if grafana else pages,
            lustre={name: item.file_system_id for name, item in storage.lustre.items()},
            log_group=self._log_group(cluster),
            key=self._key,
        )

    def _grafana(self, settings: "Grafana", workspace: "PrometheusWorkspace", pages: Sequence["Dashboard"]) -> None:
        from ..cdk8s_charts.dashboards import data_source_uid, grafana_json, tag
        from ..constructs.observability.grafana_content.construct import GrafanaContent
        from ..constructs.observability.grafana_workspace import GrafanaWorkspace
        from ..planning.monitoring.dashboards.panel import uid

        environment = self._environment
        name, source = environment.name, data_source_uid(environment.name)
        grafana = GrafanaWorkspace(
            self,
            "Grafana",
            settings=settings,
            name=name,
            protection=environment.protection,
            metrics_arn=workspace.arn,
            log_groups=[
                self.format_arn(
                    service="logs",
                    resource="log-group",
                    resource_name=cluster_log_group(environment.cluster.name),
                    arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
                )
            ],
        )
        GrafanaContent(
            self,
            "GrafanaContent",
            environment=name,
            workspace_id=grafana.workspace_id,
            endpoint=grafana.endpoint,
            tag=tag(name),
            dashboards={uid(name, page.name): grafana_json(page, environment=name, source=source) for page in pages},
            prometheus_url=workspace.endpoint,
            scrape_seconds=self._settings.scrape_seconds,
            groups=settings.groups,
            key=self._key,
        )

    def _events(self, cluster: ClusterStack) -> None:
        from ..constructs.observability.cluster_events.construct import ClusterEvents

        events = ClusterEvents(
            self,
            "Events",
            environment=self._environment.name,
            cluster_arn=cluster.cluster.cluster_arn,
            topics=self.alert_topics,
            key=self._key,
        )
        self._functions["ClusterEvents"] = events.function

    def _alarms(self, storage: StorageStack) -> None:
        from ..constructs.observability.upkeep_alarms import UpkeepAlarms

        alarms = UpkeepAlarms(self, "Upkeep", topics=list(self.alert_topics.arns.values()))
        for name, function in self._functions.items():
            alarms.function(name, function, each_minute=name == "FleetMetrics")
        if self.workspace and self.workspace.resource:
            alarms.alert_manager(self.workspace.workspace_id)
        for name, settings in self._environment.storage.lustres.items():
            if settings.existing is None and settings.capacity_gib:
                file_system = storage.lustre[name].file_system_id
                alarms.lustre(name, file_system_id=file_system, capacity_gib=settings.capacity_gib)

    def _budget(self, usd_per_month: int) -> None:
        from ..constructs.observability.budget import Budget

        Budget(
            self,
            "Budget",
            environment=self._environment.name,
            usd_per_month=usd_per_month,
            topics=self.alert_topics.arns,
            emails=self._settings.alerts.emails,
            tags=self._environment.tags,
        )
