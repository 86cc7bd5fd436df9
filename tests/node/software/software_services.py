"""Archives of node software that are small and do what the real ones do, and a node that is to install from them."""

import hashlib
import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from fake_node import FakeNode, facts_of, make_node, publish
from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.software_matrix import efa_installers
from podwright.config.loading.artifacts import LockedArchive
from podwright.config.settings.groups import InstanceGroup
from podwright.config.settings.software import NodeSoftware
from podwright.planning.node.archives import LockedFile, archives_of
from podwright.planning.node.software_facts import cluster_software, group_software, published_name

SOFTWARE_SERVICES = Path(__file__).parent
RUN = SOFTWARE_SERVICES / "run_steps.py"
URI = "s3://sagemaker-test/test/archives"
_MAKEFILES = {
    "gdrcopy": """\
driver:
\techo the module of VERSION > src/gdrdrv/gdrdrv.ko
lib:
\techo the library > src/libgdrapi.so.2.5
lib_install:
\tmkdir -p $(prefix)/lib && cp src/libgdrapi.so.2.5 $(prefix)/lib/ && ln -sf libgdrapi.so.2.5 $(prefix)/lib/libgdrapi.so
""",
    "nccl_tests": """\
all:
\ttest "$(MPI)" = 1 && test -e $(MPI_HOME)/bin/mpirun && test -e $(CUDA_HOME)/bin/nvcc && mkdir build
\techo $(NCCL_HOME) > build/all_reduce_perf
""",
    "aws_ofi_nccl": """\
all:
\tprintf 'Initializing aws-ofi-nccl VERSION\\0' > libnccl-net-ofi.so
install:
\tmkdir -p $$(cat prefix)/lib && cp libnccl-net-ofi.so $$(cat prefix)/lib/
""",
}


def archive(component: str, version: str) -> bytes:
    """What a server has under the address of a component's version."""
    if component == "nccl":
        return _wheel(version)
    if component == "package":
        return f"the package {version}".encode()
    folder = f"{component}-{version}"
    files = {f"{folder}/Makefile": _MAKEFILES.get(component, "").replace("VERSION", version)}
    if component == "efa_installer":
        installer = efa_installers()[version]
        files = {
            f"{folder}/efa_installer.sh": (SOFTWARE_SERVICES / "efa_installer.sh").read_text(),
            f"{folder}/env.sh": f"EFA_INSTALLER_VERSION={version}\nEFA_DRIVER={installer.efa_driver}\n"
            f"LIBFABRIC={installer.libfabric}\nPLUGIN={installer.aws_ofi_nccl}\n",
        }
    if component == "gdrcopy":
        files |= {f"{folder}/src/gdrdrv/gdrdrv.c": "", f"{folder}/src/gdrapi.c": ""}
    if component == "aws_ofi_nccl":
        files[f"{folder}/configure"] = (
            '#!/bin/bash\nset -e\ntest "$2" = "--with-libfabric=$PODWRIGHT_ROOT/opt/amazon/efa"\n'
        )
        files[f"{folder}/configure"] += "echo ${1#--prefix=} > prefix\n"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o755
            packed.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def nccl_library(version: str, cuda: str = "13.0") -> bytes:
    """What tells its version in the library."""
    return b"\x7fELF" + bytes(4096) + f"NCCL version {version}+cuda{cuda}\0".encode() + bytes(4096)


def _wheel(version: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("nvidia/nccl/lib/libnccl.so.2", nccl_library(version))
        packed.writestr("nvidia/nccl/include/nccl.h", "")
        packed.writestr("nvidia_nccl_cu13.dist-info/RECORD", "")
    return buffer.getvalue()


def software_node(
    folder: Path,
    software: dict[str, Any],
    *,
    orchestrator: str = "slurm",
    system: str = "ubuntu22.04",
    instance_type: str = "ml.p5en.48xlarge",
) -> FakeNode:
    """A node of a cluster with these settings under `node_software`, its archives published."""
    node = make_node(folder, instance_type, orchestrator=orchestrator, system=system)
    # What the image of these tests has by itself is for each test to say.
    shutil.rmtree(node.root / "opt/amazon", ignore_errors=True)
    settings = NodeSoftware.model_validate(software)
    group = InstanceGroup(instance_type=instance_type, count=2)
    files: list[LockedFile] = []
    for item in archives_of(settings, orchestrator, [group], catalog()):
        content = archive(item.component, item.version)
        locked = LockedArchive(address=item.address, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
        files.append(LockedFile(item, Path(), locked))
        path = node.root / "run/fake/s3" / URI.removeprefix("s3://") / published_name(files[-1])
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    facts = facts_of({"instance_type": instance_type}, orchestrator)
    facts["software"] = cluster_software(settings, files, URI).model_dump(mode="json")
    facts["groups"]["workers"]["software"] = group_software(settings, orchestrator, group, catalog(), files).model_dump(
        mode="json"
    )
    publish(node.bundle, facts)
    for fake in fakes():
        node.put(f"fakes/{fake.name}", fake.read_text())
        (node.root / "fakes" / fake.name).chmod(0o755)
    release = Path("/proc/sys/kernel/osrelease").read_text().strip()
    node.put(f"lib/modules/{release}/build/Makefile", "")
    node.put(f"lib/modules/{release}/extra/gdrdrv.ko.xz", "the module of the image")
    node.put("etc/apt/sources.list", "deb https://example.com jammy main\n")
    node.put("etc/apt/sources.list.d/more.list", "deb https://example.com jammy main\n")
    node.put("etc/yum.repos.d/amazonlinux.repo", "[amazonlinux]\n")
    for path in ("usr/local/cuda/include/cuda.h", "usr/local/cuda/bin/nvcc"):
        node.put(path, "")
    node.put("sys/module/nvidia/version", "580.95.05\n")
    return node


def fakes() -> list[Path]:
    """Stand-ins for programs, beside those that every node has."""
    return [file for file in sorted(SOFTWARE_SERVICES.iterdir()) if file.suffix == "" and file.is_file()]


def run(node: FakeNode) -> str:
    """A line of bash that runs the steps about software."""
    return f"python3 {RUN} {node.bundle} {node.root}"


def remembered(node: FakeNode, name: str = "software") -> dict[str, Any]:
    """What a step keeps about the node."""
    return json.loads((node.root / f"var/lib/podwright/{name}.json").read_text())
