"""Which versions of EFA, NCCL and what belongs to them a node has."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable
from pathlib import Path

from ..runner.node import Node

INSTALLED_PACKAGES = "/opt/amazon/efa_installed_packages"
"""What the EFA installer writes when it is through: its own version, and its packages."""
PREFIX = "/opt/podwright"
"""What podwright installs lies in PREFIX/software/COMPONENT-VERSION, and PREFIX/COMPONENT is a link to it."""
_NCCL = re.compile(rb"NCCL version (\d+\.\d+\.\d+)(?:\+cuda(\d+\.\d+))?\0")
_PLUGIN = re.compile(rb"aws-ofi-nccl (\d+\.\d+\.\d+)")
_LIBFABRIC = re.compile(r"\blibfabric1?-aws[-_](\d+(?:\.\d+)+(?:~?amzn\d+\.\d+)?)")


def found(node: Node) -> dict[str, str]:
    """Versions by component; what is absent, or does not tell its version, is left out."""
    packages = node.read(INSTALLED_PACKAGES) or ""
    nccl = next(iter(libraries(node, "libnccl.so.2")), None)
    matched = _search(nccl, _NCCL) if nccl else None
    versions = {
        "efa_installer": _group(re.search(r"EFA installer version:\s*(\S+)", packages)),
        "efa_driver": (node.read("/sys/module/efa/version") or "").strip(),
        "libfabric": _group(_LIBFABRIC.search(packages)) if node.path("/opt/amazon/efa/bin/fi_info").exists() else "",
        "nccl": matched[1].decode() if matched else "",
        # NCCL carries its own CUDA runtime, and that asks the driver for its version.
        "cuda": matched[2].decode() if matched and matched[2] else "",
        "aws_ofi_nccl": _plugin(node),
        "gdrcopy": own(node, "gdrcopy") or (node.read("/sys/module/gdrdrv/version") or "").strip(),
        "nccl_tests": own(node, "nccl_tests"),
        "nvidia_driver": (node.read("/sys/module/nvidia/version") or "").strip(),
    }
    return {name: version for name, version in versions.items() if version}


def own(node: Node, component: str) -> str:
    """The version that podwright has installed of a component; empty when it has installed none."""
    link = node.path(f"{PREFIX}/{component}")
    return link.readlink().name.rpartition("-")[2] if link.is_symlink() else ""


def libraries(node: Node, name: str) -> list[Path]:
    """Files of a library, the one that programs get first. ldconfig keeps them in that order."""
    lines = node.run("ldconfig", "-p").splitlines()
    return [node.path(line.split(" => ")[1]) for line in lines if line.split()[:1] == [name]]


def number(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (2, 4, 0) for 2.4.0amzn5.0."""
    matched = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in matched[0].split(".")) if matched else ()


def older(version: str, than: str) -> bool:
    """Whether a version is older than another; missing numbers count as 0."""
    left, right = number(version), number(than)
    length = max(len(left), len(right))
    return left + (0,) * (length - len(left)) < right + (0,) * (length - len(right))


def same(version: str, other: str) -> bool:
    """Whether two versions agree in all numbers that both have: GDRCopy's module calls 2.5.2 simply 2.5."""
    left, right = number(version), number(other)
    length = min(len(left), len(right))
    return length > 0 and left[:length] == right[:length]


def _plugin(node: Node) -> str:
    folders = (f"{PREFIX}/aws_ofi_nccl", "/opt/amazon/ofi-nccl", "/opt/aws-ofi-nccl")
    files: Iterable[Path] = (file for folder in folders for file in sorted(node.path(folder).rglob("libnccl-net*.so")))
    for file in files:
        matched = _search(file, _PLUGIN)
        if matched:
            return matched[1].decode()
    return ""


def _search(file: Path, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
    """The first match in a file of some hundred megabytes, without reading it into memory."""
    if not file.is_file() or file.stat().st_size == 0:
        return None
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        matched = pattern.search(content)
        # The match must not outlive the map.
        return pattern.search(bytes(content[matched.start() : matched.end()])) if matched else None


def _group(matched: re.Match[str] | None) -> str:
    return matched[1] if matched else ""
