"""HyperPod's inference operator on an EKS cluster, with the add-ons that it builds on."""

from collections.abc import Iterable

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct, IDependable

from ...config.catalog.names import certificate_bucket_name
from ...config.settings.cluster import Eks
from ...config.settings.platform import INFERENCE, METRICS_SERVER, S3_DRIVER, InferenceOperator
from ...planning.helm.addon_configurations import METRICS_SERVER_CONFIGURATION, inference_configuration
from ...planning.rules import check
from ..common.arguments import refusal
from ..common.protection import Protection
from ..eks.addons import addon
from ..storage.buckets import PrivateBucket
from .inference_roles import InferenceRoles


class InferenceEndpoints(Construct):
    """The inference add-on, after the Mountpoint for S3 driver and the metrics server.

    It brings KEDA and the AWS Load Balancer Controller itself. Roles that the settings don't name are made, with the
    OIDC provider of the cluster through which they are taken on (`InferenceRoles`).
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
        issuer: str | None = None,
        environment: str | None = None,
        models: Iterable[str] = (),
        key: kms.IKey | None = None,
        protection: Protection = "retain",
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
            issuer: URL of the issuer of the EKS cluster's tokens. Roles are made with it, or with `oidc_provider`.
            environment: Name of the environment, for a bucket for certificates unless the settings name one.
            models: Names of the buckets that endpoints read models from.
            key: Encrypts certificates, and what is in the environment's own bucket.
            protection: Whether certificates survive their stack.
            after: What has to be there first: cert-manager.

        Raises:
            InvalidSettings: settings that cannot be built, or something to be made without what that takes.
        """
        super().__init__(scope, construct_id)
        check(settings)
        before: list[IDependable] = []
        if settings.lacks_roles:
            if not (issuer or settings.oidc_provider):
                hint = "name all four roles, or the cluster's oidc_provider, or pass the issuer"
                raise refusal("issuer", "roles are to be made, and no OIDC provider is known", hint)
            made = InferenceRoles(self, "Roles", settings=settings, issuer=issuer or "", models=models, key=key)
            settings = made.settings
            before.append(made)
        if settings.tls_bucket is None:
            if key is None or environment is None:
                hint = "name one as tls_bucket, or pass environment and key"
                raise refusal("environment", "there is no bucket for certificates, and no name and key for one", hint)
            stack = cdk.Stack.of(self)
            name = certificate_bucket_name(environment, stack.account, stack.region)
            bucket = PrivateBucket(self, "Certificates", name=name, key=key, protection=protection).bucket
            settings = settings.completed(tls_bucket=bucket.bucket_name)
            before.append(bucket)

        metrics = addon(self, METRICS_SERVER, eks, cluster_name, METRICS_SERVER_CONFIGURATION)
        driver = addon(self, S3_DRIVER, eks, cluster_name)
        driver.service_account_role_arn = settings.s3_driver_role
        driver.node.add_dependency(*before)
        configuration = inference_configuration(settings, hyperpod_arn)
        self.addon = addon(self, INFERENCE, eks, cluster_name, configuration)
        """The add-on; what uses its kinds depends on it."""
        for resource in (metrics, driver, *after):
            self.addon.node.add_dependency(resource)
