"""What a change of Kubernetes objects does: told object by object, not by the text in which a template holds them."""

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from podwright.operations.effects.changes import Row, changes
from podwright.operations.effects.templates import pairs
from podwright.operations.kubernetes.applied_objects import APPLIED, manifest_objects
from podwright.planning.delivery.effects import Effect

FILE_SYSTEM = {"Type": "AWS::FSx::FileSystem", "Properties": {"FileSystemType": "LUSTRE", "StorageType": "SSD"}}


def named(kind: str, spec: Mapping[str, Any], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": "one"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": copy.deepcopy(dict(spec))}


POD = {"spec": {"containers": [{"name": "main", "image": "a:1"}]}}
OBJECTS = [
    named("DaemonSet", {"template": POD, "minReadySeconds": 1}, "team"),
    named("Job", {"template": POD}, "team"),
    named("ClusterQueue", {"resourceGroups": [{"flavors": [{"name": "h200", "resources": [{"nominalQuota": 8}]}]}]}),
    named("LocalQueue", {"clusterQueue": "one"}, "team"),
    named("NetworkPolicy", {"egress": []}, "team"),
    named("NodePool", {"template": {"spec": {"taints": []}}, "limits": {"cpu": "4"}, "weight": 1}),
    named("HyperpodNodeClass", {"instanceGroups": ["a", "b"]}),
    named("ConfigMap", {}, "team"),
]


def template(objects: list[dict[str, Any]]) -> dict[str, Any]:
    properties = {"Manifest": json.dumps(objects), "ClusterName": "prod"}
    return {"prod-governance": {"Resources": {"Objects": {"Type": APPLIED, "Properties": properties}}}}


def rows_of(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[Row]:
    (change,) = changes(pairs(template(old), template(new)), "prod")
    return change.rows


def spec(items: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(item["spec"] for item in items if item["kind"] == kind)


@pytest.mark.parametrize(
    ("edit", "path", "effect"),
    [
        (
            lambda items: spec(items, "DaemonSet")["template"]["spec"]["containers"][0].update(image="a:2"),
            "Manifest.DaemonSet[team.one].spec.template.spec.containers[main].image",
            Effect.RESTARTS_PODS,
        ),
        (
            lambda items: spec(items, "DaemonSet").update(minReadySeconds=2),
            "Manifest.DaemonSet[team.one].spec.minReadySeconds",
            Effect.IN_PLACE,
        ),
        (
            lambda items: spec(items, "Job")["template"]["spec"].update(hostNetwork=True),
            "Manifest.Job[team.one].spec.template.spec.hostNetwork",
            Effect.REFUSED,
        ),
        (
            lambda items: spec(items, "ClusterQueue")["resourceGroups"][0]["flavors"][0]["resources"][0].update(
                nominalQuota=4
            ),
            "Manifest.ClusterQueue[one].spec.resourceGroups[0].flavors[h200].resources[0].nominalQuota",
            Effect.IN_PLACE,
        ),
        (
            lambda items: spec(items, "LocalQueue").update(clusterQueue="two"),
            "Manifest.LocalQueue[team.one].spec.clusterQueue",
            Effect.REFUSED,
        ),
        (
            lambda items: spec(items, "NodePool")["limits"].update(cpu="8"),
            "Manifest.NodePool[one].spec.limits.cpu",
            Effect.IN_PLACE,
        ),
        (
            lambda items: spec(items, "NodePool")["template"]["spec"]["taints"].append("new"),
            "Manifest.NodePool[one].spec.template.spec.taints[new]",
            Effect.ROLLS_NODES,
        ),
        (
            lambda items: spec(items, "HyperpodNodeClass")["instanceGroups"].remove("b"),
            "Manifest.HyperpodNodeClass[one].spec.instanceGroups[b]",
            Effect.ROLLS_NODES,
        ),
        (lambda items: items.pop(0), "Manifest.DaemonSet[team.one]", Effect.INTERRUPTS),
        (lambda items: items.pop(4), "Manifest.NetworkPolicy[team.one]", Effect.IN_PLACE),
        (lambda items: items.pop(), "Manifest.ConfigMap[team.one]", Effect.IN_PLACE),
        (lambda items: items.append(named("Secret", {})), "Manifest.Secret[one]", Effect.IN_PLACE),
    ],
)  # fmt: skip
def test_each_object_has_its_own_effect(edit: Callable[[list[dict[str, Any]]], Any], path: str, effect: Effect) -> None:
    edited = copy.deepcopy(OBJECTS)
    edit(edited)
    (row,) = rows_of(OBJECTS, edited)
    assert (row.property, row.effect) == (path, effect)
    assert row.known.what
    assert row.known.sources


def test_what_is_filled_in_is_compared_and_named_where_it_is() -> None:
    """A volume of a file system that is replaced has another source, which Kubernetes takes of no volume."""
    before, after = json.dumps([named("PersistentVolume", {"csi": {"volumeHandle": "|", "fs": "x-|"}})]).split('"|"')
    inner, rest = after.split("|")
    ids = {"Ref": "FileSystem"}, {"Fn::GetAtt": ["FileSystem", "DNSName"]}
    manifest = {"Fn::Join": ["", [f'{before}"', ids[0], f'"{inner}', ids[1], rest]]}
    source = manifest_objects(manifest)[0]["spec"]["csi"]
    assert source == {"volumeHandle": ids[0], "fs": {"Fn::Join": ["", ["x-", ids[1]]]}}
    old = {"Objects": {"Type": APPLIED, "Properties": {"Manifest": manifest}}, "FileSystem": FILE_SYSTEM}
    new = copy.deepcopy(old)
    new["FileSystem"]["Properties"]["StorageType"] = "HDD"
    resource_changes = changes(
        pairs({"prod-storage": {"Resources": old}}, {"prod-storage": {"Resources": new}}), "prod"
    )
    rows = {row.property: row for change in resource_changes if change.type == APPLIED for row in change.rows}
    assert rows.keys() == {f"Manifest.PersistentVolume[one].spec.csi.{field}" for field in ("volumeHandle", "fs")}
    assert {row.effect for row in rows.values()} == {Effect.REFUSED}
    assert {row.follows for row in rows.values()} == {"storage/FileSystem"}


def test_the_order_of_objects_and_of_their_fields_means_nothing() -> None:
    turned = [dict(reversed(item.items())) for item in reversed(OBJECTS)]
    assert changes(pairs(template(OBJECTS), template(turned)), "prod") == []
