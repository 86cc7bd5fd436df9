"""The Kubernetes objects that a deployment applied, as the templates of its stacks hold them.

CloudFormation knows them without anybody reaching the Kubernetes API. What Helm charts and controllers made besides is
not among them.
"""

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ..aws.account import Account
from ..aws.stacks import template

APPLIED: Final = "Custom::AWSCDK-EKS-KubernetesResource"
"""Type of the custom resources that hold them."""
_SHOWN_NAMES: Final = 12


def applied_objects(account: Account, stacks: Iterable[str]) -> list[dict[str, str]]:
    """Kind, namespace and name of each object, sorted, from the templates of stacks and nested stacks."""
    results = []
    for stack in stacks:
        resources = template(account, stack).get("Resources", {})
        for resource in resources.values():
            if resource["Type"] == APPLIED:
                results += map(_named, manifest_objects(resource["Properties"]["Manifest"]))
    return sorted(results, key=lambda item: (item["kind"], item["namespace"], item["name"]))


def manifest_objects(manifest: Any) -> list[dict[str, Any]]:
    """The objects of a resource's property `Manifest`, which holds them as one text."""
    return json.loads(_text(manifest))


class ObjectRow(NamedTuple):
    """The objects of one kind in one namespace."""

    namespace: str
    kind: str
    names: str
    """Of many the first."""


def object_rows(objects: Iterable[dict[str, str]]) -> list[ObjectRow]:
    """A row for each kind in each namespace, sorted."""
    rows: dict[tuple[str, str], list[str]] = {}
    for item in objects:
        rows.setdefault((item["namespace"], item["kind"]), []).append(item["name"])
    return [
        ObjectRow(namespace or "(cluster)", kind, ", ".join(names[:_SHOWN_NAMES]) + _rest(len(names)))
        for (namespace, kind), names in sorted(rows.items())
    ]


def _rest(count: int) -> str:
    return f" and {count - _SHOWN_NAMES:,} more" if count > _SHOWN_NAMES else ""


def _named(item: dict[str, Any]) -> dict[str, str]:
    metadata = item["metadata"]
    return {"kind": item["kind"], "namespace": metadata.get("namespace", ""), "name": metadata["name"]}


def _text(manifest: Any) -> str:
    """A manifest without what CloudFormation fills in: that is never part of a name."""
    if isinstance(manifest, str):
        return manifest
    return "".join(part if isinstance(part, str) else "" for part in manifest["Fn::Join"][1])
