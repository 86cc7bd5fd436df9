"""JSON objects below a prefix of S3, read and written with the AWS CLI that HyperPod's images bring."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .failure import Failure
from .node import Node

NEW = ""
"""In place of an entity tag: the object must not exist yet."""
TIMEOUTS = ("--cli-connect-timeout", "5", "--cli-read-timeout", "20")
# What S3 answers when a condition does not hold, and when two conditional writes meet. Source: Amazon S3 User Guide,
# "How to prevent object overwrites with conditional writes", 2026-11.
CONFLICTS = ("(PreconditionFailed)", "(ConditionalRequestConflict)")


class Changed(Exception):
    """Somebody else wrote the object first."""


@dataclass(frozen=True)
class Entry:
    """An object as it was read."""

    value: dict[str, Any]
    tag: str
    """Its entity tag, which changes with the content."""


@dataclass(frozen=True)
class Store:
    """Objects below `uri`, s3://BUCKET/PREFIX."""

    node: Node
    uri: str

    def read(self, name: str) -> Entry | None:
        """An object; None when there is none.

        Raises:
            Failure: S3 is out of reach, or the object holds something else than a JSON object.
        """
        # Not GetObject alone: the role may list below the prefix only, and then S3 answers 403 for what is not there.
        listed = json.loads(self._s3("list-objects-v2", "--prefix", self._key(name), "--max-keys", "1") or "{}")
        if [item["Key"] for item in listed.get("Contents", ())] != [self._key(name)]:
            return None
        with tempfile.TemporaryDirectory() as folder:
            body = Path(folder, "body")
            tag = json.loads(self._s3("get-object", "--key", self._key(name), str(body)))["ETag"]
            try:
                value = json.loads(body.read_text(encoding="utf-8"))
            except ValueError as error:
                raise _unreadable(f"{self.uri}/{name}", str(error)) from error
        if not isinstance(value, dict):
            raise _unreadable(f"{self.uri}/{name}", f"a {type(value).__name__}")
        return Entry(value, tag)

    def write(self, name: str, value: dict[str, Any], *, over: str | None = None) -> None:
        """Write an object: over what has the entity tag `over`, where none is (`NEW`), or over anything (None).

        Raises:
            Changed: the object is another than `over` says.
            Failure: S3 is out of reach.
        """
        conditions = {None: (), NEW: ("--if-none-match", "*")}
        condition = conditions.get(over, ("--if-match", str(over)))
        with tempfile.TemporaryDirectory() as folder:
            body = Path(folder, "body")
            body.write_text(json.dumps(value), encoding="utf-8")
            try:
                self._s3("put-object", "--key", self._key(name), "--body", str(body), *condition)
            except Failure as failure:
                if condition and any(conflict in str(failure) for conflict in CONFLICTS):
                    raise Changed(name) from failure
                raise

    def _key(self, name: str) -> str:
        return f"{self.uri.split('/', 3)[3]}/{name}"

    def _s3(self, operation: str, *arguments: str) -> str:
        region = self.node.facts["cluster"]["region"]
        bucket = ("--bucket", self.uri.split("/", 3)[2], "--region", region, "--output", "json", *TIMEOUTS)
        return self.node.run("aws", "s3api", operation, *bucket, *arguments, timeout=60)


def _unreadable(uri: str, saw: str) -> Failure:
    return Failure(f"{uri} is not the JSON object that nodes write there: {saw}", "look who else writes there")
