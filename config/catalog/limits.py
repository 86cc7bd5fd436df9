"""Limits of the services, typed, each with the source it comes from.

A pair is an inclusive range. Units stand in the names; counts have none.
"""

import json
from functools import cache
from typing import Any, NamedTuple

from .facts import DATA, Citation, cited

Range = tuple[int, int]
"""Lowest and highest value allowed."""


class ClusterLimits(NamedTuple):
    """AWS::SageMaker::Cluster and its instance groups."""

    name_length: int
    group_name_length: int
    groups: int
    """Ordinary groups; restricted groups may be as many again."""
    instances_per_group: int
    """Also the highest minimum count. Account quotas are far lower."""
    instance_types_per_group: int
    min_count_hours: int
    """A group that has not reached its minimum count by then rolls back."""
    subnets: int
    security_groups: int
    tags: int
    storage_configs: int
    ebs_gib: Range
    root_volume_gb: int
    """As delivered; only its KMS key can be set."""
    labels: int
    taints: int
    label_key_length: int
    """Prefix included; taint keys alike."""
    label_value_length: int
    slurm_partitions: int
    tiered_memory_percent: Range
    rollback_alarms: int
    update_wait_seconds: Range
    lifecycle_script_length: int
    lifecycle_uri_length: int
    lifecycle_bucket_prefix: str
    """What AWS's managed node policy can read."""
    restricted_lustre_gib: Range
    restricted_lustre_throughput: Range
    """MB/s per TiB."""
    replacement_seconds: Range
    """From the decision to replace a node until the new one has joined."""
    deep_health_check_seconds: int
    """About what deep health checks of a new node take on top, also after a replacement."""


class TrainingPlanLimits(NamedTuple):
    """SageMaker training plans."""

    name_length: int
    days: Range
    instance_counts: tuple[int, ...]
    """What the guide says can be reserved in one offering."""
    search_instances: Range
    """What a search takes."""
    start_weeks_ahead: int
    extension_hours: int
    """Longest extension that can be searched for."""
    reclaim_minutes: int
    """Instances are taken back this long before the plan's end."""
    default_spares_per_ultraserver: int


class ComputeQuotaLimits(NamedTuple):
    """AWS::SageMaker::ComputeQuota, one team's share."""

    name_length: int
    team_length: int
    """What the published pattern means to allow; as written it has no upper bound."""
    namespace_prefix: str
    """The team's Kubernetes namespace is this plus the team."""
    resources: int
    weight: Range
    borrow_percent: Range
    """What the service takes; the schema alone would take 0 to 10,000."""
    amount: int
    """Highest count, accelerators, vCPU or memory of one resource."""
    description_length: int
    mig_profiles: tuple[str, ...]
    """Profiles that a quota can name, written there as `mig-<profile>`. None of ml.p6-b300.48xlarge's is among them."""


class SchedulerLimits(NamedTuple):
    """AWS::SageMaker::ClusterSchedulerConfig."""

    name_length: int
    priority_classes: int
    priority_name_length: int
    weight: Range


class KueueLimits(NamedTuple):
    """Kueue's objects."""

    flavors: int
    """Of one resource group; podwright makes one a queue, so also the groups that a team may use."""
    taints: int
    """Of one flavor."""
    topology_levels: int
    """The node's own name included."""
    image_pull_mb_per_second: int
    """What a node pulls and unpacks of an image's compressed size, as published of one image on one node."""


class EksLimits(NamedTuple):
    """The control plane. Versions are in `eks_versions()`."""

    task_governance_from: str
    ultraserver_from: str
    """P6e-GB200 needs dynamic resource allocation."""
    vpc_cni_from: str
    authentication_modes: tuple[str, ...]
    """What HyperPod accepts; EKS's own default CONFIG_MAP is refused."""
    name_length: int
    access_policies: int
    """Of one access entry."""
    control_plane_zones: int
    """At least so many."""
    service_prefix: tuple[int, int]
    """Widest and narrowest range of services, in bits of its prefix."""


