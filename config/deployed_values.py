"""What only a deployment knows, and Kubernetes objects and jobs need: ids and names of what stacks made.

Charts take one frozen value and write what is in it into their objects. `cdk deploy` passes the CDK's tokens;
`podwright render` passes what the stacks say of themselves, or what a file of values says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

OUTPUT_DESCRIPTION: Final = "podwright value "
"""Stack outputs whose description begins so hold a value; the rest of the description is its path."""


@dataclass(frozen=True, slots=True)
class LustreValues:
    """An FSx for Lustre file system, new or existing."""

    id: str
    """File system id."""
    dns_name: str
    """Name that clients mount it by."""
    mount_name: str
    """FSx's own name of its root, the part after the slash in a mount."""


@dataclass(frozen=True, slots=True)
class DeployedValues:
    """Values of one environment. An empty mapping where it has none of a kind."""

    account: str
    """Account id; a known one, never a token."""
    region: str
    """Region; a known one, never a token."""
    cluster_name: str
    """Name of the HyperPod cluster; known."""
    cluster_arn: str
    """ARN of the HyperPod cluster."""
    eks_cluster_name: str
    """Name of the EKS cluster."""
    eks_cluster_arn: str
    """ARN of the EKS cluster."""
    checkpoint_bucket: str
    """Name of the bucket for checkpoints."""
    execution_role_arn: str = ""
    """Role of the nodes of groups that name none of their own; empty where each does."""
    lustre: Mapping[str, LustreValues] = field(default_factory=lambda: MappingProxyType({}))
    """Lustre file systems by name."""
    roles: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """ARNs of further IAM roles by `TEAM/SERVICE ACCOUNT`."""

    def flat(self) -> Iterator[tuple[str, str]]:
        """Every value that a deployment decides, with its path, such as `lustre.scratch.dns_name`."""
        for name in ("cluster_arn", "eks_cluster_name", "eks_cluster_arn", "checkpoint_bucket", "execution_role_arn"):
            if value := getattr(self, name):
                yield name, value
        for name, file_system in self.lustre.items():
            for part in ("id", "dns_name", "mount_name"):
                yield f"lustre.{name}.{part}", getattr(file_system, part)
        yield from ((f"roles.{name}", arn) for name, arn in self.roles.items())
