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
    """The objects of a resource's property `Manifest`, which holds them as one text.

    Where CloudFormation fills in a part of that text, the string around it is a Fn::Join, or the function itself.
    """
    parts = [manifest] if isinstance(manifest, str) else manifest["Fn::Join"][1]
    # Characters that no object has hold the places of what is filled in, which is always within a string.
    marked = "".join(part if isinstance(part, str) else f"\0{index}\0" for index, part in enumerate(parts))
    return _filled(json.loads(marked, strict=False), parts)


def objects_by_name(manifest: Any) -> dict[str, dict[str, Any]]:
    """The same by kind and name, such as `NetworkPolicy[research.deny-all]`: with the namespace, if it has one."""
    return {_key(item): item for item in manifest_objects(manifest)}


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


def _key(item: dict[str, Any]) -> str:
    named = _named(item)
    return f"{named['kind']}[{'.'.join(filter(None, (named['namespace'], named['name'])))}]"


def _filled(value: Any, parts: list[Any]) -> Any:
    """A value with what CloudFormation fills in at the places that hold its numbers."""
    if isinstance(value, dict):
        return {key: _filled(item, parts) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, parts) for item in value]
    if not isinstance(value, str) or "\0" not in value:
        return value
    # Every second piece is a number.
    pieces = [parts[int(piece)] if odd % 2 else piece for odd, piece in enumerate(value.split("\0"))]
    joined = [piece for piece in pieces if piece]
    return joined[0] if len(joined) == 1 else {"Fn::Join": ["", joined]}