class LustreLimits(NamedTuple):
    """FSx for Lustre, deployment type PERSISTENT_2."""

    throughput: tuple[int, ...]
    """MB/s per TiB of SSD storage."""
    capacity_first_gib: int
    """The one capacity below the step that is allowed too. Without EFA."""
    capacity_step_gib: int
    """Every other capacity is a multiple of it. Without EFA."""
    efa_capacity_step_gib: dict[int, int]
    """With EFA, every capacity is a multiple of the step of its throughput."""
    metadata_iops: tuple[int, ...]
    """SSD; above the last one multiples of the step up to the maximum."""
    metadata_iops_step: int
    metadata_iops_max: int
    tiering_metadata_iops: tuple[int, ...]
    tiering_throughput_step: int
    """MB/s; every throughput capacity is a multiple."""
    tiering_throughput_max: int
    read_cache_gib: Range
    """For each throughput step provisioned."""
    versions: tuple[str, ...]
    metadata_version: str
    """What a metadata configuration needs."""
    associations: int
    """Data repository associations of one file system."""
    backup_days: Range
    """0 turns automatic backups off."""
    ports: tuple[str, ...]
    """TCP, between clients and servers, both ways."""

    def capacity_step(self, throughput: int, *, efa: bool) -> int:
        """The step in GiB of which every SSD capacity at that throughput (MB/s/TiB) is a multiple.

        Without EFA, `capacity_first_gib` is allowed beside the multiples.
        """
        return self.efa_capacity_step_gib[throughput] if efa else self.capacity_step_gib


class OpenZfsLimits(NamedTuple):
    """FSx for OpenZFS."""

    capacity_gib: Range
    throughput_generation_1: tuple[int, ...]
    """MB/s of SINGLE_AZ_1 and SINGLE_AZ_HA_1."""
    iops_per_gib: int
    """What comes with the capacity, and the least that can be asked for."""
    throughput_generation_2: tuple[int, ...]
    """MB/s of SINGLE_AZ_2, SINGLE_AZ_HA_2 and MULTI_AZ_1."""
    route_tables: int
    """The most that MULTI_AZ_1 keeps ways in."""
    backup_days: Range


class NetworkLimits(NamedTuple):
    """VPC and subnets."""

    vpc_prefix: Range
    subnet_prefix: Range
    """From the widest to the narrowest prefix length."""
    reserved_addresses: int
    """Addresses of each subnet that AWS keeps."""
    address_usage: Range
    """Units of Network Address Usage of one VPC: by default, and once AWS has raised the quota as far as it does."""


class DatabaseLimits(NamedTuple):
    """Aurora."""

    zones: int
    """At least so many in a group of subnets."""


class UnixLimits(NamedTuple):
    """Accounts on nodes."""

    reserved_ids: Range
    """User and group ids that packages and systemd take for themselves."""


class CloudFormationLimits(NamedTuple):
    """One stack."""

    bootstrap_version: int
    """The oldest version of the CDK's bootstrap stack that our templates take."""
    resources: int
    template_bytes: int
    outputs: int
    parameters: int
    mappings: int
    logical_id_length: int
    description_bytes: int
    stack_name_length: int


class Limits(NamedTuple):
    """All limits by service."""

    cluster: ClusterLimits
    training_plan: TrainingPlanLimits
    compute_quota: ComputeQuotaLimits
    scheduler: SchedulerLimits
    kueue: KueueLimits
    eks: EksLimits
    lustre: LustreLimits
    openzfs: OpenZfsLimits
    network: NetworkLimits
    database: DatabaseLimits
    unix: UnixLimits
    cloudformation: CloudFormationLimits
    citations: dict[str, tuple[Citation, ...]]
    """Sources by dotted name, such as `lustre.associations`."""

    def source(self, name: str) -> str:
        """Where the limit of that dotted name comes from, in words with its date."""
        return "; ".join(map(str, self.citations[name]))


@cache
def limits() -> Limits:
    """The limits that this package knows."""
    data: dict[str, dict[str, dict[str, Any]]] = json.loads((DATA / "limits.json").read_text(encoding="utf-8"))
    values = {section: _values(entries) for section, entries in data.items()}
    return Limits(
        cluster=ClusterLimits(**values["cluster"]),
        training_plan=TrainingPlanLimits(**values["training_plan"]),
        compute_quota=ComputeQuotaLimits(**values["compute_quota"]),
        scheduler=SchedulerLimits(**values["scheduler"]),
        kueue=KueueLimits(**values["kueue"]),
        eks=EksLimits(**values["eks"]),
        lustre=LustreLimits(**values["lustre"]),
        openzfs=OpenZfsLimits(**values["openzfs"]),
        network=NetworkLimits(**values["network"]),
        database=DatabaseLimits(**values["database"]),
        unix=UnixLimits(**values["unix"]),
        cloudformation=CloudFormationLimits(**values["cloudformation"]),
        citations={
            f"{section}.{name}": cited(entry["source"])
            for section, entries in data.items()
            for name, entry in entries.items()
        },
    )


def _values(entries: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: _frozen(entry["value"]) for name, entry in entries.items()}


def _frozen(value: Any) -> Any:
    """JSON's lists as tuples, and its objects with the numbers they mean as keys."""
    if isinstance(value, list):
        return tuple(value)
    return {int(key): number for key, number in value.items()} if isinstance(value, dict) else value
