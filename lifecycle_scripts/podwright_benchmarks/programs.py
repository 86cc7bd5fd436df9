"""The built benchmark programs on this node: fetched and checked, or compiled here."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from .measured import Say, finish

HOME = "opt/podwright/benchmarks"
"""Where programs lie below the node's root."""
FETCH_SECONDS = 300
COMPILE_SECONDS = 300
TOOLKITS = ("/usr/local/cuda", "/opt/cuda")
ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}


class Unavailable(Exception):
    """There are no programs for this node. Says why; a node is not worse for it."""


def obtain(facts: Mapping[str, Any], bundle: Path, root: Path, capabilities: set[str], say: Say) -> Path:
    """The folder with `bin` and `lib` for this node.

    Args:
        facts: The part `benchmarks` of node.json.
        bundle: The published scripts.
        root: Root of the file system.
        capabilities: Compute capabilities of the node's GPUs, such as 90.
        say: Writes into the node's log.

    Raises:
        Unavailable: they were not published for this architecture, do not arrive whole, or do not compile.
    """
    if facts.get("programs", "shipped") == "compile":
        return _compiled(bundle, root, capabilities, say)
    machine = platform.machine()
    architecture = ARCHITECTURES.get(machine, machine)
    for archive in facts.get("archives", ()):
        if archive["architecture"] == architecture:
            return _fetched(facts["archives_uri"], archive, root, say)
    raise Unavailable(f"no benchmark programs were published for {architecture}: see `podwright kernels build`")


def _fetched(uri: str, archive: Mapping[str, Any], root: Path, say: Say) -> Path:
    """The folder of an archive's programs, fetched if it is missing. Renamed last: a killed run leaves no half."""
    target = root / HOME / archive["sha256"][:16]
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    packed, part = target.with_suffix(".tar.gz"), target.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        address = f"{uri}/{archive['file']}"
        say("fetching", address=address)
        status, _, err = finish(
            ["aws", "s3", "cp", "--only-show-errors", "--no-progress", address, str(packed)], seconds=FETCH_SECONDS
        )
        if status != 0:
            raise Unavailable(f"{address} did not arrive: {err.strip()[-300:] or f'not within {FETCH_SECONDS} s'}")
        digest = _digest(packed)
        if digest != archive["sha256"]:
            raise Unavailable(f"{address} has the digest {digest[:16]}…, expected {archive['sha256'][:16]}…")
        _unpack(packed, part)
        part.rename(target)
    except (OSError, tarfile.TarError) as error:
        raise Unavailable(f"the benchmark programs cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if packed.exists():
            packed.unlink()
    return target


def _unpack(packed: Path, folder: Path) -> None:
    with tarfile.open(packed, "r:gz") as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if not member.isfile() or path.is_absolute() or ".." in path.parts:
                raise tarfile.TarError(f"{member.name} is not a plain file below the archive's top")
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            source = archive.extractfile(member)
            if source is None:
                raise tarfile.TarError(f"{member.name} has no content")
            with target.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
            target.chmod(member.mode & 0o755)


def _compiled(bundle: Path, root: Path, capabilities: set[str], say: Say) -> Path:
    """Compile with the image's CUDA toolkit, against the cuBLASLt and NCCL that lie there."""
    sources = bundle / "benchmarks"
    digest = hashlib.sha256(
        b"".join(path.read_bytes() for path in sorted(sources.iterdir())) + repr(sorted(capabilities)).encode()
    ).hexdigest()
    target = root / HOME / f"compiled-{digest[:16]}"
    if target.is_dir():
        return target
    toolkit = next((folder for folder in TOOLKITS if Path(folder, "bin/nvcc").is_file()), None)
    if toolkit is None:
        raise Unavailable(f"there is no nvcc in {' or '.join(TOOLKITS)} to compile the benchmark programs with")
    part = target.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    say("compiling", toolkit=toolkit)
    status, out, err = finish(
        ["bash", str(sources / "build.sh"), str(part)],
        environment={"TOOLKIT": toolkit, "GPUS": " ".join(sorted(capabilities, key=int)), "RUN_FROM_THERE": "yes"},
        seconds=COMPILE_SECONDS,
    )
    if status != 0:
        shutil.rmtree(part, ignore_errors=True)
        raise Unavailable(f"the benchmark programs do not compile here: {(err or out).strip()[-300:]}")
    part.rename(target)
    return target


def environment(programs: Path) -> dict[str, str]:
    """What programs are run with: GPUs in the order of nvidia-smi, and the plugins of the image for NCCL."""
    libraries = (
        "/opt/amazon/ofi-nccl/lib64",
        "/opt/amazon/ofi-nccl/lib",
        "/opt/amazon/efa/lib64",
        "/opt/amazon/efa/lib",
    )
    image = (os.environ.get("LD_LIBRARY_PATH", ""), *libraries)
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        # First what was shipped: another cuBLASLt on the path has other speeds.
        "LD_LIBRARY_PATH": ":".join(filter(None, (str(programs / "lib"), *image))),
        # The programs take the place of a job on an idle node, whatever a profile of the image sets.
        "NCCL_DEBUG": "WARN",
    }


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()
