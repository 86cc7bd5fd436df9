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
from .network import NetworkStack
from .observability.stack import ObservabilityStack
from .platform import PlatformStack
from .role_path import RolePath
from .storage import StorageStack
from .training_jobs import TrainingJobsStack


class TrainingStage(cdk.Stage):
    """The stacks of one environment, from its network to its observability, in the order of their deployment.

    With Slurm there is no control plane: its controller is a node of the cluster. Without training plans there is no
    stack of capacity, without a quota engine none of governance, and without `observability:` none of that. Queues of
    training jobs need network and storage alone, so an environment without instance groups has neither cluster nor
    what runs on one.
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
        self._resolved = resolved
        self.network = network = NetworkStack(self, "network", resolved=resolved)
        self.storage = storage = StorageStack(self, "storage", resolved=resolved, network=network)
        self.capacity = capacity = (
            CapacityStack(self, "capacity", resolved=resolved, network=network) if environment.training_plans else None
        )
        self.eks = (
            EksStack(self, "eks", resolved=resolved, network=network)
            if environment.cluster.orchestrator == "eks"
            else None
        )
        self.cluster = (
            ClusterStack(
                self, "cluster", resolved=resolved, network=network, storage=storage, capacity=capacity, eks=self.eks
            )
            if environment.has_cluster
            else None
        )
        # Before governance: a quota engine takes up only the kinds of jobs that it finds.
        self.platform = self._platform() if environment.platform.stands_alone else None
        self.governance = self._governance() if resolved.quota_policy else None
        self.access = (
            AccessStack(self, "access", resolved=resolved, network=network, storage=storage, eks=self.eks)
            if self.eks and names_identities(environment.governance)
            else None
        )
        self.training_jobs = (
            TrainingJobsStack(self, "training-jobs", resolved=resolved) if environment.training_job_queues else None
        )
        self.observability = self._observability() if resolved.monitoring else None

        for key, value in resolved.tags.items():
            cdk.Tags.of(self).add(key, value)
        if environment.iam.role_path != "/":
            cdk.Aspects.of(self).add(RolePath(environment.iam.role_path))
        # What is missing stops `cdk deploy`, but not `cdk ls`.
        for finding in resolved.missing:
            where = self.eks or self.cluster or self.storage
            cdk.Annotations.of(where).add_error(f"{finding.id}: {finding.message}; {finding.hint}")

    def _platform(self) -> PlatformStack | None:
        if not (self.eks and self.cluster):
            return None
        return PlatformStack(
            self,
            "platform",
            resolved=self._resolved,
            network=self.network,
            storage=self.storage,
            eks=self.eks,
            cluster=self.cluster,
        )

    def _governance(self) -> GovernanceStack | None:
        if not (self.eks and self.cluster):
            return None
        return GovernanceStack(
            self,
            "governance",
            resolved=self._resolved,
            storage=self.storage,
            eks=self.eks,
            cluster=self.cluster,
            platform=self.platform,
        )

    def _observability(self) -> ObservabilityStack:
        stack = ObservabilityStack(
            self,
            "observability",
            resolved=self._resolved,
            network=self.network,
            storage=self.storage,
            eks=self.eks,
            cluster=self.cluster,
            capacity=self.capacity,
        )
        for earlier in filter(None, (self.cluster, self.platform, self.governance)):
            stack.add_stack_dependency(earlier, "collectors run on its nodes and look for what to measure")
        return stack
