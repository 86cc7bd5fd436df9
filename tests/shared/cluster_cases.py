"""What holds for a cluster's objects, whether the sandbox's store has them or a real API server.

Each case gets the objects of a cluster that others use as well, so it makes a namespace of its own.
"""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.config.settings.governance.task_governance import ADDON, CONTROLLER, NAMESPACE
from podwright.sandbox.cloudformation.providers.base import Request
from podwright.sandbox.cloudformation.providers.kubernetes import Manifest, ObjectValue, Patch
from podwright.sandbox.eks import task_governance
from podwright.sandbox.kubernetes.cluster_objects import ApiError, ClusterObjects, Release, ensure_namespace

Case = Callable[[ClusterObjects], None]
DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def namespace_of(objects: ClusterObjects) -> str:
    """A new namespace."""
    name = f"case-{uuid.uuid4().hex[:8]}"
    ensure_namespace(objects, name)
    return name


def config_map(name: str, namespace: str, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def data_of(objects: ClusterObjects, namespace: str) -> dict[str, Any]:
    """The ConfigMaps of a namespace, less what a controller puts into each."""
    maps = objects.all("v1", "ConfigMap", namespace)
    return {
        item["metadata"]["name"]: item.get("data") for item in maps if item["metadata"]["name"] != "kube-root-ca.crt"
    }


def objects_come_change_and_go(objects: ClusterObjects) -> None:
    namespace = namespace_of(objects)
    made = objects.create(config_map("one", namespace, a="1", b="2"))
    with pytest.raises(ApiError, match='"one" already exists') as refused:
        objects.create(config_map("one", namespace))
    assert (refused.value.code, refused.value.reason) == (409, "AlreadyExists")
    changed = objects.apply(config_map("one", namespace, a="3"))
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert data_of(objects, namespace) == {"one": {"a": "3"}}
    objects.remove(made)
    assert objects.find("v1", "ConfigMap", "one", namespace) is None
    objects.remove(made)


def a_namespace_is_what_objects_without_one_get(objects: ClusterObjects) -> None:
    namespace, name = namespace_of(objects), f"map-{uuid.uuid4().hex[:8]}"
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    assert objects.create(manifest)["metadata"]["namespace"] == "default"
    assert objects.apply(manifest, namespace)["metadata"]["namespace"] == namespace
    objects.remove(manifest, namespace)
    assert objects.find("v1", "ConfigMap", name, namespace) is None
    assert objects.find("v1", "ConfigMap", name)
    objects.remove(manifest)


def what_is_not_served_or_not_there_is_refused(objects: ClusterObjects) -> None:
    manifest = {"apiVersion": "unknown.example.com/v1", "kind": "Thing", "metadata": {"name": "x"}}
    for write in (objects.create, objects.apply):
        with pytest.raises(ApiError, match='no matches for kind "Thing"'):
            write(manifest)
        with pytest.raises(ApiError, match='namespaces "nowhere" not found'):
            write(config_map("x", "nowhere"))
        with pytest.raises(ApiError, match="dta"):
            write(config_map("x", "default") | {"dta": {}})
    assert objects.find("unknown.example.com/v1", "Thing", "x") is None
    assert objects.all("unknown.example.com/v1", "Thing") == []
    objects.remove(manifest)


def objects_are_listed_by_namespace_and_labels(objects: ClusterObjects) -> None:
    namespace, label = namespace_of(objects), f"label-{uuid.uuid4().hex[:8]}"
    objects.create(config_map("one", namespace, {label: "a"}))
    objects.create(config_map("two", namespace, {label: "b"}))
    objects.create(config_map("three", namespace_of(objects), {label: "a"}))

    def names(*arguments: str) -> list[str]:
        return sorted(item["metadata"]["name"] for item in objects.all("v1", "ConfigMap", *arguments))

    assert names(namespace, label) == ["one", "two"]
    assert names(namespace, f"{label}=a") == ["one"]
    assert names("", f"{label}=a") == ["one", "three"]
    (item,) = objects.all("v1", "ConfigMap", namespace, f"{label}=b")
    assert (item["apiVersion"], item["kind"]) == ("v1", "ConfigMap")


def a_namespace_can_be_made_anew_at_once(objects: ClusterObjects) -> None:
    name = namespace_of(objects)
    namespace = objects.find("v1", "Namespace", name)
    assert namespace
    objects.create(config_map("one", name))
    objects.remove(namespace)
    ensure_namespace(objects, name)
    objects.create(config_map("two", name))
    assert list(data_of(objects, name)) == ["two"]


def an_existing_namespace_keeps_its_labels(objects: ClusterObjects) -> None:
    name = namespace_of(objects)
    objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": "llm"}}})
    ensure_namespace(objects, name)
    namespace = objects.find("v1", "Namespace", name)
    assert namespace
    assert namespace["metadata"]["labels"]["team"] == "llm"


def definition(group: str, **properties: str) -> dict[str, Any]:
    spec = {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}
    schema = {"type": "object", "properties": {"spec": spec}}
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": DEFINITION[0], "kind": DEFINITION[1], "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }  # fmt: skip


