"""The stack of what outlives the cluster: file systems and buckets."""

from dataclasses import astuple

import aws_cdk as cdk
from constructs import Construct

from ..config.catalog.names import lifecycle_bucket_name
from ..config.settings.storage import Storage
from ..constructs.hyperpod.accounting_database import SlurmAccounting
from ..constructs.storage.buckets import CheckpointBucket, LifecycleBucket
from ..constructs.storage.lustre import LustreFileSystem
from ..constructs.storage.openzfs import OpenZfsHome
from ..planning.kubernetes.deployed_values import OUTPUT_DESCRIPTION, LustreValues, lustre_paths
from ..planning.resolved import ResolvedEnvironment
from .adopted import keep_deployable
from .network import NetworkStack


class StorageStack(cdk.Stack):
    """File systems, buckets and the accounting database of an environment. Stateful.

    Exports what clients need, used today or not.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, resolved: ResolvedEnvironment, network: NetworkStack
    ) -> None:
        """Defines the stack of an environment in `network`."""
        environment = resolved.environment
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
                standby=subnets.get(storage.home.openzfs.standby_zone or ""),
                route_table_ids=network.network.node_route_tables,
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

        database = environment.cluster.slurm.accounting if environment.cluster.orchestrator == "slurm" else None
        self.accounting = (
            SlurmAccounting(
                self,
                "SlurmAccounting",
                settings=database,
                vpc=vpc,
                subnets=list(subnets.values()),
                clients=clients,
                key=key,
                protection=protection,
            )
            if database
            else None
        )
        """Slurm's accounts outside the controller, if they are there."""
        self.lustre_values = {
            name: LustreValues(made.file_system_id, made.dns_name, made.mount_name)
            for name, made in self.lustre.items()
        }
        """What clients know of each Lustre file system, by its name."""
        self._export(storage)
        keep_deployable(self)

    def _export(self, storage: Storage) -> None:
        """Export what is podwright's own: what is adopted has its names in the file."""
        for name in (name for name, settings in storage.lustres.items() if settings.existing is None):
            for path, value in zip(lustre_paths(name), astuple(self.lustre_values[name]), strict=True):
                self.export_value(value, description=f"{OUTPUT_DESCRIPTION}{path}")
        if storage.buckets.checkpoints is None:
            self.export_value(self.checkpoint_bucket.bucket_name, description=f"{OUTPUT_DESCRIPTION}checkpoint_bucket")
        # Exported whether another stack uses it or not: CloudFormation drops no export that is still imported.
        if self.home and not self.home.settings.existing:
            self.export_value(self.home.dns_name)
        if self.accounting and self.accounting.key:
            self.export_value(self.accounting.host)
            self.export_value(self.accounting.secret_arn)
