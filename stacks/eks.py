"""The stack of the EKS control plane, with everything that HyperPod must find in it before it creates nodes."""

from typing import cast

import aws_cdk as cdk
import cdk8s
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from ..cdk8s_charts.benchmark_labels.chart import BenchmarkLabels
from ..cdk8s_charts.device_plugins import NeuronDevicePlugin
from ..cdk8s_charts.node_readers import NodeMarkers, NodeReaders
from ..config.catalog.charts import HYPERPOD_DEPENDENCIES
from ..constructs.delivery.runner import Runner
from ..constructs.eks.addons import NodeAddons
from ..constructs.eks.control_plane import EksControlPlane
from ..constructs.eks.helm_release import HelmRelease
from ..constructs.hyperpod.nodes_ready.waiter import KubernetesApiAccess
from ..constructs.platform.argo_cd import ArgoCdCapability
from ..planning.kubernetes.deployed_values import OUTPUT_DESCRIPTION
from ..planning.kubernetes.isolation import isolates_networks
from ..planning.resolved import ResolvedEnvironment
from .network import NetworkStack


class EksStack(cdk.Stack):
    """Control plane, node add-ons, HyperPod's dependencies chart and a runner inside the VPC."""

    def __init__(
        self, scope: Construct, construct_id: str, *, resolved: ResolvedEnvironment, network: NetworkStack
    ) -> None:
        """Defines the stack of an environment in `network`."""
        super().__init__(scope, construct_id, description="EKS control plane and what HyperPod needs in it")
        environment, mirror, types = resolved.environment, resolved.mirror, resolved.types
        settings, groups = environment.cluster.eks, tuple(environment.groups.values())
        parts = network.network
        # An existing cluster brings its own interfaces; its helpers then run beside the nodes.
        subnets = parts.control_plane_subnets or parts.node_subnets

        self.control_plane = EksControlPlane(
            self,
            "Eks",
            settings=settings,
            vpc=parts.vpc,
            control_plane_subnets={
                # Zones of the cluster and not of the network: EKS takes no other zones later.
                zone: subnet
                for zone, subnet in subnets.items()
                if zone in environment.cluster.zones
            },
            node_security_group=parts.node_security_group,
            key=network.key,
            # EC2 refuses a rule that is there already.
            open_node_rules=settings.existing is None or not settings.existing.node_rules,
        )
        """The control plane."""
        self.api_access = KubernetesApiAccess(
            eks_cluster=self.control_plane.cluster,
            vpc=parts.vpc,
            subnets=tuple(self.control_plane.subnets),
            security_group=self.control_plane.security_group,
            key=network.key,
        )
        """Where functions run that ask the Kubernetes API."""
        cluster = self.control_plane.cluster
        NodeAddons(
            self,
            "NodeAddons",
            settings=settings,
            cluster_name=cluster.cluster_name,
            network_policies=isolates_networks(environment.governance),
        )
        # What functions of ours read of nodes they read by this role of Kubernetes.
        cluster.add_cdk8s_chart("NodeReaders", NodeReaders(cdk8s.App(), "node-readers"))
        if environment.observability and environment.observability.quarantines:
            cluster.add_cdk8s_chart("NodeMarkers", NodeMarkers(cdk8s.App(), "node-markers"))
        neuron = NeuronDevicePlugin(cdk8s.App(), "neuron", groups=groups, types=types, mirror=mirror)
        # A chart without objects would be a custom resource without a manifest.
        if neuron.instance_types:
            cluster.add_cdk8s_chart("NeuronDevicePlugin", neuron)
        labels = BenchmarkLabels(cdk8s.App(), "benchmark-labels", groups=environment.instance_groups, mirror=mirror)
        if labels.groups:
            cluster.add_cdk8s_chart("BenchmarkLabels", labels)
        if dependencies := resolved.charts.get(HYPERPOD_DEPENDENCIES):
            HelmRelease(
                self,
                "Dependencies",
                cluster=cluster,
                chart=dependencies.chart,
                archive=dependencies.archive,
                values=dependencies.values,
            )
        self.runner = Runner(
            self,
            "Runner",
            cluster=cluster,
            tools=self.control_plane.tools,
            vpc=parts.vpc,
            subnets=self.control_plane.subnets,
            security_group=self.control_plane.security_group,
            key=network.key,
            rules=self.control_plane.rules,
        )
        """Runs commands where a laptop cannot reach the Kubernetes API."""
        if settings.argo_cd:
            ArgoCdCapability(self, "ArgoCd", settings=settings.argo_cd, cluster_name=cluster.cluster_name)

        # The name of an existing cluster is in the file.
        if self.control_plane.issuer:
            self.export_value(cluster.cluster_name, description=f"{OUTPUT_DESCRIPTION}eks_cluster_name")
            # Roles of pods come and go with parts of the platform.
            self.export_value(self.control_plane.issuer)
        # Stacks that apply objects come and go with the settings that they are made of.
        self.export_value(cast(eks.IKubectlProvider, cluster.kubectl_provider).service_token)
