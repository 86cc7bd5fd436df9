"""Values of the charts that podwright installs, derived from an environment's groups."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...config.catalog.charts import HEALTH_AGENT_FALLBACK, HEALTH_AGENT_REGIONS, Chart
from ...config.catalog.images import Image, eks_registry, gpu_operator_registry
from ...config.catalog.instance_type import InstanceType
from ...config.catalog.instance_types import Catalog
from ...config.settings.cluster import Cluster
from ...config.settings.groups import AnyGroup, InstanceGroup
from ...config.settings.platform import Platform

_TYPE_LABEL = "node.kubernetes.io/instance-type"
# HyperPod taints a node so while it is being checked or repaired; device plugins have to stay there.
# Source: SageMaker Developer Guide, resiliency of HyperPod on EKS, 2026-11.
HEALTH_TOLERATION: Final = {
    "key": "sagemaker.amazonaws.com/node-health-status",
    "operator": "Equal",
    "value": "Unschedulable",
    "effect": "NoSchedule",
}
"""The toleration of that taint."""
_GROUP_LABEL = "sagemaker.amazonaws.com/instance-group-name"


def dependencies_values(
    chart: Chart,
    groups: Iterable[AnyGroup],
    types: Catalog,
    *,
    region: str,
    mirror: Mapping[str, Image] | None = None,
    platform: Platform | None = None,
) -> dict[str, Any]:
    """Values of HyperPod's dependencies chart.

    Decided for you: device plugins run exactly on the types of the groups that have such devices and tolerate those
    groups' taints; NVIDIA's own plugin is off where the GPU operator brings one; the Neuron plugin is left to
    podwright's own manifest (the chart's has a fixed list of types and a fixed image); images that AWS serves come from
    the registry of this region rather than from wherever the chart finds a node, since there is none yet.

    Args:
        chart: HyperPod's dependencies chart.
        groups: All instance groups.
        types: Instance catalog of the environment.
        region: Region of the cluster.
        mirror: Where mirrored images lie, by the original's name (see `mirrors.mirror_of`).
        platform: Which of its parts run; as the chart has them when absent.
    """
    groups, platform = tuple(groups), platform or Platform()
    gpu = nodes_with(groups, types, lambda row: row.accelerator_vendor == "nvidia", "nvidia.com/gpu")
    efa = nodes_with(groups, types, lambda row: row.efa_interfaces > 0, "aws.amazon.com/efa")
    values: dict[str, Any] = {
        "global": {"region": region},
        "health-monitoring-agent": {
            "enabled": True,
            # The agent reports to a service that is not in every region; elsewhere it reports to one that has it.
            "region": region if region in HEALTH_AGENT_REGIONS else HEALTH_AGENT_FALLBACK,
        },
        "deep-health-check": {"enabled": True},
        "job-auto-restart": {"enabled": True},
        "hyperpod-patching": {"enabled": True},
        # Its role reads secrets and opens shells in namespace kubeflow. The chart's values say `enable`, its template
        # reads `enabled`, which is on where it is absent; sources disagree on the default, so both are said.
        "namespaced-role-and-bindings": {"enable": False, "enabled": False},
        "trainingOperators": {"enabled": platform.pytorch_jobs},
        "mpi-operator": {"enabled": platform.mpi_jobs},
        "neuron-device-plugin": {"devicePlugin": {"enabled": False}},
        # Two plugins for one device would offer each GPU twice.
        "nvidia-device-plugin": {"devicePlugin": {"enabled": bool(gpu.types) and platform.gpu_operator is None}},
        "aws-efa-k8s-device-plugin": {"devicePlugin": {"enabled": bool(efa.types)}},
    }
    if platform.gpu_operator:
        registry = platform.gpu_operator.registry or gpu_operator_registry(region)
        values["gpu-operator"] = {"enabled": True, "gpu-operator": _gpu_operator(registry)}
    elif gpu.types:
        values["nvidia-device-plugin"] |= {"affinity": node_affinity(gpu.types), "tolerations": list(gpu.tolerations)}
    if efa.types:
        values["aws-efa-k8s-device-plugin"] |= {
            "supportedInstanceLabels": {"keys": [_TYPE_LABEL], "values": list(efa.types)},
            "tolerations": list(efa.tolerations),
        }
        if registry := eks_registry(region):
            values["aws-efa-k8s-device-plugin"]["image"] = {"repository": f"{registry}/eks/aws-efa-k8s-device-plugin"}
    set_mirrored(values, chart, mirror or {})
    return values


def _gpu_operator(registry: str | None) -> dict[str, Any]:
    """Where the operator's images lie, as the chart's own files for regions say it."""
    if registry is None:
        return {}
    images = {name: {"repository": registry} for name in ("operator", "devicePlugin", "gfd")}
    images["toolkit"] = {"repository": f"{registry}/mirror-k8s"}
    return images | {name: {"repository": f"{registry}/mirror-cloud-native"} for name in ("migManager", "validator")}


@dataclass(frozen=True, slots=True)
class DeviceNodes:
    """The nodes that a device plugin has to run on."""

    types: tuple[str, ...]
    """Instance types."""
    tolerations: tuple[dict[str, str], ...]
    """What a plugin tolerates there: HyperPod's health taint, the device's own taint and the taints of the groups."""


def nodes_with(
    groups: Iterable[AnyGroup], types: Catalog, has: Callable[[InstanceType], bool], taint: str
) -> DeviceNodes:
    """The nodes whose type `has` a device, which by custom carry the `taint` key. Types without facts have none."""
    result: set[str] = set()
    # Device plugins tolerate the taint by which people keep other pods from nodes with that device.
    taints = {(taint, "NoSchedule")}
    for group in groups:
        matching = {name for name in group.types if (row := types.find(name)) and has(row)}
        result |= matching
        if matching and isinstance(group, InstanceGroup):
            taints |= {(item.key, item.effect) for item in group.taints}
    # Exists and not Equal: a plugin has to run there whatever value the taint has.
    tolerations = ({"key": key, "operator": "Exists", "effect": effect} for key, effect in sorted(taints))
    return DeviceNodes(tuple(sorted(result)), (HEALTH_TOLERATION, *tolerations))


def node_affinity(types: Iterable[str]) -> dict[str, Any]:
    """Pod affinity to nodes of these instance types."""
    expression = {"key": _TYPE_LABEL, "operator": "In", "values": list(types)}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression]}]
            }
        }
    }


@dataclass(frozen=True, slots=True)
class SystemPlacement:
    """Where controllers of charts run: on the nodes that a deployment waits for, and not beside the work."""

    node_selector: dict[str, str]
    """Labels of the system group's nodes."""
    tolerations: tuple[dict[str, str], ...]
    """HyperPod's health taint, so that they come up while nodes are checked, and the taints of the group."""


