"""Rules on mounts, home folders and buckets."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Network

from ....config.catalog.instance_types import Catalog
from ....config.catalog.limits import limits
from ....config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ....config.findings import Path, listed
from ....config.settings.environment import Environment
from ....config.settings.storage import Buckets, OpenZfs, Storage
from ...network.cidrs import further_nodes
from ...quota.team_names import team_namespace
from ..capacity.zones import lustre_path
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from ..groups.groups import accelerated
from ..network.network import planned
from .lustre import within

# Folders whose contents a node needs: the system's, and those of HyperPod's agents and the container runtime.
_SYSTEM = (
    "/bin",
    "/boot",
    "/etc",
    "/lib",
    "/lib64",
    "/opt",
    "/root",
    "/sbin",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/var",
    "/var/lib",
)
# Folders in which nothing of ours may stand either: the kernel or an agent makes and clears them.
_MADE_BY_OTHERS = (
    *("/dev", "/proc", "/run", "/sys", "/tmp"),
    *("/opt/amazon", "/opt/aws", "/opt/dlami", "/opt/ml", "/opt/sagemaker", "/var/lib/containerd", "/var/lib/kubelet"),
)
# Source: Amazon S3 User Guide, "General purpose bucket naming rules".
_BUCKET_PREFIXES = ("xn--", "sthree-", "amzn-s3-demo-")
_BUCKET_SUFFIXES = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")


def mounts(storage: Storage) -> Iterator[tuple[Path, str]]:
    """Where each file system is mounted, with the path of the field relative to `storage`."""
    for name, lustre in storage.lustres.items():
        yield (*lustre_path(name)[1:], "mount"), lustre.mount
    if storage.home:
        yield ("home", "openzfs", "mount"), storage.home.openzfs.mount


@rule("STO020", ERROR, on=OpenZfs, source="fsx-openzfs", final=True)
def openzfs_throughput(home: OpenZfs) -> Problems:
    """Invalid OpenZFS throughput."""
    known = limits().openzfs
    first = home.deployment.endswith("_1") and not home.in_two_zones
    allowed = known.throughput_generation_1 if first else known.throughput_generation_2
    if home.throughput not in allowed:
        yield Problem(
            "throughput",
            f"throughput is {home.throughput} MB/s; allowed for {home.deployment}: {listed(allowed)}",
            f"use {next((each for each in allowed if each >= home.throughput), allowed[-1])}",
        )


@rule("STO029", ERROR, on=OpenZfs, source="fsx-api", final=True)
def openzfs_iops(home: OpenZfs) -> Problems:
    """SSD IOPS below the minimum of the capacity."""
    least = limits().openzfs.iops_per_gib * home.capacity_gib
    if home.iops != "automatic" and home.iops < least:
        yield Problem(
            "iops",
            f"iops is {home.iops:,}; allowed for {home.capacity_gib:,} GiB: {least:,} or more",
            "use automatic, which is that many",
        )


@rule("STO032", ERROR, on=OpenZfs, source="fsx-openzfs", final=True)
def second_zone(home: OpenZfs) -> Problems:
    """OpenZFS deployment and standby zone disagree."""
    only = {field: getattr(home, field) for field in ("standby_zone", "endpoint_cidr", "route_tables")}
    if home.in_two_zones and home.standby_zone is None:
        yield Problem(
            "deployment",
            "deployment is multi_az_1, and standby_zone does not say where its second server stands",
            "add standby_zone with another zone of network.zones",
        )
    elif home.standby_zone == home.zone and home.in_two_zones:
        yield Problem(
            "standby_zone", f"standby_zone is {home.zone}, where the preferred server stands", "choose another zone"
        )
    for field, value in only.items():
        if value and not home.in_two_zones:
            yield Problem(
                field,
                f"deployment is {home.deployment}, which is in one zone; only multi_az_1 has {field}",
                "remove it, or use multi_az_1",
            )


@rule("STO035", WARNING, on=OpenZfs, source="")
def existing_home(home: OpenZfs) -> Problems:
    """Setting without effect on an existing OpenZFS file system."""
    if home.existing:
        # These say where and how it is mounted, which is this environment's own.
        for field in sorted(home.model_fields_set - {"zone", "mount", "existing"}):
            if getattr(home, field) not in (None, ()):
                yield Problem(
                    field,
                    f"{field} has no effect: {home.existing.id} exists and is only mounted",
                    "remove it; change the file system where it was made",
                )


@rule("STO033", ERROR, on=Environment, source="fsx-openzfs", final=True)
def ways_to_two_zones(environment: Environment) -> Problems:
    """Home file system without route tables."""
    home, network = environment.storage.home, environment.network
    if home is None or home.openzfs.existing or not home.openzfs.in_two_zones:
        return
    specified = home.openzfs.route_tables
    path, most = ("storage", "home", "openzfs", "route_tables" if specified else "deployment"), limits().openzfs
    if network.vpc and not specified:
        yield Problem(
            path,
            "FSx keeps the way to the server in route tables; podwright knows none of an existing VPC, and FSx would "
            "take the main one, which may be no subnet's of nodes",
            "add route_tables with those of all subnets of nodes",
        )
    tables = len(specified) or len(network.zones) + sum(map(len, further_nodes(network).values()))
    if tables > most.route_tables:
        yield Problem(
            path,
            f"subnets of nodes have {tables} route tables; FSx keeps ways in at most {most.route_tables}",
            "use fewer subnets, or a deployment in one zone",
        )


@rule("STO034", ERROR, on=Environment, source="fsx-openzfs", final=True)
def endpoint_range(environment: Environment) -> Problems:
    """Home endpoint range overlaps a subnet."""
    home, network = environment.storage.home, environment.network
    specified = home.openzfs.endpoint_cidr if home else None
    for subnet in planned(network) if specified else ():
        if subnet.block.overlaps(IPv4Network(specified)):
            yield Problem(
                ("storage", "home", "openzfs", "endpoint_cidr"),
                f"endpoint_cidr is {specified}, which overlaps {subnet.block}, a subnet of {subnet.zone}",
                "choose a range outside of all subnets, or leave it out and FSx chooses one",
            )


@rule("STO021", ERROR, on=Storage, source="", final=True)
def mount_once(storage: Storage) -> Problems:
    """Two file systems on the same mount point."""
    observed: list[str] = []
    for path, mount in mounts(storage):
        for other in observed:
            if within(mount, other) or within(other, mount):
                yield Problem(
                    path,
                    f"{mount} overlaps {other}, where another file system is mounted; one would hide the other",
                    "give each file system a separate mount point",
                )
        observed.append(mount)


@rule("STO030", ERROR, on=Environment, source="", final=True)
def claim_once(environment: Environment) -> Problems:
    """Lustre claim in a team's namespace."""
    observed: dict[tuple[str, str], str] = {}
    engine, of_teams = environment.governance.engine, environment.governance.teams
    teams = {team_namespace(engine, team): team for team in of_teams} if engine else {}
    for system, name, claim in environment.storage.claims:
        path = (*lustre_path(system), "claims", name)
        if other := observed.get((claim.namespace, name)):
            yield Problem(path, f"{claim.namespace} has a claim {name} of {other} already", "choose another name")
        observed.setdefault((claim.namespace, name), system)
        if environment.cluster.orchestrator != "eks":
            yield Problem(path, "claims are Kubernetes', and this environment has none", "remove it: nodes mount it")
        elif claim.namespace in teams:
            team = teams[claim.namespace]
            yield Problem(
                (*path, "namespace"),
                f"{claim.namespace} is the namespace of team {team}, which comes later",
                f"write it under governance.teams.{team}.access.storage",
            )


