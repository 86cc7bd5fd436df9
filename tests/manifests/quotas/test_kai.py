"""What KAI gets of a quota policy, against its schemas and as numbers that people would expect."""

from typing import Any

import kubernetes_validate
import pytest

from podwright.cdk8s_charts.kai import kai_amounts, kai_objects
from podwright.cdk8s_charts.scheduler_guard import scheduler_guard
from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.governance.engines import KaiSettings
from podwright.config.settings.governance.teams import Governance
from podwright.config.settings.groups import InstanceGroup
from podwright.planning.node.labels import labelled_groups
from podwright.planning.quota.policy import quota_policy
from rule_pages import loaded
from waiting import counted

GROUPS = {
    "H100": InstanceGroup(instance_type="ml.p5.48xlarge", count=4),
    "gb200": InstanceGroup(instance_type="ml.p6e-gb200.36xlarge", count=18),
}
GOVERNANCE: dict[str, Any] = {
    "engine": "kai",
    "priorities": {"interactive": 100, "training": 50},
    "departments": {"research": {"weight": 50}, "vision": {"parent": "research", "weight": 5}},
    "teams": {
        "a": {"quota": {"H100": {"accelerators": 16}}, "borrow_limit_percent": 100, "weight": 60},
        "b": {"quota": {"H100": 1}, "share": "lend", "preempt": "never", "department": "vision"},
        "c": {},
    },
}


def objects(**changes: Any) -> list[dict[str, Any]]:
    governance = Governance.model_validate(GOVERNANCE | changes)
    policy = quota_policy(governance, GROUPS, catalog())
    return kai_objects(policy, governance.kai, catalog(), governance.wait_for_pods)


def queue(name: str, **changes: Any) -> dict[str, Any]:
    (items,) = (item for item in objects(**changes) if item["kind"] == "Queue" and item["metadata"]["name"] == name)
    return items["spec"]


def test_every_object_is_there_and_those_of_kubernetes_are_valid() -> None:
    """That KAI's kinds take the others, tests/kubernetes/test_rendered_objects.py shows."""
    actual = objects(wait_for_pods={"recovery_timeout_seconds": 0})
    for item in actual:
        if "k8s.io" in item["apiVersion"]:
            kubernetes_validate.validate(item, "1.34", strict=True)
    assert {item["kind"] for item in actual} >= {"PriorityClass", "Topology", "SchedulingShard", "Queue"}


def test_quota_limit_and_weight_of_a_team() -> None:
    gpu = {name: queue(f"{name}.h100")["resources"]["gpu"] for name in "abc"}
    assert gpu["a"] == {"quota": 16, "limit": 32, "overQuotaWeight": 60}
    assert gpu["b"] == {"quota": 8, "limit": 8, "overQuotaWeight": 10}
    assert gpu["c"] == {"quota": 0, "limit": -1, "overQuotaWeight": 10}
    assert queue("a.h100", fair_share=False)["resources"]["gpu"]["overQuotaWeight"] == 1
    assert queue("a.h100")["resources"]["memory"]["quota"] == pytest.approx(4096 * 1.073741824 * 1000)


def test_a_pool_holds_what_is_idle_only_where_that_is_shared() -> None:
    assert queue("h100")["resources"]["gpu"] == {"quota": 24, "limit": 32, "overQuotaWeight": 1}
    assert queue("h100", idle_resource_sharing=False)["resources"]["gpu"]["limit"] == 24


def test_departments_stand_between_the_pool_and_its_teams() -> None:
    assert queue("b.h100")["parentQueue"] == "vision.department.h100"
    vision = queue("vision.department.h100")
    assert vision["parentQueue"] == "research.department.h100"
    assert vision["resources"]["gpu"] == {"quota": 8, "limit": -1, "overQuotaWeight": 5}
    assert queue("research.department.h100")["parentQueue"] == "h100"
    assert queue("c.gb200")["parentQueue"] == "gb200"


def test_a_team_without_a_part_in_a_pool_has_a_queue_that_lets_nothing_in() -> None:
    """An object that only went from the file would stay in the cluster with its old quota."""
    for amounts in queue("a.gb200")["resources"].values():
        assert amounts == {"quota": 0, "limit": 0, "overQuotaWeight": 60}


def test_never_is_a_time_that_no_job_reaches() -> None:
    assert queue("b.h100")["preemptMinRuntime"] == "87600h"
    assert "preemptMinRuntime" not in queue("a.h100")


