"""The benchmark programs that are shipped to nodes: what they are built from, and which environments want them."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from ...config.catalog.facts import DATA
from ...config.catalog.instance_types import Catalog, environment_types
from ...config.findings import Finding, Level
from ...config.settings.benchmarks import Benchmarks, benchmark_policy
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup
from .archives import Architecture, Archive, archive_findings

COMPONENT: Final = "benchmark-kernels"
"""What the archives of built programs are called."""
SOURCES: Final = Path(__file__).resolve().parents[2] / "lifecycle_scripts" / "benchmarks"
"""The programs' sources."""
MACHINES: Final[Mapping[Architecture, str]] = {"x86_64": "x86_64", "arm64": "aarch64"}
"""What compilers and wheels call the architectures."""


@cache
def recipe() -> Mapping[str, Any]:
    """Versions of compiler and libraries, and what nodes need for the result, with sources."""
    return json.loads((DATA / "benchmark_kernels.json").read_text(encoding="utf-8"))


def driver_minimum() -> str:
    """The oldest NVIDIA driver that the programs run with."""
    return recipe()["driver_minimum"]


def wheels(part: str, architecture: Architecture) -> tuple[Archive, ...]:
    """The wheels of one part of the recipe, `tools` or `libraries`, for one architecture."""
    return tuple(
        Archive(
            component="wheel",
            version=item["wheel"].partition("==")[2],
            architecture=architecture,
            address=item["wheel"],
            wheel_platform=item.get(f"platform_{architecture}", item["platform"]).format(
                machine=MACHINES[architecture]
            ),
        )
        for item in recipe()[part]
    )


def programs(architecture: Architecture) -> Archive:
    """The archive of the built programs for one architecture. Its version follows from sources and recipe."""
    digest = hashlib.sha256(json.dumps(recipe(), sort_keys=True).encode())
    for file in sorted(SOURCES.iterdir()):
        # Line endings of a checkout are no other program.
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes().replace(b"\r\n", b"\n"))
    # Twelve digits name the archive; its whole digest stands in the lock.
    version = digest.hexdigest()[:12]
    return Archive(COMPONENT, version, architecture, f"podwright kernels build: sources and recipe {version}")


def programs_of(settings: Benchmarks, groups: Iterable[InstanceGroup], types: Catalog) -> tuple[Archive, ...]:
    """The archives that the nodes of `groups` take: one for each architecture with NVIDIA GPUs to measure."""
    # Where nodes compile for themselves nothing has to be shipped.
    if settings.programs != "shipped":
        return ()
    rows = [types.get(name) for group in groups if benchmark_policy(group, types) != "skip" for name in group.types]
    architectures: set[Architecture] = {row.architecture for row in rows if row.accelerator_vendor == "nvidia"}
    return tuple(programs(architecture) for architecture in sorted(architectures))


def program_findings(
    root: Path, settings: Benchmarks, groups: Iterable[InstanceGroup], types: Catalog
) -> list[Finding]:
    """Why groups that gate could not measure their GPUs; others continue without, and their nodes say so."""
    # Only a gate needs programs: a report without them says that it could not measure.
    gating = [group for group in groups if benchmark_policy(group, types) == "gate"]
    return [
        Finding(
            "ART004",
            Level.ERROR,
            "instance_groups",
            f"a group gates on benchmarks, and there are no programs for {item.architecture}: {finding.message}",
            "run `podwright kernels build`, or say benchmarks: report",
        )
        for item in programs_of(settings, gating, types)
        for finding in archive_findings(root, [item])
    ]


def environment_programs(environment: Environment) -> tuple[Archive, ...]:
    """The archives of programs that the nodes of an environment take."""
    types = environment_types(environment.instance_types)
    return programs_of(environment.cluster.benchmarks, environment.instance_groups.values(), types)
