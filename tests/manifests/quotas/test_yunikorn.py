"""What YuniKorn gets of a quota policy, under a check like its own and as numbers that people would expect."""

import json
from typing import Any

import kubernetes_validate
import pytest

from engine_queues import yunikorn_queues, yunikorn_text
from podwright.cdk8s_charts.yunikorn import yunikorn_objects
from podwright.config.catalog.charts import YUNIKORN, chart
from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.governance.engines import YuniKornSettings
from podwright.config.settings.governance.teams import Governance
from podwright.config.settings.groups import InstanceGroup
from podwright.planning.helm.chart_values import SystemPlacement
from podwright.planning.helm.scheduler_values import yunikorn_namespaces, yunikorn_values
from podwright.planning.quota.policy import quota_policy
from waiting import counted

GROUPS = {"h100": InstanceGroup(instance_type="ml.p5.48xlarge", count=4)}
OTHERS = {"analytics": {"guaranteed": {"vcore": "64"}, "max": {"memory": "1Ti"}, "namespaces": ["spark", "etl"]}}
GOVERNANCE: dict[str, Any] = {
    "engine": "yunikorn",
    "priorities": {"inference": 100, "training": 70},
    "departments": {"research": {}, "vision": {"parent": "research"}},
    "teams": {
        "a": {"quota": {"h100": {"accelerators": 16}}, "borrow_limit_percent": 100},
        "b": {"quota": {"h100": 1}, "share": "lend", "department": "vision"},
        "c": {},
        "d": {"share": "dont_lend"},
    },
}


def objects(yunikorn: dict[str, Any] | None = None, **changes: Any) -> list[dict[str, Any]]:
    governance = Governance.model_validate(GOVERNANCE | {"yunikorn": yunikorn or {}} | changes)
    return yunikorn_objects(quota_policy(governance, GROUPS, catalog()), governance.yunikorn)


def resources(path: str, **changes: Any) -> dict[str, dict[str, str]]:
    return yunikorn_queues(objects(**changes))[path].spec["resources"]


def test_every_object_is_valid() -> None:
    for item in objects({"existing": "batch", "other_queues": OTHERS}):
        kubernetes_validate.validate(item, "1.34", strict=True)
    (items,) = (item for item in objects() if item["kind"] == "ConfigMap")
    assert items["metadata"] == {"name": "yunikorn-configs", "namespace": "yunikorn"}


def test_guarantee_and_maximum_of_a_team() -> None:
    words = {"vcore": "384", "memory": "4096Gi", "nvidia.com/gpu": "16", "vpc.amazonaws.com/efa": "64"}
    twice = {"vcore": "768", "memory": "8192Gi", "nvidia.com/gpu": "32", "vpc.amazonaws.com/efa": "128"}
    assert resources("root.h100.a") == {"guaranteed": words, "max": twice}
    lends = resources("root.h100.dept_research.dept_vision.b")
    assert lends["guaranteed"] == lends["max"]
    assert resources("root.h100.c") == {"max": twice}


def test_what_no_quota_holds_is_there_only_where_it_is_shared() -> None:
    assert resources("root.h100")["max"]["nvidia.com/gpu"] == "32"
    assert resources("root.h100", idle_resource_sharing=False)["max"]["nvidia.com/gpu"] == "24"
    assert resources("root.h100.c", idle_resource_sharing=False)["max"]["nvidia.com/gpu"] == "24"


def test_who_may_hold_nothing_has_no_queue() -> None:
    """YuniKorn reads a maximum of nothing but zeros as no maximum."""
    assert "root.h100.d" not in yunikorn_queues(objects())
    nobody = {"teams": {"c": {}}, "idle_resource_sharing": False}
    assert list(yunikorn_queues(objects(**nobody))) == ["root"]


def test_a_team_takes_back_what_is_its_own_whatever_the_priority_of_others() -> None:
    queues = yunikorn_queues(objects({"preemption_delay_seconds": 90}))
    for path in ("root.h100.a", "root.h100.dept_research"):
        assert queues[path].spec["properties"]["priority.policy"] == "fence"
    assert queues["root.h100.a"].spec["properties"] | {"preemption.delay": "90s"} == {
        "application.sort.policy": "fifo",
        "priority.policy": "fence",
        "preemption.delay": "90s",
    }
    assert queues["root.h100"].spec["properties"] == {"preemption.policy": "fence"}


