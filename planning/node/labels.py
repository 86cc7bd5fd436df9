"""Labels that nodes need for the quota engine, beside those that the file gives their groups."""

from collections.abc import Mapping
from typing import Final

from ...config.catalog.instance_types import Catalog
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup
from ..quota.node_pools import KAI_POOL_LABEL, pool
from ..quota.policy import environment_policy

GPU_MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
"""MiB of each GPU, which KAI reads to share GPUs by memory. NVIDIA's GPU feature discovery sets it where that runs."""


def labelled_groups(environment: Environment, types: Catalog) -> Mapping[str, InstanceGroup]:
    """The instance groups as HyperPod gets them.

    With engine kai the nodes of each group that teams use carry the name of its pool, and where GPUs are shared what
    memory they have. A label that the file gives stays.
    """
    governance = environment.governance
    if governance.engine != "kai":
        return environment.instance_groups
    pools = environment_policy(environment, types).flavors
    instance_groups: dict[str, InstanceGroup] = {}
    for name, group in environment.instance_groups.items():
        labels = {KAI_POOL_LABEL: pool(name)} if pool(name) in pools else {}
        memory = min(
            (
                types.get(instance_type).accelerator_memory_mib
                for instance_type in group.types
                if _has_gpus(types, instance_type)
            ),
            default=0,
        )
        if labels and memory and governance.kai.gpu_sharing:
            labels[GPU_MEMORY_LABEL] = str(memory)
        instance_groups[name] = group.model_copy(update={"labels": labels | group.labels}) if labels else group
    return instance_groups


def _has_gpus(types: Catalog, name: str) -> bool:
    return types.get(name).accelerator_vendor == "nvidia"
