"""Reads pins.toml, the sources of the control plane's parts."""

import hashlib
import json
import sys
import tomllib
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from ...config.catalog.charts import chart_versions

KUBERNETES: Final = "kubernetes"
"""The part that exists in several minor versions."""

_FILE = Path(__file__).with_name("pins.toml")


@dataclass(frozen=True, slots=True)
class Wheel:
    """A distribution on PyPI whose wheel contains a program."""

    package: str
    version: str
    sha256: tuple[str, ...]
    """Digests of the wheels of all platforms; pip accepts no others."""

    program: str = ""
    """Path of the program in the wheel, if only this file is needed."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change to a source file, in place of a setting that upstream lacks."""

    file: str
    old: str
    """Text that the file contains exactly once."""

    new: str


@dataclass(frozen=True, slots=True)
class GoModule:
    """A published Go module and the programs to build from it."""

    name: str
    path: str
    version: str
    packages: tuple[str, ...]
    """Packages with programs. The last part of the path is the program's name."""

    sums: tuple[str, ...]
    """Lines of go.sum."""

    systems: tuple[str, ...] = ()
    """Values of sys.platform on which its programs run; empty for all."""

    staging: str = ""
    """Version of the modules that its go.mod replaces by folders, which a download does not contain."""

    replaces: bool = False
    """True to apply the replacements of its go.mod: Go applies them only in the main module."""

    variables: dict[str, str] = field(default_factory=dict)
    """Values that the linker sets for variables of its packages."""

    edits: tuple[Edit, ...] = ()
    """Edits of the sources before the build."""

    namespace: str = ""
    """Namespace for objects without one."""

    charts: tuple[str, ...] = ()
    """Folders of the module's Helm charts."""

    objects: dict[str, list[str]] = field(default_factory=dict)
    """Files of Kubernetes objects to write, each with the module's files and kustomizations as its sources."""

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of the programs."""
        return tuple(package.rpartition("/")[2] for package in self.packages)

    @property
    def files(self) -> tuple[str, ...]:
        """Files and folders of an installation."""
        charts = (f"{chart_folder(chart)}/Chart.yaml" for chart in self.charts)
        return (*self.programs, *(f"{name}.yaml" for name in self.objects), *charts)


def chart_folder(chart: str) -> str:
    """Return the folder of a chart in an installation, by its folder in the module."""
    return f"charts/{chart.rpartition('/')[2]}"


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of the cache with its name, version and source."""

    name: str
    version: str
    files: tuple[str, ...]
    source: Wheel | GoModule

    @property
    def folder(self) -> str:
        """Name of the folder. A new version has a new folder; the old one remains until it is removed."""
        return f"{self.name}-{self.version}"

    @property
    def recipe(self) -> str:
        """Digest of all sources of the part. podwright builds a part with another recipe again."""
        # Empty fields do not count, so that a new field changes only the recipes that use it.
        parts = asdict(self, dict_factory=lambda items: {key: value for key, value in items if value})
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def mismatched_charts(part: Part) -> dict[str, str]:
    """Return charts of a part that environments install at another version, with that version."""
    carried = part.source.charts if isinstance(part.source, GoModule) else ()
    names = {part.name, *(folder.rpartition("/")[2] for folder in carried)}
    pinned = {name: version for name, version in chart_versions().items() if name in names}
    return {name: version for name, version in pinned.items() if version.removeprefix("v") != part.version}


@dataclass(frozen=True, slots=True)
class PlatformWheel:
    """A wheel of a release, built from installed parts for each platform."""

    name: str
    summary: str
    parts: tuple[str, ...]
    """Names of the parts. A part from an upstream wheel on PyPI is a requirement of this wheel, and not in it."""

    files: tuple[str, ...] = ()
    """Paths in its parts' folders that it contains if another wheel has the rest; empty for all."""

    @property
    def package(self) -> str:
        """Folder of its installed files."""
        return self.name.replace("-", "_")

    def has(self, file: str) -> bool:
        """True if the wheel contains this file of its parts."""
        return not self.files or file.partition("/")[0] in self.files


@dataclass(frozen=True, slots=True)
class Pins:
    """The Go toolchain for machines without one, and the parts in the order of their builds."""

    go: Wheel
    minimum_go: str
    parts: tuple[Part, ...]
    wheels: tuple[PlatformWheel, ...] = ()
    minors: dict[str, Part] = field(default_factory=dict)
    """Kubernetes in further minor versions than that of `parts`, by minor version."""
    build_seconds: dict[str, float] = field(default_factory=dict)
    """Recorded build times in seconds by part, in the order of `parts`. Progress is calculated from them."""

    @property
    def minor(self) -> str:
        """Minor version of Kubernetes, such as 1.34."""
        return minor_of(self.part(KUBERNETES).version)

    def of_minor(self, minor: str) -> "Pins":
        """Return these pins with Kubernetes in one of `minors`."""
        parts = tuple(self.minors[minor] if part.name == KUBERNETES else part for part in self.parts)
        return replace(self, parts=parts)

    def part(self, name: str) -> Part:
        """Return the part with this name."""
        return next(part for part in self.parts if part.name == name)


@cache
def pins() -> Pins:
    """Return the pins of this version of podwright."""
    data = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    etcd = _wheel(data["etcd"])
    modules = [
        module for module in map(_module, data["module"]) if not module.systems or sys.platform in module.systems
    ]
    parts = [Part("etcd", etcd.version, (etcd.program.rpartition("/")[2],), etcd)]
    parts += map(_part, modules)
    names = {part.name for part in parts}
    wheels = tuple(PlatformWheel(**_with_tuples(row)) for row in data["wheel"] if names.issuperset(row["parts"]))
    kubernetes = next(item for item in modules if item.name == KUBERNETES)
    minors = {minor: _part(_of_minor(kubernetes, row)) for minor, row in data["minors"].items()}
    go = data["go"]
    return Pins(_wheel(go), go["minimum"], tuple(parts), wheels, minors, data["build_seconds"])


def minor_of(version: str) -> str:
    """Return the minor version, such as 1.34 of 1.34.4."""
    return ".".join(version.removeprefix("v").split(".")[:2])


def _part(module: GoModule) -> Part:
    return Part(module.name, module.version.removeprefix("v"), module.files, module)


def _of_minor(kubernetes: GoModule, row: dict[str, Any]) -> GoModule:
    """Return Kubernetes in another version, which its programs report."""
    major, minor = minor_of(row["version"]).split(".")
    values = {"gitVersion": row["version"], "gitMajor": major, "gitMinor": minor}
    variables = {name: values[name.rpartition(".")[2]] for name in kubernetes.variables}
    return replace(kubernetes, **_with_tuples(row), variables=variables)


def _wheel(row: dict[str, Any]) -> Wheel:
    return Wheel(row["package"], row["version"], tuple(row["sha256"]), row.get("program", ""))


def _module(row: dict[str, Any]) -> GoModule:
    values = _with_tuples(row) | {"edits": tuple(Edit(**edit) for edit in row.get("edits", ()))}
    return GoModule(**values)


def _with_tuples(row: dict[str, Any]) -> dict[str, Any]:
    return row | {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
