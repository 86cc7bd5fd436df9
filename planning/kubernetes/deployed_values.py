"""What only a deployment knows, and Kubernetes objects need: ids and names of what stacks made.

Charts take one frozen value and write what is in it into their objects. `cdk deploy` passes the CDK's tokens;
`podwright render` passes what the stacks say of themselves, or what a file of values says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...config.settings.environment import Environment
from .isolation import team_access

OUTPUT_DESCRIPTION: Final = "podwright value "
# By description, for the CDK makes the names of outputs.
"""Stack outputs whose description begins so hold a value; the rest of the description is its path."""
_LUSTRE_PARTS: Final = ("id", "dns_name", "mount_name")


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
    """Values of one environment on EKS."""

    cluster_arn: str
    """ARN of the HyperPod cluster."""
    eks_cluster_name: str
    """Name of the EKS cluster."""
    checkpoint_bucket: str
    """Name of the bucket for checkpoints."""
    lustre: Mapping[str, LustreValues]
    """Lustre file systems by name."""
    roles: Mapping[str, str]
    """ARNs of the roles of service accounts by `TEAM/SERVICE ACCOUNT`."""
    mlflow: str = ""
    """ARN of the MLflow app, which is what MLflow's clients call its tracking URI; empty where there is none."""

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> "DeployedValues":
        """The values of a flat mapping by path, such as `lustre.scratch.dns_name`.

        Raises:
            KeyError: a value is missing; see `value_paths`.
        """
        # The name is the second part; a file system's name has no dots.
        names = {path.split(".")[1] for path in values if path.startswith("lustre.")}
        return cls(
            cluster_arn=values["cluster_arn"],
            eks_cluster_name=values["eks_cluster_name"],
            checkpoint_bucket=values["checkpoint_bucket"],
            lustre={name: LustreValues(*map(values.__getitem__, lustre_paths(name))) for name in sorted(names)},
            roles={
                path.removeprefix("roles."): arn for path, arn in sorted(values.items()) if path.startswith("roles.")
            },
            mlflow=values.get("mlflow", ""),
        )


def lustre_paths(name: str) -> Iterable[str]:
    """The paths of the values of a Lustre file system, in the order of `LustreValues`."""
    return (f"lustre.{name}.{part}" for part in _LUSTRE_PARTS)


def value_paths(environment: Environment) -> tuple[str, ...]:
    """The paths of all values that an environment has."""
    return (
        "cluster_arn",
        "eks_cluster_name",
        "checkpoint_bucket",
        *(["mlflow"] if environment.platform.mlflow else []),
        *(path for name in environment.storage.lustres for path in lustre_paths(name)),
        *(
            f"roles.{team}/{account}"
            for team, access in team_access(environment.governance).items()
            for account in access.service_accounts
        ),
    )


def known_values(environment: Environment, dns_suffix: str) -> dict[str, str]:
    """Those values that the environment file says itself, because what they belong to is not podwright's.

    Args:
        environment: The environment.
        dns_suffix: Domain of AWS's services in the region's partition.
    """
    existing, bucket = environment.cluster.eks.existing, environment.storage.buckets.checkpoints
    result = {"eks_cluster_name": existing.name} if existing else {}
    result |= {"checkpoint_bucket": bucket} if bucket else {}
    for name, settings in environment.storage.lustres.items():
        if adopted := settings.existing:
            # FSx makes a file system's name in this form.
            dns_name = f"{adopted.id}.fsx.{environment.region}.{dns_suffix}"
            result |= dict(zip(lustre_paths(name), (adopted.id, dns_name, adopted.mount_name), strict=True))
    for team, access in team_access(environment.governance).items():
        accounts = access.service_accounts.items()
        result |= {f"roles.{team}/{account}": specified.role for account, specified in accounts if specified.role}
    return result
