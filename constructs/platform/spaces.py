"""SageMaker Spaces on an EKS cluster: notebooks and editors as pods."""

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from ...config.settings.cluster import Eks
from ...config.settings.platform import BLOCK_STORAGE_DRIVER, SPACES
from ...planning.helm.addon_configurations import spaces_configuration
from ...planning.rules import check
from ..common.permission import allow
from ..eks.addons import addon
from ..eks.pod_role import PodRole

_NAMESPACE = "jupyter-k8s-system"
_BECAUSE = "AWS keeps this policy in step with the add-on; it tells clusters apart by the tags of pod sessions."


class Spaces(Construct):
    """The Spaces add-on, set up for editors on a laptop (SSH through Session Manager), and the EBS driver for volumes.

    Decided for you: access from the browser is off, because it needs a domain, a certificate and an ingress of yours;
    `hyp` forwards a port instead. The pods register at Systems Manager with a role whose name begins with
    sagemaker-space-, which is the only kind that the add-on's own role may pass.
    Source: SageMaker Developer Guide, roles of the Spaces add-on, 2026-11.

    Example:
        from podwright.config.settings.cluster import Eks
        Spaces(stack, "Spaces", settings=Eks(), cluster_name="prod", environment="prod",
               hyperpod_arn="arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Eks,
        cluster_name: str,
        hyperpod_arn: str,
        environment: str,
    ) -> None:
        """Defines roles and add-ons.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The control plane's settings; `addons` may hold other versions.
            cluster_name: Name of the EKS cluster.
            hyperpod_arn: ARN of the HyperPod cluster, to whose nodes volumes are attached.
            environment: Name of the environment, part of a role's name.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)
        stack = cdk.Stack.of(self)

        driver = PodRole(
            self,
            "EbsDriver",
            cluster_name=cluster_name,
            namespace="kube-system",
            service_account="ebs-csi-controller-sa",
            description="EBS driver",
        )
        _attach(driver.role, "service-role/AmazonEBSCSIDriverPolicy")
        # Nodes live in an account of the service, so the driver attaches volumes through SageMaker.
        allow(driver.role, ["sagemaker:AttachClusterNodeVolume", "sagemaker:DetachClusterNodeVolume"], [hyperpod_arn])
        eks_cluster = stack.format_arn(service="eks", resource="cluster", resource_name=cluster_name)
        allow(driver.role, ["eks:DescribeCluster"], [eks_cluster])
        controller = PodRole(
            self,
            "Controller",
            cluster_name=cluster_name,
            namespace=_NAMESPACE,
            service_account="jupyter-k8s-controller-manager",
            description="Spaces: controller",
        )
        _attach(controller.role, "AmazonSageMakerSpacesControllerPolicy")
        session = iam.Role(
            self,
            "SessionRole",
            role_name=f"sagemaker-space-{environment}-{stack.region}",
            assumed_by=cast(
                iam.IPrincipal,
                iam.ServicePrincipal(
                    "ssm.amazonaws.com",
                    conditions={
                        "StringEquals": {"aws:SourceAccount": stack.account},
                        "ArnEquals": {"aws:SourceArn": stack.format_arn(service="ssm", resource="*")},
                    },
                ),
            ),
            description="Spaces: sessions of editors through Systems Manager",
        )
        _attach(cast(iam.IRole, session), "AmazonSSMManagedInstanceCore")

        self.driver = addon(self, BLOCK_STORAGE_DRIVER, settings, cluster_name)
        """The EBS driver, for volumes of spaces."""
        self.driver.node.add_dependency(driver.association)
        configuration = spaces_configuration(session.role_arn)
        self.addon = addon(self, SPACES, settings, cluster_name, configuration)
        """The add-on; what uses its kinds depends on it."""
        for resource in (controller.association, self.driver):
            self.addon.node.add_dependency(resource)
        self.session_role = cast(iam.IRole, session)
        """Role of sessions that editors open."""


def _attach(role: iam.IRole, policy: str) -> None:
    role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(policy))
    cdk.Validations.of(role).acknowledge(
        cdk.Acknowledgment(
            id=f"AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{policy}]",
            reason=_BECAUSE,
        )
    )
