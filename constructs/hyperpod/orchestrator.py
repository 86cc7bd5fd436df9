"""What orchestrates a HyperPod cluster: an EKS cluster, or Slurm."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_kms as kms

from ...config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
from ...config.errors import InvalidFile, InvalidSettings
from ...config.loading.artifacts import ChartArchive, chart_archive
from ...config.settings.slurm import Slurm
from ..common.arguments import checked, refusal
from ..eks.control_plane import EksControlPlane


class AccountingAccess(Protocol):
    """A database for Slurm's accounts, such as a `SlurmAccounting`."""

    host: str
    """Host name."""
    port: int
    """Port."""
    user: str
    """User that the secret holds."""
    secret_arn: str
    """ARN of the secret with `username` and `password`."""
    key: kms.IKey | None
    """Key that decrypts the secret, where it is a customer's."""


@dataclass(frozen=True)
class Orchestrator:
    """What orchestrates a cluster. Make one with `eks` or `slurm`."""

    kind: Literal["eks", "slurm"]
    """Which of the two."""
    eks_cluster: eks.ICluster | None = None
    """The EKS cluster."""
    rules_exist: bool = False
    """Whether control plane and nodes reach each other already."""
    dependencies: ChartArchive | None = None
    """HyperPod's dependencies chart, to be installed; None when somebody else has installed it."""
    settings: Slurm = field(default_factory=Slurm)
    """Slurm."""
    accounting: AccountingAccess | None = None
    """Slurm's accounting database outside the controller."""

    @classmethod
    @checked
    def eks(
        cls,
        cluster: eks.ICluster | EksControlPlane,
        *,
        dependencies: ChartArchive | Literal["installed"] | None = None,
        project: Path = Path(),
        rules_exist: bool = False,
    ) -> "Orchestrator":
        """An EKS cluster, with authentication mode API or API_AND_CONFIG_MAP and a kubectl provider.

        Args:
            cluster: The cluster. Rules between an `EksControlPlane` and its nodes are its own affair.
            dependencies: HyperPod's dependencies chart; `installed` when it is there and kept by somebody else. By
                default the one that `podwright chart fetch` has put into `project`.
            project: Folder with `artifacts.lock`.
            rules_exist: Whether the security groups of control plane and nodes have their rules for each other.

        Raises:
            InvalidSettings: not an EKS cluster, not an archive, or a chart that was not fetched.
        """
        if isinstance(cluster, EksControlPlane):
            cluster, rules_exist = cluster.cluster, True
        archive = dependencies or _fetched(project)
        return cls(
            "eks",
            eks_cluster=cluster,
            rules_exist=rules_exist,
            dependencies=archive if isinstance(archive, ChartArchive) else None,
        )

    @classmethod
    @checked
    def slurm(cls, settings: Slurm | None = None, *, accounting: AccountingAccess | None = None) -> "Orchestrator":
        """Slurm, which HyperPod installs. A group called `controller` is its controller, `login` its login nodes.

        Args:
            settings: Slurm; every default when absent.
            accounting: The database that `settings.accounting` describes.

        Raises:
            InvalidSettings: one of settings and database without the other, or something that is neither.
        """
        settings = settings or Slurm()
        if (settings.accounting is None) != (accounting is None):
            raise refusal(
                "accounting",
                "Slurm's accounts in a database of their own take settings.accounting and the database",
                "pass both, such as SlurmAccounting(..., settings=settings.accounting), or neither",
            )
        return cls("slurm", settings=settings, accounting=accounting)


def _fetched(project: Path) -> ChartArchive:
    """The dependencies chart that `podwright chart fetch` has put into a project."""
    try:
        return chart_archive(project, chart(HYPERPOD_DEPENDENCIES))
    except InvalidFile as error:
        raise InvalidSettings(error.findings) from None
