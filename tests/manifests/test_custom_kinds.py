"""The custom kinds that are held as data, and the double that serves them once their chart is installed."""

from typing import Any

import pytest
from jsonschema import Draft4Validator

from podwright.sandbox.kubernetes import custom_kinds
from podwright.sandbox.kubernetes.store import ApiError, KubernetesStore

FILES = sorted(custom_kinds.names())


def queue(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec}


def flavors(*quotas: Any) -> dict[str, Any]:
    resources = [{"name": "cpu", "nominalQuota": quota} for quota in quotas]
    return {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": resources}]}]}


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
        (queue(cohort="c"), "('cohort' was unexpected)"),
        (queue(stopPolicy="hold"), "spec.stopPolicy: 'hold' is not one of"),
        (queue(**flavors("8GB")), "nominalQuota: '8GB' does not match"),
        (queue(**flavors(1.5)), "nominalQuota: 1.5 is not of type"),
        (queue(**flavors(1, 2)), "flavors.0.resources: cpu is there twice"),
        (queue(**flavors("96Gi")), None),
    ],
)
def test_what_a_schema_refuses(manifest: dict[str, Any], reason: str | None) -> None:
    violations = custom_kinds.violations(manifest)
    assert violations == [] if reason is None else reason in violations[0]


def test_a_kind_or_version_without_a_schema_is_said() -> None:
    with pytest.raises(LookupError, match=r"kueue\.x-k8s\.io_Queue\.json is not in"):
        custom_kinds.violations({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Queue"})
    with pytest.raises(LookupError, match="has no version v1alpha1"):
        custom_kinds.violations({"apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "ClusterQueue"})


def test_the_double_serves_them_once_their_chart_is_there() -> None:
    store = KubernetesStore("1.34")
    with pytest.raises(ApiError, match="ensure CRDs are installed first"):
        store.create(queue())
    store.install("kueue")
    store.create(queue(**flavors(4)))
    assert [key for key in store.objects if key[0] == "kueue.x-k8s.io/ClusterQueue"] == [
        ("kueue.x-k8s.io/ClusterQueue", "", "q")
    ]
    with pytest.raises(ApiError, match=r"spec\.stopPolicy"):
        store.apply(queue(stopPolicy="hold"))
    served = {item["name"]: item["shortNames"] for item in store.resources("kueue.x-k8s.io", "v1beta2")}
    assert served["clusterqueues"] == ["cq"]


def test_a_chart_that_brings_its_own_definition_keeps_it() -> None:
    store = KubernetesStore("1.34")
    own = custom_kinds.definition("kueue.x-k8s.io", "Topology")
    store.create(own | {"metadata": own["metadata"] | {"labels": {"from": "chart"}}})
    store.install("kueue")
    name = ("apiextensions.k8s.io/CustomResourceDefinition", "", own["metadata"]["name"])
    assert store.objects[name]["metadata"]["labels"] == {"from": "chart"}


def test_a_pod_template_is_checked_as_kubernetes_checks_one() -> None:
    schema = {"type": "object", "properties": {"template": {"title": "PodTemplateSpec"}}}
    good = {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}
    assert custom_kinds.violations_of(schema, good) == []
    bad = {"template": {"spec": {"containers": [{"name": "a", "immage": "b"}]}}}
    (validation_errors,) = custom_kinds.violations_of(schema, bad)
    assert ".".join(map(str, validation_errors.absolute_path)) == "template.spec.containers.0"
