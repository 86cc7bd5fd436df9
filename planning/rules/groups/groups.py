"""Rules on what an instance group is made of: types, counts, interfaces, volumes, checks."""

from collections.abc import Iterable

from ....config.catalog.instance_type import InstanceType
from ....config.catalog.instance_types import Catalog, UnknownInstanceType
from ....config.catalog.limits import limits
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.groups import GroupBase, InstanceGroup
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule


def known(group: GroupBase, types: Catalog) -> list[InstanceType]:
    """The catalog's rows of a group's types. Those that it lacks are left out: GRP002 speaks of them."""
    return [row for name in group.types if (row := types.find(name))]


def accelerated(group: GroupBase, types: Catalog) -> bool:
    """Whether a node of the group may have GPUs or Neuron devices."""
    return any(row.accelerator_count for row in known(group, types))


def with_efa(group: GroupBase, types: Catalog) -> bool:
    """Whether a node of the group may have EFA interfaces."""
    return any(row.efa_interfaces for row in known(group, types))


def _names(rows: Iterable[InstanceType]) -> str:
    return listed((row.name for row in rows), "and")


@rule("GRP001", ERROR, on=GroupBase, source="api-group", final=True)
def one_type(group: GroupBase) -> Problems:
    """Not exactly one of instance_type and instance_types."""
    if not group.types:
        yield Problem("instance_type", "the group has no instance type", "add `instance_type: ml.…`")
    elif isinstance(group, InstanceGroup) and group.instance_type and group.instance_types:
        yield Problem(
            "instance_types",
            f"instance_type is {group.instance_type} and instance_types is set, too; SageMaker accepts one of the two",
            "keep instance_type, or put all types into instance_types",
        )


@rule("GRP002", ERROR, on=GroupBase, source="api-group", final=True)
def known_type(group: GroupBase, types: Catalog) -> Problems:
    """Unknown instance type."""
    for index, name in enumerate(group.types):
        if name not in types:
            path = "instance_type" if group.instance_type else ("instance_types", index)
            # A slip of the pen is likelier than a new type.
            close = UnknownInstanceType(name, (row.name for row in types)).close
            yield Problem(
                path,
                f"{name} is not an instance type that HyperPod takes",
                f"did you mean {listed(close)}?"
                if close
                else "correct the name; facts of a newer type go under `instance_types:` of the environment",
            )


@rule("GRP003", ERROR, on=InstanceGroup, source="api-group", final=True)
def minimum(group: InstanceGroup) -> Problems:
    """min_count above count."""
    if group.min_count is not None and group.min_count > group.count:
        yield Problem(
            "min_count",
            f"min_count is {group.min_count}, more than count {group.count}: the group could never come into service",
            f"lower it to at most {group.count}, or raise count",
        )


@rule("GRP004", ERROR, on=InstanceGroup, source="api-group ec2-efa")
def interface(group: InstanceGroup, types: Catalog) -> Problems:
    """EFA interfaces on an instance type without them."""
    kind = group.network_interface
    lacking = [
        row for row in known(group, types) if not row.efa_interfaces or (kind == "efa-only" and not row.efa_only)
    ]
    if kind and lacking:
        yield Problem(
            "network_interface",
            f"network_interface is {kind}, which {_names(lacking)} does not have",
            "remove it; HyperPod then uses the type's own interfaces",
        )


@rule("GRP005", ERROR, on=GroupBase, source="api-group ec2-cpu", final=True)
def threads(group: GroupBase, types: Catalog) -> Problems:
    """Two threads per core on a single-thread type."""
    if group.threads_per_core == 2 and (single := [row for row in known(group, types) if row.threads_per_core == 1]):
        yield Problem(
            "threads_per_core",
            f"threads_per_core is 2, but {_names(single)} has one thread per core; allowed: 1",
            "set 1, or remove it",
        )


@rule("GRP006", ERROR, on=GroupBase, source="api-volume", final=True)
def one_volume(group: GroupBase) -> Problems:
    """More than one additional EBS volume."""
    if len(group.volumes) > 1:
        sizes = " + ".join(str(volume.size_gib) for volume in group.volumes)
        yield Problem(
            ("volumes", 1),
            f"{len(group.volumes)} volumes ({sizes} GiB); SageMaker mounts one further volume, at /opt/sagemaker",
            f"use one volume of {sum(volume.size_gib for volume in group.volumes)} GiB",
        )


@rule("GRP007", ERROR, on=Environment, source="cfn-cluster", final=True)
def storage_entries(environment: Environment) -> Problems:
    """More than four storage entries on a group."""
    most = limits().cluster.storage_configs
    for name, group in environment.instance_groups.items():
        # SageMaker counts file systems, volumes and the root volume's key as entries of one list.
        parts = {
            "volumes": len(group.volumes),
            "root_kms_key": int(group.root_kms_key is not None),
            "Lustre": len(environment.storage.lustres) * group.mount_lustre,
            "home": int(group.mount_home),
        }
        if (total := sum(parts.values())) > most:
            sums = " + ".join(f"{count} {part}" for part, count in parts.items() if count)
            yield Problem(
                ("instance_groups", name, "mount_lustre"),
                f"{sums} = {total} storage entries; SageMaker takes {most}",
                "leave mount_lustre off and mount the file systems in pods",
            )