@rule("STO031", INFO, on=Environment, source="")
def claim_of_nobody(environment: Environment) -> Problems:
    """Lustre claim that no job mounts."""
    mounted = {
        (job.namespace or "default", mount.claim)
        for job in environment.jobs.values()
        for mount in job.mounts.values()
        if job.team is None and job.kind != "sbatch"
    }
    for system, name, claim in environment.storage.claims:
        if (claim.namespace, name) not in mounted and environment.cluster.orchestrator == "eks":
            yield Problem(
                (*lustre_path(system), "claims", name),
                f"no job of this file mounts {name} of {claim.namespace}",
                "correct the name, or leave it for pods that are made by other means",
            )


@rule("STO022", ERROR, on=Storage, source="", final=True)
def mount_point(storage: Storage) -> Problems:
    """Reserved mount point."""
    for path, mount in mounts(storage):
        if {".", ".."} & set(mount.split("/")):
            yield Problem(path, f"mount is {mount}; allowed: a path without . and ..", "write the path in full")
            continue
        hidden = [folder for folder in (*_SYSTEM, *_MADE_BY_OTHERS) if within(folder, mount)]
        # A mount inside of an ordinary system folder, such as /opt/data, hides nothing.
        around = [folder for folder in _MADE_BY_OTHERS if within(mount, folder)]
        if hidden or around:
            yield Problem(
                path,
                f"mount is {mount}; the node itself uses {(hidden + around)[0]}",
                "mount it at /fsx, /home or another folder",
            )


