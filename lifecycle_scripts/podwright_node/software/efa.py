"""Installs EFA: kernel module and rdma-core and, unless pods bring them, libfabric, Open MPI and NCCL's plug-in.

AWS's own installer does it. It runs where it sees no package repository, so whatever it lacks besides its own packages
must be on the image: a node downloads nothing that is not pinned.
"""

from __future__ import annotations

from pathlib import Path

from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.steps import Step
from .archives import unpacked
from .install import installation, installs, satisfied, wanted
from .versions import found, older

COMPONENT = "efa_installer"
INSTALL_SECONDS = 900
WITHOUT_REPOSITORIES = Path(__file__).with_name("without_repositories.sh")


def install(node: Node) -> None:
    """Run the installer; an older version than the node has continues only after that is gone."""
    kernel_only = node.group_facts["software"]["kernel_only"]
    # --minimal: the kernel module and rdma-core; pods bring libfabric and the rest in their images.
    options = ["--minimal"] if kernel_only else []
    with installation(node, COMPONENT), unpacked(node, COMPONENT) as folder:

        def run(*arguments: str) -> None:
            root = str(node.root).rstrip("/")
            # A mount namespace of its own, in which the lists of repositories are empty: nothing else on the node sees
            # that.
            alone = ("unshare", "--mount", "bash", str(WITHOUT_REPOSITORIES), root, str(folder))
            try:
                node.run(*alone, *arguments, timeout=INSTALL_SECONDS)
            except Failure as failure:
                raise Failure(
                    f"{failure}, and the EFA installer saw no package repository",
                    "what it misses must be on the image: use one that has it, or install: verify",
                ) from failure

        if node.system.startswith("ubuntu"):
            # What a killed installation left half configured keeps every other from starting.
            node.run("dpkg", "--configure", "-a", timeout=300)
        # The installer refuses to go back by itself.
        if older(wanted(node, COMPONENT), found(node).get(COMPONENT, "0")):
            run("./efa_installer.sh", "--uninstall", "--yes")
        run("./efa_installer.sh", "--yes", *options)


STEP = Step(
    "efa-software",
    applies_to=installs(COMPONENT),
    check=lambda node: satisfied(node, COMPONENT),
    apply=install,
    needs=("name-resolution",),
    seconds=2400,
)
