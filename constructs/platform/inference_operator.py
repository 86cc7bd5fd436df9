"""HyperPod's inference operator on an EKS cluster, with the add-ons that it builds on."""

from collections.abc import Iterable

import aws_cdk as cdk
from constructs import Construct

from ...config.settings.cluster import Eks
from ...config.settings.platform import INFERENCE, METRICS_SERVER, S3_DRIVER, InferenceOperator
from ...planning.helm.addon_configurations import METRICS_SERVER_CONFIGURATION, inference_configuration
from ...planning.rules import check
from ..eks.addons import addon


class InferenceEndpoints(Construct):
    """The inference add-on, after the Mountpoint for S3 driver and the metrics server.

    It brings KEDA and the AWS Load Balancer Controller itself. Roles are given, not made: the add-on's own ones are
    taken on through the OIDC provider of the cluster.
    Source of the configuration: Terraform of awslabs/awsome-distributed-ai, hyperpod_inference_operator, 2026-07-23.

    Example:
        from podwright.config.settings.cluster import Eks
        from podwright.config.settings.platform import InferenceOperator
        role = "arn:aws:iam::111122223333:role/Inference"
        settings = InferenceOperator(execution_role=role, tls_bucket="hyperpod-tls-acme", load_balancer_role=role,
                                     autoscaler_role=role, s3_driver_role=role)
        InferenceEndpoints(stack, "Inference", settings=settings, eks=Eks(), cluster_name="prod",
                           hyperpod_arn="arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: InferenceOperator,
        eks: Eks,
        cluster_name: str,
        hyperpod_arn: str,
        after: Iterable[cdk.CfnResource] = (),
    ) -> None:
        """Defines the add-ons.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The operator's settings.
            eks: The control plane's settings; `addons` may hold other versions.
            cluster_name: Name of the EKS cluster.
            hyperpod_arn: ARN of the HyperPod cluster.
            after: What has to be there first: cert-manager.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        metrics = addon(self, METRICS_SERVER, eks, cluster_name, METRICS_SERVER_CONFIGURATION)
        driver = addon(self, S3_DRIVER, eks, cluster_name)
        driver.service_account_role_arn = settings.s3_driver_role
        self.addon = addon(self, INFERENCE, eks, cluster_name, inference_configuration(settings, hyperpod_arn))
        """The add-on; what uses its kinds depends on it."""
        for resource in (metrics, driver, *after):
            self.addon.node.add_dependency(resource)