def test_work_runs_for_a_time_before_anybody_stops_it() -> None:
    teams = GOVERNANCE["teams"]
    first = queue("a.h100", teams=teams | {"a": teams["a"] | {"min_runtime_seconds": 1800}})
    assert (first["preemptMinRuntime"], first["reclaimMinRuntime"]) == ("1800s", "1800s")
    second = queue("b.h100", teams=teams | {"b": teams["b"] | {"min_runtime_seconds": 1800}})
    # Its own higher priorities never stop it, whatever time it has against others.
    assert (second["preemptMinRuntime"], second["reclaimMinRuntime"]) == ("87600h", "1800s")
    assert "reclaimMinRuntime" not in queue("a.h100")


@pytest.mark.parametrize(
    ("wait_for_pods", "grace"),
    [
        (None, None),
        ({"recovery_timeout_seconds": 0}, "-1s"),
        ({"recovery_timeout_seconds": 90}, "90s"),
        ({"timeout_seconds": 600}, "600s"),
    ],
)
def test_how_long_a_gang_may_lack_pods(wait_for_pods: Any, grace: str | None) -> None:
    shards = [item["spec"] for item in objects(wait_for_pods=wait_for_pods) if item["kind"] == "SchedulingShard"]
    assert {shard["partitionLabelValue"] for shard in shards} == {"h100", "gb200"}
    assert {shard.get("args", {}).get("default-staleness-grace-period") for shard in shards} == {grace}


def test_topologies_have_the_labels_of_their_family() -> None:
    levels = {
        item["metadata"]["name"]: [level["nodeLabel"] for level in item["spec"]["levels"]]
        for item in objects()
        if item["kind"] == "Topology"
    }
    assert levels["p6e-gb200"] == ["topology.k8s.aws/ultraserver-id", "kubernetes.io/hostname"]
    assert levels["p5"][0] == "topology.k8s.aws/network-node-layer-1"


def test_a_priority_of_another_weight_is_another_class() -> None:
    """Kubernetes lets nobody change the value of one."""
    names = {item["metadata"]["name"]: item["value"] for item in objects() if item["kind"] == "PriorityClass"}
    assert names == {"interactive-100": 100, "training-50": 50}


def test_partitions_count_as_their_slices() -> None:
    amounts = {"nvidia.com/gpu": 8, "nvidia.com/mig-1g.18gb": 3, "nvidia.com/mig-3g.71gb": 2, "cpu": 1500}
    assert kai_amounts(amounts | {"vpc.amazonaws.com/efa": 4}) == {"gpu": 17, "cpu": 1500, "memory": 0}


@pytest.mark.parametrize("engine", ["kai-scheduler", "yunikorn"])
def test_policies_of_pods_are_bound_and_about_namespaces_of_teams(engine: Any) -> None:
    """What they refuse is asked of a real API server (tests/kubernetes/admission/test_admission_policies.py)."""
    guard = scheduler_guard(engine)
    policies, bindings = guard[::2], guard[1::2]
    assert [item["metadata"]["name"] for item in policies] == ["podwright-scheduler", "podwright-queue"]
    for policy, binding in zip(policies, bindings, strict=True):
        assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
        of_teams = policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
        assert of_teams == [{"key": "podwright/team", "operator": "Exists"}]
    for item in guard:
        kubernetes_validate.validate(item, "1.34", strict=True)


def test_nodes_of_a_pool_carry_its_label() -> None:
    piece = "governance: {engine: ENGINE, kai: {gpu_sharing: SHARED}, teams: {a: {quota: {h200: 2}}, b: {}}}"
    types = catalog()
    instance_groups = labelled_groups(
        loaded(piece.replace("ENGINE", "kai").replace("SHARED", "true")).environment, types
    )
    assert instance_groups["h200"].labels == {"kai.scheduler/node-pool": "h200", "nvidia.com/gpu.memory": "144384"}
    assert instance_groups["system"].labels == {}
    instance_groups = labelled_groups(
        loaded(piece.replace("ENGINE", "kai").replace("SHARED", "false")).environment, types
    )
    assert instance_groups["h200"].labels == {"kai.scheduler/node-pool": "h200"}
    instance_groups = labelled_groups(
        loaded(piece.replace("ENGINE", "kueue").replace("SHARED", "true")).environment, types
    )
    assert instance_groups["h200"].labels == {}


def test_two_hundred_teams_take_few_calls() -> None:
    groups = {f"group-{number}": InstanceGroup(instance_type="ml.p5.48xlarge", count=100) for number in range(8)}
    teams = {f"team-{number}": {"quota": dict.fromkeys(groups, 1)} for number in range(200)}
    governance = Governance.model_validate({"engine": "kai", "teams": teams})
    policy = quota_policy(governance, groups, catalog())
    actual, calls = counted(lambda: kai_objects(policy, KaiSettings(), catalog()))
    assert calls < 400_000, "about 600 calls for each team"
    assert sum(item["kind"] == "Queue" for item in actual) == 8 * 201
