"""One environment as a CDK stage: the only place where the parts of an environment meet."""

import aws_cdk as cdk
from constructs import Construct

from ..planning.kubernetes.isolation import names_identities
from ..planning.resolved import ResolvedEnvironment
from .access import AccessStack
from .capacity import CapacityStack
from .cluster import ClusterStack
from .eks import EksStack
from .governance import GovernanceStack
from .grafana import GrafanaStack
from .network import NetworkStack
from .observability import ObservabilityStack
from .platform import PlatformStack
from .role_path import RolePath
from .storage import StorageStack
from .training_jobs import TrainingJobsStack


class TrainingStage(cdk.Stage):
    """The stacks of one environment, from its network to its observability, in the order of their deployment.

    With Slurm there is no control plane: its controller is a node of the cluster. Without training plans there is no
    stack of capacity, without a quota engine none of governance, and without `observability:` none of that. Managed
    Grafana has a stack of its own. Queues of training jobs need network and storage alone, so an environment without
    instance groups has neither cluster nor what runs on one.
    """

    def __init__(self, scope: Construct, construct_id: str, *, resolved: ResolvedEnvironment) -> None:
        """Defines the stacks of an environment (see `planning.resolved.resolve`); their names begin with the id."""
        environment = resolved.environment
        boundary = environment.iam.permissions_boundary
        super().__init__(
            scope,
            construct_id,
            env=cdk.Environment(account=environment.account, region=environment.region),
            permissions_boundary=cdk.PermissionsBoundary.from_arn(boundary) if boundary else None,
        )
        self.network = network = NetworkStack(self, "network", resolved=resolved)
        self.storage = storage = StorageStack(self, "storage", resolved=resolved, network=network)
        self.capacity = capacity = (
            CapacityStack(self, "capacity", resolved=resolved, network=network) if environment.training_plans else None
        )
        self.eks = eks = (
            EksStack(self, "eks", resolved=resolved, network=network)
            if environment.cluster.orchestrator == "eks"
            else None
        )
        self.cluster = cluster = (
            ClusterStack(
                self, "cluster", resolved=resolved, network=network, storage=storage, capacity=capacity, eks=eks
            )
            if environment.has_cluster
            else None
        )
        # Before governance: a quota engine takes up only the kinds of jobs that it finds.
        self.platform = platform = (
            PlatformStack(
                self, "platform", resolved=resolved, network=network, storage=storage, eks=eks, cluster=cluster
            )
            if eks and cluster and environment.platform.stands_alone
            else None
        )
        self.governance = governance = (
            GovernanceStack(
                self, "governance", resolved=resolved, storage=storage, eks=eks, cluster=cluster, platform=platform
            )
            if eks and cluster and resolved.quota_policy
            else None
        )
        self.access = (
            AccessStack(self, "access", resolved=resolved, network=network, storage=storage, eks=eks, platform=platform)
            if eks and names_identities(environment.governance)
            else None
        )
        self.training_jobs = (
            TrainingJobsStack(self, "training-jobs", resolved=resolved, network=network, storage=storage)
            if environment.training_job_queues
            else None
        )
        self.observability = (
            ObservabilityStack(
                self,
                "observability",
                resolved=resolved,
                network=network,
                storage=storage,
                capacity=capacity,
                eks=eks,
                cluster=cluster,
                after=[stack for stack in (cluster, platform, governance) if stack],
            )
            if resolved.monitoring
            else None
        )
        self.grafana = (
            GrafanaStack(self, "grafana", resolved=resolved, network=network, observability=self.observability)
            if self.observability and resolved.monitoring and resolved.monitoring.grafana
            else None
        )
        for key, value in resolved.tags.items():
            cdk.Tags.of(self).add(key, value)
        if environment.iam.role_path != "/":
            cdk.Aspects.of(self).add(RolePath(environment.iam.role_path))
        # What is missing stops `cdk deploy`, but not `cdk ls`.
        for finding in resolved.missing:
            cdk.Annotations.of(eks or cluster or storage).add_error(f"{finding.id}: {finding.message}; {finding.hint}")
