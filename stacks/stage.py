"""One environment as a CDK stage: the only place where the parts of an environment meet."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from ..config.archives import LockedFile
from ..config.artifacts import ChartArchive
from ..config.environment import Environment
from ..config.images import Image
from .cluster import ClusterStack
from .eks import EksStack
from .network import NetworkStack
from .role_path import RolePath
from .storage import StorageStack

if TYPE_CHECKING:
    from .capacity import CapacityStack


class TrainingStage(cdk.Stage):
    """Network, storage, capacity, control plane and cluster of one environment, in the order in which they must come.

    With Slurm there is no control plane: its controller is a node of the cluster. Without training plans there is no
    stack of capacity.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        archive: ChartArchive,
        mirror: Mapping[str, Image] | None = None,
        node_archives: Sequence[LockedFile] = (),
    ) -> None:
        """Defines the stacks of `environment`.

        Args:
            scope: The app, or a pipeline.
            construct_id: Id of the stage; it prefixes the names of the stacks.
            environment: The environment.
            archive: HyperPod's dependencies chart, or a stand-in for it. Not read with Slurm.
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
            EksStack(self, "eks", environment=environment, network=self.network, archive=archive, mirror=mirror or {})
            if environment.cluster.orchestrator == "eks"
            else None
        )
        self.cluster = ClusterStack(
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
        self.cluster.add_stack_dependency(self.storage, "nodes mount its file systems")

        cdk.Tags.of(self).add("podwright:environment", environment.name)
        for key, value in environment.tags.items():
            cdk.Tags.of(self).add(key, value)
        if environment.iam.role_path != "/":
            cdk.Aspects.of(self).add(RolePath(environment.iam.role_path))

    def _capacity(self, environment: Environment) -> "CapacityStack":
        # Its CDK modules take time to import, which every environment without a plan would pay.
        from .capacity import CapacityStack

        return CapacityStack(self, "capacity", environment=environment, network=self.network)
