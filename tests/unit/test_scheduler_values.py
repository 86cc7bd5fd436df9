"""Values of the charts of KAI and YuniKorn: where they run, whom they leave alone, and images from a mirror."""

from podwright.config.chart_values import SystemPlacement
from podwright.config.charts import KAI, YUNIKORN, chart
from podwright.config.engines import KaiSettings
from podwright.config.images import Image
from podwright.config.scheduler_values import kai_values, yunikorn_values
from podwright.operations.charts import stand_in
from podwright.operations.helm import images_of

PLACE = SystemPlacement({"group": "system"}, ({"key": "system", "operator": "Exists", "effect": "NoSchedule"},))
MIRROR = "111122223333.dkr.ecr.us-west-2.amazonaws.com"
DIGEST = "sha256:" + "0" * 64


def test_kai_runs_on_the_system_group_and_makes_no_queues() -> None:
    values = kai_values(chart(KAI), KaiSettings(gpu_sharing=True), PLACE)
    assert values["global"] == {
        "gpuSharing": True,
        "nodeSelector": {"group": "system"},
        "tolerations": list(PLACE.tolerations),
    }
    assert values["defaultQueue"] == {"createDefaultQueue": False}
    assert kai_values(chart(KAI), KaiSettings(), PLACE)["global"]["gpuSharing"] is False


def test_the_chart_appends_the_last_part_of_each_image_of_kai() -> None:
    original = Image.parse("ghcr.io/kai-scheduler/kai-scheduler/binder:v0.17.0")
    copy = Image(MIRROR, original.mirrored_in(MIRROR).repository, original.tag, DIGEST)
    values = kai_values(chart(KAI), KaiSettings(), PLACE, {original.name: copy})
    assert f"{values['global']['registry']}/binder:{values['binder']['image']['tag']}" == str(copy)


def test_yunikorn_has_three_images_of_one_name() -> None:
    names = {part: f"docker.io/apache/yunikorn:{part}-1.9.0" for part in ("scheduler", "admission", "web")}
    mirror = {name: Image(MIRROR, "apache/yunikorn", name.rpartition(":")[2], DIGEST) for name in names.values()}
    values = yunikorn_values(chart(YUNIKORN), ["team-a"], PLACE, mirror)
    assert values["image"]["tag"] == f"scheduler-1.9.0@{DIGEST}"
    assert values["admissionController"]["image"]["tag"] == f"admission-1.9.0@{DIGEST}"
    assert values["web"]["image"]["tag"] == f"web-1.9.0@{DIGEST}"


def test_images_that_an_operator_starts_are_listed() -> None:
    kai = chart(KAI)
    found = images_of(stand_in(kai), kai, {})
    assert "ghcr.io/kai-scheduler/kai-scheduler/scheduler:v0.17.0" in found
    assert "ghcr.io/kai-scheduler/kai-scheduler/queuecontroller:stand-in" in found
