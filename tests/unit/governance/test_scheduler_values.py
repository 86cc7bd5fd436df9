"""Values of the charts of KAI and YuniKorn: where and how large they run, whom they leave alone, mirrored images."""

from math import ceil

import pytest

from podwright.config.catalog.charts import KAI, YUNIKORN, chart
from podwright.config.catalog.facts import table
from podwright.config.catalog.images import Image
from podwright.config.settings.environment import Environment
from podwright.config.settings.governance.engines import KaiSettings
from podwright.config.settings.groups import InstanceGroup
from podwright.operations.artifacts.stand_ins import stand_in
from podwright.operations.programs.helm import images_of
from podwright.planning.helm.chart_values import SystemPlacement
from podwright.planning.helm.scheduler_values import kai_values, yunikorn_values
from podwright.planning.kubernetes.kai_services import kai_services
from podwright.planning.node.allocatable import requested

PLACEMENT = SystemPlacement({"group": "system"}, ({"key": "system", "operator": "Exists", "effect": "NoSchedule"},))
MIRROR = "111122223333.dkr.ecr.us-west-2.amazonaws.com"
DIGEST = "sha256:" + "0" * 64
SERVICES = kai_services([InstanceGroup(instance_type="ml.p5.48xlarge", count=4)])


def test_kai_runs_on_the_system_group_and_makes_no_queues() -> None:
    values = kai_values(chart(KAI), KaiSettings(gpu_sharing=True), SERVICES, PLACEMENT)
    assert values["global"] == {
        "gpuSharing": True,
        "nodeSelector": {"group": "system"},
        "tolerations": list(PLACEMENT.tolerations),
    }
    assert values["defaultQueue"] == {"createDefaultQueue": False}
    assert kai_values(chart(KAI), KaiSettings(), SERVICES, PLACEMENT)["global"]["gpuSharing"] is False


def test_the_chart_appends_the_last_part_of_each_image_of_kai() -> None:
    original = Image.parse("ghcr.io/kai-scheduler/kai-scheduler/binder:v0.17.0")
    copy = Image(MIRROR, original.mirrored_in(MIRROR).repository, original.tag, DIGEST)
    values = kai_values(chart(KAI), KaiSettings(), SERVICES, PLACEMENT, {original.name: copy})
    assert f"{values['global']['registry']}/binder:{values['binder']['image']['tag']}" == str(copy)


def test_yunikorn_has_three_images_of_one_name() -> None:
    names = {part: f"docker.io/apache/yunikorn:{part}-1.9.0" for part in ("scheduler", "admission", "web")}
    mirror = {name: Image(MIRROR, "apache/yunikorn", name.rpartition(":")[2], DIGEST) for name in names.values()}
    values = yunikorn_values(chart(YUNIKORN), ["team-a"], PLACEMENT, mirror)
    assert values["image"]["tag"] == f"scheduler-1.9.0@{DIGEST}"
    assert values["admissionController"]["image"]["tag"] == f"admission-1.9.0@{DIGEST}"
    assert values["web"]["image"]["tag"] == f"web-1.9.0@{DIGEST}"


def test_images_that_an_operator_starts_are_listed() -> None:
    kai = chart(KAI)
    actual = images_of(stand_in(kai), kai, {})
    assert "ghcr.io/kai-scheduler/kai-scheduler/scheduler:v0.17.0" in actual
    assert "ghcr.io/kai-scheduler/kai-scheduler/queuecontroller:stand-in" in actual


@pytest.mark.parametrize("nodes", [100, 500, 1000])
def test_kais_parts_hold_what_its_formulas_give_for_ninety_pods_on_each_node(nodes: int) -> None:
    services = kai_services([InstanceGroup(instance_type="ml.p5.48xlarge", count=nodes)])
    pods, workloads = 90 * nodes, 0.9 * nodes
    cache = 1 + 0.16 * pods / 10_000 + 0.01 * workloads / 1_000 + 0.02 * nodes / 1_000 + 0.04 * pods / 10_000
    # The largest job has a pod on each node, and far more waits than runs.
    search = {100: 1, 500: 2, 1000: 2.5}[nodes]
    assert services["scheduler"].memory_limit_mib >= 1024 * ceil(1.25 * (cache + search + 1))
    per_thousand = {"binder": 50, "podgrouper": 25, "podgroupcontroller": 35}
    for name, mib in per_thousand.items():
        assert services[name].memory_limit_mib >= 256 + mib * pods / 1_000


def test_no_part_of_kai_may_use_less_than_it_asks_for() -> None:
    for row in table("kai_services"):
        assert int(row["cpu_millis"]) < int(row["cpu_limit_millis"]), row
        assert int(row["memory_mib"]) < int(row["memory_limit_mib"]), row
    for nodes in (1, 101, 6000):
        values = kai_values(
            chart(KAI),
            KaiSettings(),
            kai_services([InstanceGroup(instance_type="ml.p5.48xlarge", count=nodes)]),
            PLACEMENT,
        )
        for name in ("scheduler", "binder", "podgrouper", "podgroupcontroller", "queuecontroller", "admission"):
            # Without a limit, KAI's operator sets one of 100 thousandths of a CPU.
            assert set(values[name]["resources"]["limits"]) == {"cpu", "memory"}
        assert values["operator"]["resources"]["requests"] == {"cpu": "25m", "memory": "128Mi"}


def test_the_system_group_has_room_for_a_scheduler_of_each_pool() -> None:
    def pods(groups: int, governance: dict[str, object]) -> int:
        names = ["system", *(f"h{number}" for number in range(groups))]
        group = {"instance_type": "ml.m5.4xlarge", "count": 2}
        file = {
            "name": "prod",
            "account": "111122223333",
            "region": "us-west-2",
            "network": {"cidr": "10.28.0.0/16", "zones": ["usw2-az2", "usw2-az3"]},
            "cluster": {"zones": ["usw2-az2", "usw2-az3"]},
            "instance_groups": dict.fromkeys(names, group),
            "governance": governance,
        }
        return requested(Environment.model_validate(file), "deployment").pods

    without = pods(3, {})
    # Six parts besides, and the scheduler of the nodes in no pool.
    assert pods(3, {"engine": "kai"}) - without == 6 + 3 + 1
    assert pods(3, {"engine": "yunikorn"}) - without == 3
    assert pods(3, {"engine": "yunikorn", "yunikorn": {"existing": "yunikorn"}}) == without
    values = yunikorn_values(chart(YUNIKORN), ["team-a"], PLACEMENT)
    assert [row["pods"] for row in table("system_pods") if row["name"] == "yunikorn-admission-controller"] == [
        str(values["admissionController"]["replicaCount"])
    ]
