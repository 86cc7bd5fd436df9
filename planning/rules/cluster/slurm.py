"""Rules on the Slurm orchestrator: its groups, who configures it, and its accounts."""

import re

from ....config.catalog.limits import limits
from ....config.catalog.zones import is_local
from ....config.findings import listed
from ....config.settings.cluster import Cluster
from ....config.settings.environment import Environment
from ....config.settings.groups import InstanceGroup
from ....config.settings.slurm import API_PARTITION_NAME, AccountingDatabase, GroupSlurm
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule

_EVERYWHERE = "dev"
"""The partition that HyperPod makes for all nodes."""


def of_type(environment: Environment, node_type: str) -> dict[str, InstanceGroup]:
    """The instance groups whose nodes play that part in Slurm, by name."""
    groups = environment.instance_groups.items()
    return {name: group for name, group in groups if group.slurm and group.slurm.node_type == node_type}


def on_slurm(environment: Environment) -> bool:
    """Whether Slurm is the orchestrator."""
    return environment.cluster.orchestrator == "slurm"


def several_controllers(environment: Environment) -> bool:
    """Whether a Slurm cluster has more than one controller node."""
    # Only on Slurm, where groups have a node type at all.
    return on_slurm(environment) and sum(group.count for group in of_type(environment, "controller").values()) > 1


@rule("SLU001", ERROR, on=Environment, source="slurm-config", final=True)
def one_controller_group(environment: Environment) -> Problems:
    """Not exactly one controller group."""
    controllers = of_type(environment, "controller")
    if on_slurm(environment) and len(controllers) != 1:
        yield Problem(
            "instance_groups",
            f"controller groups are {listed(controllers, 'and')}; a Slurm cluster has exactly one",
            "call one group `controller`, or give it `slurm: {node_type: controller}`",
        )
    for name, group in controllers.items():
        if on_slurm(environment) and group.count == 0:
            yield Problem(
                ("instance_groups", name, "count"), "count is 0; no other node can join without a controller", "set 1"
            )


@rule("SLU002", ERROR, on=Environment, source="slurm-config", final=True)
def one_login_group(environment: Environment) -> Problems:
    """Several groups of login nodes."""
    # The first one stays.
    for name in list(of_type(environment, "login"))[1:]:
        if on_slurm(environment):
            yield Problem(
                ("instance_groups", name, "slurm", "node_type"),
                f"login groups are {listed(of_type(environment, 'login'), 'and')}; HyperPod takes one at most",
                "put all login nodes into one group",
            )


@rule("SLU003", ERROR, on=GroupSlurm, source="slurm-config", final=True)
def partition_of_compute(part: GroupSlurm) -> Problems:
    """Partition on a controller or login group, or missing elsewhere."""
    if part.node_type == "compute" and part.partition is None:
        yield Problem("partition", "compute nodes are in no partition, so no job could run there", "name one")
    elif part.node_type != "compute" and part.partition:
        yield Problem(
            "partition",
            f"partition is {part.partition} and node_type {part.node_type}; only compute nodes are in partitions",
            "remove it",
        )


@rule("SLU004", ERROR, on=GroupSlurm, source="slurm-config")
def partition_of_everything(part: GroupSlurm) -> Problems:
    """Reserved partition name."""
    if part.partition == _EVERYWHERE:
        yield Problem(
            "partition",
            f"HyperPod makes a partition {_EVERYWHERE} of all nodes, login nodes included",
            "use another name",
        )


@rule("SLU005", ERROR, on=Environment, source="slurm-migration slurm-continuous slurm-multihead", final=True)
def multi_head(environment: Environment) -> Problems:
    """Several controllers without shared state."""
    slurm = environment.cluster.slurm
    if not several_controllers(environment):
        return
    why = "there are several controllers"
    if slurm.configuration != "provisioning_parameters":
        yield Problem(
            ("cluster", "slurm", "configuration"),
            f"configuration is {slurm.configuration} and {why}; the API has no settings for them",
            "set `configuration: provisioning_parameters`, or use one controller",
        )
    if slurm.accounting is None:
        yield Problem(
            ("cluster", "slurm", "accounting"),
            f"{why}, and MariaDB on one of them would be out of reach for the others",
            "add `accounting: {}` for Aurora MySQL",
        )
    if slurm.shared_directory is None:
        yield Problem(
            ("cluster", "slurm", "shared_directory"),
            f"{why}, and they share no folder for the state of jobs",
            "add `storage: {lustre: {}}`",
        )


