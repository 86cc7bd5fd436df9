"""How much of a node a job's pod may ask for, so that it fits beside everything that runs there already."""

from collections.abc import Iterable
from typing import Final

from ...config.catalog.instance_type import InstanceType
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup
from ..node.allocatable import Allocatable, node_allocatable

_Tiers = tuple[tuple[float, float], ...]
# The part of each successive piece that stays with the system: the rest of an instance is what Linux itself does not
# show, huge pages, and agents that come later. Source: sagemaker-hyperpod 3.12.0, default requests of a job.
_KEPT_CORES: Final[_Tiers] = ((1, 0.3), (1, 0.15), (2, 0.1), (float("inf"), 0.06))
_KEPT_GIB: Final[_Tiers] = ((4, 0.3), (4, 0.25), (8, 0.2), (112, 0.17), (float("inf"), 0.07))
_KEPT_CORES_ALWAYS: Final = 0.1
_KEPT_GIB_ALWAYS: Final = 0.5


def job_allocatable(environment: Environment, group: InstanceGroup, rows: Iterable[InstanceType]) -> Allocatable:
    """What pods of jobs may take of a node of `group`, whichever of the types `rows` it has.

    Tiered checkpoints and the system's daemons have taken their part.
    """
    allocatables = [_allocatable(environment, group, row) for row in rows]
    return Allocatable(
        min(allocatable.pods for allocatable in allocatables),
        min(allocatable.cpu_millis for allocatable in allocatables),
        min(allocatable.memory_mib for allocatable in allocatables),
    )


def _allocatable(environment: Environment, group: InstanceGroup, row: InstanceType) -> Allocatable:
    allocatable = node_allocatable(environment, group, row)
    cores = row.cpus(group.threads_per_core)
    cpu = cores - _kept(cores, _KEPT_CORES) - _KEPT_CORES_ALWAYS
    tiered = row.memory_gib * environment.cluster.checkpoint_memory_percent / 100
    memory = row.memory_gib - _kept(row.memory_gib, _KEPT_GIB) - _KEPT_GIB_ALWAYS - tiered
    return Allocatable(
        allocatable.pods,
        # Of two estimates the lower: a pod that asks for too much never starts.
        max(min(int(cpu * 1000), allocatable.cpu_millis), 0),
        max(min(int(memory * 1024), allocatable.memory_mib), 0),
    )


def _kept(amount: float, tiers: _Tiers) -> float:
    retained = 0.0
    for size, part in tiers:
        retained += min(amount, size) * part
        amount = max(amount - size, 0)
    return retained
