"""Archives that a node installs from: fetched from the cluster's own bucket, checked, unpacked, taken away again."""

from __future__ import annotations

import hashlib
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..runner import deadline
from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.retry import pauses

FOLDER = "/var/lib/podwright/software"
FETCH_SECONDS = 600
ATTEMPTS = 3
_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}


@contextmanager
def fetched(node: Node, component: str) -> Iterator[Path]:
    """The archive of a component for this node, as long as the `with` block lasts.

    Raises:
        Failure: S3 does not give it, or it is not what the deployment published.
    """
    archives = node.group_facts["software"]["components"][component]["archives"]
    with fetched_one(node, component, archives) as path:
        yield path


@contextmanager
def fetched_one(node: Node, name: str, archives: list[dict[str, Any]]) -> Iterator[Path]:
    """The one of some archives that is for this node's architecture, as long as the `with` block lasts.

    Raises:
        Failure: as above, or none is for this node.
    """
    facts = _for_this_machine(name, archives)
    path = node.path(f"{FOLDER}/{name}.archive")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _fetch(node, facts, path)
        yield path
    # Archives are large, and the root volume does not grow.
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def unpacked(node: Node, component: str) -> Iterator[Path]:
    """The content of a component's tar archive, without the one folder that all lies in.

    Raises:
        Failure: as above, or it cannot be unpacked.
    """
    with fetched(node, component) as archive, work_folder(node, component) as folder:
        node.run(
            # The numbers of owners in an archive are those of the machine that packed it.
            *("tar", "--extract", "--no-same-owner", "--strip-components=1"),
            *("--file", str(archive), "--directory", str(folder)),
            timeout=300,
        )
        yield folder


@contextmanager
def work_folder(node: Node, component: str) -> Iterator[Path]:
    """An empty folder that goes with the `with` block; what a killed run left in it goes first."""
    folder = node.path(f"{FOLDER}/{component}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        # In parts: an archive need not fit into the memory of a small controller.
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def architecture() -> str:
    """Of this node, as node.json calls it."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def _for_this_machine(name: str, archives: list[dict[str, Any]]) -> dict[str, Any]:
    for facts in archives:
        if facts["architecture"] in (None, architecture()):
            return facts
    raise Failure(
        f"no archive of {name} for {architecture()} was published",
        "name the node's instance type in its group, run `podwright assets fetch` and deploy again",
    )


def _fetch(node: Node, facts: dict[str, Any], path: Path) -> None:
    """Fetch an archive from the environment's bucket and verify its digest. Raises Failure."""
    uri = f"{node.facts['software']['archives_uri']}/{facts['file']}"
    command = ("aws", "s3", "cp", "--only-show-errors", "--region", node.facts["cluster"]["region"], uri, str(path))
    for attempt, pause in zip(range(1, ATTEMPTS + 1), pauses()):
        try:
            node.run(*command, timeout=FETCH_SECONDS)
            break
        except Failure as failure:
            if attempt == ATTEMPTS:
                raise
            node.log.say("waiting", what=uri, seconds=round(pause, 1), saw=str(failure))
            deadline.pause(pause)
    digest = digest_of(path)
    # Of the file as it lies on the disk: S3's own checksum does not say what the deployment meant.
    if digest != facts["sha256"]:
        raise Failure(
            f"{uri} has the digest {digest}, the deployment published {facts['sha256']}",
            "look who else writes to the scripts' S3 prefix, and deploy the cluster's stack again",
        )
