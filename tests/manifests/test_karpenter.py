"""What Karpenter is told, against the schemas of its kinds."""

from typing import Any

import pytest

from podwright.cdk8s_charts.karpenter import karpenter_objects
from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.cluster import Karpenter
from podwright.config.settings.groups import InstanceGroup
from podwright.sandbox.kubernetes.custom_kinds import violations

GROUPS = {
    "burst": InstanceGroup(instance_type="ml.g6.12xlarge", count=0),
    "cheap": InstanceGroup(instance_types=("ml.g6.12xlarge", "ml.g5.12xlarge"), count=0, capacity="spot"),
    "neuron": InstanceGroup(instance_type="ml.trn1.32xlarge", count=0),
}


def objects(groups: tuple[str, ...], limits: dict[str, int], **more: Any) -> list[dict[str, Any]]:
    settings = Karpenter.model_validate({"groups": groups, "limits": limits, **more})
    return karpenter_objects(settings, GROUPS, catalog())


def test_nothing_without_karpenter() -> None:
    assert karpenter_objects(None, GROUPS, catalog()) == []


def test_the_class_names_the_groups_and_the_pool_their_types_and_limits() -> None:
    node_class, pool = objects(("burst", "cheap"), {"accelerators": 32, "vcpu": 768, "memory_gib": 4608})
    assert node_class["spec"] == {"instanceGroups": ["burst", "cheap"]}
    assert pool["spec"]["limits"] == {"cpu": "768", "memory": "4608Gi", "nvidia.com/gpu": "32"}
    node = pool["spec"]["template"]["spec"]
    assert node["nodeClassRef"]["name"] == node_class["metadata"]["name"]
    assert node["requirements"][0]["values"] == ["ml.g5.12xlarge", "ml.g6.12xlarge"]
    assert node["expireAfter"] == "Never"
    assert pool["spec"]["disruption"] == {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "300s"}


def test_accelerators_are_limited_by_vendor() -> None:
    (_, pool) = objects(("burst", "neuron"), {"accelerators": 16})
    assert pool["spec"]["limits"] == {"aws.amazon.com/neurondevice": "16", "nvidia.com/gpu": "16"}


@pytest.mark.parametrize("consolidation", ["when_empty", "when_underutilized"])
def test_both_are_what_their_schemas_take(consolidation: str) -> None:
    made = objects(tuple(GROUPS), {"vcpu": 1000}, consolidation=consolidation, consolidate_after_seconds=0)
    assert [violations(item) for item in made] == [[], []]


def test_the_schemas_refuse_what_is_wrong() -> None:
    node_class, pool = objects(("burst",), {"vcpu": 1000})
    node_class["spec"]["instanceGroups"] = [f"group-{number}" for number in range(11)]
    pool["spec"]["disruption"]["consolidationPolicy"] = "Never"
    assert "is too long" in violations(node_class)[0]
    assert "'Never' is not one of" in violations(pool)[0]


def test_a_pool_has_the_taints_of_all_its_groups_and_of_none_alone() -> None:
    common, own = ({"key": key, "effect": "NoSchedule"} for key in ("example.com/burst", "example.com/own"))
    groups = {
        name: InstanceGroup.model_validate({"instance_type": "ml.g6.12xlarge", "count": 0, "taints": taints})
        for name, taints in {"a": [own, common], "b": [common]}.items()
    }
    settings = Karpenter(groups=("a", "b"), limits={"vcpu": 1000})
    (_, pool) = karpenter_objects(settings, groups, catalog())
    assert pool["spec"]["template"]["spec"]["taints"] == [common]
