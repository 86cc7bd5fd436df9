"""Build the benchmark programs for GPUs, and write their digests to artifacts.lock.

The compiler and libraries come from the package index, in pinned versions. The result is one archive for each
architecture: the programs with cuBLASLt and NCCL, about 580 MB. It is in .podwright/artifacts. A deployment publishes
it with the lifecycle scripts.
"""

import argparse
import gzip
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, get_args

from ...config.catalog.software_matrix import number
from ...config.errors import CommandError
from ...config.loading.artifacts import CACHE, LOCK, LockedArchive, read_artifacts, write_artifacts
from ...config.loading.project import Project
from ...planning.node.archives import Architecture, Archive, cached_file, digest_of
from ...planning.node.kernels import MACHINES, SOURCES, environment_programs, programs, recipe, wheels
from ..output.console import write_line
from ..output.moving import under_way
from .assets import fetch

# The first level of compression: the libraries hold machine code that hardly shrinks further, and nodes unpack it.
_COMPRESSION: Final = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright kernels`."""
    parser.add_argument("action", choices=["build"], help="build the programs and write artifacts.lock")
    parser.add_argument(
        "--architecture",
        action="append",
        choices=get_args(Architecture),
        help="build for this architecture; may be repeated (default: those of the project's environments)",
    )
    parser.add_argument("--update", action="store_true", help=f"accept a wheel whose digest differs from {LOCK}")


def run(args: argparse.Namespace) -> int:
    """Build for every architecture that is wanted."""
    desired = args.architecture or sorted(_needed(args.project))
    for architecture in desired:
        under_way(f"building the programs for {architecture}")
        file = build(args.project, architecture, update=args.update)
        write_line(f"{file.relative_to(args.project)}\n  {file.stat().st_size:,} bytes, sha256 {digest_of(file)}")
    write_line(
        f"Review {LOCK} and keep it under version control." if desired else "No environment measures NVIDIA GPUs."
    )
    return 0


def build(root: Path, architecture: Architecture, *, update: bool = False) -> Path:
    """Build for one architecture, write the archive's digest to the lock, and return where it lies.

    Raises:
        CommandError: a wheel cannot be had or differs from the lock, a compiler is missing, or they would not start on
            Amazon Linux 2023.
    """
    if sys.platform != "linux":
        raise CommandError("the compiler of CUDA runs on Linux only", "run this in a container or on a Linux machine")
    here: Architecture = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
    compiler = _compiler(here, architecture)
    # Headers and tools of this machine, libraries of the other.
    tools = [fetch(root, item, update=update) for item in (*wheels("tools", here), wheels("libraries", here)[0])]
    libraries = [fetch(root, item, update=update) for item in wheels("libraries", architecture)]
    desired = programs(architecture)
    with tempfile.TemporaryDirectory(prefix="podwright-kernels-", dir=root / CACHE) as path:
        folder = Path(path)
        _unpack(tools, folder / "tools")
        _unpack(libraries, folder / "libraries")
        target = folder / "programs"
        compile_programs(
            target,
            toolkit=folder / "tools/nvidia/cu13",
            headers=[folder / "libraries/nvidia/cu13/include", folder / "libraries/nvidia/nccl/include"],
            libraries=[folder / "libraries/nvidia/cu13/lib", folder / "libraries/nvidia/nccl/lib"],
            compiler=compiler,
        )
        # The linker binds to the build machine's glibc; one that is newer than the nodes' shows only when a node starts
        # it.
        too_new = newest_glibc(target / "bin")
        if too_new > number(recipe()["glibc_maximum"]):
            raise CommandError(
                f"the programs need glibc {'.'.join(map(str, too_new))}, Amazon Linux 2023 has "
                f"{recipe()['glibc_maximum']}",
                "build on an older distribution, such as Debian 12 or Amazon Linux 2023",
            )
        (target / "lib").mkdir()
        for name in recipe()["shipped"]:
            shutil.move(folder / "libraries" / name, target / "lib")
        (target / "contents.json").write_text(_contents(target, desired, compiler), encoding="utf-8")
        part = folder / "packed"
        pack_programs(target, part)
        # Moved into place at the end: whoever looks into the cache finds the whole archive or none.
        digest = digest_of(part)
        file = part.replace(cached_file(root, desired.name, digest))
    entry = LockedArchive(address=desired.address, sha256=digest, bytes=file.stat().st_size)
    artifacts = read_artifacts(root)
    write_artifacts(root, artifacts.model_copy(update={"archives": artifacts.archives | {desired.name: entry}}))
    return file


def compile_programs(
    target: Path,
    *,
    toolkit: Path,
    headers: Iterable[Path],
    libraries: Iterable[Path],
    compiler: str = "g++",
    only: Sequence[str] = (),
) -> None:
    """Compile the programs into `target`/bin with lifecycle_scripts/benchmarks/build.sh.

    Args:
        target: The folder.
        toolkit: Where the compiler lies.
        headers: Folders with further headers.
        libraries: Folders with the libraries of the machine that runs the programs.
        compiler: C++ compiler for that machine.
        only: Names of programs; all when empty.

    Raises:
        CommandError: the compiler refuses.
    """
    settings = {
        "TOOLKIT": str(toolkit),
        "HEADER_FOLDERS": " ".join(map(str, headers)),
        "LIBRARY_FOLDERS": " ".join(map(str, libraries)),
        "HOST_COMPILER": compiler,
        "PROGRAMS": " ".join(only),
    }
    result = subprocess.run(
        ["bash", str(SOURCES / "build.sh"), str(target)], env={**os.environ, **settings}, capture_output=True, text=True
    )
    if result.returncode:
        raise CommandError(
            f"the benchmark programs do not compile:\n{(result.stderr or result.stdout).strip()[-2000:]}"
        )


def newest_glibc(folder: Path) -> tuple[int, ...]:
    """The newest version of glibc that a program in `folder` asks for."""
    asked = (
        result for file in folder.iterdir() for result in re.findall(rb"\0GLIBC_([0-9.]+)(?=\0)", file.read_bytes())
    )
    return max(number(result.decode()) for result in asked)


def pack_programs(folder: Path, into: Path) -> None:
    """Pack a folder so that the bytes depend on names and contents alone."""
    with (
        into.open("wb") as raw,
        # No time and no name in gzip's header, no owner in tar's: the same programs are the same bytes wherever they
        # are packed.
        gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for path in _files(folder):
            member = tarfile.TarInfo(path.relative_to(folder).as_posix())
            member.size, member.mode = path.stat().st_size, 0o755 if path.parent.name == "bin" else 0o644
            with path.open("rb") as file:
                archive.addfile(member, file)


def _needed(root: Path) -> set[Architecture]:
    project = Project.at(root)
    archives = [item for name in project.names for item in environment_programs(project.load(name).environment)]
    return {item.architecture for item in archives if item.architecture}


def _compiler(here: Architecture, existing: Architecture) -> str:
    name = "g++" if here == existing else f"{MACHINES[existing]}-linux-gnu-g++"
    if shutil.which(name) is None:
        package = "g++" if here == existing else f"g++-{MACHINES[existing].replace('_', '-')}-linux-gnu"
        raise CommandError(f"{name} is not installed", f"on Debian and Ubuntu: apt-get install {package}")
    return name


def _unpack(files: Iterable[Path], folder: Path) -> None:
    for file in files:
        with zipfile.ZipFile(file) as wheel:
            wheel.extractall(folder)
            for item in wheel.infolist():
                # zipfile drops modes, and nvcc is a program.
                if item.external_attr >> 16 & 0o100:
                    (folder / item.filename).chmod(0o755)


def _contents(folder: Path, archive: Archive, compiler: str) -> str:
    """What lies in the archive, for whoever unpacks it."""
    version = subprocess.run([compiler, "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    return json.dumps(
        {
            "version": archive.version,
            "architecture": archive.architecture,
            "cuda": recipe()["cuda"],
            "driver_minimum": recipe()["driver_minimum"],
            "wheels": [item["wheel"] for part in ("tools", "libraries") for item in recipe()[part]],
            "host_compiler": f"{compiler} {version}",
            "files": {
                path.relative_to(folder).as_posix(): {"sha256": digest_of(path), "bytes": path.stat().st_size}
                for path in _files(folder)
            },
        },
        indent=1,
    )


def _files(folder: Path) -> Iterator[Path]:
    return iter(sorted(path for path in folder.rglob("*") if path.is_file()))
