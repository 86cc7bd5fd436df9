"""S3 buckets of an environment."""

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ...config.settings.storage import Buckets
from ...planning.rules import check
from ..common.arguments import checked
from ..common.protection import Protection, removal_policy


class PrivateBucket(Construct):
    """A bucket as every bucket of an environment is.

    Decided for you: encrypted with the given key and a bucket key, no public access, TLS 1.2 and newer only, no ACLs,
    versions kept for 30 days after they are replaced, parts of uploads that never ended removed after 7 days.
    With protection `retain` the bucket survives its stack. With `destroy` it goes, but CloudFormation deletes only an
    empty bucket: what is in it is never removed by a deployment.

    Example:
        PrivateBucket(stack, "Results", name=None, key=key, protection="retain")
    """

    @checked
    def __init__(
        self, scope: Construct, construct_id: str, *, name: str | None, key: kms.IKey, protection: Protection
    ) -> None:
        """Defines the bucket.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            name: Its name, where another system dictates one.
            key: Encrypts what is in it.
            protection: Whether it survives its stack.
        """
        super().__init__(scope, construct_id)

        bucket = s3.Bucket(
            self,
            "Resource",
            bucket_name=name,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=key,
            # One call of KMS for many objects instead of one for each.
            bucket_key_enabled=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            # Access by policies alone: objects of other accounts would else stay theirs.
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            versioned=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="remains",
                    abort_incomplete_multipart_upload_after=cdk.Duration.days(7),
                    noncurrent_version_expiration=cdk.Duration.days(30),
                    # A marker whose versions are all gone only slows listings down.
                    expired_object_delete_marker=True,
                )
            ],
            removal_policy=removal_policy(protection),
        )
        cdk.Validations.of(bucket).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions-S1",
                reason="Reads and writes of nodes are recorded by CloudTrail data events where an account wants them; "
                "a second bucket for access logs in every environment would record the same.",
            )
        )

        self.bucket = cast(s3.IBucket, bucket)
        """The bucket."""


class LifecycleBucket(Construct):
    """The bucket that nodes read their set-up scripts from; or an existing one.

    Its name is given, because HyperPod's managed node policy reads only buckets called `sagemaker-…`
    (see `config.names`). After a stack whose bucket survived, name that bucket in the settings to use it again.

    Example:
        from podwright.config.catalog.names import lifecycle_bucket_name
        name = lifecycle_bucket_name("prod", "111122223333", "us-west-2")
        LifecycleBucket(stack, "Lifecycle", settings=Buckets(), name=name, key=key, protection="retain")
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Buckets,
        name: str,
        key: kms.IKey,
        protection: Protection,
    ) -> None:
        """Defines the bucket.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: Bucket settings; only `lifecycle` is read.
            name: Its name, when there is none yet.
            key: Encrypts what is in it.
            protection: Whether it survives its stack.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        self.bucket = _bucket(self, settings.lifecycle, name, key, protection)
        """The bucket."""


class CheckpointBucket(Construct):
    """The bucket that jobs write checkpoints to; or an existing one.

    Example:
        CheckpointBucket(stack, "Checkpoints", settings=Buckets(), key=key, protection="retain")
    """

    @checked
    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Buckets, key: kms.IKey, protection: Protection
    ) -> None:
        """Defines the bucket.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: Bucket settings; only `checkpoints` is read.
            key: Encrypts what is in it.
            protection: Whether it survives its stack.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        self.bucket = _bucket(self, settings.checkpoints, None, key, protection)
        """The bucket."""


def _bucket(
    scope: Construct, existing: str | None, name: str | None, key: kms.IKey, protection: Protection
) -> s3.IBucket:
    if existing is not None:
        return s3.Bucket.from_bucket_name(scope, "Existing", existing)
    return PrivateBucket(scope, "Bucket", name=name, key=key, protection=protection).bucket
