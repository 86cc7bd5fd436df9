"""What has been promoted: one small JSON object for each step and content, in a folder or below a prefix in S3.

Objects are replaced whole, so a promotion that dies leaves either the old one or the new one. Who promotes from several
machines, such as a CI whose jobs are not on one disk, names a place in S3.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from ...config.errors import CommandError
from ..aws.calls import Clients, change, find, pages
from ..aws.objects import write_json_text

State = Literal["started", "passed", "failed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of a step for one content. Times are seconds since 1970."""

    step: str
    content: str
    state: State
    began: float
    by: str
    """Who promoted, or approved."""
    commit: str | None = None
    ended: float | None = None
    code: int | None = None
    """Exit code of the command that failed."""
    evidence: tuple[str, ...] = ()
    """Files that the step wrote, the log of its commands first."""


class Store(Protocol):
    """Keeps texts by key; keys have one slash."""

    def read(self, key: str) -> str | None:
        """The text, or None."""

    def write(self, key: str, text: str) -> None:
        """Put a text in the place of what was there."""

    def remove(self, key: str) -> None:
        """Forget a text."""

    def keys(self, folder: str) -> list[str]:
        """The keys that begin with a folder."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder on this machine."""

    path: Path

    def read(self, key: str) -> str | None:
        """The text, or None."""
        file = self.path / key
        return file.read_text(encoding="utf-8") if file.exists() else None

    def write(self, key: str, text: str) -> None:
        """Put a text in the place of what was there; it is on the disk when this returns."""
        file = self.path / key
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".new")
        with partial.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)

    def remove(self, key: str) -> None:
        """Forget a text."""
        (self.path / key).unlink(missing_ok=True)

    def keys(self, folder: str) -> list[str]:
        """The keys that begin with a folder."""
        return [f"{folder}/{file.name}" for file in sorted((self.path / folder).glob("*.json"))]


@dataclass(frozen=True, slots=True)
class Bucket:
    """A prefix of a bucket."""

    clients: Clients
    bucket: str
    prefix: str

    def read(self, key: str) -> str | None:
        """The text, or None."""
        result = find(self.clients, "s3", "get_object", ("NoSuchKey",), Bucket=self.bucket, Key=self.prefix + key)
        return result["Body"].read().decode() if result else None

    def write(self, key: str, text: str) -> None:
        """Put a text in the place of what was there."""
        write_json_text(self.clients, self.bucket, self.prefix + key, text)

    def remove(self, key: str) -> None:
        """Forget a text."""
        change(self.clients, "s3", "delete_object", Bucket=self.bucket, Key=self.prefix + key)

    def keys(self, folder: str) -> list[str]:
        """The keys that begin with a folder."""
        where = {"Bucket": self.bucket, "Prefix": f"{self.prefix}{folder}/"}
        result = pages(self.clients, "s3", "list_objects_v2", "Contents", **where)
        return [item["Key"].removeprefix(self.prefix) for item in result]


class Record:
    """The entries in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def of(self, step: str, content: str) -> Entry | None:
        """What became of a step for a content; None if it never began."""
        return self._read(f"{step}/{content}.json")

    def put(self, entry: Entry) -> Entry:
        """Keep an entry in the place of the earlier one of its step and content."""
        self.store.write(f"{entry.step}/{entry.content}.json", json.dumps(asdict(entry), indent=2) + "\n")
        return entry

    def all(self, step: str) -> Iterator[Entry]:
        """What became of a step, for every content."""
        return (entry for key in self.store.keys(step) if (entry := self._read(key)))

    def last_passed(self, step: str, besides: str) -> Entry | None:
        """The newest passed entry of a step for another content."""
        passed = [entry for entry in self.all(step) if entry.state == "passed" and entry.content != besides]
        return max(passed, key=lambda entry: entry.began, default=None)

    def overtaken(self, entry: Entry, deploy: str) -> bool:
        """Whether another content was deployed to the entry's environment since; `deploy` is the step's name."""
        return any(other.content != entry.content and other.began > entry.began for other in self.all(deploy))

    def _read(self, key: str) -> Entry | None:
        text = self.store.read(key)
        if text is None:
            return None
        try:
            entry = Entry(**json.loads(text))
        except (TypeError, ValueError) as error:
            hint = "it was not written by this version of `podwright promote`; move it away, and the step runs again"
            raise CommandError(f"the record of a promotion cannot be read: {key}: {error}", hint) from None
        return replace(entry, evidence=tuple(entry.evidence))