def test_a_pod_goes_where_its_label_says_or_nowhere() -> None:
    (partition,) = yunikorn_text(objects())["partitions"]
    assert partition["placementrules"] == [{"name": "provided", "create": False}]


def test_queues_of_others_stay_and_their_namespaces_lead_to_them() -> None:
    actual = objects({"existing": "batch", "other_queues": OTHERS})
    assert {item["metadata"].get("namespace") for item in actual} == {None, "batch"}
    queues = yunikorn_queues(actual)
    assert queues["root.analytics"].spec["resources"] == {"guaranteed": {"vcore": "64"}, "max": {"memory": "1Ti"}}
    assert "root.analytics.spark" in queues
    (partition,) = yunikorn_text(actual)["partitions"]
    parent = {"name": "fixed", "value": "root.analytics"}
    assert partition["placementrules"] == [
        {"name": "provided", "create": False},
        {"name": "tag", "value": "namespace", "create": False, "parent": parent},
        {"name": "tag", "value": "namespace", "create": True},
    ]


def test_pods_of_a_team_without_a_queue_get_no_gpus_where_others_need_no_queue() -> None:
    queues = yunikorn_queues(objects({"existing": "batch"}))
    assert queues["root.team-a"].most("nvidia.com/gpu") == 0
    assert "root.team-a" not in yunikorn_queues(objects())


def test_other_namespaces_keep_kubernetes_own_scheduler() -> None:
    governance = Governance.model_validate(GOVERNANCE | {"yunikorn": {"other_queues": OTHERS}})
    placement = SystemPlacement({"group": "system"}, ({"key": "system", "operator": "Exists", "effect": "NoSchedule"},))
    values = yunikorn_values(chart(YUNIKORN), yunikorn_namespaces(governance), placement)
    assert values["yunikornDefaults"] == {
        "admissionController.filtering.processNamespaces": "^team-a$,^team-b$,^team-c$,^team-d$,^etl$,^spark$",
        "admissionController.filtering.bypassNamespaces": "^kube-system$",
    }
    for part in (values, values["admissionController"]):
        assert (part["nodeSelector"], part["tolerations"]) == ({"group": "system"}, list(placement.tolerations))


@pytest.mark.parametrize("broken", ["max", "name", "zero"])
def test_the_check_of_these_tests_refuses_what_yunikorn_does(broken: str) -> None:
    """Each of the three was refused, or read as unlimited, by yunikorn-core 1.8.0."""
    actual = objects()
    text = yunikorn_text(actual)
    (pool,) = text["partitions"][0]["queues"][0]["queues"]
    team = next(queue for queue in pool["queues"] if queue["name"] == "a")
    if broken == "max":
        team["resources"]["max"]["nvidia.com/gpu"] = "44"
    elif broken == "name":
        team["name"] = "a.b"
    else:
        team["resources"] = {"max": {"nvidia.com/gpu": "0"}}
    actual[-1]["data"] = {"queues.yaml": json.dumps(text)}
    with pytest.raises(AssertionError):
        yunikorn_queues(actual)


def test_two_hundred_teams_take_few_calls_and_fit_into_one_object() -> None:
    groups = {f"group-{number}": InstanceGroup(instance_type="ml.p5.48xlarge", count=100) for number in range(8)}
    teams = {f"team-{number}": {"quota": dict.fromkeys(groups, 1)} for number in range(200)}
    governance = Governance.model_validate({"engine": "yunikorn", "teams": teams})
    policy = quota_policy(governance, groups, catalog())
    actual, calls = counted(lambda: yunikorn_objects(policy, YuniKornSettings()))
    assert calls < 4_000_000, "about 8,000 calls for each team"
    assert len(json.dumps(actual[-1])) < 90_000
    assert actual == yunikorn_objects(policy, YuniKornSettings())
    assert len(yunikorn_queues(actual)) == 1 + 8 * 201
