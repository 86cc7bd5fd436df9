"""Publishes lifecycle scripts and node.json under a prefix that is never changed afterwards.

Each content has a prefix of its own, `PREFIX/DIGEST/`, so nodes that boot during an update read one whole version or
the other. The manifest is written last: a prefix without one was never finished, and the next run finishes it.
"""

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Iterator
from typing import IO, Any, Final

import boto3

from ....common.handler_runtime.response import Answer, answering

ENTRY_POINT: Final = "on_create.sh"
MANIFEST: Final = "manifest.json"
NODE_FACTS: Final = "node.json"
_DOCUMENTS: Final = {NODE_FACTS: "NodeFacts", "provisioning_parameters.json": "ProvisioningParameters"}
"""Files beside the scripts, and the properties that hold their content."""
_CHUNK: Final = 1 << 20
# The most keys of one DeleteObjects request.
_DELETE_AT_ONCE: Final = 1000

s3 = boto3.client("s3")


def handle(event: dict[str, Any], context: Any) -> Answer:
    """Publish on create and update; on delete remove what was published, if the properties say so."""
    properties = event["ResourceProperties"]
    bucket, prefix = properties["Bucket"], properties["Prefix"]
    if event["RequestType"] == "Delete":
        if properties["RemoveOnDelete"] == "true":
            _remove(bucket, f"{prefix}/")
        return Answer(event["PhysicalResourceId"])
    # The same text whatever the order of the template's keys.
    documents = {
        name: json.dumps(json.loads(properties[key]), indent=1, sort_keys=True).encode()
        for name, key in _DOCUMENTS.items()
        if key in properties
    }
    # Divided by a byte that no JSON text holds, so that no two sets of documents run together to the same bytes.
    digest = hashlib.sha256(b"\0".join([properties["AssetDigest"].encode(), *documents.values()])).hexdigest()
    for archive in properties.get("Archives", ()):
        _copy(bucket, f"{prefix}/{archive['Name']}", archive)
    _publish(bucket, f"{prefix}/{digest}", digest, documents, properties["AssetBucket"], properties["AssetKey"])
    # The physical id is the place without the digest: another content is an update, and the older one stays for nodes
    # that still read it.
    return Answer(f"s3://{bucket}/{prefix}", {"SourceS3Uri": f"s3://{bucket}/{prefix}/{digest}"})


handler = answering(handle)


def _publish(
    bucket: str, prefix: str, digest: str, documents: dict[str, bytes], asset_bucket: str, asset_key: str
) -> None:
    """Copy scripts and documents below the prefix; nothing when its manifest, which is written last, is there."""
    if _exists(bucket, f"{prefix}/{MANIFEST}"):
        return
    with tempfile.TemporaryFile() as file:
        s3.download_fileobj(asset_bucket, asset_key, file)
        with zipfile.ZipFile(file) as archive:
            sums = {name: _checked(archive, name) for name in archive.namelist() if not name.endswith("/")}
            if ENTRY_POINT not in sums:
                raise ValueError(f"the lifecycle scripts have no {ENTRY_POINT}, which HyperPod is told to run")
            for name in sums:
                # Streamed entry by entry; the archive may be larger than the memory of the function.
                with archive.open(name) as entry:
                    s3.upload_fileobj(entry, bucket, f"{prefix}/{name}")
    for name, document in documents.items():
        s3.put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=document)
        sums[name] = hashlib.sha256(document).hexdigest()
    manifest = json.dumps({"version": 1, "digest": digest, "files": sums}, indent=1, sort_keys=True)
    s3.put_object(Bucket=bucket, Key=f"{prefix}/{MANIFEST}", Body=manifest.encode())


def _copy(bucket: str, key: str, source: dict[str, str]) -> None:
    # Inside S3, in parts where it is large; the name holds the digest, so what is there is the same.
    if not _exists(bucket, key):
        s3.copy({"Bucket": source["Bucket"], "Key": source["Key"]}, bucket, key)


def _exists(bucket: str, key: str) -> bool:
    # Not HeadObject: the role may list below the prefix only, and then S3 answers 403 for an object that is not there.
    return s3.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)["KeyCount"] > 0


def _checked(archive: zipfile.ZipFile, name: str) -> str:
    """SHA-256 of an entry. Refuses a script that bash on a node would choke on, before a node does."""
    digest = hashlib.sha256()
    with archive.open(name) as entry:
        for chunk in _chunks(entry):
            if name.endswith((".sh", ".py")) and b"\r" in chunk:
                raise ValueError(f"{name} has carriage returns; save it with LF line endings")
            digest.update(chunk)
    return digest.hexdigest()


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


def _remove(bucket: str, prefix: str) -> None:
    """Delete every version of every object below `prefix`, so that the bucket itself can go."""
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
        # In a bucket with versions a deleted object leaves its versions and a marker, and a bucket that has either
        # cannot be deleted.
        results = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        objects = [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in results]
        for start in range(0, len(objects), _DELETE_AT_ONCE):
            batch = objects[start : start + _DELETE_AT_ONCE]
            # Quiet: only errors are listed. The call itself succeeds even when single keys were refused.
            failed = s3.delete_objects(Bucket=bucket, Delete={"Objects": batch, "Quiet": True}).get("Errors", [])
            if failed:
                first = failed[0]
                raise RuntimeError(f"{len(failed)} objects stay, first {first['Key']}: {first['Code']}")
