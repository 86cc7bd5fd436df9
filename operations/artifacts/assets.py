"""Fetch the archives that nodes install software from, and write their digests to artifacts.lock for review.

`cluster.node_software` of each environment decides which archives: none with `install: verify`. They are in
.podwright/artifacts, which is a cache. A deployment publishes them with the lifecycle scripts. A digest in
artifacts.lock must match; --update accepts another one.
"""

import argparse
from pathlib import Path

from ...config.errors import CommandError
from ...config.loading.artifacts import CACHE, LOCK, LockedArchive, read_artifacts, write_artifacts
from ...config.loading.project import Project
from ...planning.node.archives import Archive, archive_findings, cached_file, digest_of, environment_archives
from ..output.console import write_line
from ..output.moving import under_way
from .downloads import download, download_wheel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright assets`."""
    parser.add_argument("action", choices=["fetch"], help="fetch the archives and write artifacts.lock")
    parser.add_argument(
        "environments",
        nargs="*",
        metavar="ENV",
        help="names of environments, or paths of their files (default: all of the project)",
    )
    parser.add_argument("--update", action="store_true", help=f"accept a digest that differs from {LOCK}")


def run(args: argparse.Namespace) -> int:
    """Fetch every archive that is not here yet."""
    project = Project.at(args.project)
    environments = [project.load(name).environment for name in args.environments or project.names]
    desired = sorted(
        {item for environment in environments for item in environment_archives(environment)}, key=lambda item: item.name
    )
    for item in desired:
        under_way(f"fetching {item.name}")
        file = fetch(args.project, item, update=args.update)
        write_line(f"{item.name}: {file.relative_to(args.project)}\n  sha256 {digest_of(file)}")
    write_line(
        f"Review {LOCK} and keep it under version control."
        if desired
        else "These environments install nothing on nodes."
    )
    return 0


def fetch(root: Path, archive: Archive, *, update: bool = False) -> Path:
    """Download one archive, write its digest to the lock, and return where it lies.

    A file that is there and matches the lock is left alone unless `update` is given.

    Raises:
        CommandError: the download fails, or differs from the lock and `update` is not given.
    """
    artifacts = read_artifacts(root)
    locked = artifacts.archives.get(archive.name)
    if locked and not update and not archive_findings(root, [archive]):
        return cached_file(root, archive.name, locked.sha256)
    (root / CACHE).mkdir(parents=True, exist_ok=True)
    part = root / CACHE / f"{archive.name}.part"
    try:
        if archive.wheel_platform:
            download_wheel(archive.address, archive.wheel_platform, part)
        else:
            download(archive.address, part)
        digest = digest_of(part)
        if locked and locked.address == archive.address and locked.sha256 != digest and not update:
            raise CommandError(
                f"the download of {archive.address} has the digest {digest}, {LOCK} says {locked.sha256}",
                "the content at that address changed; inspect it before you accept it with --update",
            )
        entry = LockedArchive(address=archive.address, sha256=digest, bytes=part.stat().st_size)
        # Before the lock names it: an interrupted run leaves a file too many, not an entry without its file.
        file = part.replace(cached_file(root, archive.name, digest))
    finally:
        part.unlink(missing_ok=True)
    write_artifacts(root, artifacts.model_copy(update={"archives": artifacts.archives | {archive.name: entry}}))
    return file
