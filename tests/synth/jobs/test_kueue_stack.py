"""Engine kueue in the templates: what is installed, and in which order queues come."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from podwright.sandbox.kubernetes.store import Key, KubernetesStore
from synthesis import synthesis

NAME = "shared-platform-worker"
Resource = dict[str, Any]


@pytest.fixture(scope="module")
def created() -> list[Resource]:
    return list(creation(synthesis(NAME).templates, "governance"))


def creation(templates: dict[str, Any], stack: str) -> Iterator[Resource]:
    """The resources of a stack and its nested ones as CloudFormation may create them, the last that can come first."""
    resources = templates[stack]["Resources"]
    done: set[str] = set()
    while len(done) < len(resources):
        waiting = [name for name in resources if name not in done]
        name = next(name for name in reversed(waiting) if done.issuperset(resources[name].get("DependsOn", [])))
        done.add(name)
        if resources[name]["Type"] == "AWS::CloudFormation::Stack":
            construct = f"{stack}{name.partition('NestedStack')[0]}"
            yield from creation(templates, next(key for key in templates if construct in key))
        yield resources[name]


def objects(created: list[Resource]) -> list[dict[str, Any]]:
    manifests = [item["Properties"]["Manifest"] for item in created if item["Type"].endswith("KubernetesResource")]
    return [item for manifest in manifests for item in json.loads(manifest)]


def release(created: list[Resource]) -> Resource:
    (items,) = [item for item in created if item["Type"] == "Custom::AWSCDK-EKS-HelmChart"]
    return items


def test_the_release_gets_the_configuration_that_the_policy_wants(created: list[Resource]) -> None:
    properties = release(created)["Properties"]
    assert (properties["Release"], properties["Namespace"], properties["Wait"]) == ("kueue", "kueue-system", True)
    values = json.loads(properties["Values"])
    tolerated = [item["key"] for item in values["controllerManager"]["tolerations"]]
    assert tolerated == ["sagemaker.amazonaws.com/node-health-status"]
    configuration = json.loads(values["managerConfig"]["controllerManagerConfigYaml"])
    assert configuration["waitForPodsReady"]["timeout"] == "600s"


def test_queues_come_after_kueue_and_after_the_namespaces_they_lie_in(created: list[Resource]) -> None:
    before = created[: created.index(release(created))]
    assert not any(item["apiVersion"].startswith("kueue") for item in objects(before))
    order = [(item["kind"], item["metadata"]["name"]) for item in objects(created)]
    queue = order.index(("ClusterQueue", "pretraining"))
    for earlier in (
        ("ResourceFlavor", "h200"),
        ("Topology", "p5en"),
        ("Cohort", "models"),
        ("Namespace", "team-pretraining"),
    ):
        assert order.index(earlier) < queue


def test_the_double_takes_every_object_in_the_order_of_creation(created: list[Resource]) -> None:
    store = KubernetesStore("1.34")
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    store.install("kueue")
    for item in objects(created):
        store.apply(item)
    kinds = [kind.rpartition("/")[2] for kind, _, _ in store.objects]
    assert (kinds.count("ClusterQueue"), kinds.count("LocalQueue"), kinds.count("ResourceFlavor")) == (3, 6, 1)
    labels = store.objects[Key("/Namespace", "", "team-pretraining")]["metadata"]["labels"]
    assert labels["podwright/team"] == "pretraining"
