"""What HyperPod's managed Karpenter is told: which instance groups it scales, and how far."""

from collections.abc import Mapping
from typing import Any, Final

from ..config.catalog.instance_types import Catalog
from ..config.settings.cluster import Karpenter
from ..config.settings.groups import InstanceGroup
from ..planning.node.taints import common_taints
from ..planning.quota.amounts import GPU, NEURON

NAME: Final = "podwright"
"""Of the node class and of the node pool."""
_GROUP: Final = "karpenter.sagemaker.amazonaws.com"
_KIND: Final = "HyperpodNodeClass"
_CONSOLIDATION: Final = {"when_empty": "WhenEmpty", "when_underutilized": "WhenEmptyOrUnderutilized"}
_ACCELERATORS: Final = {"nvidia": GPU, "neuron": NEURON}


def karpenter_objects(
    karpenter: Karpenter | None, groups: Mapping[str, InstanceGroup], types: Catalog
) -> list[dict[str, Any]]:
    """A node class of the groups, and a node pool with the limits; nothing where Karpenter is off.

    Nodes never expire: a job may run for weeks. The zones of nodes follow from the groups' subnets, and their labels
    from the groups, as the node class finds them. Taints are told: Karpenter adds nodes for pods that tolerate those of
    the pool, and a pool has one list for all its groups. HyperPod brings the kinds when autoscaling is turned on, and
    runs the controller itself.
    Sources: SageMaker Developer Guide, HyperPod NodeClass and NodePool, 2026-11; Karpenter 1.8, API karpenter.sh/v1.

    Args:
        karpenter: The settings; None where nothing scales the groups.
        groups: Instance groups by name.
        types: Instance catalog of the environment.
    """
    if karpenter is None:
        return []
    names = sorted({name for group in karpenter.groups for name in groups[group].types})
    node_class = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": _KIND,
        "metadata": {"name": NAME},
        "spec": {"instanceGroups": list(karpenter.groups)},
    }
    node: dict[str, Any] = {
        "nodeClassRef": {"group": _GROUP, "kind": _KIND, "name": NAME},
        "expireAfter": "Never",
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": names}],
    }
    if taints := common_taints(groups[name] for name in karpenter.groups):
        node["taints"] = [taint.model_dump(exclude_none=True) for taint in taints]
    disruption = {
        "consolidationPolicy": _CONSOLIDATION[karpenter.consolidation],
        "consolidateAfter": f"{karpenter.consolidate_after_seconds}s",
    }
    node_pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": NAME},
        "spec": {"template": {"spec": node}, "disruption": disruption, "limits": _limits(karpenter, names, types)},
    }
    return [node_class, node_pool]


def _limits(karpenter: Karpenter, names: list[str], types: Catalog) -> dict[str, str]:
    """Limits by resource. That of accelerators holds for each vendor's by itself."""
    vendors = {types.get(name).accelerator_vendor for name in names}
    resources = {
        "vcpu": ("cpu",),
        "memory_gib": ("memory",),
        "accelerators": sorted(resource for vendor, resource in _ACCELERATORS.items() if vendor in vendors),
    }
    units = {"memory_gib": "Gi"}
    return {
        resource: f"{value}{units.get(field, '')}"
        for field, value in karpenter.limits.items()
        for resource in resources[field]
    }