def system_placement(cluster: Cluster, groups: Mapping[str, InstanceGroup]) -> SystemPlacement:
    """Where controllers run, given the instance groups by name."""
    group = groups.get(cluster.system_group)
    tolerations = tuple(
        {"key": taint.key, "operator": "Exists", "effect": taint.effect} for taint in (group.taints if group else ())
    )
    return SystemPlacement({_GROUP_LABEL: cluster.system_group}, (HEALTH_TOLERATION, *tolerations))


def set_mirrored(values: dict[str, Any], chart: Chart, mirror: Mapping[str, Image]) -> None:
    """Let `values` of a chart name the copies of those of its images that are mirrored.

    Args:
        values: Values of the chart, which this changes.
        chart: The chart.
        mirror: Where mirrored images lie, by the original's name, with and without its tag (see `mirrors.mirror_of`).
    """
    # Each chart keeps the parts of an image's name in other values.
    for name, where in chart.image_values.items():
        if image := mirror.get(name):
            _set(values, where.name, image.name)
            _set(values, where.prefix, image.name.rpartition("/")[0])
            _set(values, where.registry, image.registry)
            _set(values, where.repository, image.repository)
            # The digest decides; the tag stays so that people see the version.
            _set(values, where.tag, f"{image.tag}@{image.digest}" if image.tag else image.digest)


def _set(values: dict[str, Any], path: str, value: str) -> None:
    if not path:
        return
    *parents, last = path.split(".")
    for part in parents:
        values = values.setdefault(part, {})
    values[last] = value
