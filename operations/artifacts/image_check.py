"""Check the EFA software of a container image: NCCL, its plug-in, libfabric, GDRCopy and CUDA, and their versions.

REF is an image in a registry, such as 111122223333.dkr.ecr.us-west-2.amazonaws.com/train:3; DIR is an OCI layout or an
unpacked root file system. The command reads layer by layer, and needs no container engine. Nodes use the same table of
versions.
"""

import argparse
import mmap
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ...config.catalog.facts import table
from ...config.catalog.images import Image
from ...config.catalog.instance_types import UnknownInstanceType, catalog
from ...config.catalog.software_matrix import NAMES, mismatches
from ...config.errors import CommandError
from ...config.findings import Level
from ..aws.account import shell_account
from ..aws.calls import get
from ..output.console import write_json, write_line
from .image_files import ImageFiles, files_of_folder, files_of_image
from .registry import Registry

_FILES: Final = re.compile(
    r"/(libnccl\.so[.0-9]*|libnccl-net[-a-z]*\.so|libfabric\.so[.0-9]*|libgdrapi\.so[.0-9]*|libcudart\.so[.0-9]*"
    r"|efa_installed_packages|all_reduce_perf)$|/cuda[-.0-9]*/version\.json$|/libfabric\.pc$"
)
_LIBFABRIC: Final = re.compile(rb"\0(\d+\.\d+\.\d+amzn\d+\.\d+)\0")
_TOLD: Final = (
    ("libnccl.so", "nccl", re.compile(rb"NCCL version (\d+\.\d+\.\d+)(?:\+cuda(\d+\.\d+))?\0")),
    ("libnccl-net", "aws_ofi_nccl", re.compile(rb"aws-ofi-nccl (\d+\.\d+\.\d+)")),
    ("libfabric.pc", "libfabric", re.compile(rb"^Version:\s*(\S+)", re.MULTILINE)),
    ("efa_installed_packages", "efa_installer", re.compile(rb"EFA installer version:\s*(\S+)")),
    ("efa_installed_packages", "libfabric", re.compile(rb"libfabric1?-aws[-_](\d+(?:\.\d+)+(?:~?amzn\d+\.\d+)?)")),
    ("version.json", "cuda", re.compile(rb'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([0-9.]+)"', re.DOTALL)),
)
"""How the name of a file begins, the component that it is of, and how its content tells the version."""
_SHOWN: Final = ("nccl", "aws_ofi_nccl", "libfabric", "gdrcopy", "efa_installer", "cuda", "nccl_tests")


