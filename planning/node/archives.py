"""Archives of node software: which ones an environment needs, and what `artifacts.lock` says about them.

An archive is fetched on a workstation by `podwright assets fetch`, published beside the lifecycle scripts, and checked
against its digest once more by the node that installs it. Nodes download nothing else.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal

from ...config.catalog.facts import DATA
from ...config.catalog.instance_type import InstanceType
from ...config.catalog.instance_types import Catalog, environment_types
from ...config.catalog.software_matrix import efa_installers
from ...config.findings import Finding, Level
from ...config.loading.artifacts import CACHE, LOCK, LockedArchive, read_artifacts
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup
from ...config.settings.software import COMPONENTS, KERNEL_PARTS, Component, NodeSoftware

Architecture = Literal["x86_64", "arm64"]
_MACHINES: Final[dict[Architecture, str]] = {"x86_64": "x86_64", "arm64": "aarch64"}
PACKAGE: Final = "package"
"""Component of every package of the operating system; its name stands in place of a version."""


@dataclass(frozen=True, slots=True)
class Archive:
    """One file to fetch."""

    component: str
    """What it brings."""
    version: str
    """Of the component."""
    architecture: Architecture | None
    """Instruction set; None for an archive that serves both."""
    address: str
    """URL; for a wheel its requirement, such as nvidia-nccl-cu13==2.31.2."""
    wheel_platform: str = ""
    """Platform tag of a wheel; empty for a URL."""

    @property
    def name(self) -> str:
        """Key in the lock: unique among all archives."""
        return "-".join(filter(None, (self.component, self.version, self.address_suffix, self.architecture)))

    @property
    def address_suffix(self) -> str:
        """What tells two archives of the same version apart besides the architecture: the CUDA of a wheel."""
        return self.address.partition("==")[0].rpartition("-")[2] if self.wheel_platform else ""


@dataclass(frozen=True, slots=True)
class LockedFile:
    """An archive that is here and is what the lock says."""

    archive: Archive
    path: Path
    """Where it lies in this project."""
    locked: LockedArchive


def components_of(settings: NodeSoftware, orchestrator: str, group: InstanceGroup, types: Catalog) -> list[Component]:
    """What is installed on the nodes of a group: kernel parts only with EKS; on types without EFA or GPUs nothing."""
    concerned = {name for row in map(types.get, group.types) for name in COMPONENTS if _concerns(name, row)}
    desired = dict(settings.installs())
    installer = efa_installers().get(desired.get("efa_installer", ""))
    # The installer brings a plug-in of its own, and building the same one again gains nothing.
    bundled = installer is not None and installer.aws_ofi_nccl == desired.get("aws_ofi_nccl")
    return [
        name
        for name in COMPONENTS
        if name in desired
        and name in concerned
        and (orchestrator != "eks" or name in KERNEL_PARTS)
        and not (name == "aws_ofi_nccl" and bundled)
    ]


def archives_of(
    settings: NodeSoftware, orchestrator: str, groups: Iterable[InstanceGroup], types: Catalog
) -> tuple[Archive, ...]:
    """The archives that the nodes of `groups` install from; none with `install: verify`."""
    desired = dict(settings.installs())
    ours = [group for group in groups if group.lifecycle is None]
    # Groups with scripts of their own install by themselves.
    machines = {types.get(row).architecture for group in ours for row in group.types}
    results = {
        archive(name, desired[name], settings.cuda, row.architecture)
        for group in ours
        for name, row in product(components_of(settings, orchestrator, group, types), map(types.get, group.types))
    }
    results |= {
        Archive(PACKAGE, name, package.architecture, package.address)
        for name, package in settings.packages.items()
        if settings.install != "verify" and package.architecture in machines
    }
    # By name, so that neither the order of groups nor that of types changes what is published.
    return tuple(sorted(results, key=lambda item: item.name))


def environment_archives(environment: Environment) -> tuple[Archive, ...]:
    """The archives that the nodes of an environment install from."""
    return archives_of(
        environment.cluster.node_software,
        environment.cluster.orchestrator,
        environment.instance_groups.values(),
        environment_types(environment.instance_types),
    )


def archive(component: str, version: str, cuda: str, architecture: Architecture) -> Archive:
    """The archive of one component for one architecture."""
    source = _sources()[component]
    words = {"version": version, "cuda": cuda, "machine": _MACHINES[architecture]}
    if "wheel" in source:
        return Archive(
            component, version, architecture, source["wheel"].format(**words), source["platform"].format(**words)
        )
    return Archive(component, version, None, source["address"].format(**words))


def cached_file(root: Path, name: str, digest: str) -> Path:
    """Where the archive of that name and digest lies in a project."""
    # A part of the digest in the name: two versions of one archive may lie beside each other.
    return root / CACHE / f"{name}-{digest[:12]}.archive"


def archive_findings(root: Path, archives: Iterable[Archive]) -> list[Finding]:
    """Why nodes could not install `desired` from this project; nothing when they can."""
    locked = read_artifacts(root).archives
    return [finding for item in archives if (finding := _finding(root, item, locked.get(item.name)))]


def locked_files(root: Path, archives: Iterable[Archive]) -> tuple[LockedFile, ...]:
    """The files of those archives of `desired` that the lock names; `archive_findings` says what is missing."""
    locked = read_artifacts(root).archives
    return tuple(
        LockedFile(item, cached_file(root, item.name, entry.sha256), entry)
        for item in archives
        # What is locked and not fetched is told by findings.
        if (entry := locked.get(item.name)) and cached_file(root, item.name, entry.sha256).is_file()
    )


def digest_of(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _finding(root: Path, item: Archive, locked: LockedArchive | None) -> Finding | None:
    fetch = "run `podwright assets fetch`"
    if locked is None or locked.address != item.address:
        return _error(
            "ART001", f"{LOCK} has no digest of {item.address}, which nodes install", f"{fetch} and review {LOCK}"
        )
    path = cached_file(root, item.name, locked.sha256)
    if not path.is_file():
        return _error("ART002", f"{item.name}, which {LOCK} names, is not at {path.relative_to(root)}", fetch)
    if path.stat().st_size != locked.bytes or digest_of(path) != locked.sha256:
        return _error("ART003", f"{path.relative_to(root)} is not the file that {LOCK} names", f"delete it and {fetch}")
    return None


def _concerns(component: Component, row: InstanceType) -> bool:
    if component == "efa_installer":
        return row.efa_interfaces > 0
    # GDRCopy helps the plug-in, and that is for EFA.
    return row.accelerator_vendor == "nvidia" and (component != "gdrcopy" or row.efa_interfaces > 0)


def _error(rule: str, message: str, hint: str) -> Finding:
    return Finding(rule, Level.ERROR, "cluster.node_software.versions", message, hint)


@cache
def _sources() -> Mapping[str, Any]:
    return json.loads((DATA / "software_sources.json").read_text(encoding="utf-8"))
