"""Rules on UltraServers: instances that share one scale-up fabric, their spares, and what their nodes cannot do."""

from ....config.catalog.instance_type import UltraServer
from ....config.catalog.instance_types import Catalog
from ....config.catalog.limits import limits
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.groups import GroupBase, InstanceGroup
from ....config.settings.plans import TrainingPlan
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from .zones import sections

_MIG = "nvidia.com/mig.config"


def members(group: GroupBase, types: Catalog) -> list[str]:
    """The types of a group that are parts of UltraServers."""
    parts = {unit.instance_type for unit in types.ultraservers.values() if unit.hyperpod}
    return [name for name in group.types if name in parts]


def spares(plan: TrainingPlan) -> int:
    """Spare instances of each UltraServer of a plan: what the file says, else SageMaker's default at a purchase."""
    bought = limits().training_plan.default_spares_per_ultraserver if plan.state != "exists" else 0
    return bought if plan.spares_per_ultraserver is None else plan.spares_per_ultraserver


@rule("CAP034", ERROR, on=TrainingPlan, source="api-plan")
def too_many_spares(plan: TrainingPlan, types: Catalog) -> Problems:
    """No UltraServer nodes left after spares."""
    if plan.spares_per_ultraserver is None:
        return
    unit = types.ultraservers.get(plan.ultraserver_type or "")
    if plan.ultraserver_type is None:
        yield Problem(
            "spares_per_ultraserver",
            f"spares_per_ultraserver is {plan.spares_per_ultraserver}, and the plan has no UltraServers",
            "add ultraserver_type and ultraserver_count, or remove it",
        )
    elif unit and plan.spares_per_ultraserver >= unit.instances:
        yield Problem(
            "spares_per_ultraserver",
            f"spares_per_ultraserver is {plan.spares_per_ultraserver}; {unit.name} has {unit.instances} instances "
            f"altogether",
            "set 1, which replaces one failed instance at once",
        )


@rule("CAP035", WARNING, on=Environment, source="api-plan")
def spares_in_use(environment: Environment, types: Catalog) -> Problems:
    """Instance groups that use UltraServer spares."""
    for name, plan in environment.training_plans.items():
        unit = types.ultraservers.get(plan.ultraserver_type or "")
        if unit is None or not plan.ultraserver_count or not 0 < spares(plan) < unit.instances:
            continue
        asked = sum(group.count for _, group in sections(environment) if group.plan == name)
        left = plan.ultraserver_count * (unit.instances - spares(plan))
        if left < asked <= plan.ultraserver_count * unit.instances:
            yield Problem(
                ("training_plans", name, "spares_per_ultraserver"),
                f"the groups ask for {asked} instances; {plan.ultraserver_count} × ({unit.instances} - {spares(plan)} "
                f"spares) = {left} are for work",
                f"lower the counts to {left}, or set `spares_per_ultraserver: 0` and wait for a replacement when one "
                "fails",
            )


@rule("CAP036", ERROR, on=InstanceGroup, source="hyperpod-mig")
def no_partitions(group: InstanceGroup, types: Catalog) -> Problems:
    """MIG partitions on UltraServer GPUs."""
    if (wish := group.labels.get(_MIG)) and (parts := members(group, types)):
        yield Problem(
            ("labels", _MIG),
            f"{_MIG} is {wish}; HyperPod does not partition the GPUs of {listed(parts, 'and')}, and a partition "
            "could not use the NVLink between instances",
            "remove it, and give small jobs a group of ml.p5, ml.p5en or ml.p6-b200",
        )


@rule("CAP037", ERROR, on=Environment, source="eks-ultraserver")
def no_karpenter(environment: Environment, types: Catalog) -> Problems:
    """Karpenter with UltraServers."""
    used = sorted({name for _, group in sections(environment) for name in members(group, types)})
    if environment.cluster.orchestrator == "eks" and environment.cluster.karpenter and used:
        yield Problem(
            ("cluster", "autoscaling"),
            f"Karpenter scales groups of this cluster; pods on {listed(used, 'and')} claim NVLink channels by dynamic "
            "resource allocation, which Karpenter does not know",
            "remove it; the group's count and its plan decide how many there are",
        )


@rule("CAP038", INFO, on=Environment, source="eks-ultraserver")
def compute_domains(environment: Environment, types: Catalog) -> Problems:
    """NVLink across instances without NVIDIA's DRA driver."""
    for path, group in sections(environment):
        if environment.cluster.orchestrator == "eks" and group.count > 1 and members(group, types):
            unit = _unit(group, environment, types)
            yield Problem(
                (*path, "instance_type"),
                f"{unit.instances} instances of {unit.name} share one NVLink domain of {unit.accelerators} GPUs; jobs "
                "reach across instances only through NVIDIA's DRA driver, which podwright does not install",
                "install the chart nvidia-dra-driver-gpu with computeDomains on; `podwright size --manifest NAME` "
                "prints the ComputeDomain of a job",
            )


def _unit(group: GroupBase, environment: Environment, types: Catalog) -> UltraServer:
    """The UltraServer that a group's plan names, else the largest that its type forms."""
    plan = environment.training_plans.get(group.plan or "")
    units = [unit for unit in types.ultraservers.values() if unit.hyperpod and unit.instance_type in group.types]
    named = [unit for unit in units if plan and unit.name == plan.ultraserver_type]
    return max(named or units, key=lambda unit: unit.instances)
