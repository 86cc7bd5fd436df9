"""Which versions work together: EFA installer, NCCL, its plug-in for EFA, libfabric, GDRCopy, CUDA and driver."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from ..findings import Level
from .facts import table

NAMES = {
    "efa_installer": "EFA installer",
    "nccl": "NCCL",
    "aws_ofi_nccl": "aws-ofi-nccl",
    "libfabric": "libfabric",
    "gdrcopy": "GDRCopy",
    "nccl_tests": "nccl-tests",
    "cuda": "CUDA",
    "nvidia_driver": "NVIDIA driver",
}
"""How people call the components; an instance family is called by its own name."""


class Mismatch(NamedTuple):
    """Two versions that do not go together."""

    level: Level
    component: str
    """Which one asks."""
    needs: str
    """Which one it asks for."""
    text: str
    """What there is, what is needed, and why."""


class EfaInstaller(NamedTuple):
    """What one release of the EFA installer brings."""

    version: str
    date: str
    efa_driver: str
    rdma_core: str
    libfabric: str
    aws_ofi_nccl: str


def number(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (2, 4, 0) for 2.4.0amzn5.0. Empty for a text that begins otherwise."""
    # What follows the numbers, such as amzn1.0, says who built it and not how new it is.
    matched = re.match(r"[0-9]+(\.[0-9]+)*", version)
    return tuple(int(part) for part in matched[0].split(".")) if matched else ()


def older(version: str, than: str) -> bool:
    """Whether a version is older than another; missing numbers count as 0."""
    left, right = number(version), number(than)
    length = max(len(left), len(right))
    # 1.2 and 1.2.0 are the same.
    return left + (0,) * (length - len(left)) < right + (0,) * (length - len(right))


@cache
def efa_installers() -> dict[str, EfaInstaller]:
    """The releases of the EFA installer that bring NCCL's plug-in for both architectures, by version."""
    rows, names = table("efa_installers"), EfaInstaller._fields
    return {row["version"]: EfaInstaller(*map(row.__getitem__, names)) for row in rows}


def with_contents(versions: Mapping[str, str]) -> dict[str, str]:
    """The same versions with those that the EFA installer brings, where nothing else is said."""
    installer = efa_installers().get(versions.get("efa_installer", ""))
    brings = {"libfabric": installer.libfabric, "aws_ofi_nccl": installer.aws_ofi_nccl} if installer else {}
    # What is asked for by itself replaces what the installer would bring.
    return brings | dict(versions)


def mismatches(versions: Mapping[str, str]) -> list[Mismatch]:
    """What of `versions` (by component; an instance family counts as one with any version) does not go together.

    Components that are absent are not judged. The node judges by the same rows, which `node.json` carries.
    """
    return [*_needs(versions), *_untested(versions)]


def _needs(versions: Mapping[str, str]) -> Iterator[Mismatch]:
    for row in table("software_needs"):
        component, needs, result = row["component"], row["needs"], versions.get(row["needs"])
        if component not in versions or result is None or older(versions[component], row["from"]):
            continue
        if older(result, row["at_least"]):
            asks = f"{_name(component)} {versions[component]}".rstrip()
            text = f"{asks} needs {_name(needs)} {row['at_least']} or newer, found {result}: {row['why']}"
            yield Mismatch(Level(row["level"]), component, needs, text)


def _untested(versions: Mapping[str, str]) -> Iterator[Mismatch]:
    for row in table("software_tested"):
        component, other = row["component"], row["with"]
        if versions.get(component) == row["version"] and other in versions:
            # As exact as the source: "tested with 13" means every 13.x.
            length = len(number(row["newest"]))
            if number(versions[other])[:length] > number(row["newest"]):
                yield Mismatch(
                    Level.WARNING,
                    component,
                    other,
                    f"{_name(other)} {versions[other]} is newer than {row['newest']}, the newest that "
                    f"{_name(component)} {row['version']} was tested with",
                )


def _name(component: str) -> str:
    return NAMES.get(component, component)