def a_custom_kind_is_served_as_soon_as_it_is_defined(objects: ClusterObjects) -> None:
    namespace, group = namespace_of(objects), f"g{uuid.uuid4().hex[:8]}.example.com"

    def widget(**spec: Any) -> dict[str, Any]:
        metadata = {"name": "w", "namespace": namespace}
        return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": metadata, "spec": spec}

    with pytest.raises(ApiError, match='no matches for kind "Widget"'):
        objects.create(widget(size=1))
    objects.create(definition(group, size="integer"))
    objects.create(widget(size=1))
    for wrong in ({"size": "large"}, {"sise": 1}):
        with pytest.raises(ApiError, match="spec"):
            objects.apply(widget(**wrong))
    objects.apply(definition(group, size="integer", color="string"))


def the_kinds_of_a_chart_are_installed_once(objects: ClusterObjects) -> None:
    objects.install("kueue")
    name = f"flavor-{uuid.uuid4().hex[:8]}"
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": name}}
    objects.create(flavor)
    definition = objects.find(*DEFINITION, "resourceflavors.kueue.x-k8s.io")
    objects.install("kueue")
    assert objects.find(*DEFINITION, "resourceflavors.kueue.x-k8s.io") == definition
    objects.remove(flavor)


def task_governance_makes_queues_and_takes_them_away(objects: ClusterObjects) -> None:
    queues = "kueue.x-k8s.io/v1beta2"
    quota = {
        "ComputeQuotaTarget": {"TeamName": "llm", "FairShareWeight": 10},
        "ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": 2}]},
    }
    policy = {"PriorityClasses": [{"Name": "training", "Weight": 90}]}
    objects.install(ADDON)
    assert not task_governance.installed(objects)
    task_governance.install(objects)
    assert task_governance.installed(objects)
    for _ in range(2):
        task_governance.apply_policy(objects, {}, policy)
        task_governance.apply_quota(objects, quota)
    (queue,) = objects.all(queues, "LocalQueue", "hyperpod-ns-llm")
    assert objects.find(queues, "ClusterQueue", queue["spec"]["clusterQueue"])
    assert [item["value"] for item in objects.all(queues, "WorkloadPriorityClass")] == [90]
    task_governance.remove_quota(objects, quota)
    task_governance.apply_policy(objects, policy, {})
    assert objects.all(queues, "WorkloadPriorityClass") == objects.all(queues, "ClusterQueue") == []
    task_governance.uninstall(objects)
    assert objects.find("apps/v1", "Deployment", CONTROLLER, NAMESPACE) is None


def request(**properties: Any) -> Request:
    """What a provider gets, as far as what it does to a cluster needs it."""
    clients: Any = None
    return Request("", "", "", "", "us-west-2", properties, clients)


def manifests_are_applied_pruned_and_deleted(objects: ClusterObjects) -> None:
    name, label = f"case-{uuid.uuid4().hex[:8]}", f"prune-{uuid.uuid4().hex[:8]}"
    metadata = {"name": name, "labels": {label: ""}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": {**metadata, "namespace": name},
        "spec": {"selector": {"app": "none"}, "ports": [{"port": 80}]},
    }  # fmt: skip
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {**metadata, "namespace": name}}

    def run(kind: str, *items: dict[str, Any]) -> None:
        Manifest().run(request(Manifest=json.dumps([namespace, *items]), PruneLabel=label), objects, kind)

    one, two = (config_map(each, name, {label: ""}, a="1", b="2") for each in ("one", "two"))
    run("Create", service, one, two, quota)
    with pytest.raises(ApiError, match="already exists"):
        run("Create")
    run("Update", service, one | {"data": {"a": "3"}})
    assert data_of(objects, name) == {"one": {"a": "3"}}
    assert objects.find("v1", "Service", name, name)
    assert objects.find("v1", "ResourceQuota", name, name), "kubectl prunes no quotas"
    run("Delete", service, one)
    assert objects.find("v1", "Namespace", name) is None
    run("Delete", service, one)


