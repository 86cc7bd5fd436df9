"""Everything that an app of one's own builds with: `from podwright.constructs.library import HyperPodCluster, …`.

Names that are not here may change with any release. Where this machine has no Node that jsii supports, importing this
module before `aws_cdk` makes jsii run on the one that podwright installs; `JSII_NODE` chooses another. A whole
environment is a stage of its own, `podwright.stacks.stage.TrainingStage`.
"""

# ruff: noqa: E402
from ..config.node_runtime import choose_node

# jsii starts Node when the CDK is imported, which the imports below do.
choose_node()

from ..config.errors import InvalidFile, InvalidSettings, PodwrightError
from ..config.findings import Finding
from ..config.loading.artifacts import ChartArchive, chart_archive
from ..config.loading.project import Project
from ..config.settings.benchmarks import Benchmarks
from ..config.settings.cluster import (
    AdoptedEks,
    ClusterAutoscaling,
    Eks,
    Karpenter,
    SharedRestrictedEnvironment,
    TieredCheckpoints,
)
from ..config.settings.governance.teams import Amount, Department, Governance, Team
from ..config.settings.groups import (
    InstanceGroup,
    Lifecycle,
    Patching,
    PlanCapacity,
    RestrictedInstanceGroup,
    RestrictedLustre,
    ScheduledUpdate,
    Taint,
    Volume,
)
from ..config.settings.network import AdoptedSubnets, AdoptedVpc, Network
from ..config.settings.observability import Observability
from ..config.settings.plan_reminders import PlanReminders
from ..config.settings.plans import TrainingPlan
from ..config.settings.slurm import AccountingDatabase, GroupSlurm, Slurm
from ..config.settings.software import NodeSoftware
from ..config.settings.storage import Backups, Buckets, DataRepository, Lustre, OpenZfs, ReadCache, Storage
from ..planning.helm.wanted_charts import chart_archives
from ..planning.resolved import resolve
from .eks.addons import NodeAddons, WorkloadAddons
from .eks.control_plane import EksControlPlane
from .governance.team_quotas import TeamQuotas
from .hyperpod.accounting_database import SlurmAccounting
from .hyperpod.cluster_interface import IHyperPodCluster
from .hyperpod.execution_role import ExecutionRole
from .hyperpod.hyperpod_cluster import HyperPodCluster
from .hyperpod.karpenter_role import KarpenterRole
from .hyperpod.lifecycle_publication.construct import LifecyclePublication
from .hyperpod.orchestrator import Orchestrator
from .hyperpod.reminder_topic import ReminderTopic
from .hyperpod.training_plan.construct import TrainingPlans
from .hyperpod.training_plan.reference import TrainingPlanReference
from .network.network import EnvironmentNetwork, INetwork
from .network.node_security_group import NodeSecurityGroup
from .observability.cluster_grafana import ClusterGrafana
from .observability.cluster_observability import ClusterObservability
from .observability.prometheus_workspace import IPrometheusWorkspace, PrometheusWorkspace
from .observability.upkeep_alarms import UpkeepAlarms
from .storage.buckets import CheckpointBucket, LifecycleBucket
from .storage.key import EnvironmentKey
from .storage.lustre import ILustreFileSystem, LustreFileSystem
from .storage.openzfs import OpenZfsHome

__all__ = [
    "AccountingDatabase",
    "AdoptedEks",
    "AdoptedSubnets",
    "AdoptedVpc",
    "Amount",
    "Backups",
    "Benchmarks",
    "Buckets",
    "ChartArchive",
    "CheckpointBucket",
    "ClusterAutoscaling",
    "ClusterGrafana",
    "ClusterObservability",
    "DataRepository",
    "Department",
    "Eks",
    "EksControlPlane",
    "EnvironmentKey",
    "EnvironmentNetwork",
    "ExecutionRole",
    "Finding",
    "Governance",
    "GroupSlurm",
    "HyperPodCluster",
    "IHyperPodCluster",
    "ILustreFileSystem",
    "INetwork",
    "IPrometheusWorkspace",
    "InstanceGroup",
    "InvalidFile",
    "InvalidSettings",
    "Karpenter",
    "KarpenterRole",
    "Lifecycle",
    "LifecycleBucket",
    "LifecyclePublication",
    "Lustre",
    "LustreFileSystem",
    "Network",
    "NodeAddons",
    "NodeSecurityGroup",
    "NodeSoftware",
    "Observability",
    "OpenZfs",
    "OpenZfsHome",
    "Orchestrator",
    "Patching",
    "PlanCapacity",
    "PlanReminders",
    "PodwrightError",
    "Project",
    "PrometheusWorkspace",
    "ReadCache",
    "ReminderTopic",
    "RestrictedInstanceGroup",
    "RestrictedLustre",
    "ScheduledUpdate",
    "SharedRestrictedEnvironment",
    "Slurm",
    "SlurmAccounting",
    "Storage",
    "Taint",
    "Team",
    "TeamQuotas",
    "TieredCheckpoints",
    "TrainingPlan",
    "TrainingPlanReference",
    "TrainingPlans",
    "UpkeepAlarms",
    "Volume",
    "WorkloadAddons",
    "chart_archive",
    "chart_archives",
    "resolve",
]
