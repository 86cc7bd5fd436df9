"""EKS add-ons of a cluster, in the two groups that the order of a deployment needs."""

from collections.abc import Mapping
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from ...config.settings.cluster import AddonName, Eks, FurtherAddon
from ...planning.helm.addon_configurations import NETWORK_POLICIES, configured
from ...planning.kubernetes.addons import NODE_ADDONS, addon_version
from ...planning.rules import check
from ..common.arguments import checked
from ..common.permission import allow

_NAMESPACE = "kube-system"


class NodeAddons(Construct):
    """The add-ons that a node needs to become Ready: VPC CNI, kube-proxy and the pod identity agent.

    They are DaemonSets, which have nothing to run and are healthy on a cluster without nodes, so they belong to the
    control plane's stack. Nothing for an existing cluster: it has them.

    Decided for you: versions as `config.addons` pins them, or EKS's default where AWS documents none; conflicts are
    overwritten, because whatever was there before is not ours. The VPC CNI uses the node's role, as HyperPod wants it.

    Example:
        from podwright.config.settings.cluster import Eks
        NodeAddons(stack, "NodeAddons", settings=Eks(version="1.34"), cluster_name="prod")
    """

    @checked
    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Eks, cluster_name: str, network_policies: bool = False
    ) -> None:
        """Defines the add-ons.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The control plane's settings.
            cluster_name: Name of the EKS cluster.
            network_policies: Whether the VPC CNI obeys network policies; its agent for them runs on every node.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        names = () if settings.existing else NODE_ADDONS
        policies = {"vpc-cni": NETWORK_POLICIES} if network_policies else {}
        self.addons = {name: addon(self, name, settings, cluster_name, policies.get(name)) for name in names}
        """The add-ons by name."""


class WorkloadAddons(Construct):
    """The add-ons that run as Deployments and so come after the first nodes: CoreDNS and the FSx CSI driver.

    On a cluster without nodes they stay DEGRADED. Whether CloudFormation waits for ACTIVE is not documented; with nodes
    the question does not arise. Further add-ons of the file come with them. The driver mounts file systems that exist
    (`fsx:DescribeFileSystems`); it may not make or delete any. Its role reaches it by pod identity. Nothing for an
    existing cluster: its owner decides.

    Example:
        from podwright.config.settings.cluster import Eks
        WorkloadAddons(stack, "WorkloadAddons", settings=Eks(), cluster_name="prod", lustre=True)
    """

    @checked
    def __init__(self, scope: Construct, construct_id: str, *, settings: Eks, cluster_name: str, lustre: bool) -> None:
        """Defines the add-ons.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The control plane's settings.
            cluster_name: Name of the EKS cluster.
            lustre: Whether pods mount Lustre file systems.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        self.addons: dict[AddonName, eks.CfnAddon] = {}
        """The add-ons by name."""
        self.driver_role: iam.IRole | None = None
        """Role of the FSx CSI driver, when there is one."""
        self.further: dict[str, eks.CfnAddon] = {}
        """The add-ons of `further_addons` by name."""
        if settings.existing is None:
            self.addons["coredns"] = addon(self, "coredns", settings, cluster_name)
            if lustre:
                self._driver(settings, cluster_name)
            self.further = {
                name: self._further(name, item, cluster_name) for name, item in sorted(settings.further_addons.items())
            }

    def _further(self, name: str, settings: FurtherAddon, cluster_name: str) -> eks.CfnAddon:
        resource = eks.CfnAddon(
            self,
            name,
            cluster_name=cluster_name,
            addon_name=name,
            addon_version=settings.version,
            configuration_values=_text(self, configured(None, settings.configuration)),
            service_account_role_arn=settings.service_account_role,
            resolve_conflicts="OVERWRITE",
        )
        resource.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        return resource

    def _driver(self, settings: Eks, cluster_name: str) -> None:
        """The CSI driver of FSx for Lustre, with a role that its pods take by pod identity."""
        pods = cast(iam.IPrincipal, iam.ServicePrincipal("pods.eks.amazonaws.com"))
        role = iam.Role(
            self,
            "FsxCsiRole",
            assumed_by=cast(iam.IPrincipal, iam.SessionTagsPrincipal(pods)),
            description="Mounts FSx",
        )
        allow(
            cast(iam.IRole, role),
            ["fsx:DescribeFileSystems"],
            ["*"],
            because="The call supports no resource (Service Authorization Reference, Amazon FSx, 2026-11).",
        )
        # An association of its own, because the add-on's inline form breaks when a version changes what it requires.
        association = eks.CfnPodIdentityAssociation(
            self,
            "FsxCsiIdentity",
            cluster_name=cluster_name,
            namespace=_NAMESPACE,
            service_account="fsx-csi-controller-sa",
            role_arn=role.role_arn,
        )
        # What has a role waits for its policies, which are resources of their own.
        association.node.add_dependency(role)
        driver = addon(self, "aws-fsx-csi-driver", settings, cluster_name)
        driver.node.add_dependency(association)
        self.addons["aws-fsx-csi-driver"] = driver
        self.driver_role = cast(iam.IRole, role)


def addon(
    scope: Construct, name: AddonName, settings: Eks, cluster_name: str, configuration: Mapping[str, Any] | None = None
) -> eks.CfnAddon:
    """One add-on in `scope`, of the version that `config.addons` says. It goes with its stack.

    Args:
        scope: Parent construct; the add-on's name is its id there.
        name: Name of the add-on.
        settings: The control plane's settings.
        cluster_name: Name of the EKS cluster.
        configuration: Configuration values that podwright gives it, under those of the file; its own defaults when
            absent.
    """
    resource = eks.CfnAddon(
        scope,
        name,
        cluster_name=cluster_name,
        addon_name=name,
        addon_version=addon_version(name, settings),
        configuration_values=_text(scope, configured(configuration, settings.addon_configurations.get(name))),
        resolve_conflicts="OVERWRITE",
    )
    resource.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
    return resource


def _text(scope: Construct, configuration: Mapping[str, Any] | None) -> str | None:
    # By the stack, which resolves tokens within the configuration.
    return None if configuration is None else cdk.Stack.of(scope).to_json_string(configuration)
