"""Rules on the nodes that carry the cluster's own pods: DNS, CSI drivers and operators."""

from ....config.catalog.instance_types import Catalog
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.groups import InstanceGroup
from ...node.allocatable import Allocatable, node_allocatable, requested
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule
from ..groups.groups import accelerated, known

_PATH = ("instance_groups",)


@rule("GRP040", ERROR, on=Environment, source="", final=True)
def exists(environment: Environment) -> Problems:
    """Unknown system group."""
    name = environment.cluster.system_group
    if name not in environment.groups and environment.has_cluster:
        yield Problem(
            ("cluster", "system_group"),
            f"system_group is {name}; instance groups are {listed(environment.groups, 'and')}",
            "name one of them, or leave it out",
        )


@rule("GRP041", ERROR, on=Environment, source="k8s-taints")
def usable(environment: Environment) -> Problems:
    """System group that cannot run system pods."""
    name, group = _system_group(environment)
    if group and (group.count == 0 or any(taint.effect != "PreferNoSchedule" for taint in group.taints)):
        reason = f"taints {listed((taint.key for taint in group.taints), 'and')}" if group.count else "no node"
        yield Problem(
            (*_PATH, name),
            f"system group {name} has {reason}; CoreDNS, CSI controllers and operators tolerate no taints, and a "
            "deployment waits for this group",
            "give it nodes without such taints, or name another group under cluster.system_group",
        )


@rule("GRP042", ERROR, on=Environment, source="hyperpod-pods eks-ami addon-requests")
def large_enough(environment: Environment, types: Catalog) -> Problems:
    """System group too small for system pods."""
    name, group = _system_group(environment)
    allocatables = [node_allocatable(environment, group, row) for row in known(group, types)] if group else []
    if group is None or not allocatables or group.count == 0 or environment.cluster.eks.existing:
        return
    allocatable, need = min(allocatables, key=lambda each: each.pods), requested(environment, "deployment")
    have = Allocatable(0, 0, 0).plus(allocatable, group.count)
    units = {"pods": "pods", "cpu_millis": "m CPU", "memory_mib": "MiB memory"}
    short = [
        f"{getattr(have, field)} {unit}" for field, unit in units.items() if getattr(have, field) < getattr(need, field)
    ]
    if short:
        yield Problem(
            (*_PATH, name),
            f"a node of {name} has {_text(allocatable)} left beside its daemons; {group.count} of them have "
            f"{listed(short, 'and')}, and the cluster's own pods ask for {_text(need)}",
            "use a larger type, such as ml.m5.4xlarge, or more nodes",
        )


@rule("GRP043", WARNING, on=Environment, source="hyperpod-spot hyperpod-checks")
def stable(environment: Environment, types: Catalog) -> Problems:
    """System group on Spot or plan capacity, or with deep health checks."""
    name, group = _system_group(environment)
    if group and not group.stays:
        where = f"training plan {group.plan}, which ends" if group.plan else "Spot, which AWS reclaims"
        yield Problem(
            (*_PATH, name, "capacity"),
            f"system group {name} is on {where}: cluster DNS stops with it",
            "use a small on-demand group",
        )
    elif group and group.deep_health_checks and accelerated(group, types):
        yield Problem(
            (*_PATH, name, "deep_health_checks"),
            f"nodes of system group {name} take no pods until they have passed, so the deployment waits that long",
            "use a small group without accelerators",
        )


@rule("GRP044", WARNING, on=Environment, source="hyperpod-field-notes")
def spare(environment: Environment) -> Problems:
    """System group with a single node."""
    name, group = _system_group(environment)
    if group and group.count == 1 and environment.protection == "retain":
        yield Problem(
            (*_PATH, name, "count"),
            f"count of system group {name} is 1: while that node is replaced, for 20 to 30 minutes, DNS is away",
            "set 2",
        )


def _system_group(environment: Environment) -> tuple[str, InstanceGroup | None]:
    """Name and settings of the system group; no settings where it is missing, or where Slurm runs no pods."""
    name = environment.cluster.system_group
    return name, environment.instance_groups.get(name) if environment.cluster.orchestrator == "eks" else None


def _text(allocatable: Allocatable) -> str:
    return f"{allocatable.pods} pods, {allocatable.cpu_millis} m CPU and {allocatable.memory_mib} MiB"
