"""Installs NCCL from NVIDIA's wheel, and builds its plug-in for EFA and nccl-tests from their sources.

One after another: each runs ldconfig, and two at once could leave a damaged cache.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from ..runner.node import Node
from ..runner.steps import Step
from .archives import fetched, unpacked
from .install import installation, installs, prefix, require_tools, satisfied
from .versions import PREFIX

CUDA = "/usr/local/cuda"
LIBFABRIC = "/opt/amazon/efa"
OPEN_MPI = "/opt/amazon/openmpi"
BUILD_SECONDS = 1500
_INSIDE = "nvidia/nccl/"
_PLUGIN = "aws_ofi_nccl"


def install_nccl(node: Node) -> None:
    """Library and headers; the name without a version is for whoever links against it."""
    with installation(node, "nccl"), fetched(node, "nccl") as wheel, prefix(node, "nccl") as folder:
        with zipfile.ZipFile(wheel) as packed:
            for name in packed.namelist():
                # The wheel holds Python's own files as well, which nothing on the host imports.
                if name.startswith((f"{_INSIDE}lib/", f"{_INSIDE}include/")) and not name.endswith("/"):
                    target = folder / name[len(_INSIDE) :]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with packed.open(name) as source, target.open("wb") as copy:
                        shutil.copyfileobj(source, copy, 1 << 20)
        (folder / "lib/libnccl.so").symlink_to("libnccl.so.2")


def install_plugin(node: Node) -> None:
    """For the libfabric and CUDA of this node."""
    require_tools(node, _PLUGIN, "make", "g++", f"{CUDA}/include/cuda.h", f"{LIBFABRIC}/include/rdma/fabric.h")
    # The plug-in takes the environment's GDRCopy where there is one, and otherwise what the image has.
    own_gdrcopy = node.path(f"{PREFIX}/gdrcopy/lib")
    options = [f"--with-gdrcopy={own_gdrcopy.parent}"] if own_gdrcopy.is_dir() else []
    with installation(node, _PLUGIN), unpacked(node, _PLUGIN) as source, prefix(node, _PLUGIN) as folder:
        configure = [
            f"--prefix={folder}",
            f"--with-libfabric={node.path(LIBFABRIC)}",
            f"--with-cuda={node.path(CUDA)}",
            "--enable-platform-aws",
            "--disable-tests",
            *options,
        ]
        _in(node, source, "./configure", *configure)
        _in(node, source, "make", f"-j{os.cpu_count()}")
        _in(node, source, "make", "install")


def install_tests(node: Node) -> None:
    """With MPI, so that one program reaches over several nodes."""
    require_tools(node, "nccl_tests", "make", f"{CUDA}/bin/nvcc", f"{OPEN_MPI}/bin/mpirun")
    own_nccl = node.path(f"{PREFIX}/nccl")
    options = [f"NCCL_HOME={own_nccl}"] if own_nccl.is_dir() else []
    with installation(node, "nccl_tests"), unpacked(node, "nccl_tests") as source, prefix(node, "nccl_tests") as folder:
        homes = [f"MPI_HOME={node.path(OPEN_MPI)}", f"CUDA_HOME={node.path(CUDA)}", *options]
        _in(node, source, "make", f"-j{os.cpu_count()}", "MPI=1", *homes)
        (folder / "bin").mkdir()
        # make leaves object files beside the programs.
        for program in sorted((source / "build").glob("*_perf")):
            shutil.copy2(program, folder / "bin")


NCCL = Step(
    "nccl-software",
    applies_to=installs("nccl"),
    check=lambda node: satisfied(node, "nccl"),
    apply=install_nccl,
    needs=("packages-software",),
    seconds=1200,
)
PLUGIN = Step(
    "plugin-software",
    applies_to=installs(_PLUGIN),
    check=lambda node: satisfied(node, _PLUGIN),
    apply=install_plugin,
    needs=("gdrcopy-software",),
    seconds=2400,
)
TESTS = Step(
    "nccl-tests-software",
    applies_to=installs("nccl_tests"),
    check=lambda node: satisfied(node, "nccl_tests"),
    apply=install_tests,
    needs=("plugin-software",),
    seconds=2400,
)


def _in(node: Node, folder: Path, *command: str) -> None:
    # `$0` is the folder and `$@` the command, so no name needs to be quoted.
    node.run("bash", "-c", 'cd "$0" && exec "$@"', str(folder), *command, timeout=BUILD_SECONDS)
