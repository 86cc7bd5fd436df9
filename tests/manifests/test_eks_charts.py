"""Our own manifests for a new EKS cluster, against Kubernetes schemas."""

from typing import Any

import cdk8s
import kubernetes_validate
import pytest

from podwright.cdk8s_charts.device_plugins import NeuronDevicePlugin
from podwright.cdk8s_charts.node_readers import NodeMarkers, NodeReaders
from podwright.config.catalog.charts import NEURON_DEVICE_PLUGIN_IMAGE
from podwright.config.catalog.images import Image
from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.kubernetes_groups import NODE_MARKERS, NODE_READERS
from podwright.config.settings.groups import InstanceGroup

VERSIONS = ("1.33", "1.34", "1.35")


def neuron(*types: str, mirror: dict[str, Image] | None = None, **more: Any) -> list[dict[str, Any]]:
    groups = [InstanceGroup.model_validate({"instance_type": name, "count": 1, **more}) for name in types]
    return NeuronDevicePlugin(cdk8s.App(), "neuron", groups=groups, types=catalog(), mirror=mirror).to_json()


def pod(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    (daemon_set,) = [item for item in manifests if item["kind"] == "DaemonSet"]
    return daemon_set["spec"]["template"]["spec"]


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_are_valid(version: str) -> None:
    for manifest in (*neuron("ml.trn2.48xlarge"), *NodeReaders(cdk8s.App(), "readers").to_json()):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_without_neuron_devices_there_is_nothing() -> None:
    assert neuron("ml.p5en.48xlarge", "ml.m5.4xlarge") == []


def test_the_plugin_runs_on_neuron_nodes_whatever_their_taints() -> None:
    taints = [{"key": "team", "value": "a", "effect": "NoExecute"}]
    actual = pod(neuron("ml.trn2.48xlarge", "ml.trn1.32xlarge", "ml.m5.4xlarge", taints=taints))
    (term,) = actual["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["ml.trn1.32xlarge", "ml.trn2.48xlarge"]
    keys = {(item["key"], item.get("effect")) for item in actual["tolerations"]}
    assert {
        ("sagemaker.amazonaws.com/node-health-status", "NoSchedule"),
        ("aws.amazon.com/neuron", "NoSchedule"),
        ("team", "NoExecute"),
    } <= keys


def test_a_type_that_hyperpods_chart_leaves_out_is_in() -> None:
    assert "ml.trn2.3xlarge" in str(pod(neuron("ml.trn2.3xlarge"))["affinity"])


def test_a_mirrored_image_replaces_the_public_one() -> None:
    assert pod(neuron("ml.trn2.48xlarge"))["containers"][0]["image"] == NEURON_DEVICE_PLUGIN_IMAGE
    copy = Image("r.example", "podwright/neuron", "2", "sha256:" + "d" * 64)
    mirrored = neuron("ml.trn2.48xlarge", mirror={"public.ecr.aws/neuron/neuron-device-plugin": copy})
    assert pod(mirrored)["containers"][0]["image"] == f"r.example/podwright/neuron:2@sha256:{'d' * 64}"


def test_names_are_the_same_in_every_synthesis() -> None:
    assert [item["metadata"]["name"] for item in neuron("ml.trn2.48xlarge")] == ["neuron-device-plugin"] * 4


def test_node_markers_patch_nodes_alone_and_a_policy_limits_what() -> None:
    policy, of_policy, role, binding = NodeMarkers(cdk8s.App(), "markers").to_json()
    assert policy["kind"] == "ValidatingAdmissionPolicy"
    assert of_policy["spec"]["policyName"] == policy["metadata"]["name"]
    assert of_policy["spec"]["validationActions"] == ["Deny"]
    assert NODE_MARKERS in policy["spec"]["matchConditions"][0]["expression"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]
    assert [subject["name"] for subject in binding["subjects"]] == [NODE_MARKERS]


def test_node_readers_see_nodes_and_nothing_else() -> None:
    role, binding = NodeReaders(cdk8s.App(), "readers").to_json()
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == [NODE_READERS]
