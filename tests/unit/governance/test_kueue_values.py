"""What Kueue's manager is told: which work it holds back, how it shares, and what it does not count."""

import json
from typing import Any

import pytest

from podwright.config.catalog.charts import KUEUE, chart
from podwright.config.catalog.facts import table
from podwright.config.catalog.images import Image
from podwright.config.settings.governance.teams import Governance
from podwright.planning.helm.chart_values import SystemPlacement
from podwright.planning.helm.kueue_values import kueue_values, manager_configuration


def configuration(*, neuron: bool = False, **settings: Any) -> dict[str, Any]:
    return manager_configuration(Governance.model_validate({"engine": "kueue", **settings}), neuron=neuron)


def test_the_manager_may_ask_the_cluster_as_often_as_the_chart_lets_it() -> None:
    assert configuration()["clientConnection"] == {"qps": 50, "burst": 100}


def test_work_of_teams_waits_for_quota_and_no_other() -> None:
    actual = configuration()
    assert actual["manageJobsWithoutQueueName"] is True
    assert actual["managedJobsNamespaceSelector"] == {
        "matchExpressions": [{"key": "podwright/team", "operator": "Exists"}]
    }
    assert configuration(kueue={"every_job": False})["manageJobsWithoutQueueName"] is False


def test_pods_of_hyperpods_own_jobs_are_left_to_its_operator() -> None:
    actual = configuration()["integrations"]
    assert actual["externalFrameworks"] == ["HyperPodPyTorchJob.v1.sagemaker.amazonaws.com"]
    assert {"pod", "ray.io/rayjob", "batch/job"} <= set(actual["frameworks"])


def test_huge_pages_of_efa_pods_need_no_quota() -> None:
    assert "hugepages-" in configuration()["resources"]["excludeResourcePrefixes"]


def test_claims_of_devices_need_no_quota_of_their_own() -> None:
    gates = configuration()["featureGates"]
    assert gates["KueueDRAIntegration"] is False
    # On by itself, and with the other one off it refuses every pod that claims a device.
    assert gates["KueueDRARejectWorkloadsWhenDRADisabled"] is False
    assert not any(gates.values())


def test_a_neuron_device_has_one_quota_under_either_name() -> None:
    (rule,) = configuration(neuron=True)["resources"]["transformations"]
    assert (rule["input"], rule["strategy"]) == ("aws.amazon.com/neuron", "Replace")
    assert rule["outputs"] == {"aws.amazon.com/neurondevice": "1"}
    assert "transformations" not in configuration()["resources"]


@pytest.mark.parametrize(
    ("provided", "expected"),
    [
        (None, {"timeout": "3600s", "recoveryTimeout": "3600s", "blockAdmission": False}),
        ({}, {"timeout": "3600s", "recoveryTimeout": "3600s", "blockAdmission": False}),
        (
            {"timeout_seconds": 600, "recovery_timeout_seconds": 0, "one_at_a_time": True, "tries": 3},
            {"timeout": "600s", "recoveryTimeout": "0s", "blockAdmission": True},
        ),
    ],
)
def test_gang_admission_is_as_the_file_says_and_never_left_to_kueue(
    provided: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    actual = configuration(wait_for_pods=provided).get("waitForPodsReady")
    assert actual, "Kueue would decide"
    requeuing = actual.pop("requeuingStrategy")
    assert actual == expected
    assert requeuing.get("backoffLimitCount") == (provided or {}).get("tries")


def test_the_file_has_the_last_word_on_feature_gates() -> None:
    switches = {"PrioritizePreemptorWorkloads": True, "KueueDRAIntegration": True}
    actual = configuration(kueue={"feature_gates": switches})["featureGates"]
    assert actual == {**configuration()["featureGates"], **switches}


def test_fair_sharing_is_off_by_leaving_it_out() -> None:
    assert "fairSharing" not in configuration(fair_share=False)
    assert configuration()["fairSharing"]["preemptionStrategies"][0] == "LessThanOrEqualToFinalShare"


def test_a_manager_knows_only_work_that_it_can_hand_on() -> None:
    worker = {"secret": "w", "groups": {"h200": {"instance_type": "ml.p5en.48xlarge", "count": 1}}}
    shared = {"role": "manager", "workers": {"w": worker}, "jobs": ["ray"], "lost_after_seconds": 60}
    actual = configuration(kueue={"multikueue": shared})
    assert actual["integrations"] == {"frameworks": ["ray.io/rayjob", "ray.io/raycluster"]}
    assert actual["multiKueue"]["workerLostTimeout"] == "60s"


def test_the_chart_gets_a_mirrored_image_and_stays_on_the_system_group() -> None:
    copy = Image("r.example", "podwright/kueue", "v0.19.2", "sha256:" + "d" * 64)
    taint = {"key": "system", "operator": "Exists", "effect": "NoSchedule"}
    location = SystemPlacement({"sagemaker.amazonaws.com/instance-group-name": "system"}, (taint,))
    values = kueue_values(
        chart(KUEUE), Governance(engine="kueue"), location, mirror={"registry.k8s.io/kueue/kueue": copy}
    )
    manager = values["controllerManager"]
    assert manager["manager"]["image"]["repository"] == "r.example/podwright/kueue"
    assert manager["manager"]["image"]["tag"] == f"v0.19.2@sha256:{'d' * 64}"
    assert manager["tolerations"] == [taint]
    assert manager["nodeSelector"] == {"sagemaker.amazonaws.com/instance-group-name": "system"}
    text = values["managerConfig"]["controllerManagerConfigYaml"]
    assert json.loads(text)["apiVersion"] == "config.kueue.x-k8s.io/v1beta2"


def test_the_room_on_the_system_group_is_what_the_managers_ask_for() -> None:
    location = SystemPlacement({}, ())
    manager = kueue_values(chart(KUEUE), Governance(engine="kueue"), location)["controllerManager"]
    (row,) = [row for row in table("system_pods") if row["when"] == "engine_kueue"]
    assert manager["replicas"] == int(row["pods"])
    asked = manager["manager"]["resources"]["requests"]
    assert asked == {"cpu": f"{row['cpu_millis']}m", "memory": f"{int(row['memory_mib']) // 1024}Gi"}
