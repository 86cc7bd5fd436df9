"""Kueue's values through the real `helm template`, with the chart of Kueue's own module."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from needs import require
from podwright.config.catalog.charts import KUEUE, chart
from podwright.config.catalog.images import Image
from podwright.config.loading.artifacts import stand_in_archive
from podwright.config.settings.governance.teams import Governance
from podwright.operations.programs.helm import render
from podwright.planning.helm.chart_values import HEALTH_TOLERATION, SystemPlacement
from podwright.planning.helm.kueue_values import kueue_values, manager_configuration

CHART = Path(__file__).parents[3] / f".podwright/charts/kueue-{chart(KUEUE).version}"
COPY = Image.parse(f"1234.dkr.ecr.us-west-2.amazonaws.com/kueue:v{chart(KUEUE).version}@sha256:{'a' * 64}")
GOVERNANCE = Governance.model_validate({"engine": "kueue", "wait_for_pods": {"tries": 3}})
# What Kueue's chart adds to a configuration: names of the certificate that it makes itself.
OF_THE_CHART = {"internalCertManagement"}


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Every object by kind and name, but the schemas of Kueue's kinds."""
    return objects(tmp_path_factory.mktemp("kueue"), GOVERNANCE)


def objects(folder: Path, governance: Governance) -> dict[tuple[str, str], dict[str, Any]]:
    require(CHART.is_dir(), f"Kueue's chart at {CHART}, where .ci/run puts it")
    shutil.copytree(CHART, folder, dirs_exist_ok=True)
    # Schemas are most of the chart, take no values, and reading them would take longer than all the rest.
    shutil.rmtree(folder / "templates/crd")
    placement = SystemPlacement({"group": "system"}, (HEALTH_TOLERATION,))
    values = kueue_values(chart(KUEUE), governance, placement, mirror={"registry.k8s.io/kueue/kueue": COPY})
    text = render(stand_in_archive(KUEUE, folder), chart(KUEUE), values)
    actual = filter(None, yaml.load_all(text, yaml.CSafeLoader))
    return {(item["kind"], item["metadata"]["name"]): item for item in actual}


def test_helm_reads_the_configuration_as_it_was_meant(rendered: dict[tuple[str, str], dict[str, Any]]) -> None:
    manager = rendered["ConfigMap", "kueue-manager-config"]
    assert manager["metadata"]["namespace"] == "kueue-system"
    read = yaml.safe_load(manager["data"]["controller_manager_config.yaml"])
    assert {key: value for key, value in read.items() if key not in OF_THE_CHART} == manager_configuration(GOVERNANCE)


def test_managers_run_where_the_system_is(rendered: dict[tuple[str, str], dict[str, Any]]) -> None:
    deployment = rendered["Deployment", "kueue-controller-manager"]["spec"]
    pod = deployment["template"]["spec"]
    assert deployment["replicas"] == 2
    assert pod["nodeSelector"] == {"group": "system"}
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["sagemaker.amazonaws.com/node-health-status"]
    assert pod["priorityClassName"] == "system-cluster-critical"
    [container] = pod["containers"]
    assert container["image"] == f"{COPY.name}:{COPY.tag}@{COPY.digest}"
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "4Gi"}
    [spread] = pod["topologySpreadConstraints"]
    labels = deployment["template"]["metadata"]["labels"]
    assert spread["labelSelector"]["matchLabels"].items() <= labels.items(), "spread by labels that the pods have"
    assert rendered["PodDisruptionBudget", "kueue-manager-pdb"]["spec"]["minAvailable"] == 1


def test_pods_are_let_in_without_kueue_only_where_it_is_not_asked(tmp_path: Path, rendered: dict) -> None:
    """The chart reads the frameworks: without pods among them, a manager that is away stops no pod."""
    configuration = ("MutatingWebhookConfiguration", "kueue-mutating-webhook-configuration")
    jobs = Governance.model_validate({"engine": "kueue", "kueue": {"frameworks": ["batch/job"]}})
    policies = [
        {hook["name"]: hook["failurePolicy"] for hook in made[configuration]["webhooks"]}
        for made in (rendered, objects(tmp_path, jobs))
    ]
    assert [(policy["mpod.kb.io"], policy["mjob.kb.io"]) for policy in policies] == [
        ("Fail", "Fail"),
        ("Ignore", "Fail"),
    ]