@rule("GRP008", ERROR, on=Environment, source="", final=True)
def something_to_mount(environment: Environment) -> Problems:
    """Host mount without a file system."""
    for name, group in environment.instance_groups.items():
        if group.mount_lustre and not environment.storage.lustres:
            yield Problem(
                ("instance_groups", name, "mount_lustre"),
                "mount_lustre is true, but storage has no Lustre file system",
                "remove it, or add `storage: {lustre: {}}`",
            )
        if group.mount_home and not environment.storage.home:
            yield Problem(
                ("instance_groups", name, "mount_home"),
                "mount_home is true, but storage has no home file system",
                "remove it, or add `storage: {home: {openzfs: {}}}`",
            )


@rule("GRP009", ERROR, on=GroupBase, source="hyperpod-checks")
def checks_need_accelerators(group: GroupBase, types: Catalog) -> Problems:
    """Deep health checks on a type without accelerators."""
    if group.deep_health_checks and (plain := [row for row in known(group, types) if not row.accelerator_count]):
        yield Problem(
            "deep_health_checks",
            f"{_names(plain)} has no accelerator, and HyperPod's deep health checks test GPUs and Neuron devices",
            "remove deep_health_checks from this group",
        )


@rule("GRP010", ERROR, on=GroupBase, source="hyperpod-checks")
def checks_need_a_peer(group: GroupBase) -> Problems:
    """Connectivity check on a single node."""
    # A collective of one node measures nothing.
    if "connectivity" in group.deep_health_checks and group.count < 2:
        yield Problem(
            "deep_health_checks",
            f"count is {group.count}; the connectivity check runs collectives between at least 2 nodes of the group",
            "keep `stress` alone, or raise count to 2",
        )


@rule("GRP011", ERROR, on=InstanceGroup, source="api-group")
def one_architecture(group: InstanceGroup, types: Catalog) -> Problems:
    """Processor architectures mixed in one group."""
    if len(results := {row.architecture: row.name for row in known(group, types)}) > 1:
        pairs = listed((f"{name} ({architecture})" for architecture, name in results.items()), "and")
        yield Problem(
            "instance_types",
            f"the group mixes {pairs}, and its nodes share one image",
            "make one group for each architecture",
        )


@rule("GRP012", WARNING, on=InstanceGroup, source="api-group")
def alike(group: InstanceGroup, types: Catalog) -> Problems:
    """Instance types of a group differ in accelerators or EFA."""
    shapes = {
        (row.accelerator_name, row.accelerator_count, bool(row.efa_interfaces)): row for row in known(group, types)
    }
    if len(shapes) > 1:
        kinds = listed(
            (
                f"{row.name} ({row.accelerator_count} {row.accelerator_name or 'accelerators'}, "
                f"{row.efa_interfaces} EFA)"
                for row in shapes.values()
            ),
            "and",
        )
        yield Problem(
            "instance_types",
            f"a job that spans this group may get {kinds}",
            "mix only types that a job can use alike, or make a group for each",
        )


@rule("GRP013", ERROR, on=Environment, source="api-cluster", final=True)
def group_names(environment: Environment) -> Problems:
    """Duplicate instance group name."""
    for name in environment.instance_groups.keys() & environment.restricted_instance_groups.keys():
        yield Problem(
            ("restricted_instance_groups", name),
            f"{name} is the name of an instance group as well; names are unique in a cluster",
            "rename one of the two",
        )


@rule("GRP014", INFO, on=Environment, source="hyperpod-scaling")
def empty_group(environment: Environment) -> Problems:
    """Group with count 0 that nothing scales."""
    karpenter = environment.cluster.karpenter
    scaled = karpenter.groups if karpenter else ()
    for name, group in environment.instance_groups.items():
        if group.count == 0 and name not in scaled:
            yield Problem(
                ("instance_groups", name, "count"),
                "count is 0 and nothing scales the group up",
                f"raise count when the group is wanted, or let Karpenter scale it: `cluster: {{autoscaling: "
                f"{{karpenter: {{groups: [{name}], limits: …}}}}}}`",
            )


@rule("GRP015", ERROR, on=Environment, source="", final=True)
def subnets_of_ours(environment: Environment) -> Problems:
    """Subnet ids in a new VPC."""
    for name, group in environment.instance_groups.items():
        if group.subnet_ids and environment.network.vpc is None:
            yield Problem(
                ("instance_groups", name, "subnet_ids"),
                f"{listed(group.subnet_ids, 'and')} exist, and the network would be a new VPC",
                "use `zone`, or adopt the VPC of these subnets under network.vpc",
            )