@rule("SLU006", ERROR, on=Cluster, source="slurm-continuous slurm-migration", final=True)
def continuous(cluster: Cluster) -> Problems:
    """Slurm setting that continuous provisioning does not support."""
    if cluster.orchestrator != "slurm" or cluster.provisioning != "continuous":
        return
    if cluster.slurm.configuration == "provisioning_parameters":
        yield Problem(
            ("slurm", "configuration"),
            "configuration is provisioning_parameters and provisioning continuous, which reads the API alone",
            "set `provisioning: all_or_nothing`, or leave configuration out",
        )
    if cluster.slurm.strategy != "merge":
        yield Problem(
            ("slurm", "strategy"),
            f"strategy is {cluster.slurm.strategy} and provisioning continuous, which always merges",
            "leave strategy out, or set `provisioning: all_or_nothing`",
        )


@rule("SLU007", ERROR, on=Cluster, source="slurm-accounting", final=True)
def accounting_needs_continuous(cluster: Cluster) -> Problems:
    """External accounting database without continuous provisioning."""
    slurm = cluster.slurm
    if (
        cluster.orchestrator == "slurm"
        and slurm.accounting
        and slurm.configuration == "api"
        and cluster.provisioning != "continuous"
    ):
        yield Problem(
            ("slurm", "accounting"),
            "configuration is api and provisioning all_or_nothing; HyperPod takes a database with continuous alone",
            "set `provisioning: continuous`",
        )


@rule("SLU008", WARNING, on=Environment, source="slurm-multihead")
def only_for_several(environment: Environment) -> Problems:
    """Multi-controller setting with one controller."""
    slurm = environment.cluster.slurm
    if not on_slurm(environment) or several_controllers(environment):
        return
    for field in ("shared_directory", "failover_topic"):
        if getattr(slurm, field) is not None:
            yield Problem(
                ("cluster", "slurm", field),
                f"{field} has no effect: there is one controller",
                "remove it, or raise the count of the controllers",
            )


@rule("SLU009", ERROR, on=Environment, source="slurm-multihead", final=True)
def shared(environment: Environment) -> Problems:
    """Controller state outside a shared file system."""
    folder, lustres = environment.cluster.slurm.shared_directory, environment.storage.lustres
    mounts = [lustre.mount for lustre in lustres.values()]
    # The folder itself, or one below it.
    below = any(f"{folder}/".startswith(f"{mount}/") for mount in mounts)
    if several_controllers(environment) and folder and not below:
        yield Problem(
            ("cluster", "slurm", "shared_directory"),
            f"shared_directory is {folder}; Lustre file systems are mounted at {listed(mounts, 'and')}",
            "name a folder below one of them",
        )


@rule("SLU010", ERROR, on=AccountingDatabase, source="rds-aurora", final=True)
def capacity_units(database: AccountingDatabase) -> Problems:
    """Database minimum above its maximum."""
    if database.min_capacity > database.max_capacity:
        yield Problem(
            "min_capacity",
            f"min_capacity is {database.min_capacity:g}, more than max_capacity {database.max_capacity:g}",
            "lower it, or raise max_capacity",
        )


@rule("SLU011", ERROR, on=Environment, source="rds-subnets", final=True)
def database_zones(environment: Environment) -> Problems:
    """Database in fewer than two zones."""
    accounting = environment.cluster.slurm.accounting
    needed = limits().database.zones
    if on_slurm(environment) and accounting and not accounting.existing and len(environment.network.zones) < needed:
        yield Problem(
            # RDS wants subnets in several zones even for a single instance.
            ("network", "zones"),
            f"the network has {listed(environment.network.zones, 'and')}; Aurora wants subnets in {needed} zones, "
            "also for one instance",
            "add a zone; it needs no group and costs no node",
        )


@rule("SLU012", WARNING, on=AccountingDatabase, source="")
def existing_database(database: AccountingDatabase) -> Problems:
    """Setting without effect on an existing database."""
    if database.existing:
        # The name of the schema is ours to say in any case.
        for field in sorted(database.model_fields_set - {"existing", "name"}):
            yield Problem(
                field,
                f"{field} has no effect: {database.existing.endpoint} exists and is only used",
                "remove it; change the database where it was made",
            )


