"""What the parts of a platform are made of: charts and their values, layouts of GPUs, shares of queues."""

from typing import Any

import pytest

from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
from podwright.config.catalog.images import Image, gpu_operator_registry
from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.mig import MIG_LABEL, chart_layouts, partitions
from podwright.config.loading.load import environment_from
from podwright.config.loading.source import parse_source
from podwright.config.settings.cluster import AdoptedEks
from podwright.config.settings.environment import Environment
from podwright.config.settings.governance.teams import Engine, Team
from podwright.config.settings.platform import KUBEFLOW_TRAINER, KUBERAY, LEADER_WORKER_SET, KubeRay, TrainingJobQueue
from podwright.planning.helm.chart_values import SystemPlacement
from podwright.planning.helm.platform_values import cert_manager_values, kuberay_values, lws_values, trainer_values
from podwright.planning.helm.wanted_charts import wanted_charts
from podwright.planning.node.allocatable import kubelet_allocatable, requested
from podwright.planning.quota.queue_shares import Share, queue_shares

PLACEMENT = SystemPlacement({"group": "system"}, ({"key": "health", "operator": "Exists"},))
PLACED = {"nodeSelector": {"group": "system"}, "tolerations": [{"key": "health", "operator": "Exists"}]}
H200 = ("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb")


def environment(more: str, orchestrator: str = "eks") -> Environment:
    groups = "system: {instance_type: ml.m5.4xlarge, count: 2}, h200: {instance_type: ml.p5en.48xlarge, count: 2}"
    text = f"""
account: "111122223333"
region: us-west-2
network: {{zones: [usw2-az1, usw2-az2]}}
cluster: {{orchestrator: {orchestrator}}}
instance_groups: {{{groups}}}
{more}
"""
    return environment_from(parse_source(text, "test.yaml"), "test").environment


def test_charts_come_in_the_order_of_their_installation() -> None:
    parts = "{kuberay: {}, kubeflow_trainer: {}, leader_worker_set: {}}"
    expected = environment(f"platform: {parts}\ngovernance: {{engine: kueue}}")
    names = [item.chart.name for item in wanted_charts(expected)]
    assert names == [HYPERPOD_DEPENDENCIES, KUBERAY, KUBEFLOW_TRAINER, LEADER_WORKER_SET, "kueue"]
    assert wanted_charts(environment("", "slurm")) == ()


def test_a_cluster_with_the_dependencies_does_not_get_them_again() -> None:
    existing = AdoptedEks(
        name="old",
        security_group="sg-0123456789abcdef1",
        kubectl_role="arn:aws:iam::111122223333:role/Kubectl",
        dependencies_installed=True,
    )
    made = environment("platform: {kuberay: {}}")
    adopted = made.cluster.model_copy(update={"eks": made.cluster.eks.model_copy(update={"existing": existing})})
    names = [item.chart.name for item in wanted_charts(made.model_copy(update={"cluster": adopted}))]
    assert names == [KUBERAY]


@pytest.mark.parametrize(
    ("engine", "scheduler"),
    [(None, ""), ("hyperpod", ""), ("kueue", ""), ("kai", "kai-scheduler"), ("yunikorn", "yunikorn")],
)
def test_ray_clusters_are_gangs_of_the_engine_that_schedules_pods(engine: Engine | None, scheduler: str) -> None:
    values = kuberay_values(chart(KUBERAY), KubeRay(), engine, PLACEMENT, {})
    assert values["batchScheduler"] == {"name": scheduler}
    assert PLACED.items() <= values.items()
    assert "featureGates" not in values


def test_cron_jobs_of_ray_leave_the_other_gates_as_they_are() -> None:
    gates = kuberay_values(chart(KUBERAY), KubeRay(cron_jobs=True), None, PLACEMENT, {})["featureGates"]
    assert {gate["name"] for gate in gates if gate["enabled"]} >= {"RayCronJob", "RayJobDeletionPolicy"}


def test_copies_of_operators_images_are_named_as_each_chart_wants_them() -> None:
    digest = "sha256:" + "a" * 64
    copies = {
        name: Image("111122223333.dkr.ecr.us-west-2.amazonaws.com", f"podwright/{name}", "v1", digest)
        for name in ("quay.io/kuberay/operator", "registry.k8s.io/jobset/jobset", "registry.k8s.io/lws/lws")
    }
    image = kuberay_values(chart(KUBERAY), KubeRay(), None, PLACEMENT, copies)["image"]
    assert image["repository"] == "111122223333.dkr.ecr.us-west-2.amazonaws.com/podwright/quay.io/kuberay/operator"
    assert image["tag"] == f"v1@{digest}"
    jobset = trainer_values(chart(KUBEFLOW_TRAINER), PLACEMENT, copies)["jobset"]
    assert jobset["image"] == {
        "registry": "111122223333.dkr.ecr.us-west-2.amazonaws.com",
        "repository": "podwright/registry.k8s.io/jobset/jobset",
        "tag": f"v1@{digest}",
    }
    assert jobset["controller"] == PLACED
    leaders = lws_values(chart(LEADER_WORKER_SET), PLACEMENT, copies)
    assert leaders["image"]["manager"] == {
        "repository": "111122223333.dkr.ecr.us-west-2.amazonaws.com/podwright/registry.k8s.io/lws/lws",
        "tag": f"v1@{digest}",
    }
    assert PLACED.items() <= leaders.items()


