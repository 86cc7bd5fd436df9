"""Everything that watches a HyperPod cluster: metrics, rules, dashboards, alerts, logs and the budget."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ...config.catalog.names import benchmark_prefix, cluster_log_group, quarantine_prefix
from ...config.settings.base import Tags
from ...config.settings.cluster import Cluster
from ...config.settings.observability import Observability
from ...planning.monitoring.metric_levels import EXTENSION, extension_configuration
from ...planning.monitoring.resolve import ResolvedMonitoring, resolve_monitoring
from ..common.arguments import annotate, checked
from ..common.protection import Protection
from ..hyperpod.cluster_extension.construct import ClusterExtension
from ..hyperpod.cluster_interface import IHyperPodCluster
from ..hyperpod.hyperpod_cluster import HyperPodCluster
from ..hyperpod.nodes_ready.waiter import KubernetesApiAccess
from ..storage.lustre import ILustreFileSystem
from .alert_topics import AlertTopics
from .budget import Budget
from .chat_channels import ChatChannels
from .cloudwatch_dashboards.construct import CloudWatchDashboards
from .cluster_events.construct import ClusterEvents, QuarantineRule
from .cluster_grafana import ClusterGrafana
from .fleet_metrics.construct import Fleet, FleetMetrics
from .metric_collector import MetricCollector
from .node_quarantine.construct import NodeQuarantine
from .prometheus_rules import PrometheusRules
from .prometheus_workspace import PrometheusWorkspace
from .service_logs.construct import ServiceLogs
from .upkeep_alarms import UpkeepAlarms


@dataclass(frozen=True)
class ObservedCluster:
    """A HyperPod cluster as its observability knows it."""

    cluster: IHyperPodCluster
    settings: Cluster
    """What it is made with."""
    results_bucket: s3.IBucket
    """Where nodes write results of benchmarks."""
    execution_role: iam.IRole | None
    """Role of its nodes; None where each group names its own."""
    api_access: KubernetesApiAccess | None
    """Where functions reach its Kubernetes API; None with Slurm."""
    plan_arns: Mapping[str, str] = field(default_factory=dict)
    """ARNs of the training plans that it draws on, by name."""


class ClusterObservability(Construct):
    """Metrics of a cluster in Managed Prometheus, and what is made of them; or only alerts and a budget.

    `ClusterObservability.for_cluster` makes that of a `HyperPodCluster`. Decided for you: exporters on nodes and
    one function that asks SageMaker each minute; recording rules and alerts of the levels that are measured;
    dashboards in Managed Grafana where it is wanted, else in CloudWatch; mails and chat for alerts, events of nodes
    and what watches the rest; logs of the services kept and encrypted. Without a cluster (queues of training jobs)
    it has alerts and a budget.

    Example:
        from podwright.config.settings.groups import InstanceGroup
        from podwright.constructs.hyperpod.orchestrator import Orchestrator
        from podwright.constructs.observability.cluster_observability import ClusterObservability
        groups = {name: InstanceGroup(instance_type="ml.m5.4xlarge", count=1) for name in ("controller", "work")}
        cluster = HyperPodCluster(stack, "Cluster", vpc=vpc, subnets={"usw2-az2": subnet}, instance_groups=groups,
                                  orchestrator=Orchestrator.slurm())
        ClusterObservability.for_cluster(stack, "Observability", cluster=cluster, settings=Observability())
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        monitoring: ResolvedMonitoring,
        name: str,
        key: kms.IKey,
        cluster: ObservedCluster | None,
        lustre: Mapping[str, ILustreFileSystem] | None = None,
        protection: Protection = "retain",
        tags: Tags | None = None,
        cost_tags: Tags | None = None,
        with_grafana: bool = True,
    ) -> None:
        """Defines it.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            monitoring: What is measured, see `resolve_monitoring`.
            name: Name of the environment, for titles and addresses.
            key: Encrypts metrics and logs.
            cluster: The cluster, if there is one.
            lustre: Its file systems by name.
            protection: Whether metrics and messages survive the stack.
            tags: Tags of what is made by other means than CloudFormation.
            cost_tags: Cost allocation tags that tell what the budget counts.
            with_grafana: Whether Managed Grafana is made here where the settings want it; False where a
                `ClusterGrafana` in a stack of its own has it.
        """
        super().__init__(scope, construct_id)
        self._monitoring, self._name, self._key = monitoring, name, key
        self._lustre, self._protection, self._with_grafana = lustre or {}, protection, with_grafana
        settings = monitoring.settings
        self.workspace = (
            PrometheusWorkspace(self, "Metrics", settings=settings, name=name, key=key, protection=protection)
            if monitoring.measured
            else None
        )
        """Where metrics go, unless they are off."""
        functions: dict[str, lambda_.IFunction] = {}
        if cluster and self.workspace:
            functions["FleetMetrics"] = self._collect(cluster, self.workspace, tags or {})
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
            self._show(cluster.settings, self._keep_logs(cluster.cluster))
            rule = self._quarantine(cluster)
            events = ClusterEvents(
                self,
                "Events",
                environment=name,
                cluster_arn=cluster.cluster.cluster_arn,
                topics=self.alert_topics,
                key=key,
                quarantine=rule,
            )
            functions["ClusterEvents"] = events.function
            if rule and rule.marker:
                functions["NodeQuarantine"] = rule.marker.function
        self._alarms(functions, cluster)
        if usd := settings.budget_usd_per_month:
            emails, own = settings.alerts.emails, cost_tags or {}
            Budget(self, "Budget", environment=name, usd_per_month=usd, topics=topics, emails=emails, tags=own)

    @staticmethod
    @checked
    def for_cluster(
        scope: Construct, construct_id: str, *, cluster: HyperPodCluster, settings: Observability | None = None
    ) -> "ClusterObservability":
        """What watches a cluster that is made in Python.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster: The cluster.
            settings: What to measure and whom to tell; every default when absent.

        Raises:
            InvalidSettings: what a file with the same settings would be refused for.
        """
        completed = cluster.with_observability(settings or Observability())
        monitoring = cast(ResolvedMonitoring, resolve_monitoring(completed.environment, completed.types))
        observed = ObservedCluster(
            cluster,
            settings=completed.environment.cluster,
            results_bucket=cluster.lifecycle_bucket,
            execution_role=cluster.execution_role,
            api_access=cluster.api_access,
            plan_arns=cluster.training_plan_arns,
        )
        made = ClusterObservability(
            scope,
            construct_id,
            monitoring=monitoring,
            name=cluster.cluster_name,
            key=cluster.key,
            cluster=observed,
            lustre=cluster.lustre,
            protection=completed.environment.protection,
        )
        annotate(made, [finding for finding in completed.findings if finding.path.startswith("observability")])
        return made

    def _collect(self, cluster: ObservedCluster, workspace: PrometheusWorkspace, tags: Tags) -> lambda_.IFunction:
        """The collectors of a cluster; returns the function that measures it each minute."""
        settings, made = self._monitoring.settings, cluster.cluster
        if self._monitoring.nodes_write and cluster.execution_role:
            # A policy beside the workspace: the role is there before it.
            write = iam.PolicyStatement(actions=["aps:RemoteWrite"], resources=[workspace.arn])
            iam.Policy(self, "NodesWriteMetrics", roles=[cluster.execution_role], statements=[write])
        if made.eks_cluster:
            MetricCollector(
                self,
                "Collector",
                settings=settings,
                eks=cluster.settings.eks,
                cluster_name=made.eks_cluster.cluster_name,
                hyperpod_name=made.cluster_name,
                workspace=workspace,
            )
        else:
            ClusterExtension(
                self,
                "Collector",
                cluster_arn=made.cluster_arn,
                name=EXTENSION,
                settings=extension_configuration(settings),
                version=settings.slurm_extension_version,
                key=self._key,
                tags=tags,
            )
        fleet = Fleet(
            name=made.cluster_name,
            arn=made.cluster_arn,
            continuous=cluster.settings.provisioning == "continuous",
            prices=self._monitoring.prices,
            plans=cluster.plan_arns,
            budget=settings.budget_usd_per_month,
        )
        metrics = FleetMetrics(
            self,
            "Fleet",
            fleet=fleet,
            workspace=workspace,
            key=self._key,
            api_access=cluster.api_access,
            results=(cluster.results_bucket, benchmark_prefix(made.cluster_name)),
        )
        return metrics.function.function

    def _quarantine(self, cluster: ObservedCluster) -> QuarantineRule | None:
        """When a node that fails again and again is taken out of work, if it is."""
        settings = self._monitoring.settings.quarantines
        if settings is None:
            return None
        marker = NodeQuarantine(self, "Quarantine", api_access=cluster.api_access) if cluster.api_access else None
        prefix = quarantine_prefix(cluster.cluster.cluster_name)
        return QuarantineRule(settings, marker, cluster.results_bucket, prefix)

    def _keep_logs(self, cluster: IHyperPodCluster) -> str:
        """Keep and encrypt what services log by themselves; returns the name of the cluster's log group."""
        groups, patterns = {"HyperPod": cluster.log_group_name}, [cluster_log_group(cluster.cluster_name)]
        if cluster.eks_cluster and self._monitoring.control_plane_logs:
            groups["ControlPlane"] = f"/aws/eks/{cluster.eks_cluster.cluster_name}/cluster"
            patterns.append(groups["ControlPlane"])
        days = self._monitoring.settings.log_retention_days
        # One of ours goes with its stack, and before these groups; an existing key has no resource of ours and stays.
        outlived = self._protection == "destroy" and self._key.node.default_child is not None
        key = None if outlived else self._key
        ServiceLogs(self, "ServiceLogs", groups=groups, patterns=patterns, days=days, key=key, logs_key=self._key)
        return groups["HyperPod"]

    def _show(self, settings: Cluster, log_group: str) -> None:
        """The dashboards. What AWS measures itself is always in CloudWatch."""
        monitoring = self._monitoring
        if monitoring.grafana and self.workspace and self._with_grafana:
            ClusterGrafana(
                self,
                "Grafana",
                settings=monitoring.grafana,
                monitoring=monitoring,
                name=self._name,
                cluster_name=settings.name,
                workspace=self.workspace,
                key=self._key,
                protection=self._protection,
            )
        CloudWatchDashboards(
            self,
            "Dashboards",
            workspace=self.workspace,
            pages=() if monitoring.grafana else monitoring.pages,
            lustre={name: item.file_system_id for name, item in self._lustre.items()},
            log_group=log_group,
            key=self._key,
        )

    def _alarms(self, functions: Mapping[str, lambda_.IFunction], cluster: ObservedCluster | None) -> None:
        """Alarms on what watches the rest, on file systems that fill up, and on nodes that join degraded."""
        alarms = UpkeepAlarms(self, "Upkeep", topics=list(self.alert_topics.arns.values()))
        for name, function in functions.items():
            alarms.function(name, function, each_minute=name == "FleetMetrics")
        if cluster:
            alarms.setups(cluster.settings.name)
        if self.workspace and self.workspace.resource:
            alarms.alert_manager(self.workspace.workspace_id)
        for name, capacity_gib in self._monitoring.lustre_capacity.items():
            alarms.lustre(name, file_system_id=self._lustre[name].file_system_id, capacity_gib=capacity_gib)