@rule("SLU013", WARNING, on=Environment, source="slurm-accounting")
def accounts_on_the_controller(environment: Environment) -> Problems:
    """Accounting data lost with the controller."""
    if on_slurm(environment) and environment.cluster.slurm.accounting is None and environment.protection == "retain":
        yield Problem(
            ("cluster", "slurm", "accounting"),
            "job history and usage are in MariaDB on the controller, and are lost when that node is replaced or "
            "gets new software",
            "add `accounting: {}` for Aurora MySQL; a cluster cannot return to MariaDB",
        )


@rule("SLU014", WARNING, on=Environment, source="hyperpod-spot hyperpod-field-notes")
def stable_controller(environment: Environment) -> Problems:
    """Controllers on Spot or plan capacity."""
    for name, group in of_type(environment, "controller").items():
        if on_slurm(environment) and not group.stays:
            what = f"training plan {group.plan}, which ends" if group.plan else "Spot, which AWS reclaims"
            yield Problem(
                ("instance_groups", name, "capacity"),
                f"controller group {name} is on {what}: no job starts until a new controller runs",
                "use a small on-demand group",
            )


@rule("SLU015", INFO, on=Environment, source="slurm-continuous")
def no_compute(environment: Environment) -> Problems:
    """Cluster without compute nodes."""
    if on_slurm(environment) and not of_type(environment, "compute"):
        yield Problem("instance_groups", "no group has compute nodes, so no job can run", "add one")


@rule("SLU016", ERROR, on=Environment, source="slurm-config", final=True)
def one_file_system_by_hyperpod(environment: Environment) -> Problems:
    """Several file systems for HyperPod to mount."""
    lustres = environment.storage.lustres
    for name, group in environment.instance_groups.items():
        if on_slurm(environment) and group.mount_lustre and len(lustres) > 1:
            yield Problem(
                ("instance_groups", name, "mount_lustre"),
                f"mount_lustre would mount {listed(lustres, 'and')}; HyperPod takes one Lustre file system on a group",
                "leave it out: podwright's scripts mount all of them",
            )


@rule("SLU017", WARNING, on=Environment, source="slurm-accounting")
def secret_permission(environment: Environment) -> Problems:
    """Custom role without permission to read the database secret."""
    for name, group in of_type(environment, "controller").items():
        if on_slurm(environment) and environment.cluster.slurm.accounting and group.role:
            yield Problem(
                ("instance_groups", name, "role"),
                f"the controller reads the database's secret as {group.role}, which podwright does not write",
                "allow secretsmanager:GetSecretValue on the secret, and kms:Decrypt on its key",
            )


@rule("SLU018", ERROR, on=Environment, source="cfn-cluster", final=True)
def partition_of_the_api(environment: Environment) -> Problems:
    """Invalid partition name."""
    if not on_slurm(environment) or environment.cluster.slurm.configuration != "api":
        return
    for name, group in environment.instance_groups.items():
        partition = group.slurm.partition if group.slurm else None
        if partition and not re.fullmatch(API_PARTITION_NAME, partition):
            yield Problem(
                ("instance_groups", name, "slurm", "partition"),
                f"partition is {partition}; with `configuration: api` allowed: letters, digits and hyphens within",
                "choose such a name, or set `configuration: provisioning_parameters`, which takes _ and . too",
            )


@rule("SLU019", ERROR, on=Environment, source="local-zones")
def controller_beside_workers(environment: Environment) -> Problems:
    """Controller and workers split across a Local Zone."""
    if not on_slurm(environment):
        return
    heads = {zone for group in of_type(environment, "controller").values() for zone in group.zone_ids}
    for name, group in of_type(environment, "compute").items():
        apart = [zone for zone in group.zone_ids if heads and zone not in heads]
        # Between Availability Zones of a region there is no such border.
        across = [zone for zone in apart if is_local(zone) or any(map(is_local, heads))]
        if across:
            yield Problem(
                ("instance_groups", name, "zone"),
                f"{name} is in {listed(across, 'and')} and the controller in {listed(sorted(heads), 'and')}; a Local "
                "Zone holds both or neither",
                "put the controller into the Local Zone, too",
            )
