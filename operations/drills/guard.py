"""Conditions of a drill, which breaks a node on purpose."""

from collections.abc import Iterator, Sequence

from ...config.catalog.drills import DrillKind, drill_kinds
from ...config.catalog.instance_types import environment_types
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup
from ..aws.clusters import Node
from ..nodes.snapshot import Snapshot


def kind_for(environment: Environment, name: str) -> DrillKind:
    """Return the fault of this name, if the environment allows drills and the fault works there.

    Raises:
        CommandError: It does not. The hint names the faults that do.
    """
    if environment.observability is None or not environment.observability.drills:
        raise CommandError(
            f"{environment.name} does not allow drills",
            "set `drills: true` under `observability:`, if drills may break nodes of this environment",
            2,
        )
    kinds = {key: kind for key, kind in drill_kinds().items() if kind.orchestrator == environment.cluster.orchestrator}
    if name not in kinds:
        raise CommandError(f"{environment.name} has no drill {name}", f"there are: {', '.join(kinds)}", 2)
    return kinds[name]


def check(environment: Environment, kind: DrillKind, node: Node, group: Sequence[Node]) -> None:
    """Raise CommandError for a drill that would prove nothing or would break more than one node."""
    settings = environment.groups.get(node.group)
    if settings is None:
        raise CommandError(
            f"{node.id} is of group {node.group}, which {environment.name} does not have", "deploy first"
        )
    if node.status != "Running":
        raise CommandError(f"{node.id} is {node.status}; a drill begins with a node that runs", "choose another node")
    if unhealthy := [f"{other.id} ({other.status})" for other in group if other.status != "Running"]:
        raise CommandError(
            f"group {node.group} lacks nodes already: {', '.join(unhealthy[:5])}",
            "wait until it is whole, so that the drill breaks one node and no more",
        )
    if kind.action != "none" and environment.cluster.node_recovery == "none":
        raise CommandError(
            "`cluster.node_recovery` is none, so HyperPod would mark the node and do nothing more",
            "drill with node_recovery: automatic, or `--fault pod-loss`",
        )
    vendors = {
        row.accelerator_vendor
        for instance_type in settings.types
        if (row := environment_types(environment.instance_types).find(instance_type))
    }
    if kind.accelerator and kind.accelerator not in vendors:
        raise CommandError(
            f"{node.id} has no {kind.accelerator} accelerators, and what {kind.name} imitates is their driver's",
            "choose a node of an accelerated group, or `--fault label-reboot`",
        )
    slurm = settings.slurm if isinstance(settings, InstanceGroup) else None
    if slurm and slurm.node_type == "controller":
        raise CommandError(f"{node.id} is Slurm's controller, which HyperPod does not replace", "choose a compute node")


def warnings(kind: DrillKind, node: Node, group: Sequence[Node], before: Snapshot) -> Iterator[str]:
    """Yield the consequences that the user should know before confirming."""
    for job, pods in sorted(before.jobs.items()):
        yield f"{job} has {len(pods.on_node)} of its {len(pods.running)} running pods on it"
    if before.sees_kubernetes and not before.jobs:
        yield "no job runs on it, so nothing is learnt about how jobs resume"
    if kind.action == "replace":
        yield "a replacement takes everything on the node's disks with it"
    if len(group) == 1:
        yield f"it is the only node of {node.group}"
