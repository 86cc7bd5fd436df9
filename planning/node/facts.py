"""What a node learns about its cluster: `node.json`, published beside the lifecycle scripts.

The scripts run on the system's Python 3.9 without a library of ours, so this file is their only view of an environment.
It holds what a node cannot find out by itself and what decides its set-up. It holds no counts: a group that grows
leaves the file, and with it the published prefix, as they are.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from ...config.catalog.instance_type import InstanceType
from ...config.catalog.instance_types import Catalog, conflicts
from ...config.settings.base import MountPath, Settings, ZoneId
from ...config.settings.benchmarks import benchmark_policy
from ...config.settings.cluster import Lifecycle
from ...config.settings.groups import BenchmarkPolicy, InstanceGroup
from ...config.settings.software import NodeSoftware
from .archives import LockedFile
from .lustre_clients import lustre_efa_interfaces
from .slurm_facts import SlurmFacts
from .software_facts import ArchiveFacts, ClusterSoftware, GroupSoftware, cluster_software, group_software


class ClusterFacts(Settings):
    """The cluster that a node belongs to."""

    name: str
    """Name of the HyperPod cluster."""
    orchestrator: Literal["eks", "slurm"]
    """What schedules the work."""
    region: str
    """AWS region."""
    dns_suffix: str
    """Suffix of AWS service names, such as amazonaws.com."""
    lifecycle: Lifecycle
    """What a failed step of the set-up costs."""
    setup_uri: str
    """S3 URI of the prefix for verdicts of set-ups, without a slash at its end; empty: they stay on the nodes."""


class LustreMount(Settings):
    """A Lustre file system as a node mounts it."""

    dns_name: str
    """DNS name of the file system."""
    mount_name: str
    """Its mount name: the export is `DNS_NAME@tcp:/MOUNT_NAME`."""
    path: MountPath
    """Where nodes mount it."""
    zone: ZoneId
    """Zone id of its servers; EFA reaches them only from there."""
    efa: bool
    """Whether its servers take EFA clients."""


class OpenZfsMount(Settings):
    """An OpenZFS file system as a node mounts it."""

    dns_name: str
    """DNS name of the file system."""
    path: MountPath
    """Where nodes mount it."""
    zone: ZoneId
    """Zone id of its server."""


class FileSystems(Settings):
    """The shared file systems of an environment."""

    lustre: dict[str, LustreMount]
    """Lustre file systems by name."""
    home: OpenZfsMount | None
    """Home folders, if there are any."""


class InstanceTypeFacts(Settings):
    """What the catalog knows about an instance type and a node needs. Units and meaning are the catalog's."""

    vcpu: int
    """Virtual CPUs."""
    threads_per_core: int
    """Threads of a core as delivered."""
    memory_gib: float
    """Memory in GiB."""
    accelerator_vendor: Literal["nvidia", "neuron", "none"]
    """Maker of the accelerators."""
    accelerator_name: str
    """Such as H200; empty without."""
    accelerator_count: int
    """GPUs or Neuron devices."""
    efa_interfaces: int
    """EFA interfaces at most."""
    network_cards: int
    """Network cards."""
    nvme_gb: int
    """Local instance storage in GB; 0 without."""
    architecture: Literal["x86_64", "arm64"]
    """Instruction set."""
    nvswitch: bool
    """Whether the node runs NVIDIA's fabric manager."""
    imex: bool
    """Whether the node runs NVIDIA's IMEX service."""
    lustre_efa_interfaces: int
    """EFA interfaces that Lustre uses; 0 where FSx takes no EFA client."""
    disputed: tuple[str, ...]
    """Names of the facts above on which sources differ for this type. A step that rests on one costs no node."""


class BenchmarkFacts(Settings):
    """How nodes measure themselves, and where their results and the count of replacements lie."""

    mode: Literal["quick", "thorough"]
    """How long the kernels run."""
    results_uri: str
    """S3 URI of the prefix for results and replacements, without a slash at its end."""
    max_replacements: int
    """Nodes of a group that may be replaced within `window_days`."""
    window_days: int
    """Days after which a replacement no longer counts."""
    programs: Literal["shipped", "compile"]
    """Where the programs that measure NVIDIA GPUs come from."""
    driver_minimum: str
    """The oldest NVIDIA driver that shipped programs run with."""
    archives: tuple[ArchiveFacts, ...]
    """The shipped programs, by architecture; none when they were not built."""
    archives_uri: str
    """S3 URI of the prefix of archives, without a slash at its end; empty when there are none."""
    continuous: bool
    """Whether HyperPod replaces a node whose scripts fail and keeps the rest; else it fails the whole request."""