def test_all_of_cert_manager_runs_on_the_system_group() -> None:
    assert cert_manager_values(PLACEMENT) == {**PLACED, "webhook": PLACED, "cainjector": PLACED}


def values(more: str) -> dict[str, Any]:
    charts = {item.chart.name: item for item in wanted_charts(environment(more))}
    resolved_chart = charts[HYPERPOD_DEPENDENCIES]
    assert resolved_chart
    return dict(resolved_chart.values)


def test_the_gpu_operator_takes_the_place_of_the_device_plugin() -> None:
    plain, partitioned = values(""), values("platform: {gpu_operator: {}}")
    assert plain["nvidia-device-plugin"]["devicePlugin"] == {"enabled": True}
    assert "gpu-operator" not in plain
    assert partitioned["nvidia-device-plugin"] == {"devicePlugin": {"enabled": False}}
    registry = "586794468202.dkr.ecr.us-west-2.amazonaws.com"
    assert partitioned["gpu-operator"]["enabled"] is True
    images = partitioned["gpu-operator"]["gpu-operator"]
    assert images["devicePlugin"] == {"repository": registry}
    assert images["migManager"] == {"repository": f"{registry}/mirror-cloud-native"}
    assert images["toolkit"] == {"repository": f"{registry}/mirror-k8s"}


def test_the_gpu_operator_takes_images_from_a_registry_of_yours() -> None:
    own = "111122223333.dkr.ecr.us-west-2.amazonaws.com"
    images = values(f"platform: {{gpu_operator: {{registry: {own}}}}}")["gpu-operator"]["gpu-operator"]
    assert {each["repository"].partition("/")[0] for each in images.values()} == {own}
    assert gpu_operator_registry("eu-west-1") == "741448945724.dkr.ecr.eu-west-1.amazonaws.com"
    assert gpu_operator_registry("af-south-1") is None


def test_parts_of_hyperpods_chart_can_be_off() -> None:
    off = values("platform: {pytorch_jobs: false, mpi_jobs: false}")
    assert (off["trainingOperators"], off["mpi-operator"]) == ({"enabled": False}, {"enabled": False})


def test_each_part_takes_room_on_the_system_group() -> None:
    none, all_off = (
        requested(environment(""), "deployment"),
        environment("platform: {pytorch_jobs: false, mpi_jobs: false}"),
    )
    assert none.pods - requested(all_off, "deployment").pods == 2
    some = environment("platform: {cert_manager: {}, training_operator: {}, kuberay: {}}")
    assert requested(some, "deployment").pods - none.pods == 5


def test_layouts_of_the_chart_fill_a_gpu_at_most() -> None:
    """Seven slices of compute and eight of memory are all that a GPU has."""
    for layout in chart_layouts():
        for profiles in (H200, ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")):
            actual = partitions({MIG_LABEL: layout}, profiles)
            compute = sum(count * int(profile[0]) for profile, count in (actual or {}).items())
            assert compute <= 7, layout
    assert partitions({MIG_LABEL: "mixed-3-1g.18gb-1-4g.71gb"}, H200) == {"1g.18gb": 3, "4g.71gb": 1}
    assert partitions({MIG_LABEL: "mixed-3-1g.10gb-1-4g.40gb"}, H200) is None


def test_a_share_says_what_its_team_does_everywhere() -> None:
    queue = TrainingJobQueue(
        capacity={"ml.p5.48xlarge": 9}, quota={"b": {"ml.p5.48xlarge": 4}, "a": {"ml.p5.48xlarge": 5}}
    )
    teams = {"a": Team(share="lend_and_borrow", borrow_limit_percent=20, preempt="never"), "b": Team(share="dont_lend")}
    assert queue_shares(queue, teams) == {
        "a": Share({"ml.p5.48xlarge": 5}, "LEND_AND_BORROW", 20, preempts=False),
        "b": Share({"ml.p5.48xlarge": 4}, "RESERVE", None, preempts=True),
    }


@pytest.mark.parametrize(
    ("name", "millis"),
    [
        ("ml.t3.medium", 1930),
        ("ml.t3.xlarge", 3920),
        ("ml.m5.2xlarge", 7910),
        ("ml.m5.4xlarge", 15890),
        ("ml.p5.48xlarge", 191450),
    ],
)
def test_cpu_for_pods_is_what_kubelets_of_the_image_show(name: str, millis: int) -> None:
    assert kubelet_allocatable(catalog().get(name)).cpu_millis == millis
