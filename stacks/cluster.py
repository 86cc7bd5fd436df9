"""The stack of the HyperPod cluster: scripts, roles, groups, and what comes after the first nodes."""

import aws_cdk as cdk
from constructs import Construct

from ..constructs.eks.addons import WorkloadAddons
from ..constructs.hyperpod.cluster import ClusterResource
from ..constructs.hyperpod.instance_group import GroupResources
from ..constructs.hyperpod.lifecycle_publication.construct import LifecyclePublication
from ..constructs.hyperpod.nodes_ready.construct import NodesReady
from ..planning.kubernetes.deployed_values import OUTPUT_DESCRIPTION
from ..planning.node.environment_facts import accounting, environment_facts, file_systems, slurm_parameters
from ..planning.node.labels import labelled_groups
from ..planning.resolved import ResolvedEnvironment
from .capacity import CapacityStack
from .eks import EksStack
from .network import NetworkStack
from .node_roles import imported_keys, karpenter_role, node_role
from .storage import StorageStack
from .storage_addresses import storage_addresses


class ClusterStack(cdk.Stack):
    """Lifecycle scripts, HyperPod cluster, wait for the system group, workload add-ons: in that order. Stateless.

    With Slurm it ends with the cluster, which is in service once a controller and a login node are.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resolved: ResolvedEnvironment,
        network: NetworkStack,
        storage: StorageStack,
        capacity: CapacityStack | None,
        eks: EksStack | None,
    ) -> None:
        """Defines the stack of an environment on top of the others."""
        super().__init__(scope, construct_id, description="HyperPod cluster")
        # CloudFormation sees only what a template names; pods and scripts need the file systems beyond that.
        self.add_stack_dependency(storage, "nodes mount its file systems")
        environment, settings = resolved.environment, resolved.environment.cluster
        addresses = storage_addresses(storage, settings.name, region=environment.region, dns_suffix=self.url_suffix)
        eks_cluster_arn = eks.control_plane.cluster.cluster_arn if eks else None
        parts = network.network
        publication = LifecyclePublication(
            self,
            "Lifecycle",
            bucket=storage.lifecycle_bucket,
            prefix=settings.name,
            node_facts=environment_facts(environment, resolved.types, resolved.node_archives, addresses),
            provisioning_parameters=slurm_parameters(environment, addresses),
            archives=resolved.node_archives,
            key=network.key,
            protection=environment.protection,
        )
        keys = [network.key, *imported_keys(self, resolved)]
        self.execution_role = node_role(
            self, resolved=resolved, network=network, storage=storage, eks_cluster_arn=eks_cluster_arn, keys=keys
        )
        """What nodes may do whose groups name no role of their own, if there are such groups."""
        self.cluster = ClusterResource(
            self,
            "Cluster",
            settings=settings,
            groups=labelled_groups(environment, resolved.types),
            restricted_groups=environment.restricted_instance_groups,
            resources=GroupResources(
                subnets=parts.node_subnets,
                security_groups=[parts.node_security_group],
                execution_role=self.execution_role,
                scripts_uri=publication.source_uri,
                volume_key=network.key,
                file_systems=file_systems(environment, addresses),
                training_plan_arns=capacity.arns if capacity else {},
            ),
            default_subnets=[parts.node_subnets[settings.zones[0]]],
            eks_cluster_arn=eks_cluster_arn,
            accounting=accounting(environment, addresses),
            cluster_role=karpenter_role(self, settings, keys),
            requires=[publication.resource],
            types=resolved.types,
        )
        """The HyperPod cluster."""
        if eks:
            self._add_ons(resolved, network, eks)
            self.export_value(self.cluster.cluster_arn, description=f"{OUTPUT_DESCRIPTION}cluster_arn")

    def _add_ons(self, resolved: ResolvedEnvironment, network: NetworkStack, eks: EksStack) -> None:
        """What runs on the first nodes of an EKS cluster, and the wait for these nodes."""
        environment, settings = resolved.environment, resolved.environment.cluster
        control_plane = eks.control_plane
        workload = WorkloadAddons(
            self,
            "WorkloadAddons",
            settings=settings.eks,
            cluster_name=control_plane.cluster.cluster_name,
            lustre=bool(environment.storage.lustres),
        )
        system = environment.instance_groups[settings.system_group]
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
