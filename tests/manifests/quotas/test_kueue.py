"""What each of Kueue's objects says. A real Kueue takes them in tests/kubernetes/engines/test_kueue_objects.py."""

from typing import Any

import kubernetes_validate
import pytest

from kueue_settings import GROUPS, MANAGER, SETTINGS, queue_objects
from podwright.cdk8s_charts.kueue import KUEUE_ROOT
from podwright.cdk8s_charts.multikueue import worker_objects
from podwright.config.settings.governance.kueue import MultiKueue


def specs(kind: str, actual: list[dict[str, Any]]) -> dict[str, Any]:
    return {item["metadata"]["name"]: item["spec"] for item in actual if item["kind"] == kind}


def quotas(queue: dict[str, Any]) -> dict[tuple[str, str], dict[str, str]]:
    (group,) = queue["resourceGroups"]
    return {
        (flavor["name"], quota["name"]): {key: value for key, value in quota.items() if key != "name"}
        for flavor in group["flavors"]
        for quota in flavor["resources"]
    }


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_object_is_there_once(settings: dict[str, Any]) -> None:
    actual = queue_objects(**settings)
    for item in actual:
        if not item["apiVersion"].startswith("kueue"):
            kubernetes_validate.validate(item, "1.34", strict=True)
    names = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in actual]
    assert len(names) == len(set(names))


def test_flavors_find_the_nodes_of_a_group_and_say_where_they_are() -> None:
    actual = queue_objects()
    flavors = {item["metadata"]["name"]: item for item in actual if item["kind"] == "ResourceFlavor"}
    assert list(flavors) == ["cpu", "gb200", "h200", "l40s"]
    assert flavors["h200"]["spec"] == {
        "nodeLabels": {"sagemaker.amazonaws.com/instance-group-name": "H200"},
        "topologyName": "p5en",
    }
    assert flavors["cpu"]["spec"]["nodeTaints"] == [{"key": "batch", "effect": "NoSchedule"}]
    assert flavors["l40s"]["metadata"]["annotations"] == {"podwright/zone": "usw2-az2,usw2-az3"}


def test_topologies_have_only_the_labels_of_their_family_and_the_node_lowest() -> None:
    levels = {
        name: [level["nodeLabel"].rpartition("/")[2] for level in spec["levels"]]
        for name, spec in specs("Topology", queue_objects()).items()
    }
    layers = [f"network-node-layer-{number}" for number in (1, 2, 3)]
    assert levels == {
        "g6e": ["hostname"],
        "m5": ["hostname"],
        "p5en": [*layers, "hostname"],
        "p6e-gb200": ["ultraserver-id", "hostname"],
    }


def test_each_flavor_is_placed_by_topology_because_a_queue_with_both_kinds_refuses_plain_jobs() -> None:
    flavors = specs("ResourceFlavor", queue_objects())
    assert len(flavors) > 1
    assert all("topologyName" in spec for spec in flavors.values())


