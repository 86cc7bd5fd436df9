"""The stack of what outlives the cluster: file systems and buckets."""

from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from ..config.catalog.names import lifecycle_bucket_name
from ..config.settings.environment import Environment
from ..config.settings.slurm import AccountingDatabase
from ..constructs.common.protection import Protection
from ..constructs.storage.buckets import CheckpointBucket, LifecycleBucket
from ..constructs.storage.lustre import LustreFileSystem
from ..constructs.storage.openzfs import OpenZfsHome
from ..planning.kubernetes.deployed_values import OUTPUT_DESCRIPTION, lustre_paths
from .adopted import keep_deployable
from .network import NetworkStack

if TYPE_CHECKING:
    from ..constructs.hyperpod.accounting_database import SlurmAccounting


class StorageStack(cdk.Stack):
    """File systems, buckets and the accounting database of an environment. Stateful.

    Exports what clients need, used today or not.
    """

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment, network: NetworkStack) -> None:
        """Defines the stack of `environment` in `network`."""
        protection, storage = environment.protection, environment.storage
        super().__init__(
            scope, construct_id, termination_protection=protection == "retain", description="File systems and buckets"
        )
        vpc, subnets = network.network.vpc, network.network.node_subnets
        clients, key = network.network.node_security_group, network.key

        self.lustre = {
            name: LustreFileSystem(
                self,
                f"Lustre-{name}",
                settings=settings,
                vpc=vpc,
                subnet=subnets[settings.zone],
                clients=clients,
                key=key,
                protection=protection,
            )
            for name, settings in storage.lustres.items()
        }
        """Lustre file systems by name."""
        self.home = (
            OpenZfsHome(
                self,
                "Home",
                settings=storage.home.openzfs,
                vpc=vpc,
                subnet=subnets[storage.home.openzfs.zone],
                clients=clients,
                key=key,
                protection=protection,
            )
            if storage.home
            else None
        )
        """Home folders, if there are any."""
        self.lifecycle_bucket = LifecycleBucket(
            self,
            "LifecycleBucket",
            settings=storage.buckets,
            name=lifecycle_bucket_name(environment.name, environment.account, environment.region),
            key=key,
            protection=protection,
        ).bucket
        """Holds the published lifecycle scripts."""
        self.checkpoint_bucket = CheckpointBucket(
            self, "CheckpointBucket", settings=storage.buckets, key=key, protection=protection
        ).bucket
        """For checkpoints of jobs."""

        slurm = environment.cluster.slurm if environment.cluster.orchestrator == "slurm" else None
        self.accounting = (
            self._accounting(slurm.accounting, network, protection) if slurm and slurm.accounting else None
        )
        """Slurm's accounts outside the controller, if they are there."""

        for name in (name for name, settings in storage.lustres.items() if settings.existing is None):
            made = self.lustre[name]
            values = (made.file_system_id, made.dns_name, made.mount_name)
            for path, value in zip(lustre_paths(name), values, strict=True):
                self.export_value(value, description=f"{OUTPUT_DESCRIPTION}{path}")
        if storage.buckets.checkpoints is None:
            name = self.checkpoint_bucket.bucket_name
            self.export_value(name, description=f"{OUTPUT_DESCRIPTION}checkpoint_bucket")
        if self.home:
            self.export_value(self.home.dns_name)
        if self.accounting and self.accounting.key:
            self.export_value(self.accounting.host)
            self.export_value(self.accounting.secret_arn)
        keep_deployable(self)

    def _accounting(
        self, settings: AccountingDatabase, network: NetworkStack, protection: Protection
    ) -> "SlurmAccounting":
        # The CDK's databases take a tenth of a second to import, which every other environment would pay.
        from ..constructs.hyperpod.accounting_database import SlurmAccounting

        return SlurmAccounting(
            self,
            "SlurmAccounting",
            settings=settings,
            vpc=network.network.vpc,
            subnets=list(network.network.node_subnets.values()),
            clients=network.network.node_security_group,
            key=network.key,
            protection=protection,
        )
