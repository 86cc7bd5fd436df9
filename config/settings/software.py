"""The software under a job on each node: EFA, NCCL, its plug-in for EFA, GDRCopy, and the variables that they read."""

from typing import Annotated, Final, Literal, get_args

from pydantic import Field, StringConstraints

from ..catalog.facts import table
from ..catalog.instance_type import InstanceType
from .base import Settings

Component = Literal["efa_installer", "nccl", "aws_ofi_nccl", "gdrcopy", "nccl_tests"]
COMPONENTS: Final[tuple[Component, ...]] = get_args(Component)
"""What podwright installs, in the order in which one may need another."""
KERNEL_PARTS: Final[tuple[Component, ...]] = ("efa_installer", "gdrcopy")
"""The components with a kernel module. With EKS only these modules belong on the host: pods bring the rest."""

SoftwareVersion = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+){1,3}$")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=128)]
# What a shell and a unit file both read back as it stands between double quotes.
VariableValue = Annotated[str, StringConstraints(pattern=r'^[^"\\$`\x00-\x1f]*$', max_length=1024)]


PackageName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=64)]
PackageAddress = Annotated[str, StringConstraints(pattern=r"^https://[^\s?#]+\.(deb|rpm)$", max_length=1024)]
KernelRelease = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+[-.+~_A-Za-z0-9]*$", max_length=64)]
System = Literal["amzn2023", "ubuntu22.04", "ubuntu24.04"]


class Package(Settings):
    """A package of the operating system for nodes, such as a Lustre client for one kernel."""

    address: PackageAddress
    """Where it is fetched from: a .rpm for Amazon Linux, a .deb for Ubuntu."""
    systems: tuple[System, ...] = Field(min_length=1)
    """Operating systems that it is for."""
    architecture: Literal["x86_64", "arm64"] = "x86_64"
    """Instruction set that it is for."""
    kernel: KernelRelease | None = None
    """Kernel release that it is for, as `uname -r` prints it; every one when absent."""


class SoftwareVersions(Settings):
    """Versions by component. What is absent is left as the image has it."""

    efa_installer: SoftwareVersion | None = None
    """EFA installer: kernel module, rdma-core, libfabric, Open MPI and, from 1.40, NCCL's plug-in."""
    nccl: SoftwareVersion | None = None
    """NCCL."""
    aws_ofi_nccl: SoftwareVersion | None = None
    """NCCL's plug-in for EFA. Built on the node when the EFA installer does not bring this version."""
    gdrcopy: SoftwareVersion | None = None
    """GDRCopy: the kernel module gdrdrv and, without EKS, its library."""
    nccl_tests: SoftwareVersion | None = None
    """nccl-tests, built on the node."""

    def items(self) -> tuple[tuple[Component, str], ...]:
        """The components that have a version, in the order of installation."""
        return tuple((name, version) for name in COMPONENTS if (version := getattr(self, name)))


class NodeSoftware(Settings):
    """What is checked, installed and set on the nodes that have EFA or accelerators."""

    install: Literal["verify", "ensure", "pin"] = "verify"
    """verify: check what the image has. ensure: install what is absent or older. pin: install exactly what is given."""
    versions: SoftwareVersions = SoftwareVersions.model_construct()
    """Versions to install; with verify, the oldest that a node may have."""
    packages: dict[PackageName, Package] = {}
    """Packages of the operating system by a name of your own, for ensure and pin. A node installs those for its system,
    architecture and kernel, together, and before Lustre is mounted."""
    cuda: Literal["12", "13"] = "13"
    """Major version of CUDA that an installed NCCL is built with. 13 needs NVIDIA driver 580 or newer."""
    mismatch: Literal["fail", "warn"] = "fail"
    """What a node does whose versions do not work together: fail the step, whose cost `cluster.lifecycle` decides,
    or only say so in its log."""
    variables: dict[VariableName, VariableValue] = {}
    """Environment variables of jobs that replace or complete the recommended ones; an empty value leaves one unset."""

    def installs(self) -> tuple[tuple[Component, str], ...]:
        """What is installed; nothing with verify."""
        return () if self.install == "verify" else self.versions.items()


def job_variables(settings: NodeSoftware, types: tuple[InstanceType, ...]) -> dict[str, str]:
    """The variables of jobs on nodes of `types`: the recommended ones that hold for all of them, and the settings'.

    As few as possible are set: current releases of NCCL, its plug-in and libfabric choose well by themselves.
    """
    holds = {
        "efa": all(row.efa_interfaces for row in types),
        "nvidia": all(row.accelerator_vendor == "nvidia" for row in types),
        "imex": all(row.imex for row in types),
    }
    recommended = {row["name"]: row["value"] for row in table("fabric_variables") if holds[row["when"]]}
    return {name: value for name, value in sorted((recommended | settings.variables).items()) if value}
