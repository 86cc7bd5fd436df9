"""Day two of Kueue's objects: what an edit of the file changes in a cluster, and what Kueue refuses."""

from typing import Any

import pytest

from podwright.cdk8s_charts.kueue import kueue_objects
from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.governance.teams import Governance
from podwright.config.settings.groups import InstanceGroup
from podwright.planning.quota.policy import quota_policy
from podwright.sandbox.kubernetes.store import ApiError, KubernetesStore

BEFORE: dict[str, Any] = {
    "groups": {"h200": {"instance_type": "ml.p5en.48xlarge", "count": 8}},
    "teams": {"research": {"quota": {"h200": 4}}, "product": {"quota": {"h200": 2}, "department": "sales"}},
    "departments": {"sales": {}, "labs": {}},
    "types": {},
}


def objects(spec: dict[str, Any]) -> list[dict[str, Any]]:
    governance = Governance.model_validate(
        {"engine": "kueue", "teams": spec["teams"], "departments": spec["departments"]}
    )
    groups = {name: InstanceGroup.model_validate(group) for name, group in spec["groups"].items()}
    types = catalog(spec["types"])
    return kueue_objects(quota_policy(governance, groups, types), governance.kueue, groups, types)


def deployed(*specs: dict[str, Any]) -> KubernetesStore:
    """A cluster after one deployment of each."""
    store = KubernetesStore("1.34")
    for name in ("kueue-system", "team-research", "team-product", "team-guests"):
        store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    store.install("kueue")
    for spec in specs:
        for item in objects(spec):
            store.apply(item)
    return store


def changed(**edit: Any) -> dict[str, Any]:
    return BEFORE | {name: BEFORE[name] | value for name, value in edit.items()}


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"teams": {"research": {"quota": {"h200": {"accelerators": 9}}, "share": "lend"}}}, id="a quota"),
        pytest.param({"teams": {"product": {"quota": {"h200": 2}, "department": "labs"}}}, id="a department"),
        pytest.param({"teams": {"guests": {}}}, id="a new team"),
        pytest.param({"groups": {"h200": BEFORE["groups"]["h200"] | {"count": 16}}}, id="more instances"),
        pytest.param(
            {"groups": {"h200": BEFORE["groups"]["h200"] | {"taints": [{"key": "a", "effect": "NoSchedule"}]}}},
            id="a taint",
        ),
        pytest.param({"groups": {"cpu": {"instance_type": "ml.m5.4xlarge", "count": 2}}}, id="a new group"),
    ],
)
def test_edits_that_a_running_cluster_takes(edit: dict[str, Any]) -> None:
    store = deployed(BEFORE, after := changed(**edit))
    for item in objects(after):
        stored = store.objects[store.key(item)]
        assert {name: stored[name] for name in ("spec", "value", "rules") if name in item} == {
            name: item[name] for name in ("spec", "value", "rules") if name in item
        }


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        pytest.param(
            {"groups": {"h200": {"instance_type": "ml.p5.48xlarge", "count": 8}}}, "topologyName", id="another type"
        ),
        pytest.param(
            {"types": {"ml.p5en.48xlarge": {"topology_labels": "topology.k8s.aws/network-node-layer-3"}}},
            "spec.levels",
            id="other levels",
        ),
    ],
)
def test_edits_that_kueue_refuses(edit: dict[str, Any], reason: str) -> None:
    with pytest.raises(ApiError, match=rf"{reason}: Invalid value: .*immutable"):
        deployed(BEFORE, changed(**edit))
