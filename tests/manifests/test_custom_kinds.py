"""The custom kinds that are held as data, and the double that serves them once their chart is installed."""

from typing import Any

import pytest
from jsonschema import Draft4Validator

from podwright.sandbox.kubernetes import custom_kinds
from podwright.sandbox.kubernetes.store import ApiError, Key, KubernetesStore

FILES = sorted(custom_kinds.names())


CHANNEL = {"resourceClaimTemplate": {"name": "c"}}


def domain(**spec: Any) -> dict[str, Any]:
    kind = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain"}
    return {**kind, "metadata": {"name": "d"}, "spec": {"numNodes": 18, "channel": CHANNEL, **spec}}


def queue(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec}


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_a_definition_with_its_source(name: str) -> None:
    content = custom_kinds.content(name)
    assert name == f"{content['group']}_{content['kind']}"
    assert content["source"]
    assert content["date"]
    assert content["installed_by"]
    for schema in content["versions"].values():
        Draft4Validator.check_schema(schema)
    manifest = custom_kinds.definition(content["group"], content["kind"])
    assert KubernetesStore("1.34").create(manifest)["metadata"]["name"] == f"{content['plural']}.{content['group']}"


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (domain(nodes=18), "('nodes' was unexpected)"),
        (domain(channel=CHANNEL | {"allocationMode": "Some"}), "spec.channel.allocationMode: 'Some' is not one of"),
        (domain(numNodes="18"), "spec.numNodes: '18' is not of type"),
        (domain(numNodes=-1), "spec.numNodes: -1 is less than the minimum"),
        (domain(), None),
    ],
)
def test_what_a_schema_refuses(manifest: dict[str, Any], reason: str | None) -> None:
    violations = custom_kinds.violations(manifest)
    assert violations == [] if reason is None else reason in violations[0]


def test_an_item_of_a_list_that_is_a_map_is_there_once() -> None:
    items = {"type": "object", "properties": {"name": {"type": "string"}}}
    listed = {"type": "array", "items": items, "x-kubernetes-list-map-keys": ["name"]}
    schema = {"type": "object", "properties": {"spec": listed}}
    assert custom_kinds.violations_of(schema, {"spec": [{"name": "cpu"}]}) == []
    (validation_error,) = custom_kinds.violations_of(schema, {"spec": [{"name": "cpu"}, {"name": "cpu"}]})
    assert validation_error.message == "cpu is there twice"


def test_a_kind_or_version_without_a_schema_of_ours_is_said() -> None:
    with pytest.raises(LookupError, match=r"kueue\.x-k8s\.io_ClusterQueue\.json is not in"):
        custom_kinds.violations(queue())
    with pytest.raises(LookupError, match="has no version v1alpha1"):
        custom_kinds.violations(domain() | {"apiVersion": "resource.nvidia.com/v1alpha1"})
    with pytest.raises(LookupError, match=r"no kind Queue of kueue\.x-k8s\.io"):
        custom_kinds.definition("kueue.x-k8s.io", "Queue")


def test_a_store_serves_them_once_their_chart_is_there() -> None:
    store = KubernetesStore("1.34")
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for manifest, owner in ((domain(), "nvidia-dra-driver-gpu"), (queue(), "kueue")):
        with pytest.raises(ApiError, match="ensure CRDs are installed first"):
            store.create(manifest)
        store.install(owner)
        assert store.create(manifest)["metadata"]["name"] == manifest["metadata"]["name"]
    with pytest.raises(ApiError, match=r"spec\.numNodes"):
        store.apply(domain(numNodes="18"))
    # Upstream has the schema of this one, and a store has not.
    assert store.apply(queue(stopPolicy="hold"))["spec"] == {"stopPolicy": "hold"}
    served = {item["name"]: item["shortNames"] for item in store.resources("kueue.x-k8s.io", "v1beta2")}
    assert served["clusterqueues"] == ["cq"]


def test_a_chart_that_brings_its_own_definition_keeps_it() -> None:
    store = KubernetesStore("1.34")
    own = custom_kinds.definition("kueue.x-k8s.io", "Topology")
    store.create(own | {"metadata": own["metadata"] | {"labels": {"from": "chart"}}})
    store.install("kueue")
    key = Key("apiextensions.k8s.io/CustomResourceDefinition", "", own["metadata"]["name"])
    assert store.objects[key]["metadata"]["labels"] == {"from": "chart"}


def test_a_pod_template_is_checked_as_kubernetes_checks_one() -> None:
    schema = {"type": "object", "properties": {"template": {"title": "PodTemplateSpec"}}}
    good = {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}
    assert custom_kinds.violations_of(schema, good) == []
    bad = {"template": {"spec": {"containers": [{"name": "a", "immage": "b"}]}}}
    (validation_errors,) = custom_kinds.violations_of(schema, bad)
    assert ".".join(map(str, validation_errors.absolute_path)) == "template.spec.containers.0"
