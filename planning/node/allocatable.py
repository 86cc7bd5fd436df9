"""What a node has left for pods once its image, the system's daemons and tiered checkpoints have taken their part."""

from typing import Final, NamedTuple

from ...config.catalog.facts import table
from ...config.catalog.instance_type import InstanceType
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup
from ..kubernetes.kai_services import kai_services

# Memory that the EKS image keeps back on a node: a fixed part and one for each pod, then the eviction threshold.
_RESERVED_MIB, _RESERVED_MIB_PER_POD, _EVICTION_MIB = 255, 11, 100
HUGE_PAGES_MIB: Final = 5128
"""MiB of huge pages on nodes with EFA, which the EFA software of AWS's images reserves.

The kubelet subtracts them from allocatable memory. Source: Kubernetes 1.34, pkg/kubelet/nodestatus/setters.go.
"""


class Allocatable(NamedTuple):
    """What nodes have for pods, or what pods ask of them."""

    pods: int
    cpu_millis: int
    memory_mib: int

    def plus(self, other: "Allocatable", times: int = 1) -> "Allocatable":
        """This and `times` the other; a negative number takes away."""
        return Allocatable(
            self.pods + times * other.pods,
            self.cpu_millis + times * other.cpu_millis,
            self.memory_mib + times * other.memory_mib,
        )


def requested(environment: Environment, kind: str, row: InstanceType | None = None) -> Allocatable:
    """What the system's pods ask: those of each node of type `row` (kind daemon), or those of the cluster."""
    governance, observability = environment.governance, environment.observability
    measured = observability if observability and observability.metrics != "off" else None
    # vCPUs count threads.
    holds = {
        "always": True,
        "lustre": bool(environment.storage.lustres),
        "accelerated": bool(row and row.accelerator_count),
        "efa": bool(row and row.efa_interfaces),
        "engine_hyperpod": governance.engine == "hyperpod",
        "engine_kueue": governance.engine == "kueue",
        "metrics": measured is not None,
        "metrics_accelerated": bool(measured and row and row.accelerator_count),
        "metrics_efa": bool(measured and row and row.efa_interfaces and measured.level("network") == "advanced"),
        "container_logs": bool(measured and measured.container_logs),
        "installs_yunikorn": governance.engine == "yunikorn" and not governance.yunikorn.existing,
    } | {part: value not in (None, False) for part, value in environment.platform}
    total = _kai(environment) if kind == "deployment" else Allocatable(0, 0, 0)
    for pod in table("system_pods"):
        if pod["kind"] == kind and holds[pod["when"]]:
            total = total.plus(Allocatable(1, int(pod["cpu_millis"]), int(pod["memory_mib"])), int(pod["pods"]))
    return total


def kubelet_allocatable(
    row: InstanceType, threads_per_core: int | None = None, checkpoint_memory_percent: float = 0
) -> Allocatable:
    """What a node's kubelet shows for pods, once its image and tiered checkpoints have taken their part."""
    cores = row.cpus(threads_per_core)
    # Tiered checkpoints take a percentage of the whole memory, before the kubelet counts.
    memory = row.memory_gib * 1024 * (100 - checkpoint_memory_percent) / 100
    # The formula takes the pods that the node may have, not those that it has.
    retained = _RESERVED_MIB + _RESERVED_MIB_PER_POD * row.max_pods + _EVICTION_MIB
    # Memory in huge pages is a resource of its own.
    retained += HUGE_PAGES_MIB if row.efa_interfaces else 0
    return Allocatable(row.max_pods, cores * 1000 - _reserved_millis(cores), int(memory) - retained)


def node_allocatable(environment: Environment, group: InstanceGroup, row: InstanceType) -> Allocatable:
    """What a node has left for other pods once its image, its daemons and tiered checkpoints have taken their part."""
    whole = kubelet_allocatable(row, group.threads_per_core, environment.cluster.checkpoint_memory_percent)
    return whole.plus(requested(environment, "daemon", row), -1)


def _kai(environment: Environment) -> Allocatable:
    """What KAI's parts ask: one pod each, and a scheduler for each pool and for the nodes outside of all pools."""
    groups, total = environment.instance_groups, Allocatable(0, 0, 0)
    if environment.governance.engine == "kai":
        for name, service in kai_services(groups.values()).items():
            # The system group is no pool as a rule, so its place is that of the scheduler for nodes outside.
            pods = len(groups) if name == "scheduler" else 1
            total = total.plus(Allocatable(1, service.cpu_millis, service.memory_mib), pods)
    return total


def _reserved_millis(cores: int) -> int:
    """CPU that the EKS image keeps: 6 % of the first core, 1 % of the second, 0.5 % of two more, 0.25 % of the rest."""
    return round(
        60 * min(cores, 1) + 10 * min(max(cores - 1, 0), 1) + 5 * min(max(cores - 2, 0), 2) + 2.5 * max(cores - 4, 0)
    )
