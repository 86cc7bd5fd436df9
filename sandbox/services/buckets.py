"""Default encryption of buckets, which S3 applies since January 2023, and storage of large objects in files.

moto holds objects in memory and temporary files, and reads all of them when its state is pickled. This module writes a
large object to a file that its digest names, and the pickle contains the digest.

Source: Amazon S3 User Guide, "Default encryption FAQ".
"""

import io
from dataclasses import dataclass
from typing import Any, Final, cast

from moto.s3.models import FakeKey, S3Backend

from ..protocol.contents import Contents

LARGE: Final = 64 * 1024
"""Minimum size in bytes of an object that is written to a file."""
_DIGEST: Final = "content_digest"
_encryption = S3Backend.get_bucket_encryption
_state = FakeKey.__getstate__
_OWN_KEYS = {"Rule": {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": "false"}}


@dataclass(frozen=True, slots=True)
class Kept:
    """The content of a large object for pickling."""

    digest: str


def mount(contents: Contents) -> None:
    """Let moto answer for buckets without encryption settings as S3 does, and write large objects to `contents`."""

    def chosen_or_own(self: S3Backend, bucket_name: str) -> dict[str, Any]:
        return _encryption(self, bucket_name) or _OWN_KEYS

    def read(key: FakeKey) -> bytes:
        with key.lock:
            key._value_buffer.seek(0)
            return cast(bytes, key._value_buffer.read())

    def write(key: FakeKey, value: bytes | str | Kept) -> None:
        key._value_buffer.close()
        content = value.encode() if isinstance(value, str) else value
        if isinstance(content, bytes) and len(content) >= LARGE:
            content = Kept(contents.keep(content))
        if isinstance(content, Kept):
            file = contents.file(content.digest)
            buffer, size, digest = file.open("rb"), file.stat().st_size, content.digest
        else:
            buffer, size, digest = io.BytesIO(content), len(content), None
        key.__dict__ |= {"_value_buffer": buffer, "contentsize": size, _DIGEST: digest}

    def state(key: FakeKey) -> dict[str, Any]:
        digest = vars(key)[_DIGEST]
        if digest is None:
            return _state(key)
        unpicklable = ("_value_buffer", "lock")
        return {name: value for name, value in vars(key).items() if name not in unpicklable} | {"value": Kept(digest)}

    S3Backend.get_bucket_encryption = chosen_or_own
    FakeKey.value = property(read, write)  # pyrefly: ignore[bad-assignment]
    FakeKey.__getstate__ = state  # pyrefly: ignore[bad-assignment]