class GroupFacts(Settings):
    """What decides the set-up of the nodes of an instance group."""

    instance_types: Annotated[tuple[str, ...], Field(min_length=1)]
    """All types that the group may hold."""
    zones: tuple[ZoneId, ...]
    """Zone ids of its nodes; empty when the group names subnets instead."""
    volumes_gib: tuple[int, ...]
    """Sizes of the further EBS volumes; the first is mounted at /opt/sagemaker."""
    mounts_lustre: bool
    """Whether the scripts mount the Lustre file systems; else HyperPod does, or pods."""
    mounts_home: bool
    """Whether the scripts mount the home folders."""
    benchmarks: BenchmarkPolicy
    """What follows from the benchmarks of a node."""
    software: GroupSoftware
    """What its nodes install, and what jobs on them find set."""


class NodeFacts(Settings):
    """The whole of `node.json`."""

    version: Literal[1]
    """Version of this layout."""
    cluster: ClusterFacts
    """The cluster."""
    file_systems: FileSystems
    """Shared file systems."""
    instance_types: dict[str, InstanceTypeFacts]
    """Facts of every type that a group may hold, by name."""
    software: ClusterSoftware
    """How nodes check and install their software."""
    benchmarks: BenchmarkFacts | None
    """Benchmarks on boot; none run without."""
    groups: dict[str, GroupFacts]
    """The groups that these scripts set up, by name. A node finds its own in HyperPod's resource_config.json."""
    slurm: SlurmFacts | None
    """What Slurm is made of; null on EKS."""


def node_facts(
    *,
    cluster: ClusterFacts,
    groups: Mapping[str, InstanceGroup],
    types: Catalog,
    file_systems: FileSystems,
    benchmarks: BenchmarkFacts | None = None,
    slurm: SlurmFacts | None = None,
    software: NodeSoftware | None = None,
    archives: Sequence[LockedFile] = (),
    archives_uri: str = "",
) -> NodeFacts:
    """The facts of the nodes of `groups`. Groups with scripts of their own are left out.

    Args:
        cluster: The cluster.
        groups: Instance groups by name.
        types: The catalog with the environment's overrides.
        file_systems: Shared file systems; DNS and mount names may be values that only a deployment knows.
        benchmarks: How nodes measure themselves; they do not when absent.
        slurm: What Slurm is made of, on a Slurm cluster.
        software: EFA, NCCL and what belongs to them; checked as they are when absent.
        archives: What is published for nodes to install from.
        archives_uri: S3 URI of the prefix that it is published under.

    Raises:
        UnknownInstanceType: a group holds a type that the catalog lacks.
    """
    software = software or NodeSoftware()
    ours = {name: group for name, group in sorted(groups.items()) if group.lifecycle is None}
    names = {name for group in ours.values() for name in group.types}

    def group_facts(group: InstanceGroup, software: NodeSoftware) -> GroupFacts:
        return GroupFacts(
            instance_types=group.types,
            zones=group.zone_ids,
            volumes_gib=tuple(volume.size_gib for volume in group.volumes),
            # On Slurm the scripts mount what HyperPod does not mount itself; on EKS pods mount for themselves.
            mounts_lustre=cluster.orchestrator == "slurm" and bool(file_systems.lustre) and not group.mount_lustre,
            mounts_home=cluster.orchestrator == "slurm" and file_systems.home is not None and not group.mount_home,
            benchmarks=benchmark_policy(group, types),
            software=group_software(software, cluster.orchestrator, group, types, archives),
        )

    return NodeFacts(
        version=1,
        cluster=cluster,
        file_systems=file_systems,
        # Only of types that groups have: the file changes with the environment and not with the catalog.
        instance_types={name: _instance_type(types.get(name)) for name in sorted(names)},
        software=cluster_software(software, archives, archives_uri),
        benchmarks=benchmarks,
        groups={name: group_facts(group, software) for name, group in ours.items()},
        slurm=slurm,
    )


def _instance_type(row: InstanceType) -> InstanceTypeFacts:
    names = InstanceTypeFacts.model_fields.keys() - {"lustre_efa_interfaces", "disputed"}
    own = {name: getattr(row, name) for name in names}
    # Who overrides a fact in the environment's file has settled it.
    fields = {conflict.field for conflict in conflicts() if conflict.type == row.name} - row.overridden
    disputed = tuple(sorted(fields & names))
    return InstanceTypeFacts(**own, lustre_efa_interfaces=lustre_efa_interfaces(row), disputed=disputed)