def fields_are_patched_and_read(objects: ClusterObjects) -> None:
    namespace = namespace_of(objects)
    objects.create(config_map("one", namespace, a="1", b="2"))
    patch = request(
        ResourceName="configmap/one", ResourceNamespace=namespace, PatchType="merge",
        ApplyPatchJson=json.dumps({"data": {"a": "3", "b": None}}), RestorePatchJson=json.dumps({"data": {"a": "1"}}),
    )  # fmt: skip
    Patch().run(patch, objects, "Create")
    assert data_of(objects, namespace) == {"one": {"a": "3"}}
    Patch().run(patch, objects, "Delete")
    value = {"ObjectType": "configmaps", "ObjectName": "one", "ObjectNamespace": namespace}
    assert ObjectValue().run(request(**value, JsonPath="{.data.a}"), objects, "Create") == {"Value": "1"}
    with pytest.raises(ApiError, match=r"\{\.data\.b\} of configmaps/one is not set"):
        ObjectValue().run(request(**value, JsonPath="{.data.b}"), objects, "Create")
    with pytest.raises(ApiError, match='configmaps "two" not found'):
        ObjectValue().run(request(**value | {"ObjectName": "two"}, JsonPath="{.data.a}"), objects, "Create")


TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: rendered}
data: {value: {{ .Values.value | quote }}, kubernetes: {{ .Capabilities.KubeVersion.Version | quote }}}
"""


def upgrade(objects: ClusterObjects, folder: Path, namespace: str, templates: dict[str, str], **values: str) -> None:
    """Install or change the release `mine` of a small chart with these templates."""
    chart = folder / uuid.uuid4().hex
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: small\nversion: 1.2.3\n")
    for name, text in templates.items():
        (chart / "templates" / f"{name}.yaml").write_text(text)
    (folder / "values.json").write_text(json.dumps(values))
    objects.upgrade(Release("mine", namespace, chart, folder / "values.json", makes_namespace=True, skips_crds=False))


def a_release_is_installed_changed_and_deleted(objects: ClusterObjects, folder: Path) -> None:
    namespace = f"case-{uuid.uuid4().hex[:8]}"
    extra = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {a: b}\n"
    upgrade(objects, folder, namespace, {"one": TEMPLATE, "two": extra}, value="first")
    rendered = data_of(objects, namespace)
    assert rendered["rendered"]["value"] == "first"
    assert rendered["rendered"]["kubernetes"].startswith(f"v{objects.version}")
    assert rendered["extra"] == {"a": "b"}
    upgrade(objects, folder, namespace, {"one": TEMPLATE}, value="second")
    assert [(name, item["value"]) for name, item in data_of(objects, namespace).items()] == [("rendered", "second")]
    secrets = objects.all("v1", "Secret", namespace, "owner=helm,name=mine")
    statuses = {item["metadata"]["name"]: item["metadata"]["labels"]["status"] for item in secrets}
    assert statuses == {"sh.helm.release.v1.mine.v1": "superseded", "sh.helm.release.v1.mine.v2": "deployed"}
    for _ in range(2):
        objects.uninstall("mine", namespace)
    assert data_of(objects, namespace) == {}
    assert objects.all("v1", "Secret", namespace, "owner=helm") == []


def an_empty_chart_is_a_release(objects: ClusterObjects, folder: Path) -> None:
    namespace = namespace_of(objects)
    upgrade(objects, folder, namespace, {})
    assert len(objects.all("v1", "Secret", namespace, "owner=helm,name=mine")) == 1


CASES: list[Case] = [
    objects_come_change_and_go,
    a_namespace_is_what_objects_without_one_get,
    what_is_not_served_or_not_there_is_refused,
    objects_are_listed_by_namespace_and_labels,
    a_namespace_can_be_made_anew_at_once,
    an_existing_namespace_keeps_its_labels,
    a_custom_kind_is_served_as_soon_as_it_is_defined,
    the_kinds_of_a_chart_are_installed_once,
    task_governance_makes_queues_and_takes_them_away,
    manifests_are_applied_pruned_and_deleted,
    fields_are_patched_and_read,
]
CHART_CASES = [a_release_is_installed_changed_and_deleted, an_empty_chart_is_a_release]
