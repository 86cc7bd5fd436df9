"""What the nodes of an environment learn of it, from its file and from what its storage is called once it is there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...config.catalog.instance_types import Catalog
from ...config.catalog.names import benchmark_prefix, setup_prefix
from ...config.settings.benchmarks import benchmark_policy
from ...config.settings.environment import Environment
from ..kubernetes.deployed_values import LustreValues
from .archives import LockedFile
from .facts import BenchmarkFacts, ClusterFacts, FileSystems, LustreMount, NodeFacts, OpenZfsMount, node_facts
from .kernels import COMPONENT, driver_minimum
from .provisioning_parameters import provisioning_parameters
from .slurm_facts import AccountingFacts, SlurmFacts, slurm_facts
from .software_facts import archive_facts


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where Slurm's accounts lie outside the controller."""

    host: str
    port: int
    user: str
    secret_arn: str


@dataclass(frozen=True, slots=True)
class Addresses:
    """What only a deployment knows of where nodes are, and of the storage that they use. In a synthesis: tokens."""

    region: str
    """Name of the region."""
    dns_suffix: str
    """Domain of AWS's services in the region's partition."""
    lustre: Mapping[str, LustreValues]
    """Lustre file systems by name."""
    home: str | None
    """DNS name of the home folders, if there are any."""
    database: DatabaseAddress | None
    """Slurm's accounts, if they are outside the controller."""
    scripts_bucket: str
    """Name of the bucket for lifecycle scripts, which takes results of benchmarks as well."""
    archives_uri: str
    """S3 URI of the prefix that archives are published under, without a slash at its end."""


def file_systems(environment: Environment, addresses: Addresses) -> FileSystems:
    """The shared file systems as nodes mount them."""
    storage = environment.storage
    lustre = {
        name: LustreMount(
            dns_name=addresses.lustre[name].dns_name,
            mount_name=addresses.lustre[name].mount_name,
            path=settings.mount,
            zone=settings.zone,
            efa=settings.efa,
        )
        for name, settings in storage.lustres.items()
    }
    home = None
    # Without an address, as in a rendering before any deployment, nothing can be mounted.
    if storage.home and addresses.home:
        settings = storage.home.openzfs
        home = OpenZfsMount(dns_name=addresses.home, path=settings.mount, zone=settings.zone)
    return FileSystems(lustre=lustre, home=home)


def accounting(environment: Environment, addresses: Addresses) -> AccountingFacts | None:
    """Where Slurm finds its accounts; None when it keeps none outside the controller."""
    settings, database = environment.cluster.slurm.accounting, addresses.database
    if settings is None or database is None:
        return None
    return AccountingFacts(
        host=database.host, port=database.port, database=settings.name, secret_arn=database.secret_arn
    )


def environment_facts(
    environment: Environment, types: Catalog, archives: Sequence[LockedFile], addresses: Addresses
) -> NodeFacts:
    """`node.json` of an environment.

    Args:
        environment: The environment.
        types: The instance catalog as it knows it.
        archives: What nodes install from.
        addresses: Where they are, and where its storage is.
    """
    cluster = environment.cluster
    return node_facts(
        cluster=ClusterFacts(
            name=cluster.name,
            orchestrator="slurm" if cluster.orchestrator == "slurm" else "eks",
            region=addresses.region,
            dns_suffix=addresses.dns_suffix,
            lifecycle=cluster.lifecycle,
            setup_uri=f"s3://{addresses.scripts_bucket}/{setup_prefix(cluster.name)}",
        ),
        groups=environment.instance_groups,
        types=types,
        file_systems=file_systems(environment, addresses),
        benchmarks=_benchmarks(environment, types, archives, addresses),
        software=cluster.node_software,
        archives=archives,
        # Where nothing is published a node has no place to look at.
        archives_uri=addresses.archives_uri if archives else "",
        slurm=_slurm(environment, types, addresses),
    )


def slurm_parameters(environment: Environment, addresses: Addresses) -> dict[str, Any] | None:
    """`provisioning_parameters.json`, for a Slurm cluster that HyperPod's own scripts configure; else None."""
    cluster = environment.cluster
    if cluster.orchestrator != "slurm" or cluster.slurm.configuration != "provisioning_parameters":
        return None
    return provisioning_parameters(
        settings=cluster.slurm,
        groups=environment.instance_groups,
        lustre=file_systems(environment, addresses).lustre.get("lustre"),
        accounting=accounting(environment, addresses),
        database_user=addresses.database.user if addresses.database else "",
    )


def runs_benchmarks(environment: Environment, types: Catalog) -> bool:
    """Whether nodes of any group measure themselves."""
    return any(benchmark_policy(group, types) != "skip" for group in environment.instance_groups.values())


def _benchmarks(
    environment: Environment, types: Catalog, archives: Sequence[LockedFile], addresses: Addresses
) -> BenchmarkFacts | None:
    """How nodes measure themselves, if any do."""
    if not runs_benchmarks(environment, types):
        return None
    cluster = environment.cluster
    return BenchmarkFacts(
        mode=cluster.benchmarks.mode,
        results_uri=f"s3://{addresses.scripts_bucket}/{benchmark_prefix(cluster.name)}",
        programs=cluster.benchmarks.programs,
        driver_minimum=driver_minimum(),
        archives=archive_facts(file for file in archives if file.archive.component == COMPONENT),
        archives_uri=addresses.archives_uri if archives else "",
        max_replacements=cluster.benchmarks.max_replacements,
        window_days=cluster.benchmarks.window_days,
        continuous=cluster.provisioning == "continuous",
    )


def _slurm(environment: Environment, types: Catalog, addresses: Addresses) -> SlurmFacts | None:
    if environment.cluster.orchestrator != "slurm":
        return None
    return slurm_facts(
        settings=environment.cluster.slurm,
        groups=environment.instance_groups,
        governance=environment.governance,
        users=environment.users,
        user_groups=environment.user_groups,
        accounting=accounting(environment, addresses),
        types=types,
    )
