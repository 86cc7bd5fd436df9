"""The stack of the HyperPod cluster: scripts, roles, groups, and what comes after the first nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ..config.catalog.instance_types import environment_types
from ..config.catalog.names import benchmark_prefix
from ..config.settings.benchmarks import benchmark_policy
from ..config.settings.environment import Environment
from ..config.settings.groups import InstanceGroup
from ..constructs.eks.addons import WorkloadAddons
from ..constructs.eks.control_plane import EksControlPlane
from ..constructs.hyperpod.cluster import ClusterResource
from ..constructs.hyperpod.execution_role import ExecutionRole
from ..constructs.hyperpod.instance_group import GroupResources
from ..constructs.hyperpod.karpenter_role import KarpenterRole
from ..constructs.hyperpod.lifecycle_publication.construct import LifecyclePublication, archives_uri
from ..constructs.hyperpod.nodes_ready.construct import NodesReady
from ..planning.kubernetes.deployed_values import OUTPUT_DESCRIPTION
from ..planning.node.archives import LockedFile
from ..planning.node.facts import BenchmarkFacts, ClusterFacts, FileSystems, LustreMount, OpenZfsMount, node_facts
from ..planning.node.kernels import COMPONENT, driver_minimum
from ..planning.node.labels import labelled_groups
from ..planning.node.provisioning_parameters import provisioning_parameters
from ..planning.node.slurm_facts import AccountingFacts, SlurmFacts, slurm_facts
from ..planning.node.software_facts import archive_facts
from .eks import EksStack
from .network import NetworkStack
from .storage import StorageStack


class ClusterStack(cdk.Stack):
    """Lifecycle scripts, HyperPod cluster, wait for the system group, workload add-ons: in that order. Stateless.

    With Slurm it ends with the cluster, which is in service once a controller and a login node are.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        network: NetworkStack,
        storage: StorageStack,
        training_plan_arns: Mapping[str, str],
        eks: EksStack | None,
        node_archives: Sequence[LockedFile],
    ) -> None:
        """Defines the stack of `environment` on top of the others; nodes install from `node_archives`."""
        super().__init__(scope, construct_id, description="HyperPod cluster")
        self._environment, settings = environment, environment.cluster
        self._types = environment_types(environment.instance_types)
        eks_cluster_arn = eks.control_plane.cluster.cluster_arn if eks else None
        file_systems, accounting = self._file_systems(storage), self._accounting(storage)

        publication = LifecyclePublication(
            self,
            "Lifecycle",
            bucket=storage.lifecycle_bucket,
            prefix=settings.name,
            node_facts=node_facts(
                cluster=ClusterFacts(
                    name=settings.name,
                    orchestrator="slurm" if settings.orchestrator == "slurm" else "eks",
                    region=environment.region,
                    dns_suffix=self.url_suffix,
                ),
                groups=environment.instance_groups,
                types=self._types,
                file_systems=file_systems,
                benchmarks=self._benchmarks(storage, node_archives),
                software=settings.node_software,
                archives=node_archives,
                archives_uri=archives_uri(storage.lifecycle_bucket, settings.name) if node_archives else "",
                slurm=self._slurm(accounting),
            ),
            provisioning_parameters=self._provisioning_parameters(storage, file_systems, accounting),
            archives=node_archives,
            key=network.key,
            protection=environment.protection,
        )
        role = self._execution_role(network, storage, eks_cluster_arn)
        self.execution_role = role
        """What nodes may do whose groups name no role of their own, if there are such groups."""
        self.cluster = ClusterResource(
            self,
            "Cluster",
            settings=settings,
            groups=labelled_groups(environment, self._types),
            restricted_groups=environment.restricted_instance_groups,
            resources=GroupResources(
                subnets=network.network.node_subnets,
                security_groups=[network.network.node_security_group],
                execution_role=role,
                scripts_uri=publication.source_uri,
                volume_key=network.key,
                file_systems=file_systems,
                training_plan_arns=training_plan_arns,
            ),
            default_subnets=[network.network.node_subnets[settings.zones[0]]],
            eks_cluster_arn=eks_cluster_arn,
            accounting=accounting,
            cluster_role=self._karpenter_role(network),
            requires=[publication.resource],
            types=self._types,
        )
        """The HyperPod cluster."""
        if eks:
            self._add_ons(network, eks.control_plane)
            self.export_value(self.cluster.cluster_arn, description=f"{OUTPUT_DESCRIPTION}cluster_arn")

    def _add_ons(self, network: NetworkStack, control_plane: EksControlPlane) -> None:
        """What runs on the first nodes of an EKS cluster, and the wait for these nodes."""
        settings = self._environment.cluster
        system = self._environment.instance_groups[settings.system_group]
        workload = WorkloadAddons(
            self,
            "WorkloadAddons",
            settings=settings.eks,
            cluster_name=control_plane.cluster.cluster_name,
            lustre=bool(self._environment.storage.lustres),
        )
        if system.count:
            ready = NodesReady(
                self,
                "SystemNodes",
                cluster_name=settings.name,
                cluster_arn=self.cluster.cluster_arn,
                eks_cluster=control_plane.cluster,
                group=settings.system_group,
                count=system.count,
                vpc=network.network.vpc,
                subnets=control_plane.subnets,
                security_group=control_plane.security_group,
                key=network.key,
            )
            workload.node.add_dependency(ready)

    def _file_systems(self, storage: StorageStack) -> FileSystems:
        settings = self._environment.storage
        lustre = {
            name: LustreMount(
                dns_name=storage.lustre[name].dns_name,
                mount_name=storage.lustre[name].mount_name,
                path=lustre.mount,
                zone=lustre.zone,
                efa=lustre.efa,
            )
            for name, lustre in settings.lustres.items()
        }
        home = settings.home.openzfs if settings.home else None
        return FileSystems(
            lustre=lustre,
            home=OpenZfsMount(dns_name=storage.home.dns_name, path=home.mount, zone=home.zone)
            if home and storage.home
            else None,
        )

    def _accounting(self, storage: StorageStack) -> AccountingFacts | None:
        settings, database = self._environment.cluster.slurm.accounting, storage.accounting
        if settings is None or database is None:
            return None
        return AccountingFacts(
            host=database.host, port=database.port, database=settings.name, secret_arn=database.secret_arn
        )

    def _slurm(self, accounting: AccountingFacts | None) -> SlurmFacts | None:
        environment = self._environment
        if environment.cluster.orchestrator != "slurm":
            return None
        return slurm_facts(
            settings=environment.cluster.slurm,
            groups=environment.instance_groups,
            governance=environment.governance,
            users=environment.users,
            user_groups=environment.user_groups,
            accounting=accounting,
            types=self._types,
        )

    def _provisioning_parameters(
        self, storage: StorageStack, file_systems: FileSystems, accounting: AccountingFacts | None
    ) -> dict[str, Any] | None:
        cluster = self._environment.cluster
        if cluster.orchestrator != "slurm" or cluster.slurm.configuration != "provisioning_parameters":
            return None
        return provisioning_parameters(
            settings=cluster.slurm,
            groups=self._environment.instance_groups,
            lustre=file_systems.lustre.get("lustre"),
            accounting=accounting,
            database_user=storage.accounting.user if storage.accounting else "",
        )

    def _benchmarks(self, storage: StorageStack, archives: Sequence[LockedFile]) -> BenchmarkFacts | None:
        """How nodes measure themselves, if any do."""
        settings, groups = self._environment.cluster, self._environment.instance_groups.values()
        if all(benchmark_policy(group, self._types) == "skip" for group in groups):
            return None
        return BenchmarkFacts(
            mode=settings.benchmarks.mode,
            results_uri=f"s3://{storage.lifecycle_bucket.bucket_name}/{benchmark_prefix(settings.name)}",
            programs=settings.benchmarks.programs,
            driver_minimum=driver_minimum(),
            archives=archive_facts(file for file in archives if file.archive.component == COMPONENT),
            archives_uri=archives_uri(storage.lifecycle_bucket, settings.name) if archives else "",
            max_replacements=settings.benchmarks.max_replacements,
            window_days=settings.benchmarks.window_days,
            continuous=settings.provisioning == "continuous",
        )

    def _execution_role(
        self, network: NetworkStack, storage: StorageStack, eks_cluster_arn: str | None
    ) -> iam.IRole | None:
        """The role of the groups that name none, if there are such groups."""
        groups = [group for group in self._environment.groups.values() if group.role is None]
        if not groups:
            return None
        own = [group for group in groups if isinstance(group, InstanceGroup)]
        rollouts = [rollout for group in own for rollout in (group.patching, group.scheduled_update) if rollout]
        role = ExecutionRole(
            self,
            "ExecutionRole",
            cluster_name=self._environment.cluster.name,
            eks_cluster_arn=eks_cluster_arn,
            vpc=network.network.vpc,
            security_groups=[network.network.node_security_group],
            volume_keys=self._volume_keys(network.key),
            lustre=bool(self._environment.storage.lustres),
            alarms=[alarm for rollout in rollouts for alarm in rollout.rollback_alarms],
        )
        role.grant_read(storage.lifecycle_bucket, self._environment.cluster.name, network.key)
        if any(benchmark_policy(group, self._types) != "skip" for group in own):
            role.grant_results(storage.lifecycle_bucket, benchmark_prefix(self._environment.cluster.name), network.key)
        if storage.accounting:
            role.grant_secret(storage.accounting.secret_arn, storage.accounting.key)
        if topic := self._environment.cluster.slurm.failover_topic:
            role.grant_publish(topic)
        for source in sorted({group.lifecycle.source for group in own if group.lifecycle}):
            bucket, _, prefix = source.removeprefix("s3://").partition("/")
            role.grant_read(s3.Bucket.from_bucket_name(self, f"Scripts-{bucket}-{prefix}", bucket), prefix.rstrip("/"))
        return role.role

    def _karpenter_role(self, network: NetworkStack) -> iam.IRole | None:
        settings = self._environment.cluster
        if settings.autoscaling != "karpenter":
            return None
        if settings.autoscaling_role:
            return iam.Role.from_role_arn(self, "KarpenterRole", settings.autoscaling_role)
        return KarpenterRole(self, "KarpenterRole", volume_keys=self._volume_keys(network.key)).role

    def _volume_keys(self, key: kms.IKey) -> list[kms.IKey]:
        """The environment's key and those that volumes of groups name themselves."""
        named = {volume.kms_key for group in self._environment.groups.values() for volume in group.volumes}
        named |= {group.root_kms_key for group in self._environment.instance_groups.values()}
        arns = sorted(filter(None, named))
        return [key, *(self._imported_key(arn) for arn in arns)]

    def _imported_key(self, arn: str) -> kms.IKey:
        construct_id = f"Key-{arn.rpartition('/')[2]}"
        known = self.node.try_find_child(construct_id)
        return known if isinstance(known, kms.Key) else kms.Key.from_key_arn(self, construct_id, arn)  # pyrefly: ignore[bad-return]
