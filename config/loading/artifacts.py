"""`artifacts.lock`: the digests of what podwright downloads, computed on this project's own downloads.

Archives themselves lie in `.podwright/artifacts/`, a cache that can always be fetched again: an archive that differs
from its digest is refused. A chart reaches a synthesis through one type, `ChartArchive`; a test or the sandbox passes a
stand-in instead, which says of itself that it is one.
"""

import hashlib
import io
import json
import re
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Final

from pydantic import StringConstraints, ValidationError

from ..catalog.charts import Chart, pin
from ..errors import InvalidFile
from ..findings import Finding, Level, dotted
from ..settings.base import Settings
from .source import Source, read_source

LOCK: Final = "artifacts.lock"
"""Name of the file at the root of a project."""
CACHE: Final = Path(".podwright") / "artifacts"
"""Where archives lie in a project."""

# Read without parsing: a lock that a newer podwright wrote may be one that this one cannot read.
_WRITER: Final = re.compile(r'^  "podwright": "([0-9][^"]*)",?$', re.MULTILINE)

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ImageDigest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]


class LockedChart(Settings):
    """A chart as it was downloaded."""

    version: str
    """Of the chart."""
    repository: str
    """Address that it came from."""
    revision: str
    """Commit that it came from; for a released chart its version."""
    sha256: Sha256
    """Of its archive."""
    images: tuple[str, ...] = ()
    """Images that it runs with every part enabled, as its rendered manifests name them."""


class LockedArchive(Settings):
    """An archive that nodes install from, or that is published for them, as it was downloaded."""

    address: str
    """URL that it came from; for a Python wheel its requirement."""
    sha256: Sha256
    """Of the file."""
    bytes: int
    """Its length."""


class Artifacts(Settings):
    """What `artifacts.lock` holds."""

    podwright: str = ""
    """Version of the podwright that wrote it last; empty where an early one did."""
    charts: dict[str, LockedChart] = {}
    """Charts by podwright's name."""
    mirrors: dict[str, dict[str, ImageDigest]] = {}
    """By registry: the images that are mirrored there, by their original reference."""
    archives: dict[str, LockedArchive] = {}
    """Archives by podwright's name."""


@dataclass(frozen=True, slots=True)
class ChartArchive:
    """A chart that can be installed."""

    name: str
    """Podwright's name of the chart."""
    path: Path
    """A zip with Chart.yaml at its top, or a folder of the same content."""
    digest: str
    """SHA-256 of the zip."""
    stand_in: bool = False
    """True for a chart of podwright's own that takes the place of the real one in tests and in the sandbox."""


def read_artifacts(root: Path) -> Artifacts:
    """What the lock of the project in `root` holds; nothing when it has none. Raises InvalidFile for a damaged one."""
    file = root / LOCK
    if not file.exists():
        return Artifacts()
    source = read_source(file, LOCK)
    try:
        return Artifacts.model_validate(source.data or {})
    except ValidationError as error:
        newer = newer_writer(root)
        raise InvalidFile(
            [_damaged(source, detail["loc"], detail["msg"], newer) for detail in error.errors()]
        ) from None


def write_artifacts(root: Path, artifacts: Artifacts) -> None:
    """Write the lock, in an order that makes differences small, and with the version of this podwright."""
    content = artifacts.model_dump(mode="json") | {"podwright": version("podwright")}
    # One entry a line and sorted, so that a difference in version control shows what changed and nothing else.
    (root / LOCK).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def newer_writer(root: Path) -> tuple[str, str] | None:
    """The versions of the podwright that wrote the lock and of this one, where the former is newer; else None."""
    file = root / LOCK
    match = _WRITER.search(file.read_text(encoding="utf-8", errors="replace")) if file.is_file() else None
    if match is None:
        return None
    mine = version("podwright")
    # Only the first three numbers count: what follows them is a build of the same release.
    return (match[1], mine) if _parts(match[1]) > _parts(mine) else None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def archive_file(root: Path, chart: Chart, digest: str) -> Path:
    """Where the archive of a chart with that digest lies."""
    # A part of the digest in the name, so that two projects' archives of one chart never stand for each other.
    return root / CACHE / f"{chart.name}-{chart.version}-{digest[:12]}.zip"


def chart_findings(root: Path, chart: Chart) -> list[Finding]:
    """Why `chart` cannot be installed from this project; nothing when it can. Raises InvalidFile for a damaged lock."""
    locked = read_artifacts(root).charts.get(chart.name)
    fetch = "run `podwright chart fetch`"
    if locked is None:
        return [
            _error(
                "CHT001",
                f"{LOCK} has no digest of the chart {chart.name}, which this environment installs",
                f"{fetch} and review what it writes",
            )
        ]
    # The pin is podwright's, so another podwright wants another archive, whatever its digest.
    if locked.revision != chart.revision or locked.version != chart.version:
        return [
            _error(
                "CHT002",
                f"{LOCK} holds {chart.name} {pin(locked.version, locked.revision)}, but this podwright installs "
                f"{chart.pin}",
                "run `podwright chart fetch --update` and review the difference",
            )
        ]
    file = archive_file(root, chart, locked.sha256)
    if not file.exists():
        return [
            _error("CHT003", f"the archive of {chart.name} that {LOCK} names is not at {file.relative_to(root)}", fetch)
        ]
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if digest != locked.sha256:
        return [
            _error(
                "CHT004",
                f"{file.relative_to(root)} has the digest {digest[:12]}…, {LOCK} says {locked.sha256[:12]}…",
                f"delete the file and {fetch}",
            )
        ]
    return []


def chart_archive(root: Path, chart: Chart) -> ChartArchive:
    """The archive of `chart` in this project. Raises InvalidFile with what `chart_findings` says when there is none."""
    if findings := chart_findings(root, chart):
        raise InvalidFile(findings)
    digest = read_artifacts(root).charts[chart.name].sha256
    return ChartArchive(chart.name, archive_file(root, chart, digest), digest)


def stand_in_archive(name: str, folder: Path) -> ChartArchive:
    """A chart of our own in `folder` in place of the chart called `name`, for tests and the sandbox."""
    return ChartArchive(name, folder, hashlib.sha256(pack(folder)).hexdigest(), stand_in=True)


def pack(folder: Path) -> bytes:
    """A zip of `folder` whose bytes depend on names and contents alone.

    Uncompressed, because the bytes of a deflated entry depend on the version of zlib.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
            # Modes and the system that packed it would differ from machine to machine.
            entry.create_system, entry.external_attr = 3, 0o100644 << 16  # Unix, -rw-r--r--
            archive.writestr(entry, file.read_bytes())
    return buffer.getvalue()


def _error(rule: str, message: str, hint: str) -> Finding:
    return Finding(rule, Level.ERROR, "", message, hint)


def _damaged(source: Source, path: tuple[str | int, ...], message: str, newer: tuple[str, str] | None) -> Finding:
    hint = f"restore {LOCK} from version control, or delete it and run `podwright chart fetch`"
    if newer:
        hint = f"podwright {newer[0]} wrote it, and this is {newer[1]}: install that version, or a later one"
    return Finding(
        "CHT005", Level.ERROR, dotted(path), f"{LOCK}: {dotted(path)}: {message.lower()}", hint, source.position(path)
    )
