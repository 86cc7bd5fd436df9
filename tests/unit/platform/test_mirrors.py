"""What a closed network still lacks, and where its copies lie."""

from typing import Any

from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, NEURON_DEVICE_PLUGIN_IMAGE, chart
from podwright.config.loading.artifacts import Artifacts, LockedChart
from podwright.config.loading.load import environment_from
from podwright.config.loading.source import parse_source
from podwright.config.settings.environment import Environment
from podwright.planning.helm.mirrors import foreign_images, mirror_findings, mirror_of
from podwright.planning.helm.own_images import BENCHMARK_LABELS_IMAGE

CHART = chart(HYPERPOD_DEPENDENCIES)
REGISTRY = "111122223333.dkr.ecr.us-west-2.amazonaws.com"
DIGEST = "sha256:" + "c" * 64
LOCKED = {
    "version": CHART.version,
    "repository": CHART.repository,
    "revision": CHART.revision,
    "sha256": "0" * 64,
    "images": [
        "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.5",
        "docker.io/mpioperator/mpi-operator:0.5",
        "nvcr.io/nvidia/k8s-device-plugin:v0.16.1",
    ],
}


OWN_SCRIPTS = "lifecycle: {source: s3://sagemaker-own/scripts, on_create: run.sh}"


def environment(*types: str, endpoints: str = "closed", scripts: str = OWN_SCRIPTS) -> Environment:
    groups = "".join(
        f"  g{number}: {{instance_type: {name}, count: 1, {scripts}}}\n" for number, name in enumerate(types)
    )
    network = f"network: {{zones: [usw2-az1, usw2-az2], endpoints: {endpoints}}}"
    text = f"account: '111122223333'\nregion: us-west-2\n{network}\ninstance_groups:\n{groups}"
    return environment_from(parse_source(text, "test.yaml"), "test").environment


def artifacts(**mirrored: str) -> Artifacts:
    mirrors: dict[str, Any] = {REGISTRY: mirrored} if mirrored else {}
    return Artifacts(charts={CHART.name: LockedChart.model_validate(LOCKED)}, mirrors=mirrors)


def names(actual: Environment, subject: Artifacts) -> list[str]:
    return [image.name for image in foreign_images(actual, subject)]


def test_images_of_ecr_and_of_parts_that_are_off_need_no_mirror() -> None:
    mpi, nvidia = "docker.io/mpioperator/mpi-operator", "nvcr.io/nvidia/k8s-device-plugin"
    assert names(environment("ml.p5en.48xlarge"), artifacts()) == [mpi, nvidia]
    assert names(environment("ml.m5.4xlarge"), artifacts()) == [mpi]
    neuron = NEURON_DEVICE_PLUGIN_IMAGE.partition(":")[0]
    assert names(environment("ml.trn2.48xlarge"), artifacts()) == [mpi, neuron]


def test_the_image_of_labels_needs_a_mirror_where_nodes_run_our_scripts() -> None:
    python = BENCHMARK_LABELS_IMAGE.partition(":")[0]
    assert names(environment("ml.m5.4xlarge", scripts="benchmarks: skip"), artifacts())[-1] == python


def test_a_closed_network_lacks_what_is_not_mirrored() -> None:
    findings = mirror_findings(environment("ml.p5en.48xlarge"), artifacts())
    assert [finding.id for finding in findings] == ["CHT006", "CHT006"]
    assert "nvcr.io/nvidia/k8s-device-plugin:v0.16.1" in findings[1].message
    assert "podwright images mirror test" in findings[1].hint
    mirrored = artifacts(**dict.fromkeys(LOCKED["images"][1:], DIGEST))
    assert mirror_findings(environment("ml.p5en.48xlarge"), mirrored) == []


def test_a_network_with_a_way_out_lacks_nothing() -> None:
    assert mirror_findings(environment("ml.p5en.48xlarge", endpoints="standard"), artifacts()) == []


def test_only_the_own_registry_counts() -> None:
    elsewhere = Artifacts(mirrors={"444455556666.dkr.ecr.us-west-2.amazonaws.com": {"nvcr.io/a/b:1": DIGEST}})
    assert mirror_of(environment("ml.m5.4xlarge"), elsewhere) == {}
    copy = mirror_of(environment("ml.m5.4xlarge"), artifacts(**{"nvcr.io/a/b:1": DIGEST}))["nvcr.io/a/b"]
    assert str(copy) == f"{REGISTRY}/podwright/nvcr.io/a/b:1@{DIGEST}"
