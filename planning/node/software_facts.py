"""What nodes learn about the software that they check, install and set: two parts of `node.json`."""

from collections.abc import Iterable, Sequence
from typing import Literal

from ...config.catalog.facts import table
from ...config.catalog.instance_types import Catalog
from ...config.catalog.software_matrix import NAMES
from ...config.settings.base import Settings
from ...config.settings.groups import InstanceGroup
from ...config.settings.software import Component, NodeSoftware, job_variables
from .archives import PACKAGE, LockedFile, components_of


class NeedFacts(Settings):
    """One component's need of another, as of some version."""

    component: str
    """Component, or instance family."""
    since: str
    """Its first version that has the need."""
    needs: str
    """The other component."""
    at_least: str
    """Oldest version of that."""
    level: Literal["error", "warning"]
    """error: they do not work together. warning: something is slower or off."""
    why: str
    """In words."""


class ArchiveFacts(Settings):
    """An archive that a node installs from."""

    file: str
    """Where it lies below `archives_uri`."""
    sha256: str
    """Its digest."""
    architecture: Literal["x86_64", "arm64"] | None
    """Instruction set that it is for; null when it serves both."""


class InstalledFacts(Settings):
    """A component that the nodes of a group install."""

    version: str
    """Its version."""
    archives: tuple[ArchiveFacts, ...]
    """What it is installed from."""


class PackageFacts(Settings):
    """A package of the operating system that nodes install."""

    name: str
    """The environment's name of it."""
    systems: tuple[str, ...]
    """Operating systems that it is for, such as amzn2023."""
    architecture: Literal["x86_64", "arm64"]
    """Instruction set that it is for."""
    kernel: str | None
    """Kernel release that it is for; null for every one."""
    archives: tuple[ArchiveFacts, ...]
    """The package itself."""


class ClusterSoftware(Settings):
    """How the nodes of a cluster treat their software."""

    install: Literal["verify", "ensure", "pin"]
    """verify: check only. ensure: install what is absent or older. pin: install exactly the given versions."""
    mismatch: Literal["fail", "warn"]
    """What follows from versions that do not work together."""
    versions: dict[Component, str]
    """Versions by component that are asked for."""
    archives_uri: str
    """S3 URI of the prefix of all archives, without a slash at its end; empty when there are none."""
    packages: tuple[PackageFacts, ...]
    """Packages of the operating system to install."""
    needs: tuple[NeedFacts, ...]
    """Which versions work together."""
    names: dict[str, str]
    """How people call the components."""


class GroupSoftware(Settings):
    """What the nodes of one group install and set."""

    components: dict[Component, InstalledFacts]
    """Components to install."""
    kernel_only: bool
    """Whether only kernel modules are installed on the host, because pods bring the rest."""
    variables: dict[str, str]
    """Environment variables of jobs."""


def cluster_software(
    settings: NodeSoftware, archives: Sequence[LockedFile] = (), archives_uri: str = ""
) -> ClusterSoftware:
    """The facts that all nodes share.

    Args:
        settings: The environment's.
        archives: What is published; a package without its archive is left out.
        archives_uri: Where archives are published; may be a value that only a deployment knows.
    """
    return ClusterSoftware(
        install=settings.install,
        mismatch=settings.mismatch,
        versions=dict(settings.versions.items()),
        archives_uri=archives_uri,
        packages=tuple(
            PackageFacts(
                name=file.archive.version,
                archives=archive_facts([file]),
                **settings.packages[file.archive.version].model_dump(exclude={"address"}),
            )
            for file in archives
            if file.archive.component == PACKAGE
        ),
        needs=tuple(
            NeedFacts.model_validate(
                {
                    "component": row["component"],
                    "since": row["from"],
                    "needs": row["needs"],
                    "at_least": row["at_least"],
                    "level": row["level"],
                    "why": row["why"],
                }
            )
            for row in table("software_needs")
        ),
        names=NAMES,
    )


def group_software(
    settings: NodeSoftware, orchestrator: str, group: InstanceGroup, types: Catalog, archives: Sequence[LockedFile]
) -> GroupSoftware:
    """The facts of one group.

    Args:
        settings: The environment's.
        orchestrator: eks or slurm.
        group: The group.
        types: The catalog with the environment's overrides.
        archives: What is published. A component without an archive is left out; `archive_findings` says so before a
            deployment.
    """
    desired = settings.versions
    components: dict[Component, InstalledFacts] = {}
    for name in components_of(settings, orchestrator, group, types):
        files = [file for file in archives if file.archive.component == name]
        if files:
            components[name] = InstalledFacts(version=getattr(desired, name), archives=archive_facts(files))
    rows = tuple(types.get(name) for name in group.types)
    return GroupSoftware(
        components=components, kernel_only=orchestrator == "eks", variables=job_variables(settings, rows)
    )


def archive_facts(files: Iterable[LockedFile]) -> tuple[ArchiveFacts, ...]:
    """What nodes are told of published archives."""
    return tuple(
        ArchiveFacts(file=published_name(file), sha256=file.locked.sha256, architecture=file.archive.architecture)
        for file in files
    )


def published_name(file: LockedFile) -> str:
    """Where an archive is published below the prefix of all archives: its content decides, so it never changes."""
    return f"{file.locked.sha256}/{file.archive.name}"
