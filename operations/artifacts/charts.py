"""Fetch the Helm charts that podwright installs, and write their digests to artifacts.lock for review.

The command fetches the charts of the project's environments, each at its pinned commit or release. A digest in
artifacts.lock must match; --update accepts another one. Archives are in .podwright/artifacts, which is a cache.
`outdated` asks the sources for newer versions, and changes nothing. Its exit code is 1 if there is a newer version.

Without a network, copy that folder and artifacts.lock from a machine that has one: --archives reads the archives from
there, and artifacts.lock has their digests.
"""

import argparse
import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from urllib3.exceptions import HTTPError

from ...config.catalog.charts import Chart, pin
from ...config.catalog.images import Image
from ...config.errors import CommandError
from ...config.loading.artifacts import (
    LOCK,
    Artifacts,
    ChartArchive,
    LockedChart,
    archive_file,
    chart_archive,
    chart_findings,
    pack,
    read_artifacts,
    write_artifacts,
)
from ...config.loading.project import Project
from ...config.loading.source import read_source
from ...planning.helm.wanted_charts import wanted_charts
from ..output.console import write_line
from ..output.moving import under_way
from ..programs.helm import helm, images_of
from .http import request
from .outdated import show

# Far above any chart: a wrong address must not fill memory.
_MAX_BYTES: Final = 300_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright chart`."""
    parser.add_argument(
        "action",
        choices=["fetch", "outdated"],
        help="fetch the charts and write artifacts.lock, or list newer versions",
    )
    parser.add_argument("--update", action="store_true", help=f"accept a digest that differs from {LOCK}")
    parser.add_argument(
        "--archives",
        dest="source",
        metavar="DIR",
        type=Path,
        help="read archives from this folder, without network; .podwright/artifacts of another machine",
    )
    parser.add_argument("--json", action="store_true", help="with outdated: print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Fetch every chart that an environment of the project installs, or say which of them have newer versions.

    Raises:
        CommandError: an archive cannot be had or differs from the lock, or no environment installs a chart.
    """
    project = Project.at(args.project)
    desired = {
        item.chart.name: item.chart for loaded in project.load_all() for item in wanted_charts(loaded.environment)
    }
    if not desired:
        raise CommandError("no environment of this project installs a chart", "nothing has to be fetched")
    if args.action == "outdated":
        return show(desired.values(), as_json=args.json)
    for item in desired.values():
        under_way(f"fetching {item.name}")
        fetched = (
            bring(args.project, item, args.source) if args.source else fetch(args.project, item, update=args.update)
        )
        write_line(f"{fetched.name}: {fetched.path.relative_to(args.project)}\n  sha256 {fetched.digest}")
    write_line(f"Review {LOCK} and keep it under version control.")
    return 0


def fetch(root: Path, chart: Chart, *, update: bool = False) -> ChartArchive:
    """Download a chart with everything that it depends on, check that it renders, and write archive and lock.

    An archive that is there and matches the lock is left alone unless `update` is given.

    Raises:
        CommandError: the download fails, is not what was asked for, or differs from the lock and `update` is not given.
    """
    if not update and not chart_findings(root, chart):
        return chart_archive(root, chart)
    artifacts = read_artifacts(root)
    with tempfile.TemporaryDirectory(prefix="podwright-fetch-") as path:
        folder = Path(path)
        _unpack(chart, folder)
        content = pack(folder)
        digest = hashlib.sha256(content).hexdigest()
        _compare(artifacts, chart, digest, update)
        images = images_of(ChartArchive(chart.name, folder, digest), chart, chart.listing_values)
    file = archive_file(root, chart, digest)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    locked = LockedChart(
        version=chart.version,
        repository=chart.repository,
        revision=chart.revision,
        sha256=digest,
        images=tuple(sorted(str(Image.parse(image)) for image in images)),
    )
    write_artifacts(root, artifacts.model_copy(update={"charts": artifacts.charts | {chart.name: locked}}))
    return ChartArchive(chart.name, file, digest)


def bring(root: Path, chart: Chart, source: Path) -> ChartArchive:
    """Copy the archive of a chart that another machine fetched, if it is the one that the lock names.

    Raises:
        CommandError: the lock or `source` lacks it, or it is another one.
        InvalidFile: the lock names another version than this podwright installs.
    """
    locked = read_artifacts(root).charts.get(chart.name)
    if locked is None:
        raise CommandError(
            f"{LOCK} has no digest of the chart {chart.name}",
            f"run `podwright chart fetch` on a machine with a network, and bring its {LOCK} along too",
        )
    file = archive_file(root, chart, locked.sha256)
    brought = source / file.name
    if not brought.is_file():
        raise CommandError(f"{brought} is not there", "copy all of .podwright/artifacts of the machine that fetched it")
    content = brought.read_bytes()
    if hashlib.sha256(content).hexdigest() != locked.sha256:
        raise CommandError(f"{brought} is not what {LOCK} names: its digest differs", "copy it again")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return chart_archive(root, chart)


def _unpack(chart: Chart, folder: Path) -> None:
    """The chart with everything that it depends on, in `folder`."""
    if chart.archive.startswith("oci://"):
        with tempfile.TemporaryDirectory(prefix="podwright-pull-") as path:
            helm("pull", chart.archive, "--version", chart.version, "--destination", path)
            (packed,) = Path(path).glob("*.tgz")
            _extract(packed.read_bytes(), chart, folder)
    else:
        _extract(_download(chart.archive), chart, folder)
    metadata: dict[str, Any] = read_source(folder / "Chart.yaml", f"{chart.name}/Chart.yaml").data
    # Projects disagree on whether a version begins with v, some between Chart.yaml and the release.
    if str(metadata.get("version")).removeprefix("v") != chart.version.removeprefix("v"):
        raise CommandError(
            f"{chart.name} has version {metadata.get('version')}, expected {chart.version}",
            "use the podwright that pins that version",
        )
    if not chart.released:
        _add_dependencies(folder, metadata)
        for name in chart.nested:
            inner = folder / "charts" / name
            _add_dependencies(inner, read_source(inner / "Chart.yaml", f"{chart.name}/{name}/Chart.yaml").data)


def _download(address: str) -> bytes:
    try:
        with request("GET", address, stream=True) as response:
            content = response.read(_MAX_BYTES + 1)
    except (OSError, HTTPError) as error:
        raise CommandError(f"{address} cannot be downloaded: {error}", "check the network and HTTPS_PROXY") from None
    if len(content) > _MAX_BYTES:
        raise CommandError(f"{address} is larger than {_MAX_BYTES:,} bytes", "it is not the requested archive")
    return content


def _extract(archive: bytes, chart: Chart, folder: Path) -> None:
    """The chart's files out of an archive that puts all under one folder, named by the commit or the chart."""
    inside = PurePosixPath(chart.folder)
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for member in opened:
            # The first part is the folder that GitHub names by the commit, and Helm by the chart.
            path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            # Archives come from elsewhere: a name with `..` must not write outside the folder, and links are left out.
            if member.isfile() and path.is_relative_to(inside) and ".." not in path.parts:
                target = folder / path.relative_to(inside)
                target.parent.mkdir(parents=True, exist_ok=True)
                content = opened.extractfile(member)
                target.write_bytes(content.read() if content else b"")
    if not (folder / "Chart.yaml").is_file():
        raise CommandError(
            f"{chart.archive} holds no chart at {chart.folder or 'its top'}", "the repository has changed its layout"
        )


def _add_dependencies(folder: Path, metadata: dict[str, Any]) -> None:
    """The subcharts that Chart.yaml takes from other repositories, unpacked beside those that it brings."""
    for subchart in metadata.get("dependencies") or ():
        name, version, repository = subchart["name"], subchart["version"], subchart["repository"]
        # Part of the same repository, so unpacked with the chart.
        if repository.startswith("file://"):
            continue
        # Helm would load a packed copy that the repository brings, of whatever version, beside the one that is pulled.
        for packed in (folder / "charts").glob(f"{name}-*.tgz"):
            packed.unlink()
        source = (f"{repository}/{name}",) if repository.startswith("oci://") else (name, "--repo", repository)
        helm("pull", *source, "--version", version, "--untar", "--untardir", str(folder / "charts"))
    for packed in _duplicates(folder):
        packed.unlink()


def _duplicates(folder: Path) -> Iterator[Path]:
    """Packed subcharts that the repository also holds as a folder; Helm would load both."""
    for packed in (folder / "charts").glob("*.tgz"):
        if any(
            (path / "Chart.yaml").is_file() and packed.name.startswith(f"{path.name}-")
            for path in (folder / "charts").iterdir()
            if path.is_dir()
        ):
            yield packed


def _compare(artifacts: Artifacts, chart: Chart, digest: str, update: bool) -> None:
    locked = artifacts.charts.get(chart.name)
    if locked and locked.revision == chart.revision and locked.sha256 != digest and not update:
        raise CommandError(
            f"the download of {chart.name} has the digest {digest}, {LOCK} says {locked.sha256} for the same "
            f"{'release' if chart.released else 'commit'}",
            "the source or a subchart changed; inspect it before you accept it with --update",
        )
    if locked and locked.revision != chart.revision and not update:
        raise CommandError(
            f"{LOCK} holds {chart.name} {pin(locked.version, locked.revision)}, this podwright pins {chart.pin}",
            "`podwright chart fetch --update` goes over to the new one",
        )
