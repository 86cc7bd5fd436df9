"""Engine kueue in the templates: what is installed, and in which order queues come."""

import json
from typing import Any

import pytest

from podwright.operations.sandbox.kubernetes import KubernetesStore
from synthesis import environment_of, synthesize

ENVIRONMENT = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2, taints: [{key: system, effect: NoSchedule}]}
  h100: {instance_type: ml.p5.48xlarge, count: 4, zone: usw2-az1}
governance:
  engine: kueue
  priorities: {inference: 100, training: 70}
  wait_for_pods: {tries: 5}
  departments: {science: {}}
  teams:
    research: {quota: {h100: 2}, department: science}
    product: {quota: {h100: 1}}
"""
Resources = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def resources() -> Resources:
    return synthesize(environment_of(ENVIRONMENT)).templates["governance"]["Resources"]


def of_type(resources: Resources, kind: str) -> Resources:
    return {name: item for name, item in resources.items() if item["Type"] == f"Custom::AWSCDK-EKS-{kind}"}


def manifests(resource: dict[str, Any]) -> list[dict[str, Any]]:
    return json.loads(resource["Properties"]["Manifest"])


def waits_for(resources: Resources, name: str) -> set[str]:
    """Everything that a resource depends on, directly or not."""
    found: set[str] = set()
    pending = [name]
    while pending:
        for other in resources[pending.pop()].get("DependsOn", []):
            if other not in found:
                found.add(other)
                pending.append(other)
    return found


def test_the_release_gets_the_configuration_that_the_policy_wants(resources: Resources) -> None:
    (release,) = of_type(resources, "HelmChart").values()
    properties = release["Properties"]
    assert (properties["Release"], properties["Namespace"], properties["Wait"]) == ("kueue", "kueue-system", True)
    values = json.loads(properties["Values"])
    tolerated = [item["key"] for item in values["controllerManager"]["tolerations"]]
    assert tolerated == ["sagemaker.amazonaws.com/node-health-status", "system"]
    configuration = json.loads(values["managerConfig"]["controllerManagerConfigYaml"])
    assert configuration["waitForPodsReady"]["requeuingStrategy"]["backoffLimitCount"] == 5


def test_queues_come_after_kueue_and_after_the_namespaces_they_lie_in(resources: Resources) -> None:
    (release,) = of_type(resources, "HelmChart")
    applied = of_type(resources, "KubernetesResource")
    holding = {
        (item["kind"], item["metadata"]["name"]): name
        for name, resource in applied.items()
        for item in manifests(resource)
    }
    needs = waits_for(resources, holding["ClusterQueue", "research"])
    for earlier in (
        ("ResourceFlavor", "h100"),
        ("Topology", "p5"),
        ("Cohort", "science"),
        ("Namespace", "team-research"),
    ):
        assert holding[earlier] in needs
    assert release in needs
    assert release in waits_for(resources, holding["ResourceFlavor", "h100"])
    assert holding["LocalQueue", "research"] == holding["ClusterQueue", "research"]


def test_the_double_takes_every_object_in_the_order_of_the_template(resources: Resources) -> None:
    store = KubernetesStore("1.34")
    store.install("kueue")
    applied = of_type(resources, "KubernetesResource")
    placed: set[str] = set()
    while len(placed) < len(applied):
        for name, resource in applied.items():
            if name not in placed and waits_for(resources, name) & applied.keys() <= placed:
                for item in manifests(resource):
                    store.apply(item)
                placed.add(name)
    kinds = [kind.rpartition("/")[2] for kind, _, _ in store.objects]
    assert (kinds.count("ClusterQueue"), kinds.count("LocalQueue"), kinds.count("ResourceFlavor")) == (2, 4, 1)
    labels = store.objects["/Namespace", "", "team-research"]["metadata"]["labels"]
    assert labels["podwright/team"] == "research"
