"""One environment as a CDK stage: the only place where the parts of an environment meet."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from ..config.catalog.images import Image
from ..config.loading.artifacts import ChartArchive
from ..config.settings.environment import Environment
from ..planning.kubernetes.isolation import names_identities
from ..planning.node.archives import LockedFile
from .cluster import ClusterStack
from .eks import EksStack
from .network import NetworkStack
from .role_path import RolePath
from .storage import StorageStack

if TYPE_CHECKING:
    from .access import AccessStack
    from .capacity import CapacityStack
    from .governance import GovernanceStack
    from .observability import ObservabilityStack
    from .platform import PlatformStack
    from .training_jobs import TrainingJobsStack


def import_parts(environment: Environment) -> None:
    """Import what the stacks of `environment` need and those of most others do not, while there is time for it."""
    if environment.training_plans:
        from . import capacity  # noqa: F401
    if environment.platform.stands_alone:
        from . import platform  # noqa: F401
    if environment.governance.engine:
        from . import governance  # noqa: F401
    if environment.observability:
        from ..cdk8s_charts import dashboards as drawn  # noqa: F401
        from ..planning.monitoring import alerts, dashboards  # noqa: F401
        from . import observability  # noqa: F401


class TrainingStage(cdk.Stage):
    """The stacks of one environment, from its network to its observability, in the order of their deployment.

    With Slurm there is no control plane: its controller is a node of the cluster. Without training plans there is no
    stack of capacity, without a quota engine none of governance, and without `observability:` none of that. Queues of
    training jobs need network and storage alone, so an environment without instance groups has neither cluster nor
    what runs on one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        charts: Mapping[str, ChartArchive],
        mirror: Mapping[str, Image] | None = None,
        node_archives: Sequence[LockedFile] = (),
    ) -> None:
        """Defines the stacks of `environment`.

        Args:
            scope: The app, or a pipeline.
            construct_id: Id of the stage; it prefixes the names of the stacks.
            environment: The environment.
            charts: The Helm charts that it installs, or stand-ins for them, by name (see `config.wanted_charts`).
            mirror: Where mirrored images lie, by the original's name.
            node_archives: What nodes install from.
        """
        boundary = environment.iam.permissions_boundary
        super().__init__(
            scope,
            construct_id,
            env=cdk.Environment(account=environment.account, region=environment.region),
            permissions_boundary=cdk.PermissionsBoundary.from_arn(boundary) if boundary else None,
        )

        self.network = NetworkStack(self, "network", environment=environment)
        self.storage = StorageStack(self, "storage", environment=environment, network=self.network)
        self.capacity = self._capacity(environment) if environment.training_plans else None
        self.eks = (
            EksStack(self, "eks", environment=environment, network=self.network, charts=charts, mirror=mirror or {})
            if environment.cluster.orchestrator == "eks"
            else None
        )
        self.cluster = self._cluster(environment, node_archives) if environment.has_cluster else None
        # Before governance: a quota engine takes up only the kinds of jobs that it finds.
        self.platform = (
            self._platform(environment, self.eks, self.cluster, charts, mirror or {})
            if self.eks and self.cluster and environment.platform.stands_alone
            else None
        )
        self.governance = (
            self._governance(environment, self.eks, self.cluster, charts, mirror or {})
            if self.eks and self.cluster and environment.governance.engine
            else None
        )
        self.access = (
            self._access(environment, self.eks) if self.eks and names_identities(environment.governance) else None
        )

        self.training_jobs = self._training_jobs(environment) if environment.training_job_queues else None
        self.observability = self._observability(environment) if environment.observability else None

        cdk.Tags.of(self).add("podwright:environment", environment.name)
        for key, value in environment.tags.items():
            cdk.Tags.of(self).add(key, value)
        if environment.iam.role_path != "/":
            cdk.Aspects.of(self).add(RolePath(environment.iam.role_path))

    def _capacity(self, environment: Environment) -> "CapacityStack":
        # Its CDK modules take time to import, which every environment without a plan would pay.
        from .capacity import CapacityStack

        return CapacityStack(self, "capacity", environment=environment, network=self.network)

    def _cluster(self, environment: Environment, node_archives: Sequence[LockedFile]) -> ClusterStack:
        cluster = ClusterStack(
            self,
            "cluster",
            environment=environment,
            network=self.network,
            storage=self.storage,
            training_plan_arns=self.capacity.arns if self.capacity else {},
            eks=self.eks,
            node_archives=node_archives,
        )
        # CloudFormation sees only what a template names; pods and scripts need the file systems beyond that.
        cluster.add_stack_dependency(self.storage, "nodes mount its file systems")
        return cluster

    def _platform(
        self,
        environment: Environment,
        eks: EksStack,
        cluster: ClusterStack,
        charts: Mapping[str, ChartArchive],
        mirror: Mapping[str, Image],
    ) -> "PlatformStack":
        from .platform import PlatformStack

        platform = PlatformStack(
            self,
            "platform",
            environment=environment,
            network=self.network,
            storage=self.storage,
            eks=eks,
            cluster=cluster,
            charts=charts,
            mirror=mirror,
        )
        platform.add_stack_dependency(cluster, "operators run on its nodes")
        return platform

    def _training_jobs(self, environment: Environment) -> "TrainingJobsStack":
        from .training_jobs import TrainingJobsStack

        return TrainingJobsStack(self, "training-jobs", environment=environment)

    def _observability(self, environment: Environment) -> "ObservabilityStack":
        from .observability import ObservabilityStack

        stack = ObservabilityStack(
            self,
            "observability",
            environment=environment,
            network=self.network,
            storage=self.storage,
            eks=self.eks,
            cluster=self.cluster,
            training_plan_arns=self.capacity.arns if self.capacity else {},
        )
        for earlier in filter(None, (self.cluster, self.platform, self.governance)):
            stack.add_stack_dependency(earlier, "collectors run on its nodes and look for what to measure")
        return stack

    def _access(self, environment: Environment, eks: EksStack) -> "AccessStack":
        from .access import AccessStack

        return AccessStack(self, "access", environment=environment, network=self.network, storage=self.storage, eks=eks)

    def _governance(
        self,
        environment: Environment,
        eks: EksStack,
        cluster: ClusterStack,
        charts: Mapping[str, ChartArchive],
        mirror: Mapping[str, Image],
    ) -> "GovernanceStack":
        # An environment without quotas does not pay for its import.
        from .deployed_values import deployed_values
        from .governance import GovernanceStack

        governance = GovernanceStack(
            self,
            "governance",
            environment=environment,
            network=self.network,
            eks=eks,
            cluster=cluster,
            values=deployed_values(self.storage, eks, cluster),
            charts=charts,
            mirror=mirror,
        )
        governance.add_stack_dependency(cluster, "the quota engine runs on its nodes")
        if self.platform:
            governance.add_stack_dependency(self.platform, "the quota engine looks for kinds of jobs when it starts")
        return governance
