"""Rules on benchmark kernels and what follows from them."""

from collections.abc import Iterator

from ....config.catalog.instance_types import Catalog
from ....config.settings.environment import Environment
from ....config.settings.groups import InstanceGroup
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule
from .groups import accelerated, with_efa


def _gated(environment: Environment) -> Iterator[tuple[str, InstanceGroup]]:
    return ((name, group) for name, group in environment.instance_groups.items() if group.benchmarks == "gate")


@rule("BEN001", ERROR, on=Environment, source="hyperpod-scaling")
def gate_needs_continuous_provisioning(environment: Environment) -> Problems:
    """Benchmark gate with all-or-nothing provisioning."""
    provisioning = environment.cluster.provisioning
    for name, _ in _gated(environment):
        if provisioning != "continuous":
            yield Problem(
                ("instance_groups", name, "benchmarks"),
                f"benchmarks is gate and cluster.provisioning is {provisioning}: HyperPod then fails all nodes of a "
                "request for one whose scripts fail",
                "set cluster.provisioning to continuous, or benchmarks to report",
            )


@rule("BEN002", ERROR, on=InstanceGroup, source="", final=True)
def benchmarks_need_our_scripts(group: InstanceGroup) -> Problems:
    """Benchmarks with custom lifecycle scripts."""
    if group.lifecycle is not None and group.benchmarks not in (None, "skip"):
        yield Problem(
            "benchmarks",
            f"benchmarks is {group.benchmarks} and lifecycle names scripts of your own, which run in place of those "
            "that start the benchmarks",
            "remove benchmarks, or lifecycle",
        )


@rule("BEN003", WARNING, on=InstanceGroup, source="")
def nothing_to_gate(group: InstanceGroup, types: Catalog) -> Problems:
    """Benchmark gate on nodes without accelerators."""
    if group.benchmarks == "gate" and not accelerated(group, types) and not with_efa(group, types):
        yield Problem(
            "benchmarks",
            "benchmarks is gate, and no type of the group has accelerators or EFA: no node could fail",
            "remove benchmarks",
        )


@rule("BEN004", WARNING, on=Environment, source="hyperpod-labels")
def gate_needs_recovery(environment: Environment) -> Problems:
    """Benchmark gate without automatic node recovery."""
    recovery = environment.cluster.node_recovery
    for name, _ in _gated(environment):
        if recovery == "none":
            yield Problem(
                ("instance_groups", name, "benchmarks"),
                "benchmarks is gate and cluster.node_recovery is none: a node that fails after a software update is "
                "marked for replacement and stays",
                "set cluster.node_recovery to automatic, or replace marked nodes yourself",
            )


@rule("BEN005", WARNING, on=Environment, source="")
def replacements_of_a_whole_group(environment: Environment) -> Problems:
    """Benchmark replacements can remove a whole group."""
    most = environment.cluster.benchmarks.max_replacements
    for name, group in _gated(environment):
        if 1 < group.count <= most:
            yield Problem(
                ("instance_groups", name, "benchmarks"),
                f"cluster.benchmarks.max_replacements is {most} and the group has {group.count} nodes: thresholds that "
                "are wrong would have all of them replaced",
                f"set max_replacements below {group.count}",
            )


@rule("BEN006", WARNING, on=InstanceGroup, source="")
def gate_needs_permission(group: InstanceGroup) -> Problems:
    """Custom role without permission to write benchmark results."""
    if group.role and group.benchmarks == "gate":
        yield Problem(
            "role",
            f"nodes write results and count replacements as {group.role}, which podwright does not write; without the "
            "permission a node that fails is reported and stays",
            "allow on that role s3:PutObject below CLUSTER/benchmarks/ of the lifecycle bucket, kms:GenerateDataKey on "
            "its key, and sagemaker:DescribeClusterNode",
        )