@rule("STO023", ERROR, on=Storage, source="", final=True)
def reserved_name(storage: Storage) -> Problems:
    """Additional file system named lustre."""
    if "lustre" in storage.additional_lustre:
        yield Problem(
            ("additional_lustre", "lustre"), "lustre is the name of the main file system", "choose another name"
        )


@rule("STO024", ERROR, on=Buckets, source="s3-names", final=True)
def bucket_name(buckets: Buckets) -> Problems:
    """Invalid S3 bucket name."""
    for field in ("lifecycle", "checkpoints"):
        name = getattr(buckets, field) or ""
        reserved = listed(each for each in (*_BUCKET_PREFIXES, *_BUCKET_SUFFIXES))
        if ".." in name or re.fullmatch(r"[0-9]+(\.[0-9]+){3}", name):
            yield Problem(
                field,
                f"{field} is {name}; allowed: no two dots in a row, and nothing that looks like an IP address",
                "correct the name: S3 has no such bucket",
            )
        elif name.startswith(_BUCKET_PREFIXES) or name.endswith(_BUCKET_SUFFIXES):
            yield Problem(
                field, f"{field} is {name}; S3 keeps {reserved} for itself", "correct the name: S3 has no such bucket"
            )


@rule("STO025", WARNING, on=Buckets, source="")
def separate_buckets(buckets: Buckets) -> Problems:
    """Same bucket for scripts and checkpoints."""
    if buckets.lifecycle and buckets.lifecycle == buckets.checkpoints:
        yield Problem(
            "checkpoints",
            f"{buckets.checkpoints} holds the lifecycle scripts too: who may write a checkpoint could change "
            "what runs as root on every new node",
            "use two buckets",
        )


@rule("STO026", WARNING, on=Environment, source="")
def destroyed_data(environment: Environment) -> Problems:
    """Data deleted with its stack."""
    retained = [name for name, lustre in environment.storage.lustres.items() if lustre.existing is None]
    retained += ["home"] if environment.storage.home and environment.storage.home.openzfs.existing is None else []
    if environment.protection == "destroy" and retained and environment.account != SANDBOX_ACCOUNT:
        yield Problem(
            "protection",
            f"protection is destroy, so deleting the storage stack deletes {listed(retained, 'and')} with all data",
            "use retain, or accept this for an environment without data of value",
        )


@rule("STO027", WARNING, on=Environment, source="fsx-clients")
def efa_client_image(environment: Environment, types: Catalog) -> Problems:
    """Custom image on a file system with EFA."""
    # Lustre over EFA needs a client of a certain age, which HyperPod's own images have.
    serving = {lustre.zone for lustre in environment.storage.lustres.values() if lustre.efa}
    for name, group in environment.instance_groups.items():
        if group.image_id and serving & set(group.zone_ids) and accelerated(group, types):
            yield Problem(
                ("instance_groups", name, "image_id"),
                f"clients reach Lustre over EFA from AL2023, RHEL 9.5 and Ubuntu 22.04 on, "
                f"with kernel 6.8 or newer; podwright cannot see what {group.image_id} holds",
                "check the image, or the node falls back to TCP",
            )


@rule("STO028", WARNING, on=Environment, source="fsx-backups")
def home_backups(environment: Environment) -> Problems:
    """Home folders without backups."""
    home = environment.storage.home
    if home and home.openzfs.backup_days == 0 and home.openzfs.existing is None and environment.protection == "retain":
        yield Problem(
            ("storage", "home", "openzfs", "backup_days"),
            "backup_days is 0: deleted files cannot be restored",
            "keep at least 7 days",
        )


@rule("LIF001", ERROR, on=Buckets, source="api-lifecycle")
def lifecycle_bucket(buckets: Buckets) -> Problems:
    """Lifecycle bucket name without the sagemaker- prefix."""
    prefix = limits().cluster.lifecycle_bucket_prefix
    if buckets.lifecycle and not buckets.lifecycle.startswith(prefix):
        yield Problem(
            "lifecycle",
            f"lifecycle is {buckets.lifecycle}; HyperPod documents lifecycle scripts only in buckets whose name begins "
            f"with {prefix}, as its managed node policy reads no other",
            "use such a bucket, or leave it out and podwright makes one",
        )
