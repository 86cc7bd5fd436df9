"""Objects in S3."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .calls import Clients, change, find, pages
from .unseen import code_of

_ABSENT = ("NoSuchKey", "NoSuchBucket")


def list_objects(clients: Clients, bucket: str, prefix: str) -> list[dict[str, Any]]:
    """The objects below a prefix; none where there is no such bucket."""
    from botocore.exceptions import ClientError

    try:
        return pages(clients, "s3", "list_objects_v2", "Contents", Bucket=bucket, Prefix=prefix)
    except ClientError as error:
        if code_of(error) != "NoSuchBucket":
            raise
        return []


def read_text(clients: Clients, bucket: str, key: str) -> str | None:
    """An object as text; None where it, or its bucket, is not there."""
    result = find(clients, "s3", "get_object", _ABSENT, Bucket=bucket, Key=key)
    return result["Body"].read().decode() if result else None


def write_json_text(clients: Clients, bucket: str, key: str, text: str) -> None:
    """Put a JSON text in the place of what was there."""
    body = text.encode()
    change(clients, "s3", "put_object", Bucket=bucket, Key=key, Body=body, ContentType="application/json")


def upload(clients: Clients, bucket: str, key: str, file: Path) -> None:
    """Upload a file, a large one in parts."""
    clients.client("s3").upload_file(str(file), bucket, key)


def object_versions(clients: Clients, bucket: str) -> Iterator[list[dict[str, Any]]]:
    """All versions of all objects, delete markers included, page by page as far as somebody asks."""
    for page in clients.client("s3").get_paginator("list_object_versions").paginate(Bucket=bucket):
        if results := [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]:
            yield results
