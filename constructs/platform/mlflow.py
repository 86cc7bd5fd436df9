"""A serverless MLflow app of SageMaker."""

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ...config.settings.platform import Mlflow
from ..common.permission import allow

_OBJECTS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
# What registers a model. Source: Service Authorization Reference, Amazon SageMaker, 2026-11.
_REGISTRY = {
    "model-package-group": ("CreateModelPackageGroup", "DescribeModelPackageGroup", "ListModelPackages"),
    "model-package": ("CreateModelPackage", "DescribeModelPackage", "UpdateModelPackage"),
}


class MlflowApp(Construct):
    """An MLflow app and the role with which it reads and writes its prefix of a bucket.

    Removing it removes the records of runs; what runs wrote to S3 stays. A change of its name or role replaces it.
    Jobs reach it with `sagemaker-mlflow` and the permission `sagemaker:CallMlflowAppApi`.

    Example:
        from podwright.config.settings.platform import Mlflow
        MlflowApp(stack, "Mlflow", name="prod", settings=Mlflow(), bucket=bucket, prefix="mlflow", key=key)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        settings: Mlflow,
        bucket: s3.IBucket,
        prefix: str,
        key: kms.IKey | None,
    ) -> None:
        """Defines role and app.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            name: Name of the app, which is unique in account and region.
            settings: Its settings.
            bucket: Bucket in which runs keep files.
            prefix: Prefix in the bucket.
            key: KMS key of the bucket, if it has one of yours.
        """
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)

        role = iam.Role(
            self,
            "Role",
            assumed_by=cast(
                iam.IPrincipal,
                iam.ServicePrincipal(
                    "sagemaker.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
                ),
            ),
            description="MLflow app",
        )
        granted = cast(iam.IRole, role)
        because = "MLflow names a folder by the id of each run."
        allow(granted, _OBJECTS, [bucket.arn_for_objects(f"{prefix}/*")], because=because)
        allow(granted, ["s3:ListBucket"], [bucket.bucket_arn], only_if={"StringLike": {"s3:prefix": [f"{prefix}/*"]}})
        if key:
            allow(granted, ["kms:Decrypt", "kms:GenerateDataKey"], [key.key_arn])
        if settings.register_models:
            for resource, actions in _REGISTRY.items():
                allow(
                    granted,
                    [f"sagemaker:{action}" for action in actions],
                    [stack.format_arn(service="sagemaker", resource=resource, resource_name="*")],
                    because="The registry names a group by each model that a run logs.",
                )

        self.app = sagemaker.CfnMlflowApp(
            self,
            "App",
            name=name,
            artifact_store_uri=f"s3://{bucket.bucket_name}/{prefix}",
            role_arn=role.role_arn,
            model_registration_mode=(
                "AutoModelRegistrationEnabled" if settings.register_models else "AutoModelRegistrationDisabled"
            ),
            weekly_maintenance_window_start=settings.maintenance,
        )
        """The app."""
        # It tries the bucket when it is made.
        self.app.node.add_dependency(role)