@dataclass(frozen=True, slots=True)
class ImageComponent:
    """A component in an image."""

    component: str
    version: str
    """Empty when the file does not tell."""
    path: PurePosixPath


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright image`."""
    parser.add_argument("action", choices=["check"], help="print versions and problems")
    parser.add_argument("image", metavar="REF|DIR", help="image in a registry, OCI layout, or root file system")
    parser.add_argument("--type", metavar="TYPE", help="instance type that runs the image, such as ml.p5en.48xlarge")
    parser.add_argument(
        "--architecture",
        choices=["x86_64", "arm64"],
        help="architecture of the image (default: the one of --type, or x86_64)",
    )
    parser.add_argument("--json", action="store_true", help="print versions and problems as JSON")


def run(args: argparse.Namespace) -> int:
    """Returns 1 when the image cannot use EFA with NCCL, 0 otherwise."""
    types = catalog()
    if args.type and args.type not in types:
        raise CommandError(str(UnknownInstanceType(args.type, [row.name for row in types])), code=2)
    row = types.find(args.type) if args.type else None
    architecture = args.architecture or (row.architecture if row else "x86_64")
    try:
        with _opened(args.image, architecture) as files:
            result = list(components(files))
    except OSError as error:
        hint = "see that the name is right, that this machine reaches the registry, and that it may read the image"
        raise CommandError(f"{args.image} cannot be read: {error}", hint) from None
    problems = judged(result, args.type.split(".")[1] if args.type else "")
    if args.json:
        write_json(
            {
                "image": args.image,
                "architecture": architecture,
                "found": [{"component": i.component, "version": i.version, "path": str(i.path)} for i in result],
                "problems": [{"level": level.value, "text": text} for level, text in problems],
            }
        )
    else:
        _write(args.image, architecture, result, problems)
    return 1 if any(level == Level.ERROR for level, _ in problems) else 0


def components(files: ImageFiles) -> Iterator[ImageComponent]:
    """The components that an image brings, by what its files say of themselves."""
    for path, file in sorted(files.files.items()):
        yield from _in_file(path, file)
    if version := files.variables.get("CUDA_VERSION"):
        yield ImageComponent("cuda", version, PurePosixPath("CUDA_VERSION"))


def judged(result: list[ImageComponent], family: str) -> list[tuple[Level, str]]:
    """What does not fit, or is missing, on instances of `family` (such as p5en; empty for any)."""
    # Reversed, so that of several the first that was met stays.
    versions = {item.component: item.version for item in reversed(result) if item.version}
    problems: list[tuple[Level, str]] = []
    if "nccl" not in versions:
        problems.append((Level.WARNING, "no NCCL was found: a framework may hold it inside of another library"))
    if "aws_ofi_nccl" not in versions:
        problems.append(
            (
                Level.ERROR,
                "NCCL's plug-in for EFA (aws-ofi-nccl) is missing: between nodes NCCL goes over TCP, at less than a "
                "hundredth of the speed; run the EFA installer when the image is built",
            )
        )
    elif all(item.component != "libfabric" for item in result):
        problems.append((Level.ERROR, "libfabric is missing, and NCCL's plug-in for EFA does nothing without it"))
    several = sorted({item.version for item in result if item.component == "nccl"})
    for nccl in [{"nccl": version} for version in several] or [{}]:
        existing = versions | nccl | ({family: ""} if family else {})
        problems += [(item.level, item.text) for item in mismatches(existing)]
    if len(several) > 1:
        problems.append((Level.WARNING, f"NCCL is there in {len(several)} versions, {' and '.join(several)}"))
    return sorted(dict.fromkeys(problems), key=lambda problem: list(Level).index(problem[0]))


def _opened(image: str, architecture: str) -> AbstractContextManager[ImageFiles]:
    folder = Path(image)
    if folder.is_dir():
        return files_of_folder(folder, _wanted, architecture)
    if image.startswith((".", "/")):
        raise CommandError(f"{image} is not a folder", "name a folder, or an image as a registry knows it", 2)
    parsed = Image.parse(image)
    return files_of_image(parsed, Registry(parsed.registry, _authorization(parsed)), _wanted, architecture)


def _authorization(image: Image) -> str:
    """For ECR what the AWS credentials of this shell give; other registries are asked as anybody."""
    if image.ecr_region is None:
        return ""
    answer = get(shell_account(image.ecr_region), "ecr", "get_authorization_token")
    return f"Basic {answer['authorizationData'][0]['authorizationToken']}"


def _wanted(path: PurePosixPath) -> bool:
    return _FILES.search(str(path)) is not None


def _in_file(path: PurePosixPath, file: Path) -> Iterator[ImageComponent]:
    """The components that a file belongs to by its name, with the versions that it tells."""
    name = path.name
    # mmap takes no empty file.
    if not file.stat().st_size:
        return
    for start, component, pattern in _TOLD:
        if name.startswith(start) and (matched := _search(file, pattern)):
            yield ImageComponent(component, matched[0], path)
    if name.startswith("libfabric.so"):
        matched = _search(file, _LIBFABRIC)
        yield ImageComponent("libfabric", matched[0] if matched else "", path)
    elif name.startswith(("libgdrapi.so.", "libcudart.so.")):
        yield ImageComponent("gdrcopy" if name.startswith("libgdrapi") else "cuda", name[len("libgdrapi.so.") :], path)
    elif name == "all_reduce_perf":
        yield ImageComponent("nccl_tests", "", path)


def _search(file: Path, pattern: re.Pattern[bytes]) -> tuple[str, ...] | None:
    """The groups of the first match in a file, which may be larger than memory."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        matched = pattern.search(content)
        return tuple(group.decode() for group in matched.groups(b"")) if matched else None


def _write(image: str, architecture: str, result: list[ImageComponent], problems: list[tuple[Level, str]]) -> None:
    write_line(f"{image} ({architecture})")
    for component in _SHOWN:
        for item in [item for item in result if item.component == component] or [None]:
            text = f"{item.version or 'unknown version':<20} {item.path}" if item else "none"
            write_line(f"  {NAMES[component]:<14} {text}")
    for level, text in problems:
        write_line(f"{level.value}: {text}")
    driver = _driver(result)
    if driver:
        write_line(f"Its CUDA asks nodes for NVIDIA driver {driver} or newer.")


def _driver(result: list[ImageComponent]) -> str:
    """The oldest driver that the image's CUDA starts on."""
    major = max((item.version.split(".")[0] for item in result if item.component == "cuda"), default="")
    rows: list[dict[str, Any]] = [row for row in table("software_needs") if row["component"] == "cuda"]
    return next((row["at_least"] for row in rows if row["from"].split(".")[0] == major), "")
