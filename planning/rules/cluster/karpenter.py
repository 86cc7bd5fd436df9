"""Rules on the instance groups that HyperPod's managed Karpenter scales, and on what it may add."""

from ....config.catalog.instance_types import Catalog
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.groups import InstanceGroup
from ...node.taints import common_taints
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule


def scaled_groups(environment: Environment) -> dict[str, InstanceGroup]:
    """The groups that Karpenter scales, as far as they exist."""
    karpenter = environment.cluster.karpenter
    names = karpenter.groups if karpenter else ()
    return {name: environment.instance_groups[name] for name in names if name in environment.instance_groups}


@rule("CLU012", WARNING, on=Environment, source="hyperpod-nodeclass")
def one_zone(environment: Environment) -> Problems:
    """Karpenter group in several zones."""
    for name, group in scaled_groups(environment).items():
        if len(group.zone_ids) > 1:
            yield Problem(
                ("instance_groups", name, "zones"),
                f"zones are {listed(group.zone_ids, 'and')}; a group that Karpenter scales has its subnets in one zone",
                "make a group for each zone, or leave this one out of karpenter.groups",
            )


@rule("CLU028", ERROR, on=Environment, source="hyperpod-nodeclass", final=True)
def existing_groups(environment: Environment) -> Problems:
    """Unknown or unsuitable group for Karpenter."""
    karpenter = environment.cluster.karpenter
    known = environment.instance_groups
    for index, name in enumerate(karpenter.groups if karpenter else ()):
        path = ("cluster", "autoscaling", "karpenter", "groups", index)
        if name not in known:
            yield Problem(path, f"there is no instance group {name}", f"name one of instance_groups: {listed(known)}")
        elif name == environment.cluster.system_group:
            yield Problem(
                path,
                f"{name} holds the add-ons, and Karpenter would remove its nodes when no pod needs them",
                "remove it; scale a separate group for jobs",
            )
        elif name in (karpenter.groups if karpenter else ())[:index]:
            yield Problem(path, f"{name} is named twice", "remove one")


@rule("CLU029", ERROR, on=Environment, source="hyperpod-nodeclass hyperpod-spot", final=True)
def scalable(environment: Environment) -> Problems:
    """Group setting that Karpenter does not support."""
    for name, group in scaled_groups(environment).items():
        path = ("instance_groups", name)
        if group.count:
            yield Problem(
                (*path, "count"),
                f"count is {group.count}; Karpenter starts from none, and would remove these nodes",
                "set count: 0; cluster.autoscaling.karpenter.limits says how many may come",
            )
        if group.min_count:
            yield Problem(
                (*path, "min_count"), f"min_count is {group.min_count}, and Karpenter sets the count", "remove it"
            )
        if group.plan or group.capacity == "account_team":
            yield Problem(
                (*path, "capacity"),
                "its capacity is reserved; Karpenter takes on-demand and Spot capacity only",
                "leave the group out of karpenter.groups, and give it a count",
            )
        if group.deep_health_checks:
            yield Problem(
                (*path, "deep_health_checks"),
                "deep health checks take an hour or more, while pods wait and Karpenter adds further nodes",
                "remove them from this group",
            )


@rule("CLU030", ERROR, on=Environment, source="karpenter-nodepool")
def limits(environment: Environment, types: Catalog) -> Problems:
    """Karpenter limits below one node, or on missing accelerators."""
    karpenter, groups = environment.cluster.karpenter, scaled_groups(environment)
    rows = [types.get(name) for group in groups.values() for name in group.types]
    if karpenter is None or not rows:
        return
    path = ("cluster", "autoscaling", "karpenter", "limits")
    smallest = {
        "accelerators": min(row.accelerator_count for row in rows),
        "vcpu": min(row.vcpu for row in rows),
        "memory_gib": min(int(row.memory_gib) for row in rows),
    }
    if "accelerators" in karpenter.limits and not any(row.accelerator_count for row in rows):
        yield Problem((*path, "accelerators"), "no group of Karpenter's has accelerators", "limit vcpu or memory_gib")
        return
    for field, value in karpenter.limits.items():
        if value < smallest[field]:
            yield Problem(
                (*path, field),
                f"{field} is {value}, and the smallest node of {listed(groups, 'and')} has {smallest[field]}",
                f"set {field} to {smallest[field]} or more",
            )


@rule("CLU031", WARNING, on=Environment, source="hyperpod-nodepool karpenter-nodepool")
def same_taints(environment: Environment) -> Problems:
    """Karpenter groups with different taints."""
    groups = scaled_groups(environment)
    common = common_taints(groups.values())
    for name, group in groups.items():
        for index, taint in enumerate(group.taints):
            if taint not in common:
                lacking = listed([other for other in groups if taint not in groups[other].taints], "and")
                yield Problem(
                    ("instance_groups", name, "taints", index),
                    f"taint {taint.key} is not on {lacking} in the same way; one node pool serves all groups of "
                    "Karpenter, which would add nodes here for pods that do not tolerate it",
                    "give all groups of Karpenter the same taints, or leave this one out of karpenter.groups",
                )
