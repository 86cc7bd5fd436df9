"""Values of HyperPod's dependencies chart, derived from groups."""

import dataclasses
from typing import Any

import pytest

from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, ImageValues, chart
from podwright.config.catalog.images import Image
from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.cluster import Cluster
from podwright.config.settings.groups import AnyGroup, InstanceGroup, RestrictedInstanceGroup
from podwright.planning.helm.chart_values import dependencies_values, set_mirrored, system_placement

HEALTH = {
    "key": "sagemaker.amazonaws.com/node-health-status",
    "operator": "Equal",
    "value": "Unschedulable",
    "effect": "NoSchedule",
}
NVIDIA, EFA = "nvidia-device-plugin", "aws-efa-k8s-device-plugin"


def group(*types: str, **more: Any) -> InstanceGroup:
    kind = {"instance_type": types[0]} if len(types) == 1 else {"instance_types": types}
    return InstanceGroup.model_validate({"count": 2, **kind, **more})


def values(*groups: AnyGroup, region: str = "us-west-2", **more: Any) -> dict[str, Any]:
    return dependencies_values(chart(HYPERPOD_DEPENDENCIES), groups, catalog(), region=region, **more)


def affinity(actual: dict[str, Any]) -> list[str]:
    (term,) = actual[NVIDIA]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    ((expression),) = term["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("node.kubernetes.io/instance-type", "In")
    return expression["values"]


def test_plugins_run_on_the_types_that_have_the_devices() -> None:
    actual = values(
        group("ml.m5.4xlarge"),
        group("ml.p5en.48xlarge"),
        group("ml.g5.2xlarge"),
        group("ml.p5en.48xlarge"),
        group("ml.trn2.48xlarge"),
    )
    assert affinity(actual) == ["ml.g5.2xlarge", "ml.p5en.48xlarge"]
    assert actual[EFA]["supportedInstanceLabels"] == {
        "keys": ["node.kubernetes.io/instance-type"],
        "values": ["ml.p5en.48xlarge", "ml.trn2.48xlarge"],
    }


@pytest.mark.parametrize("type", ["ml.g7.8xlarge", "ml.g4dn.xlarge", "ml.p6-b300.48xlarge"])
def test_types_that_the_chart_does_not_know_get_their_plugin(type: str) -> None:
    assert affinity(values(group(type))) == [type]


def test_mixed_and_restricted_groups_count_with_all_their_types() -> None:
    restricted = RestrictedInstanceGroup(instance_type="ml.p5.48xlarge", count=1)
    actual = values(group("ml.g5.8xlarge", "ml.m5.xlarge", "ml.g6.8xlarge"), restricted)
    assert affinity(actual) == ["ml.g5.8xlarge", "ml.g6.8xlarge", "ml.p5.48xlarge"]


def test_a_plugin_without_devices_is_off() -> None:
    actual = values(group("ml.m5.4xlarge"))
    assert actual[NVIDIA] == {"devicePlugin": {"enabled": False}}
    assert actual[EFA] == {"devicePlugin": {"enabled": False}}
    assert values(group("ml.g5.2xlarge"))[EFA]["devicePlugin"]["enabled"] is False


def test_plugins_tolerate_health_and_the_taints_of_their_groups() -> None:
    taints = [
        {"key": "team", "value": "research", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
    ]
    actual = values(
        group("ml.p5en.48xlarge", taints=taints),
        group("ml.m5.4xlarge", taints=[{"key": "system", "effect": "NoExecute"}]),
    )
    assert actual[NVIDIA]["tolerations"] == [
        HEALTH,
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "operator": "Exists", "effect": "NoSchedule"},
    ]
    assert {"key": "aws.amazon.com/efa", "operator": "Exists", "effect": "NoSchedule"} in actual[EFA]["tolerations"]
    assert HEALTH in actual[EFA]["tolerations"]


def test_order_and_repetition_of_groups_mean_nothing() -> None:
    one, two = group("ml.p5en.48xlarge"), group("ml.g5.48xlarge")
    assert values(one, two) == values(two, one, one)


def test_what_resilience_needs_is_on_and_neuron_is_left_to_podwright() -> None:
    actual = values(group("ml.trn2.48xlarge"))
    for part in ("health-monitoring-agent", "deep-health-check", "job-auto-restart", "hyperpod-patching"):
        assert actual[part]["enabled"] is True
    assert actual["neuron-device-plugin"] == {"devicePlugin": {"enabled": False}}


@pytest.mark.parametrize(
    ("region", "agent", "efa"),
    [
        ("eu-west-1", "eu-west-1", "602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/aws-efa-k8s-device-plugin"),
        ("eu-south-2", "us-west-2", "455263428931.dkr.ecr.eu-south-2.amazonaws.com/eks/aws-efa-k8s-device-plugin"),
    ],
)
def test_images_of_aws_come_from_the_region(region: str, agent: str, efa: str) -> None:
    actual = values(group("ml.p5en.48xlarge"), region=region)
    assert actual["global"] == {"region": region}
    assert actual["health-monitoring-agent"]["region"] == agent
    assert actual[EFA]["image"] == {"repository": efa}


def test_mirrored_images_are_named_with_their_digest() -> None:
    digest = "sha256:" + "b" * 64
    mirror = {
        "nvcr.io/nvidia/k8s-device-plugin": Image("r.example", "podwright/nvcr.io/nvidia/x", "v0.16.1", digest),
        "docker.io/mpioperator/mpi-operator": Image("r.example", "podwright/mpi", "0.5", digest),
        "docker.io/somebody/else": Image("r.example", "podwright/else", "1", digest),
    }
    actual = values(group("ml.p5en.48xlarge"), mirror=mirror)
    assert actual[NVIDIA]["image"] == {"repository": "r.example/podwright/nvcr.io/nvidia/x", "tag": f"v0.16.1@{digest}"}
    assert actual["mpi-operator"]["mpiOperator"]["image"]["tag"] == f"0.5@{digest}"
    assert actual["mpi-operator"]["enabled"] is True
    assert "else" not in str(actual)


def test_images_are_named_the_way_their_chart_wants_them() -> None:
    digest = "sha256:" + "b" * 64
    made = dataclasses.replace(
        chart(HYPERPOD_DEPENDENCIES),
        image_values={
            "r.io/team/a": ImageValues(prefix="global.registry", tag="a.version"),
            "r.io/team/b:web-1": ImageValues(name="web.image", tag="web.tag"),
            "r.io/team/b:core-1": ImageValues(name="core.image"),
        },
    )
    copies = {
        "r.io/team/a": Image("own", "podwright/r.io/team/a", "1", digest),
        "r.io/team/b:web-1": Image("own", "podwright/r.io/team/b", "web-1", digest),
        "r.io/team/b:core-1": Image("own", "podwright/r.io/team/b", "core-1", digest),
        "r.io/team/b": Image("own", "podwright/r.io/team/b", "core-1", digest),
    }
    actual: dict[str, Any] = {"web": {"replicas": 1}}
    set_mirrored(actual, made, copies)
    assert actual == {
        "global": {"registry": "own/podwright/r.io/team"},
        "a": {"version": f"1@{digest}"},
        "web": {"replicas": 1, "image": "own/podwright/r.io/team/b", "tag": f"web-1@{digest}"},
        "core": {"image": "own/podwright/r.io/team/b"},
    }


def test_controllers_run_on_the_system_group() -> None:
    tainted = group("ml.m5.4xlarge", taints=[{"key": "system", "effect": "NoExecute"}])
    settings = Cluster(name="c", zones=("usw2-az1", "usw2-az2"), system_group="head")
    placement = system_placement(settings, {"head": tainted, "gpu": group("ml.p5en.48xlarge")})
    assert placement.node_selector == {"sagemaker.amazonaws.com/instance-group-name": "head"}
    assert placement.tolerations == (HEALTH, {"key": "system", "operator": "Exists", "effect": "NoExecute"})
