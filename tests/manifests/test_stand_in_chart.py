"""The stand-in for HyperPod's dependencies chart, rendered by the real Helm with the values of real environments."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
from podwright.config.catalog.instance_types import environment_types
from podwright.config.errors import CommandError
from podwright.config.loading.artifacts import stand_in_archive
from podwright.config.loading.project import Project
from podwright.config.settings.environment import Environment
from podwright.operations.artifacts.stand_ins import stand_in
from podwright.operations.programs.helm import images_in, render
from podwright.planning.helm.chart_values import dependencies_values

CHART = chart(HYPERPOD_DEPENDENCIES)
PROJECT = Project.at(Path(__file__).parents[2])


def values(environment: Environment) -> dict[str, Any]:
    types = environment_types(environment.instance_types)
    return dependencies_values(CHART, environment.groups.values(), types, region=environment.region)


def rendered(environment: Environment) -> list[dict[str, Any]]:
    text = render(stand_in(CHART), CHART, values(environment))
    return [document for document in YAML(typ="safe").load_all(text) if document]


@pytest.mark.parametrize("name", PROJECT.names)
def test_every_environment_renders_valid_manifests(name: str) -> None:
    environment = PROJECT.load(name).environment
    documents = rendered(environment)
    for document in documents:
        kubernetes_validate.validate(document, environment.cluster.eks.version, strict=True)
    assert {"Namespace", "Deployment"} <= {document["kind"] for document in documents}


def test_values_reach_the_manifests() -> None:
    environment = PROJECT.load("sandbox").environment
    sets = {item["metadata"]["name"]: item for item in rendered(environment) if item["kind"] == "DaemonSet"}
    assert set(sets) == {"nvidia-device-plugin", "aws-efa-k8s-device-plugin"}
    for item in sets.values():
        pod = item["spec"]["template"]["spec"]
        assert "sagemaker.amazonaws.com/node-health-status" in [taint["key"] for taint in pod["tolerations"]]
        (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == ["ml.p5en.48xlarge"]


def test_images_are_read_from_manifests() -> None:
    text = render(stand_in(CHART), CHART, values(PROJECT.load("sandbox").environment))
    assert images_in(text) == [
        "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:stand-in",
        "mpioperator/mpi-operator:stand-in",
        "nvcr.io/nvidia/k8s-device-plugin:stand-in",
    ]


def test_only_containers_run_images() -> None:
    text = """
kind: CustomResourceDefinition
spec: {containers: [{image: "not-this:1"}]}
---
kind: CronJob
spec:
  jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: flow:1}]}}}}
---
kind: Pod
metadata: {annotations: {image: "nor-this:2"}}
spec:
  image: nor-this:3
  initContainers:
    - image: "quoted:2"   # why
  containers:
    - name: without
    - image: 'single:3'
---
# nothing here
"""
    assert images_in(text) == ["flow:1", "quoted:2", "single:3"]


def test_a_chart_without_a_stand_in_of_its_own_shows_its_values() -> None:
    other = dataclasses.replace(CHART, name="other", namespace="elsewhere")
    archive = stand_in(other)
    assert (archive.name, archive.stand_in) == ("other", True)
    actual = YAML(typ="safe").load(render(archive, other, {"a": {"b": [1]}}))
    kubernetes_validate.validate(actual, "1.34", strict=True)
    assert (actual["metadata"]["name"], actual["metadata"]["namespace"]) == ("other-stand-in", "elsewhere")
    assert json.loads(actual["data"]["values.json"])["a"] == {"b": [1]}


def test_a_chart_that_does_not_render_says_why(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: broken, version: 0.1.0}")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "a.yaml").write_text("{{ .Values.missing.deep }}")
    with pytest.raises(CommandError, match="nil pointer"):
        render(stand_in_archive("broken", tmp_path), CHART, {})
