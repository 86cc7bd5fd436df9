"""The stack of the HyperPod cluster: scripts, roles, groups, and what comes after the first nodes."""

import aws_cdk as cdk
from constructs import Construct

from ..cdk8s_charts.image_pulls import image_pulls
from ..cdk8s_charts.karpenter import karpenter_objects
from ..cdk8s_charts.lustre_volumes import lustre_claims
from ..constructs.eks.addons import WorkloadAddons
from ..constructs.eks.manifests import Manifests
from ..constructs.hyperpod.environment_cluster import EnvironmentCluster
from ..constructs.hyperpod.nodes_ready.construct import NodesReady
from ..constructs.hyperpod.orchestrator import Orchestrator
from ..planning.kubernetes.deployed_values import OUTPUT_DESCRIPTION
from ..planning.resolved import ResolvedEnvironment
from .capacity import CapacityStack
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
        if eks:
            # An adopted control plane is no reference to the stack that installs the chart in it.
            self.add_stack_dependency(eks, "HyperPod refuses a cluster without its dependencies chart")
        parts = network.network
        self.cluster = EnvironmentCluster(
            self,
            # The CDK leaves this id out of the ids of resources, which so are those of the stack.
            "Default",
            environment=resolved.environment,
            types=resolved.types,
            vpc=parts.vpc,
            subnets=parts.node_subnets,
            more_subnets=parts.more_node_subnets,
            security_groups=[parts.node_security_group, *parts.further_security_groups],
            key=network.key,
            lifecycle_bucket=storage.lifecycle_bucket,
            orchestrator=Orchestrator.eks(eks.control_plane, dependencies="installed")
            if eks
            else Orchestrator.slurm(resolved.environment.cluster.slurm, accounting=storage.accounting),
            lustre=storage.lustre,
            home=storage.home,
            training_plan_arns=capacity.arns if capacity else {},
            node_archives=resolved.node_archives,
        )
        """The HyperPod cluster."""
        if eks:
            self._add_ons(resolved, network, eks)
            if claims := lustre_claims(resolved.environment.storage.lustres, storage.lustre_values):
                Manifests(self, "LustreClaims", cluster=eks.control_plane.cluster, objects=claims)
            if pulls := image_pulls(resolved.environment.instance_groups, resolved.mirror):
                Manifests(self, "ImagePulls", cluster=eks.control_plane.cluster, objects=pulls)
            settings, groups = resolved.environment.cluster, resolved.environment.instance_groups
            if scaling := karpenter_objects(settings.karpenter, groups, resolved.types):
                made = Manifests(self, "Karpenter", cluster=eks.control_plane.cluster, objects=scaling)
                # HyperPod brings the kinds with the cluster that it scales.
                made.node.add_dependency(self.cluster.resource)
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
        system = environment.groups[settings.system_group]
        # A group without nodes would never come, and the wait with it never end.
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
            # Add-ons of workloads have to have nodes to become healthy.
            workload.node.add_dependency(ready)
