"""Buckets as S3 has them since January 2023: encrypted with S3's own keys where nobody chose others.

Source: Amazon S3 User Guide, "Default encryption FAQ".
"""

from typing import Any

from moto.s3.models import S3Backend

_encryption = S3Backend.get_bucket_encryption
_OWN_KEYS = {"Rule": {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": "false"}}


def mount() -> None:
    """Let moto say of a bucket without a choice what S3 says."""

    def chosen_or_own(self: S3Backend, bucket_name: str) -> dict[str, Any]:
        return _encryption(self, bucket_name) or _OWN_KEYS

    S3Backend.get_bucket_encryption = chosen_or_own
