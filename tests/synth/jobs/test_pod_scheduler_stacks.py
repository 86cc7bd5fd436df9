"""Engines kai and yunikorn in the templates: what is installed, in which order queues come, and what nodes carry."""

import json
from typing import Any

import pytest

from podwright.cdk8s_charts.kai import kai_objects
from podwright.cdk8s_charts.yunikorn import yunikorn_objects
from podwright.config.catalog.instance_types import environment_types
from podwright.planning.helm.wanted_charts import wanted_charts
from podwright.planning.quota.policy import environment_policy
from podwright.sandbox.kubernetes.store import KubernetesStore
from synthesis import environment, environment_of, synthesis

KAI, YUNIKORN = "three-projects", "shared-platform"
Resources = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def kai() -> Resources:
    return synthesis(KAI).templates["governance"]["Resources"]


def before(resources: Resources, name: str) -> set[str]:
    """Everything that CloudFormation makes before a resource."""
    actual: set[str] = set()
    waiting = list(resources[name].get("DependsOn", []))
    while waiting:
        if (one := waiting.pop()) not in actual:
            actual.add(one)
            waiting += resources[one].get("DependsOn", [])
    return actual


def named(resources: Resources, *parts: str) -> list[str]:
    return [name for name in resources if all(part in name for part in parts)]


def test_queues_come_once_the_controller_that_checks_them_answers(kai: Resources) -> None:
    (wait,) = (name for name, item in kai.items() if item["Type"] == "Custom::PodwrightDeploymentReady")
    (release,) = (name for name, item in kai.items() if item["Type"] == "Custom::AWSCDK-EKS-HelmChart")
    properties = kai[wait]["Properties"]
    assert (properties["Namespace"], properties["Deployment"]) == ("kai-scheduler", "queue-controller")
    assert release in before(kai, wait)
    assert set(named(kai, "KaiReaders")) <= before(kai, wait)
    (pool,) = named(kai, "KaiQueuesQueueh100")
    assert wait in before(kai, pool)
    teams = named(kai, "KaiQueuesTeam")
    assert teams
    for team in teams:
        assert {wait, pool} <= before(kai, team)


def test_nodes_of_a_pool_carry_its_label_and_no_others_do() -> None:
    (cluster,) = synthesis(KAI).resources("AWS::SageMaker::Cluster").values()
    labels = {
        group["InstanceGroupName"]: group.get("KubernetesConfig", {}).get("Labels", {})
        for group in cluster["Properties"]["InstanceGroups"]
    }
    assert labels == {"h100": {"kai.scheduler/node-pool": "h100", "nvidia.com/gpu.memory": "81920"}, "system": {}}


def test_a_cluster_that_runs_yunikorn_gets_queues_and_no_release() -> None:
    actual = synthesis(YUNIKORN)
    releases = actual.resources("Custom::AWSCDK-EKS-HelmChart").values()
    assert [item["Properties"]["Release"] for item in releases] == ["hyperpod-dependencies"]
    resources = actual.templates["governance"]["Resources"]
    (name,) = named(resources, "YuniKornQueuesConfigMap")
    (item,) = json.loads(resources[name]["Properties"]["Manifest"])
    assert item["metadata"]["namespace"] == "yunikorn"


def test_a_new_yunikorn_is_a_chart_of_the_environment() -> None:
    text = """
account: "111122223333"
region: us-west-2
network: {cidr: 10.16.0.0/16, zones: [usw2-az2, usw2-az3]}
cluster: {eks: {admins: ["arn:aws:iam::111122223333:role/MlPlatform"]}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h200: {instance_type: ml.p5en.48xlarge, count: 4, zone: usw2-az2}
governance: {engine: yunikorn, teams: {a: {quota: {h200: 2}}, b: {quota: {h200: 2}}}}
"""
    (_, expected) = wanted_charts(environment_of(text))
    assert expected.chart.name == "yunikorn"
    assert expected.values["nodeSelector"] == {"sagemaker.amazonaws.com/instance-group-name": "system"}


def test_a_cluster_takes_all_of_it_once_the_chart_is_there() -> None:
    """The double refuses kinds that nobody has installed, and objects that their schemas refuse."""
    types = environment_types({})
    store = KubernetesStore("1.34")
    store.install("kai-scheduler")
    settings = environment(KAI).governance
    for item in kai_objects(environment_policy(environment(KAI), types), settings.kai, types):
        store.apply(item)
    assert ("scheduling.run.ai/Queue", "", "project-c.h100") in store.objects
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "yunikorn"}})
    policy = environment_policy(environment(YUNIKORN), types)
    for item in yunikorn_objects(policy, environment(YUNIKORN).governance.yunikorn):
        store.apply(item)
    assert ("/ConfigMap", "yunikorn", "yunikorn-configs") in store.objects