def test_queues_carry_quota_lending_and_borrowing() -> None:
    queues = specs("ClusterQueue", queue_objects())
    research, product, secret = (quotas(queues[name]) for name in ("research", "product", "secret"))
    assert research["h200", "nvidia.com/gpu"] == {"nominalQuota": "80", "borrowingLimit": "80"}
    assert research["cpu", "nvidia.com/gpu"] == {"nominalQuota": "0"}
    assert product["h200", "memory"] == {"nominalQuota": "8192Gi", "borrowingLimit": "0Gi"}
    assert product["l40s", "nvidia.com/gpu"] == {"nominalQuota": "8", "borrowingLimit": "0"}
    assert secret["h200", "vpc.amazonaws.com/efa"]["lendingLimit"] == "0"
    assert queues["research"]["preemption"] == {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    assert queues["product"]["preemption"]["withinClusterQueue"] == "Never"
    assert queues["research"]["fairSharing"] == {"weight": 60}


def test_a_team_without_a_quota_may_use_what_is_idle_everywhere() -> None:
    guests = quotas(specs("ClusterQueue", queue_objects())["guests"])
    assert {flavor for flavor, _ in guests} == {name.lower() for name in GROUPS}
    assert {amount["nominalQuota"] for amount in guests.values()} == {"0", "0Gi"}
    assert not any("borrowingLimit" in amount for amount in guests.values())


def test_flavors_without_accelerators_come_first() -> None:
    (group,) = specs("ClusterQueue", queue_objects())["research"]["resourceGroups"]
    assert [flavor["name"] for flavor in group["flavors"]] == ["cpu", "h200"]
    groups = {"a": {"instance_type": "ml.trn2.48xlarge", "count": 1, "zone": "usw2-az2"}, "cpu": GROUPS["cpu"]}
    queues = specs("ClusterQueue", queue_objects({"team": {"quota": {"a": 1, "cpu": 1}}}, groups))
    assert [flavor["name"] for flavor in queues["team"]["resourceGroups"][0]["flavors"]] == ["cpu", "a"]


def test_departments_are_cohorts_and_what_is_left_over_belongs_to_all() -> None:
    cohorts = specs("Cohort", queue_objects())
    assert cohorts["science"] == {"parentName": KUEUE_ROOT, "fairSharing": {"weight": 70}}
    assert quotas(cohorts[KUEUE_ROOT])["h200", "nvidia.com/gpu"] == {"nominalQuota": "8"}
    queues = specs("ClusterQueue", queue_objects())
    assert (queues["research"]["cohortName"], queues["product"]["cohortName"]) == ("science", KUEUE_ROOT)
    nested = specs("Cohort", queue_objects(departments={"science": {"parent": "labs"}, "labs": {}}))
    assert (nested["science"]["parentName"], nested["labs"]["parentName"]) == ("labs", KUEUE_ROOT)
    assert specs("Cohort", queue_objects(idle_resource_sharing=False))[KUEUE_ROOT] == {}


def test_only_the_teams_namespace_may_use_its_queue() -> None:
    actual = queue_objects()
    spec = specs("ClusterQueue", actual)["research"]
    assert spec["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "team-research"}}
    local = [item for item in actual if item["kind"] == "LocalQueue" and item["spec"]["clusterQueue"] == "research"]
    assert [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in local] == [
        ("team-research", "research"),
        ("team-research", "default"),
    ]
    assert all(item["metadata"]["labels"] == {"podwright/team": "research"} for item in local)


def test_priorities_have_the_weights_of_the_file() -> None:
    actual = {
        item["metadata"]["name"]: item["value"] for item in queue_objects() if item["kind"] == "WorkloadPriorityClass"
    }
    assert actual == {"inference-priority": 100, "training-priority": 70}


def test_a_manager_hands_the_work_of_every_queue_to_its_workers() -> None:
    settings = MultiKueue.model_validate(MANAGER)
    assert {name: group.count for name, group in settings.groups.items()} == {"h200": 24}
    actual = queue_objects(teams={"a": {"quota": {"h200": 20}}}, groups=settings.groups, kueue={"multikueue": MANAGER})
    check = specs("AdmissionCheck", actual)["multikueue"]
    assert check["controllerName"] == "kueue.x-k8s.io/multikueue"
    assert specs("MultiKueueConfig", actual)[check["parameters"]["name"]] == {"clusters": ["oregon", "ohio"]}
    clusters = specs("MultiKueueCluster", actual)
    assert clusters["ohio"] == {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": "to-ohio"}}}
    queue = specs("ClusterQueue", actual)["a"]
    assert queue["admissionChecksStrategy"] == {"admissionChecks": [{"name": "multikueue"}]}
    assert quotas(queue)["h200", "nvidia.com/gpu"]["nominalQuota"] == "160"
    assert quotas(specs("Cohort", actual)[KUEUE_ROOT])["h200", "nvidia.com/gpu"]["nominalQuota"] == "32"


def test_a_worker_lets_its_manager_hand_in_listed_work_and_nothing_else() -> None:
    actual = worker_objects(MultiKueue(role="worker", jobs=("ray",)))
    for item in actual:
        kubernetes_validate.validate(item, "1.34", strict=True)
    (role,) = [item for item in actual if item["kind"] == "ClusterRole"]
    allowed = {(rule["apiGroups"][0], name): set(rule["verbs"]) for rule in role["rules"] for name in rule["resources"]}
    write = {"create", "delete", "get", "list", "watch"}
    assert allowed == {
        ("kueue.x-k8s.io", "workloads"): write,
        ("kueue.x-k8s.io", "workloads/status"): {"get", "patch", "update"},
        ("ray.io", "rayjobs"): write,
        ("ray.io", "rayclusters"): write,
        ("ray.io", "rayjobs/status"): {"get"},
        ("ray.io", "rayclusters/status"): {"get"},
    }
    secret, account = (next(item for item in actual if item["kind"] == kind) for kind in ("Secret", "ServiceAccount"))
    assert secret["metadata"]["annotations"]["kubernetes.io/service-account.name"] == account["metadata"]["name"]
    assert "ClusterRole" in [item["kind"] for item in queue_objects(kueue={"multikueue": {"role": "worker"}})]


def test_without_fair_share_nothing_has_a_weight() -> None:
    assert "fairSharing" not in str(queue_objects(fair_share=False))
